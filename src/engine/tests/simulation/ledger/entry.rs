//! What is known of one message from answers alone.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::WorkflowRef;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::message::Place;

/// How a message has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Cancelled,
    Purged,
    Expired,
    /// Its dead letter became a new message.
    SentAnew,
    QueueGone,
}

/// A message that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) queue: QueueName,
    pub(crate) stream: WorkflowRef,
    pub(crate) place: Place,
    pub(crate) message_id: Option<MessageId>,
    pub(crate) scheduled_at: Option<Due>,
    /// From when on it may have expired: in engine time, and by the wall clock if it was scheduled.
    pub(crate) expires_at: Option<(Timestamp, Option<Timestamp>)>,
    /// The time to live that its sender gave, which a redrive begins anew.
    pub(crate) lives: Option<Duration>,
    /// The lowest and highest delivery count it could have: somebody may have given back what was taken from him.
    pub(crate) count: (u32, u32),
    /// The instant before which it may not be offered; the last one there is, if only asked for by number.
    pub(crate) not_before: Option<Due>,
    /// Whether somebody's word lets it be handed out although it is exhausted.
    pub(crate) is_excused: bool,
    /// Whether its consumer has set it aside.
    pub(crate) is_asked: bool,
    /// Whether it was hidden, which keeps it in its line.
    pub(crate) is_hidden: bool,
    /// Whether its last hand-out may be returned with the next: it was in a run that failed as a whole.
    pub(crate) may_return: bool,
    pub(crate) end: Option<End>,
}

impl Entry {
    /// The lowest and highest delivery count it can have when it is handed out again.
    pub(crate) fn next_count(&self) -> (u32, u32) {
        (self.count.0 + u32::from(!self.may_return), self.count.1 + 1)
    }
}

/// A lock as its holder knows it.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) queue: QueueName,
    pub(crate) stream: WorkflowRef,
    pub(crate) until: Timestamp,
    pub(crate) is_whole: bool,
    pub(crate) is_run: bool,
    /// What the holder has, in the order in which it was handed out, with the delivery counts.
    pub(crate) out: Vec<(crate::id::SequenceNumber, u32)>,
    /// Whether something of it may have been taken back.
    pub(crate) is_unsure: bool,
}
