//! What this endpoint keeps beside messages: records in JSON, each the state of a workflow in a queue of its own. So they are as
//! durable as messages are, and in every backup.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::Client;
use crate::engine::Workflow;
use crate::error::Misuse;
use crate::error::OperateError;
use crate::error::QueueError;
use crate::error::Unavailable;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::storage_queue::refused::Refused;

/// The queue in which records live; no storage queue can have this name.
pub(crate) const RECORDS_QUEUE: &str = "seriatim.storage";

/// Makes the queue in which records live.
///
/// # Errors
/// [`Unavailable`] when the engine is; a queue of this name with other options is taken as it is.
pub(crate) async fn open(client: &Client) -> Result<(), Unavailable> {
    let options = QueueOptions { order: Order::Arrival, ..QueueOptions::default() };
    match client.create_queue(RECORDS_QUEUE, options).await {
        Err(QueueError::Unavailable(unavailable)) => Err(unavailable),
        _ => Ok(()),
    }
}

/// Looks up a record.
pub(crate) async fn load<T: DeserializeOwned>(client: &Client, name: &str) -> Result<Option<T>, Refused> {
    let Some(state) = workflow(client, name)?.state().await? else { return Ok(None) };
    let wrong = |error: serde_json::Error| Misuse::new("a record of the storage queues", error.to_string());
    Ok(Some(serde_json::from_slice(&state).map_err(wrong)?))
}

/// Puts a record in place of the one before, or removes it. It is durable when this returns.
pub(crate) async fn store<T: Serialize>(
    client: &Client,
    name: &str,
    record: Option<&T>,
) -> Result<(), Refused> {
    let state = record.map(|record| serde_json::to_vec(record).expect("text and numbers are JSON"));
    let stored = workflow(client, name)?.set_state(state.map(Bytes::from)).await;
    stored.map_err(|error| match error {
        OperateError::Unavailable(unavailable) => unavailable.into(),
        other => Refused::busy(other.to_string()),
    })
}

fn workflow(client: &Client, name: &str) -> Result<Workflow, Misuse> {
    client.queue(RECORDS_QUEUE)?.workflow(name)
}
