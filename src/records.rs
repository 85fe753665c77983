//! What an endpoint keeps beside messages: records in JSON, each the state of a workflow in a queue of its own. So they are as
//! durable as messages are, and in every backup.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::engine::Client;
use crate::engine::Workflow;
use crate::error::Misuse;
use crate::error::OperateError;
use crate::error::QueueError;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::queue::Order;
use crate::queue::QueueOptions;

/// The queue in which an endpoint keeps its records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointRecords {
    queue: &'static str,
}

/// Why a record was not read or written.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    /// The engine is closed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The queue of records is not there.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// It is not what is kept there, or its name is none.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The engine did not take it.
    #[error("cannot keep it: {0}")]
    Refused(#[source] OperateError),
    /// It is not sure whose it would be.
    #[error("nothing new is said of {0} while a partition of the cluster is stopped; ask again")]
    Unsure(QueueName),
}

impl RecordError {
    /// Whether it is in a partition of a cluster with which no node goes on.
    pub(crate) fn is_of_stopped_partition(&self) -> bool {
        matches!(
            self,
            RecordError::Unavailable(Unavailable::PartitionStopped { .. })
                | RecordError::Queue(QueueError::Unavailable(Unavailable::PartitionStopped { .. }))
        )
    }
}

impl EndpointRecords {
    /// Records in the queue of this name, which nobody else may use.
    pub(crate) const fn new(queue: &'static str) -> EndpointRecords {
        EndpointRecords { queue }
    }

    /// Makes the queue.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine is; whatever else refuses it shows when a record is stored.
    pub(crate) async fn open(self, client: &Client) -> Result<(), Unavailable> {
        let options = QueueOptions { order: Order::Arrival, ..QueueOptions::default() };
        match client.own_queue(self.queue, options).await {
            Err(QueueError::Unavailable(unavailable)) => Err(unavailable),
            _ => Ok(()),
        }
    }

    /// Looks up a record.
    pub(crate) async fn load<T: DeserializeOwned>(
        self,
        client: &Client,
        name: &str,
    ) -> Result<Option<T>, RecordError> {
        let Some(state) = self.workflow(client, name)?.state().await? else { return Ok(None) };
        let wrong =
            |error: serde_json::Error| Misuse::new("a record", format!("{name:?} cannot be read: {error}"));
        Ok(Some(serde_json::from_slice(&state).map_err(wrong)?))
    }

    /// Puts a record in place of the one before, or removes it. It is durable when this returns.
    pub(crate) async fn store<T: Serialize>(
        self,
        client: &Client,
        name: &str,
        record: Option<&T>,
    ) -> Result<(), RecordError> {
        let state = record.map(|record| serde_json::to_vec(record).expect("text and numbers are JSON"));
        let stored = self.workflow(client, name)?.set_state(state.map(Bytes::from)).await;
        stored.map_err(|error| match error {
            OperateError::Unavailable(unavailable) => unavailable.into(),
            other => RecordError::Refused(other),
        })
    }

    fn workflow(self, client: &Client, name: &str) -> Result<Workflow, Misuse> {
        client.queue(self.queue)?.workflow(name)
    }
}
