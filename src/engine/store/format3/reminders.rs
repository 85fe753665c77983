//! Reminders: rows that are all key, an instant, a queue, and what of it is due.

use std::sync::Arc;

use serde::Deserialize;

use crate::clock::Timestamp;
use crate::engine::rules::record;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::codec;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::key::prefix_of;
use crate::id::MessageId;
use crate::id::SequenceNumber;

#[derive(Debug, Deserialize)]
pub(crate) enum Remind {
    Due(SequenceNumber),
    Expiry(SequenceNumber),
    Gap(WorkflowRef),
    Sweep(WorkflowRef),
    Forget(WorkflowRef),
    Duplicate(MessageId),
    Idle,
    Answer(Arc<str>),
}

impl From<Remind> for record::Remind {
    fn from(old: Remind) -> record::Remind {
        match old {
            Remind::Due(sequence) => record::Remind::Due(sequence),
            Remind::Expiry(sequence) => record::Remind::Expiry(sequence),
            Remind::Gap(stream) => record::Remind::Gap(stream),
            Remind::Sweep(stream) => record::Remind::Sweep(stream),
            Remind::Forget(stream) => record::Remind::Forget(stream),
            Remind::Duplicate(id) => record::Remind::Duplicate(id),
            Remind::Idle => record::Remind::Idle,
            Remind::Answer(key) => record::Remind::Answer(key),
        }
    }
}

/// Today's key of a reminder, from the key it had; `None` when that makes no sense.
///
/// The messages are today's already.
pub(crate) fn reminder_key(old: &[u8]) -> Option<Vec<u8>> {
    let (due, rest) = old.split_first_chunk::<8>()?;
    let (queue, what) = rest.split_first_chunk::<4>()?;
    let what: Remind = codec::decode(what)?;
    let reminder = record::Reminder {
        due: Timestamp::from_millis(u64::from_be_bytes(*due)).into(),
        queue: QueueId(u32::from_be_bytes(*queue)),
        what: what.into(),
    };
    Some(prefix_of(&ReminderKey::new(&reminder)))
}
