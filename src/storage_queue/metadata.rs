//! What is said of queues: names and values, kept as the state of a workflow in a queue of this endpoint's own.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::HeaderMap;

use crate::engine::Client;
use crate::engine::Workflow;
use crate::error::Misuse;
use crate::error::OperateError;
use crate::error::QueueError;
use crate::error::Unavailable;
use crate::limits;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::storage_queue::refused::Refused;

/// The queue in which metadata live; no storage queue can have this name.
pub(crate) const METADATA: &str = "seriatim.storage";

/// What the headers of metadata begin with.
const PREFIX: &str = "x-ms-meta-";

/// Names, in small letters, and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// Reads the headers of a request.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Metadata, Refused> {
        let wrong = || Refused::bad("InvalidMetadata", "metadata are ASCII, and each name is given once");
        let mut metadata = BTreeMap::new();
        let mut bytes = 0;
        for (name, value) in headers {
            let Some(name) = name.as_str().strip_prefix(PREFIX) else { continue };
            let value = value.to_str().map_err(|_| wrong())?.trim();
            bytes += name.len() + value.len();
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
            if !is_name || !begins || metadata.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(wrong());
            }
        }
        if bytes > limits::STORAGE_METADATA_BYTES_MAX {
            let message = format!("names and values have {bytes} bytes");
            return Err(Refused::bad("MetadataTooLarge", message));
        }
        Ok(Metadata(metadata))
    }

    /// As the headers of an answer.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(name, value)| (format!("{PREFIX}{name}"), value.clone()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Looks up what is said of a queue.
    pub(crate) async fn load(client: &Client, queue: &str) -> Result<Metadata, Refused> {
        let Some(state) = place(client, queue)?.state().await? else {
            return Ok(Metadata::default());
        };
        let wrong = |error: serde_json::Error| Misuse::new("metadata", error.to_string());
        Ok(Metadata(serde_json::from_slice(&state).map_err(wrong)?))
    }

    /// Says it of a queue, in place of what was said before.
    pub(crate) async fn store(&self, client: &Client, queue: &str) -> Result<(), Refused> {
        let state =
            (!self.0.is_empty()).then(|| serde_json::to_vec(&self.0).expect("text is JSON")).map(Bytes::from);
        place(client, queue)?.set_state(state).await.map_err(|error| match error {
            OperateError::Unavailable(unavailable) => unavailable.into(),
            other => Refused::busy(other.to_string()),
        })
    }
}

/// Makes the queue in which metadata live.
///
/// # Errors
/// [`Unavailable`] when the engine is; a queue of this name with other options is taken as it is.
pub(crate) async fn open(client: &Client) -> Result<(), Unavailable> {
    let options = QueueOptions { order: Order::Arrival, ..QueueOptions::default() };
    match client.create_queue(METADATA, options).await {
        Err(QueueError::Unavailable(unavailable)) => Err(unavailable),
        _ => Ok(()),
    }
}

fn place(client: &Client, queue: &str) -> Result<Workflow, Misuse> {
    client.queue(METADATA)?.workflow(queue)
}
