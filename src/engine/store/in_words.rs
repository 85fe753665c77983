//! What has a name for people.

use std::collections::BTreeMap;

use crate::engine::rules::record::QueueId;
use crate::id::QueueName;

/// The queues' names, for those who know only numbers.
pub(crate) type QueueNames = BTreeMap<QueueId, QueueName>;

/// Something that has a name for people.
pub(crate) trait InWords {
    fn in_words(&self, names: &QueueNames) -> String;
}
