//! What can be asked of the engine, and what it answers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::engine::rules::record::Content;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Stream;
use crate::error::Misuse;
use crate::error::OperateRefusal;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::header::Properties;
use crate::id::IdempotencyKey;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::message::NewMessage;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// One thing asked of the engine. Tokens and chance come in with it, so that the same commands at the same instants
/// always give the same state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Command {
    CreateQueue {
        name: QueueName,
        options: Box<QueueOptions>,
    },
    ChangeQueue {
        name: QueueName,
        options: Box<QueueOptions>,
    },
    DeleteQueue {
        name: QueueName,
    },
    Send {
        queue: QueueName,
        messages: Vec<NewMessage>,
    },
    Cancel {
        queue: QueueName,
        sequence: SequenceNumber,
    },
    /// Up to `max` deliveries of different workflows.
    Receive {
        queue: QueueName,
        max: usize,
        token: LockToken,
    },
    /// A run of up to `max` consecutive messages of one workflow, the next that has work.
    ReceiveRun {
        queue: QueueName,
        max: usize,
        token: LockToken,
    },
    /// Messages that were set aside, all or none.
    ReceiveDeferred {
        queue: QueueName,
        sequences: Vec<SequenceNumber>,
        token: LockToken,
    },
    /// A workflow whole: the named one, or the next that has work.
    Take {
        queue: QueueName,
        workflow: Option<WorkflowId>,
        token: LockToken,
    },
    /// The next messages of a taken workflow.
    ReceiveTaken {
        queue: QueueName,
        token: LockToken,
        max: usize,
    },
    /// Messages of a taken workflow that were set aside, all or none.
    ReceiveTakenDeferred {
        queue: QueueName,
        token: LockToken,
        sequences: Vec<SequenceNumber>,
    },
    /// Gives a taken workflow back, its unsettled messages uncounted.
    CloseTaken {
        queue: QueueName,
        token: LockToken,
    },
    Settle {
        queue: QueueName,
        token: LockToken,
        sequence: SequenceNumber,
        /// Which hand-out of the message it ends; one that was revoked since is void.
        delivery_count: u32,
        settlement: Settlement,
    },
    SettleRun {
        queue: QueueName,
        token: LockToken,
        settlement: RunSettlement,
    },
    Renew {
        queue: QueueName,
        token: LockToken,
    },
    SetState {
        queue: QueueName,
        workflow: WorkflowId,
        state: Option<Bytes>,
    },
    SetTakenState {
        queue: QueueName,
        token: LockToken,
        state: Option<Bytes>,
    },
    Operate {
        queue: QueueName,
        workflow: WorkflowId,
        operation: Operation,
    },
    Redrive {
        queue: QueueName,
        sequence: SequenceNumber,
        position: Option<Position>,
    },
    Purge {
        queue: QueueName,
        scope: PurgeScope,
        from: SequenceNumber,
    },
    /// A reminder is due.
    Remind(Reminder),
    /// A lock has run out.
    ExpireLock {
        token: LockToken,
    },
    /// Gives back what was handed out when the file was last closed or lost its process.
    Recover,
    /// Completes deliveries of any workflows of a queue, each judged for itself.
    CompleteAll {
        queue: QueueName,
        deliveries: Vec<Held>,
    },
    /// Messages that are accepted or refused each for itself, in the order given.
    SendEach {
        queue: QueueName,
        messages: Vec<NewMessage>,
    },
    /// Messages that are accepted once under a key, all or none; whoever asks again is answered as he was.
    SendOnce {
        queue: QueueName,
        key: IdempotencyKey,
        messages: Vec<NewMessage>,
    },
    /// An operator's command, to be written down with who asks and what came of it.
    OnRecord {
        actor: Arc<Actor>,
        /// The entry of a purge that goes on.
        begun: Option<u64>,
        command: Box<Command>,
    },
    /// Up to `max` messages of different workflows, each hidden for a while without a lock.
    HideNext {
        queue: QueueName,
        max: usize,
        lasts: Duration,
    },
    /// A claimed message is hidden anew, perhaps with another body.
    HideAgain {
        queue: QueueName,
        claim: Claim,
        lasts: Duration,
        body: Option<Bytes>,
    },
    /// A claimed message ends.
    EndHidden {
        queue: QueueName,
        claim: Claim,
    },
}

/// Proof that a message that is hidden without a lock was handed out to you last: its number, and the count and instant
/// of that hand-out. Text too: `17.3.1735689600000`.
///
/// It is no secret: whoever may receive from the queue could make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claim {
    /// The message's number.
    pub sequence_number: SequenceNumber,
    /// How often it was handed out.
    pub delivery_count: u32,
    /// When it was last handed out or hidden; when it was accepted, as long as nobody was handed it.
    pub at: Timestamp,
}

impl Claim {
    /// The claim of whoever sent a message, as long as nobody was handed it.
    pub fn of_sender(sequence_number: SequenceNumber, accepted_at: Timestamp) -> Claim {
        Claim { sequence_number, delivery_count: 0, at: accepted_at }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.sequence_number, self.delivery_count, self.at.as_millis())
    }
}

impl FromStr for Claim {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<Claim, Misuse> {
        let wrong = || Misuse::new("claim", "is not sequence number, delivery count and instant");
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or_else(wrong);
        let sequence_number = SequenceNumber::new(next()?.parse().map_err(|_| wrong())?);
        let delivery_count = next()?.parse().map_err(|_| wrong())?;
        let at = Timestamp::from_millis(next()?.parse().map_err(|_| wrong())?);
        Ok(Claim { sequence_number, delivery_count, at })
    }
}

/// A delivery as its holder names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) token: LockToken,
    pub(crate) sequence: SequenceNumber,
    /// Which hand-out of the message it is; one that was revoked since is void.
    pub(crate) delivery_count: u32,
}

impl Command {
    /// What is asked, whether on record or not.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> &Command {
        match self {
            Command::OnRecord { command, .. } => command,
            command => command,
        }
    }

    /// Whether it is for operators, and worth being put on record.
    pub(crate) fn is_operators(&self) -> bool {
        matches!(
            self,
            Command::CreateQueue { .. }
                | Command::ChangeQueue { .. }
                | Command::DeleteQueue { .. }
                | Command::SetState { .. }
                | Command::Operate { .. }
                | Command::Redrive { .. }
                | Command::Purge { .. }
        )
    }

    /// About how many bytes of bodies and headers it carries.
    pub(crate) fn bytes(&self) -> usize {
        let messages = |messages: &[NewMessage]| messages.iter().map(NewMessage::len).sum::<usize>();
        let sends = |completion: &Completion| completion.sends.iter().map(|(_, sent)| messages(sent)).sum();
        match self {
            Command::Send { messages: sent, .. }
            | Command::SendEach { messages: sent, .. }
            | Command::SendOnce { messages: sent, .. } => messages(sent),
            Command::Settle { settlement: Settlement::Complete(completion), .. } => sends(completion),
            Command::SettleRun { settlement, .. } => sends(&settlement.completion),
            Command::HideAgain { body: Some(body), .. } => body.len(),
            _ => 0,
        }
    }
}

/// How a delivery ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Settlement {
    Complete(Completion),
    Abandon {
        retry: Retry,
        reason: String,
        properties: Properties,
    },
    Defer {
        until: Option<Timestamp>,
        properties: Properties,
    },
    DeadLetter {
        reason: String,
        description: String,
        properties: Properties,
    },
    /// Given back unstarted: the delivery count is what it was before the hand-out.
    Release,
}

/// What happens in the same transaction as a completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Completion {
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
    pub(crate) completion: Completion,
    pub(crate) next: Option<Settlement>,
    pub(crate) keep_rest: bool,
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

/// The engine's answer to a send of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    /// It is stored, under this number.
    Accepted(SequenceNumber),
    /// It was accepted before, under this number; nothing was stored.
    Duplicate(SequenceNumber),
    /// Its place was completed before; nothing was stored.
    AlreadySettled,
    /// It is stored as a dead letter: its place was given up before it came.
    DeadLettered(SequenceNumber),
}

impl Receipt {
    /// The number of the stored message, unless its place was completed before.
    pub fn sequence_number(&self) -> Option<SequenceNumber> {
        match self {
            Receipt::Accepted(number) | Receipt::Duplicate(number) | Receipt::DeadLettered(number) => {
                Some(*number)
            }
            Receipt::AlreadySettled => None,
        }
    }
}

/// How a dead letter came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Redriven {
    /// To its own place, under its own number.
    InPlace,
    /// As a new message, under this number.
    AsNew(SequenceNumber),
}

/// A message as it is handed out.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub(crate) token: LockToken,
    pub(crate) locked_until: Timestamp,
    pub(crate) sequence: SequenceNumber,
    pub(crate) record: Arc<MessageRecord>,
    pub(crate) content: Arc<Content>,
    /// Whether its workflow has a state; only its holder changes that.
    pub(crate) has_state: bool,
}

impl Handed {
    /// For how long the lock was held when the message was handed out.
    pub(crate) fn lasts(&self) -> Duration {
        self.locked_until.since(self.record.handed_out_at)
    }
}

/// A message as it is handed out without a lock.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) sequence: SequenceNumber,
    pub(crate) record: Arc<MessageRecord>,
    pub(crate) content: Arc<Content>,
}

/// A workflow as it is taken whole.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) token: LockToken,
    pub(crate) locked_until: Timestamp,
    pub(crate) stream: Stream,
    pub(crate) state: Option<Bytes>,
}

/// What a settle or a renewal did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Until when the lock is held, if anything of it is left.
    pub(crate) locked_until: Option<Timestamp>,
    /// For how long a renewed lock is held from the renewal on.
    pub(crate) lasts: Option<Duration>,
    /// The answers to the messages that were sent with it.
    pub(crate) receipts: Vec<Receipt>,
}

/// What one step of a purge did, and where the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Purged {
    pub(crate) count: u64,
    pub(crate) next: Option<SequenceNumber>,
    /// Its entry in the audit, if it is on record.
    pub(crate) entry: Option<u64>,
}

impl Purged {
    pub(crate) fn new(count: u64, next: Option<SequenceNumber>) -> Purged {
        Purged { count, next, entry: None }
    }
}

/// The answer to a command; a refusal is an answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Whether something was created or changed.
    Queue(Result<bool, QueueRefusal>),
    Send(Result<Vec<Receipt>, SendRefusal>),
    Receive(Result<Vec<Handed>, ReceiveRefusal>),
    Take(Result<Option<Taken>, ReceiveRefusal>),
    /// Messages handed out without a lock.
    HideNext(Result<Vec<Shown>, ReceiveRefusal>),
    HideAgain(Result<Box<Shown>, SettleRefusal>),
    Settle(Result<Settled, SettleRefusal>),
    /// The answer to each delivery, in the order of the command.
    CompleteAll(Vec<Result<(), SettleRefusal>>),
    /// The answer to each message, in the order of the command.
    SendEach(Vec<Result<Receipt, SendRefusal>>),
    Operate(Result<(), OperateRefusal>),
    Redrive(Result<Redriven, OperateRefusal>),
    Purge(Result<Purged, OperateRefusal>),
    /// An internal command was done; whether there is more of it.
    Done {
        more: bool,
    },
}
