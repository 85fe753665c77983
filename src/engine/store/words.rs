//! Keys in words: what a report on a file calls a row.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::in_words::InWords;
use crate::engine::store::in_words::QueueNames;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::key::parts_of;
use crate::engine::store::table::Table;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// How many bytes of a key that makes no sense are shown.
const KEY_BYTES_SHOWN: usize = 64;

/// A row's key.
pub(crate) fn key_in_words<T: Table>(prefix: &T::Prefix, key: &T::Key, names: &QueueNames) -> String {
    let words = [prefix.in_words(names), key.in_words(names)];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A row's key from its bytes, which may make no sense.
pub(crate) fn bytes_in_words<T: Table>(key: &[u8], names: &QueueNames) -> String {
    match parts_of::<T::Prefix, T::Key>(key) {
        Some((prefix, key)) => key_in_words::<T>(&prefix, &key, names),
        None => hex(key),
    }
}

/// Bytes that have no name.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(KEY_BYTES_SHOWN)];
    let mut text = String::from("0x");
    shown.iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
    if shown.len() < bytes.len() {
        text.push_str("...");
    }
    text
}

impl InWords for () {
    fn in_words(&self, _names: &QueueNames) -> String {
        String::new()
    }
}

/// A rank or a ticket: the table says which.
impl InWords for u64 {
    fn in_words(&self, _names: &QueueNames) -> String {
        format!("at {self}")
    }
}

impl InWords for SequenceNumber {
    fn in_words(&self, _names: &QueueNames) -> String {
        format!("message {self}")
    }
}

impl InWords for QueueId {
    fn in_words(&self, names: &QueueNames) -> String {
        match names.get(self) {
            Some(name) => format!("queue {name}"),
            // What belongs to no queue belongs to them.
            None if *self == QueueId::OF_TOPICS => "topics".to_owned(),
            None => format!("queue number {}", self.0),
        }
    }
}

impl InWords for WorkflowRef {
    fn in_words(&self, _names: &QueueNames) -> String {
        match self {
            WorkflowRef::Single(sequence) => format!("message {sequence} alone"),
            WorkflowRef::Named(id) => format!("workflow {id:?}"),
        }
    }
}

impl InWords for WorkflowKey {
    fn in_words(&self, names: &QueueNames) -> String {
        format!("{}, {}", self.queue.in_words(names), self.stream.in_words(names))
    }
}

impl InWords for MessageKey {
    fn in_words(&self, names: &QueueNames) -> String {
        format!("{}, {}", self.queue.in_words(names), self.sequence.in_words(names))
    }
}

impl InWords for QueueName {
    fn in_words(&self, _names: &QueueNames) -> String {
        format!("topic {self}")
    }
}

impl InWords for MessageId {
    fn in_words(&self, _names: &QueueNames) -> String {
        format!("message ID {self:?}")
    }
}

impl InWords for Arc<str> {
    fn in_words(&self, _names: &QueueNames) -> String {
        format!("idempotency key {self:?}")
    }
}

impl InWords for Option<MessageId> {
    fn in_words(&self, _names: &QueueNames) -> String {
        match self {
            Some(id) => format!("after {id:?}"),
            None => "the first".to_owned(),
        }
    }
}

impl InWords for (String, SequenceNumber) {
    fn in_words(&self, _names: &QueueNames) -> String {
        format!("reason {:?}, message {}", self.0, self.1)
    }
}

impl InWords for (u64, SequenceNumber) {
    fn in_words(&self, _names: &QueueNames) -> String {
        format!("at {}, message {}", self.0, self.1)
    }
}

impl InWords for (Timestamp, WorkflowRef) {
    fn in_words(&self, names: &QueueNames) -> String {
        format!("since {}, {}", self.0, self.1.in_words(names))
    }
}

impl InWords for ReminderKey {
    fn in_words(&self, names: &QueueNames) -> String {
        let Some(reminder) = self.reminder() else { return "a reminder of nothing".to_owned() };
        let what = match &reminder.what {
            Remind::Due(sequence) => format!("message {sequence} is due"),
            Remind::Expiry(sequence) => format!("message {sequence} expires"),
            Remind::Gap(stream) => format!("gap of {}", stream.in_words(names)),
            Remind::Sweep(stream) => format!("sweep of {}", stream.in_words(names)),
            Remind::Forget(stream) => format!("forgetting {}", stream.in_words(names)),
            Remind::Duplicate(id) => format!("forgetting {}", id.in_words(names)),
            Remind::Idle => "the queue is idle".to_owned(),
            Remind::Answer(key) => format!("forgetting {}", key.in_words(names)),
            Remind::History => "forgetting the oldest of the history".to_owned(),
            Remind::Cursors => "forgetting the oldest cursors".to_owned(),
        };
        format!("{}, {what}, at {}", reminder.queue.in_words(names), reminder.due)
    }
}
