//! What is said in commands and their answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::WorkflowRef;
use crate::header::Properties;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::message::NewMessage;
use crate::queue::HoldKind;
use crate::token::LockToken;

/// A delivery as its holder names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeliveryRef {
    pub(crate) token: LockToken,
    pub(crate) sequence: SequenceNumber,
    /// Which hand-out of the message it is; one that was revoked since is void.
    pub(crate) delivery_count: u32,
}

/// How a delivery ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Settlement {
    Complete(CompletionCommand),
    Abandon {
        retry: Retry,
        reason: String,
        properties: Properties,
        output: Output,
    },
    Defer {
        until: DeferralEnd,
        properties: Properties,
    },
    DeadLetter {
        reason: String,
        description: String,
        properties: Properties,
    },
    /// Given back unstarted: the delivery count is what it was before the hand-out.
    Release,
    /// One of several that were handled together when their handler failed without saying where: it has failed, and is
    /// handed out alone until it is settled. Of a run, all that is left.
    Suspect {
        retry: Retry,
        reason: String,
        output: Output,
    },
    /// Handled, but what it leads to has to wait for room: it is tried again, and the delivery count is what it was.
    Postpone {
        retry: Retry,
        reason: String,
    },
}

/// What happens in the same transaction as a completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CompletionCommand {
    pub(crate) state: StateChange,
    pub(crate) sends: Vec<(QueueName, Vec<NewMessage>)>,
}

/// What becomes of the workflow's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum StateChange {
    #[default]
    Keep,
    Clear,
    Set(Bytes),
}

/// How a run ends: its first messages are completed, the next may end in its own way, the rest is given back
/// uncounted, or kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunSettlement {
    pub(crate) completed: usize,
    pub(crate) completion: CompletionCommand,
    pub(crate) next: Option<Settlement>,
    pub(crate) keep_rest: bool,
    /// The first message of what is left of the run; said, a settlement that is asked again is never taken for the next.
    pub(crate) first: Option<SequenceNumber>,
}

/// When a failed message is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Retry {
    Now,
    After(Duration),
    At(Timestamp),
    /// After the queue's backoff, with this chance in it.
    Backoff(u64),
}

/// What an operator can do to a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Hold {
        reason: String,
    },
    Resume {
        redrive: bool,
    },
    RetryNow,
    SkipHead {
        reason: String,
    },
    /// Gives up missing positions; `None` means all up to the lowest waiting message.
    VoidGap {
        range: Option<(Position, Position)>,
    },
    ReleaseLock,
    /// Lifts the hold of one kind; others stay.
    ResumeFor {
        kind: HoldKind,
    },
    /// Skips a message, if it stands at the head.
    SkipMessage {
        sequence: SequenceNumber,
        reason: String,
    },
}

/// What a purge removes. What is handed out stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PurgeScope {
    /// Every message of the queue, deferred, scheduled and dead letters included.
    Everything,
    /// The queue's dead letters.
    DeadLetters,
    /// Every message of one workflow, its dead letters included.
    Workflow(WorkflowId),
    /// One dead letter.
    DeadLetter(SequenceNumber),
}

/// A message as it is handed out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LockedMessage {
    pub(crate) token: LockToken,
    pub(crate) locked_until: Timestamp,
    pub(crate) sequence: SequenceNumber,
    pub(crate) record: Arc<MessageRecord>,
    pub(crate) content: MessageContent,
    /// Whether its workflow has a state; only its holder changes that.
    pub(crate) has_state: bool,
}

impl LockedMessage {
    /// For how long the lock was held when the message was handed out.
    pub(crate) fn lasts(&self) -> Duration {
        self.locked_until.since(self.record.handed_out_at)
    }
}

/// A message as it is handed out without a lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UnlockedMessage {
    pub(crate) sequence: SequenceNumber,
    pub(crate) record: Arc<MessageRecord>,
    pub(crate) content: MessageContent,
}

impl UnlockedMessage {
    /// What whoever was handed it shows.
    pub(crate) fn claim(&self) -> Claim {
        let MessageRecord { delivery_count, handed_out_at: at, .. } = *self.record;
        Claim { sequence_number: self.sequence, delivery_count, at }
    }
}

/// A workflow as it is accepted whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkflowGrant {
    pub(crate) token: LockToken,
    pub(crate) locked_until: Timestamp,
    pub(crate) stream: WorkflowRef,
    pub(crate) state: Option<Bytes>,
}

/// What a settle or a renewal did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettleResult {
    /// Until when the lock is held, if anything of it is left.
    pub(crate) locked_until: Option<Timestamp>,
    /// For how long a renewed lock is held from the renewal on.
    pub(crate) lasts: Option<Duration>,
    /// The answers to the messages that were sent with it.
    pub(crate) receipts: Vec<Receipt>,
}

/// Where a step of a purge begins, so that none looks again at what the steps before have removed or passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PurgeFrom {
    #[default]
    Start,
    /// The messages of the queue, from this number on.
    Message(SequenceNumber),
    /// The line of a workflow and what stands beside it, from this rank on.
    Line(u64),
    /// The dead letters of a workflow, from this rank and number on.
    DeadLetter(u64, SequenceNumber),
    /// The dead letters of the queue, after this reason and number.
    Reason(String, SequenceNumber),
}

/// What one step of a purge did, and where the next begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PurgeStep {
    pub(crate) count: u64,
    pub(crate) next: Option<PurgeFrom>,
    /// Its entry in the audit, if it is on record.
    pub(crate) entry: Option<u64>,
}

impl PurgeStep {
    pub(crate) fn new(count: u64, next: Option<PurgeFrom>) -> PurgeStep {
        PurgeStep { count, next, entry: None }
    }
}

/// Which message of which outbox is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoverSource {
    /// The partition of the outbox.
    pub(crate) partition: u16,
    /// The epoch in which its owner hands the message over.
    pub(crate) epoch: u32,
    /// The number that the message has in the outbox.
    pub(crate) number: SequenceNumber,
    /// The hash of the message.
    pub(crate) digest: u64,
    /// What was handed over before and is settled in the outbox: it is not asked for again.
    pub(crate) settled: Vec<SequenceNumber>,
    /// Whether it is to be answered which others are kept, as its owner has just begun.
    pub(crate) wants_kept: bool,
}

/// What is answered to a message that is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HandoverAnswer {
    /// It is stored, now or before. The numbers of the others that are kept, if that was asked.
    Taken { kept: Vec<SequenceNumber> },
    /// A later owner of the outbox has handed something over: whoever asks was deposed.
    Outdated,
    /// It is not stored, as the numbers of so many others are kept: these, if that was asked. Last, as nodes of versions that do not know
    /// it take it for no answer, and ask again.
    Full { kept: Vec<SequenceNumber> },
}
