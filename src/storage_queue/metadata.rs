//! Metadata of queues: names and values.

use std::collections::BTreeMap;

use http::HeaderMap;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::Client;
use crate::limits;
use crate::storage_queue::records::RECORDS;
use crate::storage_queue::refusal::StorageRefusal;

/// What the headers of metadata begin with.
const PREFIX: &str = "x-ms-meta-";

/// Names, in small letters, and values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// Reads the headers of a request.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Metadata, StorageRefusal> {
        let wrong =
            || StorageRefusal::bad("InvalidMetadata", "metadata are ASCII, and each name is given once");
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
            return Err(StorageRefusal::bad("MetadataTooLarge", message));
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

    /// Looks up the metadata of a queue.
    pub(crate) async fn load(client: &Client, queue: &str) -> Result<Metadata, StorageRefusal> {
        Ok(RECORDS.load(client, queue).await?.unwrap_or_default())
    }

    /// Sets them for a queue, in place of those before.
    pub(crate) async fn store(&self, client: &Client, queue: &str) -> Result<(), StorageRefusal> {
        Ok(RECORDS.store(client, queue, (!self.0.is_empty()).then_some(self)).await?)
    }
}
