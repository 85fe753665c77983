//! What a look shows: queues, workflows and messages as an operator sees them, with why and until when.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::shown;
use crate::engine::rules::holds::Hold;
use crate::engine::rules::rate_buckets::RateBuckets;
use crate::engine::rules::record::Attempt;
use crate::engine::rules::record::Counts;
use crate::engine::rules::record::DeadLetter;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::header::Headers;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::queue::QueueOptions;

/// A queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueView {
    /// Its name.
    pub name: QueueName,
    /// Its options.
    pub options: QueueOptions,
    /// How many messages are where, and how many ended how.
    pub counts: Counts,
    /// How many ended messages it remembers.
    pub history: u64,
    /// How many cursors of forgotten workflows it remembers.
    pub cursors: u64,
    /// How many of these were ever forgotten before their time, because there were too many.
    pub cursors_cut: u64,
    /// How many settled messages of after-ordered workflows were ever forgotten before their workflows, because a workflow
    /// had more than it may remember: a resend of one is not recognised.
    pub links_cut: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether its handlers are told to pause.
    pub paused: bool,
    /// Until when hand-out pauses because its rate is used up, while messages are ready.
    pub rate_limited_until: Option<Timestamp>,
    /// On a cluster, the partitions that no node goes on with: what they have of the queue is not counted.
    pub missing_partitions: Vec<u16>,
}

impl QueueView {
    /// What a look at a queue shows now.
    pub(crate) fn look(
        records: &dyn Records,
        rates: &RateBuckets,
        queue: &QueueRecord,
        now: ClockInstants,
    ) -> Read<QueueView> {
        let counters = records.counters(queue.id)?;
        let cursors = records.cursor_count(queue.id)?;
        let paced = rates.pauses_until(queue, now.engine).filter(|_| counters.counts.ready > 0);
        Ok(QueueView {
            rate_limited_until: paced.map(|until| shown(until, now)),
            name: queue.name.clone(),
            options: queue.options.clone(),
            counts: counters.counts,
            history: counters.history.kept(),
            cursors: cursors.kept,
            cursors_cut: cursors.cut,
            links_cut: cursors.links_cut,
            created_at: queue.created_at,
            paused: queue.paused,
            missing_partitions: Vec::new(),
        })
    }
}

/// A workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkflowView {
    /// Its ID; `None` for a message without one.
    pub workflow_id: Option<WorkflowId>,
    /// What it does, or why it does nothing.
    pub status: WorkflowStatus,
    /// The next position to settle, in order by position.
    pub next_position: Option<u64>,
    /// Unsettled messages that stand in its line, handed out ones included.
    pub messages: u64,
    /// Of these, those whose predecessor is missing.
    pub early: u64,
    /// Messages set aside by a consumer, or scheduled in order of arrival.
    pub set_aside: u64,
    /// Its dead letters.
    pub dead_letters: u64,
    /// Whether it keeps a state.
    pub has_state: bool,
    /// When that was last set, by the wall clock; `None` without a state, and for one that an older file has brought.
    pub state_set_at: Option<Timestamp>,
    /// Why it is held, oldest first and at most one of each kind; it goes on when the last is lifted.
    pub holds: Vec<Hold>,
    /// The gap later messages wait behind.
    pub gap: Option<Gap>,
    /// In order by position: the ranges from the next position on that are settled already, or given up, so that nothing waits for them;
    /// the first [`SETTLED_AHEAD_MAX`](crate::limits::SETTLED_AHEAD_MAX) of them.
    pub settled_ahead: Vec<(u64, u64)>,
    /// Ready, but hand-out of its queue pauses until then, because the queue's rate is used up.
    pub rate_limited_until: Option<Timestamp>,
}

/// What a workflow does, or why it does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum WorkflowStatus {
    /// Its next message can be handed out.
    Ready,
    /// Somebody holds it.
    Locked {
        /// Until when, if the holder does not renew.
        until: Timestamp,
    },
    /// Its head waits, and with it everything behind.
    Blocked {
        /// The message at its head.
        sequence_number: SequenceNumber,
        /// Until when; `None` until somebody acts.
        until: Option<Timestamp>,
        /// What the head waits for: its retry, or its consumer, who has set it aside.
        why: Deferral,
        /// The same in words; of a retry, what was said when it failed.
        reason: String,
    },
    /// Its head is scheduled.
    Scheduled {
        /// Until when.
        until: Timestamp,
    },
    /// The next message has not come; later ones wait.
    WaitingForPredecessor,
    /// It offers nothing until its causes are gone or somebody resumes it. This is the oldest of
    /// [`WorkflowView::holds`].
    Held(Hold),
    /// It has nothing to hand out.
    Idle,
}

/// A gap that later messages wait behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Gap {
    /// The first missing position, in order by position.
    pub first_missing: Option<u64>,
    /// The lowest position that waits, in order by position.
    pub first_waiting: Option<u64>,
    /// The message that is waited for, in after-order: the predecessor that a stored one names.
    pub missing_predecessor: Option<MessageId>,
    /// Since when messages wait.
    pub since: Timestamp,
    /// When the queue's gap policy acts; `None` when it already has, or as soon as the workflow comes to the gap.
    pub due: Option<Timestamp>,
}

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageView {
    /// Its number.
    pub sequence_number: SequenceNumber,
    /// Its position, in order by position.
    pub position: Option<u64>,
    /// The message it follows, in after-order.
    pub after: Option<MessageId>,
    /// What it stands behind, in after-order; `None` as long as the chain has not reached it.
    pub chain_place: Option<ChainPlace>,
    /// Where it is in its life.
    pub status: MessageStatus,
    /// Its workflow.
    pub workflow_id: Option<WorkflowId>,
    /// The sender's ID.
    pub message_id: Option<MessageId>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// How often it was handed out.
    pub delivery_count: u32,
    /// Until when somebody has it locked, if its holder does not renew.
    pub locked_until: Option<Timestamp>,
    /// Its last failed attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Its headers.
    pub headers: Headers,
    /// Its body.
    pub body: Bytes,
}

/// What stands before a message that the chain has reached, in after-order. The message that it names may be gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChainPlace {
    /// The nearest message before it that is stored, dead letters included.
    pub follows: Option<MessageId>,
    /// The nearest that is stored and no dead letter.
    pub follows_live: Option<MessageId>,
}

/// Where a message is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MessageStatus {
    /// It can be handed out, now or once those before it are settled.
    Ready,
    /// It is handed out.
    Locked {
        /// Until when, if its holder does not renew.
        until: Timestamp,
    },
    /// It is set aside.
    Deferred {
        /// Why.
        why: Deferral,
        /// Until when; `None` until its predecessor comes or somebody acts.
        until: Option<Timestamp>,
    },
    /// It is kept back.
    Scheduled {
        /// Until when.
        until: Timestamp,
    },
    /// It was moved aside for good.
    DeadLettered(DeadLetter),
}

/// Why a message is deferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deferral {
    /// A predecessor is missing.
    Early,
    /// It waits for its retry.
    Retry,
    /// The consumer set it aside.
    ByConsumer,
}

/// A dead letter in a listing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeadLetterView {
    /// Its number.
    pub sequence_number: SequenceNumber,
    /// Its workflow.
    pub workflow_id: Option<WorkflowId>,
    /// The sender's ID.
    pub message_id: Option<MessageId>,
    /// How often it was handed out.
    pub delivery_count: u32,
    /// Until when somebody has it locked, if its holder does not renew.
    pub locked_until: Option<Timestamp>,
    /// Why it was moved aside, and when.
    pub dead_letter: DeadLetter,
}
