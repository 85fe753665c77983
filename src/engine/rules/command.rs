//! What can be asked of the engine, and what it answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::redriven::Edit;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::TopicChange;
use crate::error::OperateRefusal;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::TopicRefusal;
use crate::header::Properties;
use crate::id::IdempotencyKey;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::message::NewMessage;
use crate::queue::HoldKind;
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
    /// With `void` its place is settled; else it is free again.
    Cancel {
        queue: QueueName,
        sequence: SequenceNumber,
        void: bool,
    },
    /// A scheduled message comes at another instant.
    Reschedule {
        queue: QueueName,
        sequence: SequenceNumber,
        at: Timestamp,
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
        from: PurgeFrom,
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
        deliveries: Vec<DeliveryRef>,
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
    ReceiveHidden {
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
    /// The holder of a taken workflow keeps what he has ahead of a message that fails.
    SettleApart {
        queue: QueueName,
        token: LockToken,
    },
    /// Notes on a queue whether its handlers pause.
    PauseQueue {
        name: QueueName,
        paused: bool,
    },
    EditAndRedrive {
        queue: QueueName,
        edit: Edit,
    },
    ChangeTopic {
        name: QueueName,
        change: TopicChange,
    },
    /// Messages of a topic for those of its subscriptions that want them, all or none.
    Publish {
        topic: QueueName,
        fanout: Fanout,
    },
    /// Commands of producers and holders, one after the other, all or none.
    Transact {
        steps: Vec<Command>,
    },
    /// A send to a topic that is done once under a key; whoever asks again is answered as he was.
    PublishOnce {
        topic: QueueName,
        key: IdempotencyKey,
        fanout: Fanout,
    },
    /// Up to `max` dead letters, each under a lock of its own.
    ReceiveDeadLetters {
        queue: QueueName,
        max: usize,
        token: LockToken,
    },
    /// Dead letters that were set aside, all or none.
    ReceiveDeferredDeadLetters {
        queue: QueueName,
        sequences: Vec<SequenceNumber>,
        token: LockToken,
    },
}

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
#[derive(Clone, Debug)]
pub(crate) struct LockedMessage {
    pub(crate) token: LockToken,
    pub(crate) locked_until: Timestamp,
    pub(crate) sequence: SequenceNumber,
    pub(crate) record: Arc<MessageRecord>,
    pub(crate) content: Arc<MessageContent>,
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
#[derive(Clone, Debug)]
pub(crate) struct UnlockedMessage {
    pub(crate) sequence: SequenceNumber,
    pub(crate) record: Arc<MessageRecord>,
    pub(crate) content: Arc<MessageContent>,
}

/// A workflow as it is taken whole.
#[derive(Clone, Debug)]
pub(crate) struct WorkflowGrant {
    pub(crate) token: LockToken,
    pub(crate) locked_until: Timestamp,
    pub(crate) stream: WorkflowRef,
    pub(crate) state: Option<Bytes>,
}

/// What a settle or a renewal did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The answer to a command; a refusal is an answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Whether something was created or changed.
    Queue(Result<bool, QueueRefusal>),
    /// The same of a topic.
    Topic(Result<bool, TopicRefusal>),
    Send(Result<Vec<Receipt>, SendRefusal>),
    /// What became of each copy, and in which queue.
    PublishOnce(Result<Vec<(QueueName, Receipt)>, SendRefusal>),
    Receive(Result<Vec<LockedMessage>, ReceiveRefusal>),
    Take(Result<Option<WorkflowGrant>, ReceiveRefusal>),
    /// Messages handed out without a lock.
    ReceiveHidden(Result<Vec<UnlockedMessage>, ReceiveRefusal>),
    HideAgain(Result<Box<UnlockedMessage>, SettleRefusal>),
    Settle(Result<SettleResult, SettleRefusal>),
    /// The answer to each delivery, in the order of the command.
    CompleteAll(Vec<Result<(), SettleRefusal>>),
    /// The answer to each message, in the order of the command.
    SendEach(Vec<Result<Receipt, SendRefusal>>),
    Operate(Result<(), OperateRefusal>),
    Redrive(Result<Redriven, OperateRefusal>),
    Purge(Result<PurgeStep, OperateRefusal>),
    /// The answer to each step, in order; or which of them, counted from zero, was refused, and how: then none was done.
    Transact(Result<Vec<Reply>, (usize, Box<Reply>)>),
    /// An internal command was done; whether there is more of it.
    Done {
        more: bool,
    },
}
