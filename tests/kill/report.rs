//! What a process that may be killed and its ledger say to each other, a line of JSON each.
//!
//! An intent is said before the call, an answer after it: what was answered must be so, what was only meant may be.

use serde::Deserialize;
use serde::Serialize;
use seriatim::view::Counts;

use crate::kill::name::Name;
use crate::kill::name::Ordered;

/// One line of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A message is stored, found before anything was done with the file.
    Found(Seen, Status),
    /// All that is stored was found.
    Looked,
    /// Intent: send these.
    Sending(Vec<Name>),
    /// They were answered, each in its own way.
    Sent(Vec<(Name, Answer)>),
    /// Messages of one workflow were handed out under one lock.
    Received { hold: String, seen: Vec<Seen>, locked_until_ms: u64, lock_ms: u64 },
    /// Intent: settle some of a hold, at this instant or later.
    Settling { hold: String, endings: Vec<(Name, Ending)>, at_ms: u64 },
    /// The intended settle of a hold is done.
    Settled { hold: String },
    /// The intended settle of a hold was refused, at this instant or before.
    Refused { hold: String, why: String, at_ms: u64 },
    /// Intent: remove the dead letters of both queues.
    Purging,
    /// What a queue counts, said when nothing but dead letters is left.
    Counted(Ordered, Counts),
    /// Everything that could be done is done.
    Done,
    /// All that was held in this round is completed, by whomever.
    RoundOver,
    /// The engine cannot answer any more.
    Stopped(String),
}

/// A message as the process saw it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) queue: String,
    pub(crate) workflow_id: String,
    pub(crate) message_id: String,
    pub(crate) sequence: u64,
    pub(crate) delivery_count: u32,
    pub(crate) body: String,
}

/// Where a message was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// In the line of its workflow, wherever there.
    Waiting,
    /// Set aside by its consumer.
    Aside,
    /// Among the dead letters.
    DeadLettered,
}

/// The answer to a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It is stored under this number; a process that lies has none to tell.
    Accepted(Option<u64>),
    /// It was stored before, under this number.
    Duplicate(u64),
    /// It was completed before.
    AlreadySettled,
    /// It was refused or put aside, which nothing in these tests allows.
    Refused,
}

/// How a message of a hold is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    Completed,
    /// Completed, and its follow-up sent in the same transaction.
    CompletedWithFollowUp,
    /// To be tried again, now or later.
    Failed,
    /// Set aside, for good or until an instant.
    Aside,
    DeadLettered,
    /// Given back as if it had not been handed out.
    Released,
}

/// What the process is told once it has told what it found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// To be sent again, before anything else, in this order.
    pub(crate) again: Vec<Name>,
    /// The next message of each workflow that senders feed.
    pub(crate) next: Vec<Name>,
    /// Whether to remove the dead letters.
    pub(crate) purge: bool,
}

/// What a process is told that holds deliveries while it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Word {
    /// Begin a round: send, and receive what was sent.
    Hold,
    /// Settle what is held, whether or not it still is.
    Settle,
}
