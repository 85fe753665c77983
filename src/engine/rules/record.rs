//! What is kept of queues, workflows and messages: the rows, without a word on how they are stored.

use std::hash::Hash;
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::rules::due::Due;
use crate::engine::rules::held_messages::HeldMessages;
use crate::engine::rules::history::HistorySpan;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::sparse::sparse_record;
use crate::header::Headers;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::SubscriptionName;
use crate::id::WorkflowId;
use crate::lookup::RecentKey;
use crate::queue::QueueOptions;
use crate::seldom::Blank;
use crate::seldom::Seldom;

/// The engine's own number of a queue; never reused, so that a queue made anew under an old name is another queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct QueueId(pub(crate) u32);

impl QueueId {
    /// What belongs to topics, and so to no queue; no queue is given this number.
    pub(crate) const OF_TOPICS: QueueId = QueueId(0);
}

/// A message's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct MessageKey {
    pub(crate) queue: QueueId,
    pub(crate) sequence: SequenceNumber,
}

/// Which workflow of a queue: a named one, or the one a message without workflow ID is for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum WorkflowRef {
    Single(SequenceNumber),
    Named(WorkflowId),
}

impl Hash for WorkflowRef {
    /// In one go, because every command does it again and again: which of the two it is tells its bytes well enough.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            WorkflowRef::Single(sequence) => state.write_u64(sequence.get()),
            WorkflowRef::Named(id) => state.write(id.as_str().as_bytes()),
        }
    }
}

impl WorkflowRef {
    /// Comes before every other.
    pub(crate) const FIRST: WorkflowRef = WorkflowRef::Single(SequenceNumber::new(0));

    #[inline]
    pub(crate) fn workflow_id(&self) -> Option<&WorkflowId> {
        match self {
            WorkflowRef::Named(id) => Some(id),
            WorkflowRef::Single(_) => None,
        }
    }
}

/// A workflow's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct WorkflowKey {
    pub(crate) queue: QueueId,
    pub(crate) stream: WorkflowRef,
}

impl RecentKey for WorkflowKey {
    /// Where the text of the ID is: whoever found the workflow has the ID as it is kept.
    #[inline]
    fn hint(&self) -> usize {
        match &self.stream {
            WorkflowRef::Single(sequence) => sequence.get() as usize,
            // No text begins less than so many bytes behind another one.
            WorkflowRef::Named(id) => id.as_str().as_ptr().addr() / 16,
        }
    }
}

impl RecentKey for QueueId {
    fn hint(&self) -> usize {
        self.0 as usize
    }
}

/// A queue's name and options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueRecord {
    pub(crate) id: QueueId,
    pub(crate) name: QueueName,
    pub(crate) options: QueueOptions,
    pub(crate) created_at: Timestamp,
    /// The instant of the pending idle reminder, when the queue is deleted on idle.
    pub(crate) idle_check: Option<Timestamp>,
    /// Whether an operator has told the handlers of the queue to pause. The rules hand out as ever.
    pub(crate) paused: bool,
}

/// How many messages of a queue are where (the first block), and how many ended how (the second).
///
/// Conservation: `accepted` equals the sum of all others, at every commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// Messages that could be handed out now or once those before them are settled.
    pub ready: u64,
    /// Messages handed out under a lock.
    pub locked: u64,
    /// Deferred: a predecessor is missing.
    pub early: u64,
    /// Deferred: waiting for the retry after a failure.
    pub retry: u64,
    /// Deferred: failed as often as allowed, at the head of a held workflow, without a reminder.
    pub exhausted: u64,
    /// Deferred: set aside by the consumer.
    pub by_consumer: u64,
    /// Waiting for their scheduled instant.
    pub scheduled: u64,
    /// Dead letters.
    pub dead_lettered: u64,
    /// Ended: completed.
    pub completed: u64,
    /// Ended: expired and dropped.
    pub expired: u64,
    /// Ended: cancelled before their instant.
    pub cancelled: u64,
    /// Ended: purged.
    pub purged: u64,
    /// All messages ever accepted.
    pub accepted: u64,
}

impl Counts {
    /// How many messages are stored, dead letters included.
    pub fn stored(&self) -> u64 {
        self.ready
            + self.locked
            + self.early
            + self.retry
            + self.exhausted
            + self.by_consumer
            + self.scheduled
            + self.dead_lettered
    }

    /// How many messages count against the queue's limit: all that are stored, but for dead letters.
    pub(crate) fn limited(&self) -> u64 {
        self.stored() - self.dead_lettered
    }

    /// Whether every accepted message is accounted for.
    pub fn conserved(&self) -> bool {
        self.accepted == self.stored() + self.completed + self.expired + self.cancelled + self.purged
    }
}

/// A queue's counters, the instant of its last use, and which entries of its history are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueCounters {
    pub(crate) counts: Counts,
    pub(crate) used_at: Timestamp,
    pub(crate) history: HistorySpan,
}

/// Where a message is in its life. Whether a `Ready` one is early is said by its rank, not here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    #[default]
    Ready,
    /// Not before `due`.
    Scheduled {
        due: Due,
    },
    /// Waits for its retry; without `due` it is exhausted.
    Failed {
        due: Option<Due>,
    },
    /// Set aside by the consumer; with `due` it comes back by itself. Unless `aside`, its workflow waits for it.
    ByConsumer {
        due: Option<Due>,
        aside: bool,
    },
    /// Handed out; with the deferral it had when it was fetched by number.
    Locked {
        fetched: Option<DeferralRecord>,
    },
    DeadLettered(Box<DeadLetter>),
}

impl Status {
    /// Where a message is again whose holder has not started it: set aside, if it was fetched by its number.
    pub(crate) fn of_unstarted(fetched: Option<DeferralRecord>) -> Status {
        fetched.map_or(Status::Ready, |DeferralRecord { due, aside }| Status::ByConsumer { due, aside })
    }
}

/// How a message was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeferralRecord {
    pub(crate) due: Option<Due>,
    pub(crate) aside: bool,
}

/// Why a message was moved aside for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// A short reason, by which dead letters are listed.
    pub reason: String,
    /// What else was said.
    pub description: String,
    /// When.
    pub at: Timestamp,
    /// How often it was handed out as a dead letter.
    pub deliveries: u32,
    /// Whether its receiver has set it aside: it is handed out again to whoever asks for it by its number.
    pub deferred: bool,
}

impl DeadLetter {
    /// A message that becomes a dead letter.
    pub(crate) fn new(reason: &str, description: String, at: Timestamp) -> DeadLetter {
        DeadLetter { reason: reason.to_owned(), description, at, deliveries: 0, deferred: false }
    }
}

/// Why a message has failed whose lock ran out.
pub(crate) const LOCK_LOST: &str = "the lock was lost";

/// One failed attempt at a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The delivery count of the attempt.
    pub delivery_count: u32,
    /// When it was handed out.
    pub at: Timestamp,
    /// How long it was held.
    pub lasted: Duration,
    /// Why it failed.
    pub reason: String,
    /// What its handler wrote.
    pub output: Output,
}

impl Attempt {
    /// Bytes of the texts in it.
    pub(crate) fn len(&self) -> usize {
        self.reason.len() + self.output.text.len()
    }
}

/// What changes of a message during its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageRecord {
    pub(crate) stream: WorkflowRef,
    /// Its place in the line; `None` in after-order while its predecessor is not in the run.
    pub(crate) rank: Option<u64>,
    pub(crate) message_id: Option<MessageId>,
    pub(crate) status: Status,
    /// By the wall clock.
    pub(crate) accepted_at: Timestamp,
    pub(crate) bytes: u64,
    pub(crate) delivery_count: u32,
    /// When it was last handed out, in engine time; until then, when it was accepted.
    pub(crate) handed_out_at: Timestamp,
    pub(crate) rare: Seldom<RareOfMessage>,
}

/// What most messages have nothing of, so that one of them takes two lines of a processor's cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RareOfMessage {
    /// After-order: the message it follows. `None` also for the first.
    pub(crate) after: Option<MessageId>,
    /// When its time to live is over; of a scheduled message, which has not begun it, by the wall clock.
    pub(crate) expires_at: Option<Due>,
    /// The time to live that its sender gave: a redrive begins it anew.
    pub(crate) time_to_live: Option<Duration>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) suspicion: Suspicion,
    /// Whether it was set aside on its last allowed delivery, and so has one delivery beyond the maximum.
    pub(crate) has_extra: bool,
}

static NOTHING_RARE: RareOfMessage = RareOfMessage {
    after: None,
    expires_at: None,
    time_to_live: None,
    attempts: Vec::new(),
    suspicion: Suspicion::None,
    has_extra: false,
};

impl Blank for RareOfMessage {
    fn blank() -> &'static RareOfMessage {
        &NOTHING_RARE
    }
}

/// Whether a message was one of several that were handled together when their handler failed without saying where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Suspicion {
    #[default]
    None,
    /// A suspect: it is handed out alone. Its first delivery alone returns the one that it shared.
    Counted,
    /// A suspect that was handed out alone, and will be until it is settled.
    Alone,
}

sparse_record!(MessageRecord {
    always: [stream: WorkflowRef],
    sparse: [
        rank: Option<u64>, [rare] after: Option<MessageId>, message_id: Option<MessageId>, status: Status,
        accepted_at: Timestamp, [rare] expires_at: Option<Due>, [rare] time_to_live: Option<Duration>, bytes: u64,
        delivery_count: u32, handed_out_at: Timestamp, [rare] attempts: Vec<Attempt>, [rare] suspicion: Suspicion,
        [rare] has_extra: bool,
    ]
});

impl MessageRecord {
    /// A message of which nothing else is known than its workflow.
    fn blank(stream: WorkflowRef) -> MessageRecord {
        MessageRecord {
            stream,
            rank: None,
            message_id: None,
            status: Status::Ready,
            accepted_at: Timestamp::default(),
            bytes: 0,
            delivery_count: 0,
            handed_out_at: Timestamp::default(),
            rare: Seldom::default(),
        }
    }

    /// Whether it is handed out alone.
    pub(crate) fn is_suspect(&self) -> bool {
        self.rare.suspicion != Suspicion::None
    }

    /// Counts a hand-out. The first delivery of a suspect alone stands for the one that it shared.
    pub(crate) fn count_hand_out(&mut self) {
        match self.rare.suspicion {
            Suspicion::Counted => self.rare.suspicion = Suspicion::Alone,
            Suspicion::None | Suspicion::Alone => self.delivery_count += 1,
        }
    }
}

/// What does not change of a message, except that a settle may change its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageContent {
    pub(crate) workflow_id: Option<WorkflowId>,
    pub(crate) headers: Seldom<Headers>,
    pub(crate) body: Bytes,
}

impl MessageContent {
    /// Bytes that the message counts against limits.
    pub(crate) fn len(&self) -> usize {
        self.body.len() + self.headers.if_set().map_or(0, Headers::len)
    }
}

/// The messages that a workflow's holder has out; none when it holds the workflow whole and has settled them all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holding {
    pub(crate) out: HeldMessages,
    /// Whether they are a run: when it fails without a word, any of them may be why.
    pub(crate) is_run: bool,
}

/// How a rank was settled without having been completed in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SettlementKind {
    /// Completed ahead of an unsettled one; forgotten once the cursor has passed.
    Completed,
    /// Set aside by the consumer ahead of an unsettled one; forgotten once the cursor has passed.
    Aside,
    DeadLettered,
    Expired,
    Cancelled,
    Purged,
    /// Given up by the gap policy.
    Skipped,
    /// Declared void by an operator.
    Voided,
}

/// A range of ranks settled in the same way; kept while a message could still come for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MarkRecord {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) how: SettlementKind,
}

/// After-order: the message that named a predecessor, kept for a while after it is settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainLink {
    /// `None` when a gap was skipped here and the follower never came.
    pub(crate) sequence: Option<SequenceNumber>,
    pub(crate) message_id: Option<MessageId>,
    /// Its rank, once the chain has reached it.
    pub(crate) rank: Option<u64>,
    pub(crate) settled: Option<SettlementKind>,
}

/// A message ID that is remembered to detect duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Duplicate {
    pub(crate) sequence: SequenceNumber,
    pub(crate) until: Timestamp,
}

/// The answer to a send with an idempotency key, kept to be given again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerRecord {
    /// Of the request that was answered.
    pub(crate) digest: u64,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) until: Timestamp,
    /// Of a send to a topic: how many of the receipts each subscription has, in their order.
    pub(crate) shares: Vec<(SubscriptionName, u32)>,
}

/// What a partition has taken from another's outbox and may be asked for again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoverMark {
    /// The last epoch of the other in which something was handed over.
    pub(crate) epoch: u32,
    /// The messages, in the order of their numbers.
    pub(crate) kept: Vec<KeptHandover>,
}

/// A message that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptHandover {
    pub(crate) number: SequenceNumber,
    pub(crate) digest: u64,
}

/// A durable record "at `due`, look at this".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Reminder {
    pub(crate) due: Due,
    pub(crate) queue: QueueId,
    pub(crate) what: Remind,
}

/// What a reminder is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Remind {
    /// A scheduled, failed or set-aside message is due.
    Due(SequenceNumber),
    /// A message's time to live is over.
    Expiry(SequenceNumber),
    /// A gap has lasted long enough.
    Gap(WorkflowRef),
    /// There is more to extend, sweep or redrive.
    Sweep(WorkflowRef),
    /// A workflow may be forgotten.
    Forget(WorkflowRef),
    /// A message ID need not be remembered any more.
    Duplicate(MessageId),
    /// A queue may have been idle for long enough.
    Idle,
    /// The answer to an idempotency key need not be kept any more.
    Answer(Arc<str>),
    /// The oldest entries of a queue's history may be forgotten.
    History,
    /// The oldest cursors that a queue remembers may be forgotten.
    Cursors,
}

/// The numbers the engine counts up, and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) next_sequence: u64,
    pub(crate) next_ticket: u64,
    pub(crate) next_queue: u32,
}
