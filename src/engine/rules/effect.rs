//! What a command causes outside, once its changes are on disk: wake-ups and events.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::rules::holds::HoldCause;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::token::LockToken;

/// Something to do after the commit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// A workflow of this queue has become ready.
    Work(QueueName),
    /// A workflow that somebody took whole has something for its holder, or is not held any more.
    AcceptedWork(LockToken),
    /// A dead letter of this queue can be handed out.
    DeadLetters(QueueName),
    /// A receive has looked at as many dead letters of this queue as it may; there are more to look at.
    MoreDeadLetters(QueueName),
    /// A receive has looked at as many expired messages of this queue as it may; there is more to look at.
    MoreWork(QueueName),
    /// The queue's rate is used up although there is something to hand out, to its receivers or to the holder of a workflow
    /// that was accepted. There is room again at this instant of engine time.
    Paced { queue: QueueName, holder: Option<LockToken>, until: Timestamp },
    /// There were as many locks as are allowed, and now there is one less.
    LocksFreed,
    /// Tell whoever listens.
    Event(Event),
}

/// Something that happened to a workflow and that an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// In which queue.
    pub queue: QueueName,
    /// In which workflow; `None` for a message without workflow ID.
    pub workflow: Option<WorkflowId>,
    /// Which message it is about, if it is about one.
    pub sequence_number: Option<SequenceNumber>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EventKind {
    /// The message at the head failed, and its workflow waits for its retry.
    Blocked {
        /// When it is tried again.
        until: Timestamp,
        /// Why it failed.
        reason: String,
    },
    /// The workflow is held.
    Held {
        /// Why.
        cause: HoldCause,
        /// What was said.
        reason: String,
    },
    /// The workflow goes on.
    Resumed,
    /// A predecessor is missing and has not come in time.
    Gap {
        /// Since when later messages wait.
        since: Timestamp,
    },
    /// Missing places were given up.
    GapSkipped {
        /// The first; an ordinal in an after-ordered workflow.
        from: u64,
        /// The last.
        to: u64,
    },
    /// The message was moved aside for good.
    DeadLettered {
        /// Why.
        reason: String,
    },
    /// The dead letter was put back.
    Redriven {
        /// Whether it returned to its own place.
        in_place: bool,
    },
    /// The queue was deleted, by a command or because it was idle.
    QueueDeleted,
}
