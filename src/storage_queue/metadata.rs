//! Metadata of queues: names and values.

use std::collections::BTreeMap;

use http::HeaderMap;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::limits;
use crate::storage_queue::records::RECORDS;
use crate::storage_queue::refusal::StorageRefusal;

/// What the headers of metadata begin with.
const PREFIX: &str = "x-ms-meta-";

/// Names, in small letters, and values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Metadata(BTreeMap<String, String>);

/// Metadata as they are kept. All values of metadata are texts, so that the second form is never taken for the first.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum MetadataRecord {
    /// Those of the queue that was made then. Another queue of this name has none of them, however this one ended.
    OfQueue { queue_created_at: Timestamp, metadata: Metadata },
    /// Those of a queue that is just being made, or that were kept before it was written down whose they are.
    OfName(Metadata),
}

/// When a queue was made, if all say so: in a cluster it is the first instant of all partitions, of which some may be stopped.
pub(crate) fn made_at(view: &QueueView) -> Option<Timestamp> {
    view.missing_partitions.is_empty().then_some(view.created_at)
}

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

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Looks up the metadata of a queue that was made at an instant; without one, whatever is kept for its name.
    pub(crate) async fn load(
        client: &Client,
        queue: &str,
        created_at: Option<Timestamp>,
    ) -> Result<Metadata, StorageRefusal> {
        Ok(match RECORDS.load::<MetadataRecord>(client, queue).await? {
            Some(MetadataRecord::OfQueue { queue_created_at, metadata })
                if created_at.is_none_or(|created_at| queue_created_at == created_at) =>
            {
                metadata
            }
            Some(MetadataRecord::OfName(metadata)) => metadata,
            Some(MetadataRecord::OfQueue { .. }) | None => Metadata::default(),
        })
    }

    /// Sets them for a queue, in place of those before; without the instant at which it was made, for the next of this name.
    pub(crate) async fn store(
        self,
        client: &Client,
        queue: &str,
        created_at: Option<Timestamp>,
    ) -> Result<(), StorageRefusal> {
        let record = match (self.is_empty(), created_at) {
            (true, _) => None,
            (false, Some(queue_created_at)) => {
                Some(MetadataRecord::OfQueue { queue_created_at, metadata: self })
            }
            (false, None) => Some(MetadataRecord::OfName(self)),
        };
        Ok(RECORDS.store(client, queue, record.as_ref()).await?)
    }

    /// Removes those of a queue that was not made after all; of one that somebody else has made meanwhile they stay.
    pub(crate) async fn remove_unowned(client: &Client, queue: &str) -> Result<(), StorageRefusal> {
        match RECORDS.load::<MetadataRecord>(client, queue).await? {
            Some(MetadataRecord::OfName(_)) => Metadata::remove(client, queue).await,
            Some(MetadataRecord::OfQueue { .. }) | None => Ok(()),
        }
    }

    /// Removes those of a queue that is gone.
    pub(crate) async fn remove(client: &Client, queue: &str) -> Result<(), StorageRefusal> {
        Metadata::default().store(client, queue, None).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_read_as_they_are_kept_and_as_they_were_before() {
        let read = |json: &str| serde_json::from_str::<MetadataRecord>(json).unwrap();
        let metadata = |pairs: &[(&str, &str)]| {
            Metadata(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let kept = MetadataRecord::OfQueue {
            queue_created_at: Timestamp::from_millis(7),
            metadata: metadata(&[("purpose", "tests")]),
        };
        assert_eq!(read(&serde_json::to_string(&kept).unwrap()), kept);
        assert_eq!(read(r#"{"purpose":"tests"}"#), MetadataRecord::OfName(metadata(&[("purpose", "tests")])));
        let names = [("metadata", "a"), ("queue_created_at", "7")];
        assert_eq!(
            read(r#"{"metadata":"a","queue_created_at":"7"}"#),
            MetadataRecord::OfName(metadata(&names)),
            "names may be anything"
        );
    }
}
