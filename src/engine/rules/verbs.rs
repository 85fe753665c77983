//! Every verb: what it says, what it is answered and how it is refused. What it does stands with those who ask it:
//! `producers.rs`, `receivers.rs`, `holders.rs`, `operators.rs` and `clock_work.rs`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::audit::AuditVerb;
use crate::engine::rules::claim::Claim;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::HandoverAnswer;
use crate::engine::rules::command::HandoverSource;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::PurgeStep;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::command::UnlockedMessage;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::log_weight::LogWeight;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::redriven::Edit;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::answer;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::transact::RefusedStep;
use crate::engine::rules::transact::StepCommand;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::AnswerTypes;
use crate::engine::rules::verb::EngineVerb;
use crate::error::OperateRefusal;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::TopicRefusal;
use crate::id::IdempotencyKey;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::message::NewMessage;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// Makes the verbs, and the command that is any of them. A verb that is not done anywhere does not compile.
macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty),* $(,)?
    } -> $done:ty, $refusal:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            pub(crate) struct $verb { $($(#[$field_doc])* pub(crate) $field: $kind),* }

            impl AnswerTypes for $verb {
                type Done = $done;
                type Refusal = $refusal;

                fn into_command(self) -> Option<Command> {
                    Some(Command::$verb(self))
                }

                fn answer_in(reply: Reply) -> Option<Answer<$verb>> {
                    reply.try_into().ok()
                }
            }

            impl From<$verb> for Command {
                fn from(verb: $verb) -> Command {
                    Command::$verb(verb)
                }
            }
        )*

        /// A verb of any kind: for whoever has several, keeps them or sends them elsewhere. It is a verb itself.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub(crate) enum Command {
            $($verb($verb),)*
            OnRecord(Box<OnRecord>),
        }

        /// The same for the verb in it, whichever that is.
        macro_rules! each {
            ($command:expr, $any:pat => $then:expr) => {
                match $command {
                    $(Command::$verb($any) => $then,)*
                    Command::OnRecord($any) => $then,
                }
            };
        }

        #[cfg(test)]
        impl Command {
            #[cfg(feature = "cluster")]
            pub(crate) const NAMES: &'static [&'static str] = &[$(stringify!($verb),)* "OnRecord"];

            /// Whether it is for operators, and worth being put on record.
            pub(crate) fn is_operators(&self) -> bool {
                match self {
                    $(Command::$verb(_) => <$verb as EngineVerb>::IS_OPERATORS,)*
                    Command::OnRecord(_) => false,
                }
            }

            /// Whether a dry run can do it and take it back.
            pub(crate) fn can_be_tried(&self) -> bool {
                match self {
                    $(Command::$verb(_) => <$verb as EngineVerb>::CAN_BE_TRIED,)*
                    Command::OnRecord(_) => false,
                }
            }
        }
    };
}

verbs! {
    CreateQueue { name: QueueName, options: Box<QueueOptions> } -> bool, QueueRefusal;
    ChangeQueue { name: QueueName, options: Box<QueueOptions> } -> bool, QueueRefusal;
    DeleteQueue { name: QueueName } -> bool, QueueRefusal;
    /// Notes on a queue whether its handlers pause.
    PauseQueue { name: QueueName, paused: bool } -> bool, QueueRefusal;
    ChangeTopic { name: QueueName, change: TopicChange } -> bool, TopicRefusal;

    /// Messages that are accepted, all or none.
    Send { queue: QueueName, messages: Vec<NewMessage> } -> Vec<Receipt>, SendRefusal;
    /// Messages that are accepted or refused each for itself, in the order given.
    SendEach { queue: QueueName, messages: Vec<NewMessage> } -> Vec<Result<Receipt, SendRefusal>>, Infallible;
    /// Messages that are accepted once under a key, all or none; whoever asks again is answered as he was.
    SendOnce { queue: QueueName, key: IdempotencyKey, messages: Vec<NewMessage> } -> Vec<Receipt>, SendRefusal;
    /// Messages of a topic for those of its subscriptions that want them, all or none.
    Publish { topic: QueueName, fanout: Fanout } -> Vec<Receipt>, SendRefusal;
    /// A send to a topic that is done once under a key: what became of each copy, and in which queue.
    PublishOnce { topic: QueueName, key: IdempotencyKey, fanout: Fanout }
        -> Vec<(QueueName, Receipt)>, SendRefusal;
    /// A scheduled message is stopped. With `void` its place is settled; else it is free again.
    Cancel { queue: QueueName, sequence: SequenceNumber, void: bool } -> (), SendRefusal;
    /// A scheduled message comes at another instant.
    Reschedule { queue: QueueName, sequence: SequenceNumber, at: Timestamp } -> (), SendRefusal;
    /// Commands of producers and holders, one after the other, all or none.
    Transact { steps: Vec<StepCommand> } -> Vec<Reply>, RefusedStep;

    /// Up to `max` deliveries of different workflows.
    Receive { queue: QueueName, max: usize, token: LockToken } -> Vec<LockedMessage>, ReceiveRefusal;
    /// A run of up to `max` consecutive messages of one workflow, the next that has work.
    ReceiveRun { queue: QueueName, max: usize, token: LockToken } -> Vec<LockedMessage>, ReceiveRefusal;
    /// Messages that were set aside, all or none.
    ReceiveDeferred { queue: QueueName, sequences: Vec<SequenceNumber>, token: LockToken }
        -> Vec<LockedMessage>, ReceiveRefusal;
    /// Up to `max` dead letters, each under a lock of its own.
    ReceiveDeadLetters { queue: QueueName, max: usize, token: LockToken } -> Vec<LockedMessage>, ReceiveRefusal;
    /// Dead letters that were set aside, all or none.
    ReceiveDeferredDeadLetters { queue: QueueName, sequences: Vec<SequenceNumber>, token: LockToken }
        -> Vec<LockedMessage>, ReceiveRefusal;
    /// A workflow whole: the named one, or the next that has work.
    AcceptWorkflow { queue: QueueName, workflow: Option<WorkflowId>, token: LockToken }
        -> Option<WorkflowGrant>, ReceiveRefusal;
    /// The next messages of an accepted workflow.
    ReceiveFromWorkflow { queue: QueueName, token: LockToken, max: usize } -> Vec<LockedMessage>, ReceiveRefusal;
    /// Messages of an accepted workflow that were set aside, all or none.
    ReceiveDeferredFromWorkflow { queue: QueueName, token: LockToken, sequences: Vec<SequenceNumber> }
        -> Vec<LockedMessage>, ReceiveRefusal;
    /// Up to `max` messages of different workflows, each hidden for a while without a lock.
    ReceiveHidden { queue: QueueName, max: usize, lasts: Duration } -> Vec<UnlockedMessage>, ReceiveRefusal;

    Settle {
        queue: QueueName,
        token: LockToken,
        sequence: SequenceNumber,
        /// Which hand-out of the message it ends; one that was revoked since is void.
        delivery_count: u32,
        settlement: Settlement,
    } -> SettleResult, SettleRefusal;
    SettleRun { queue: QueueName, token: LockToken, settlement: RunSettlement } -> SettleResult, SettleRefusal;
    /// Completes deliveries of any workflows of a queue, each judged for itself.
    CompleteAll { queue: QueueName, deliveries: Vec<DeliveryRef> } -> Vec<Result<(), SettleRefusal>>, Infallible;
    Renew { queue: QueueName, token: LockToken } -> SettleResult, SettleRefusal;
    /// The holder of an accepted workflow keeps what he has ahead of a message that fails.
    SettleApart { queue: QueueName, token: LockToken } -> (), SettleRefusal;
    SetWorkflowState { queue: QueueName, token: LockToken, state: Option<Bytes> } -> (), SettleRefusal;
    /// Gives an accepted workflow back, its unsettled messages uncounted.
    CloseWorkflow { queue: QueueName, token: LockToken } -> (), SettleRefusal;
    /// A claimed message is hidden anew, perhaps with another body.
    HideAgain { queue: QueueName, claim: Claim, lasts: Duration, body: Option<Bytes> }
        -> Box<UnlockedMessage>, SettleRefusal;
    /// A claimed message ends.
    EndHidden { queue: QueueName, claim: Claim } -> (), SettleRefusal;

    SetState { queue: QueueName, workflow: WorkflowId, state: Option<Bytes> } -> (), OperateRefusal;
    Operate { queue: QueueName, workflow: WorkflowId, operation: Operation } -> (), OperateRefusal;
    Redrive { queue: QueueName, sequence: SequenceNumber, position: Option<Position> } -> Redriven, OperateRefusal;
    EditAndRedrive { queue: QueueName, edit: Edit } -> Redriven, OperateRefusal;
    /// One step of it.
    Purge { queue: QueueName, scope: PurgeScope, from: PurgeFrom } -> PurgeStep, OperateRefusal;

    /// A reminder is due.
    Remind { reminder: Reminder } -> (), Infallible;
    /// A lock has run out.
    ExpireLock { token: LockToken } -> (), Infallible;
    /// Gives back what was handed out when the file was last closed or lost its process; whether there is more of it.
    Recover {} -> bool, Infallible;

    /// A message of another partition's outbox, which is accepted once.
    HandOver { source: HandoverSource, queue: QueueName, message: NewMessage } -> HandoverAnswer, SendRefusal;
}

/// An operator's command, to be written down with who asks and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OnRecord {
    pub(crate) actor: Arc<Actor>,
    /// The entry of a purge that goes on.
    pub(crate) begun: Option<u64>,
    pub(crate) command: Command,
}

impl AnswerTypes for OnRecord {
    type Done = Reply;
    type Refusal = Infallible;
}

impl EngineVerb for OnRecord {
    fn run(self, step: &mut Step<'_>) -> Ruling<Reply, Infallible> {
        step.run_on_record(&self.actor, self.begun, self.command)
    }

    fn bytes(&self) -> usize {
        self.command.bytes()
    }

    fn weigh(&self, records: &dyn Records, weight: &mut LogWeight) -> Read<()> {
        self.command.weigh(records, weight)
    }

    fn is_bulk(&self) -> bool {
        self.command.is_bulk()
    }

    fn room(&self, records: &dyn Records) -> Read<RoomNeed> {
        self.command.room(records)
    }

    fn without_room(&self) -> Option<Answer<OnRecord>> {
        self.command.without_room()
    }
}

impl AnswerTypes for Command {
    type Done = Reply;
    type Refusal = Infallible;

    fn into_command(self) -> Option<Command> {
        Some(self)
    }

    fn answer_in(reply: Reply) -> Option<Answer<Command>> {
        Some(Ok(reply))
    }
}

impl EngineVerb for Command {
    const HANDS_OUT: bool = true;

    fn run(self, step: &mut Step<'_>) -> Ruling<Reply, Infallible> {
        each!(self, verb => Ok(Reply::from(answer(verb.run(step))?)))
    }

    fn bytes(&self) -> usize {
        each!(self, verb => verb.bytes())
    }

    fn weigh(&self, records: &dyn Records, weight: &mut LogWeight) -> Read<()> {
        each!(self, verb => verb.weigh(records, weight))
    }

    fn is_bulk(&self) -> bool {
        each!(self, verb => verb.is_bulk())
    }

    fn room(&self, records: &dyn Records) -> Read<RoomNeed> {
        each!(self, verb => verb.room(records))
    }

    fn without_room(&self) -> Option<Answer<Command>> {
        each!(self, verb => verb.without_room().map(|refused| Ok(Reply::from(refused))))
    }

    fn receives_from(&self) -> Option<&QueueName> {
        each!(self, verb => verb.receives_from())
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        each!(self, verb => verb.audited())
    }

    fn draft(&self, step: &Step<'_>, entry: &mut AuditEntry) -> Read<()> {
        each!(self, verb => verb.draft(step, entry))
    }

    fn give_back(&self, done: Reply, post: &mut dyn FnMut(Command)) {
        each!(self, verb => verb.give_back_reply(done, post));
    }
}

#[cfg(any(test, feature = "cluster"))]
impl Command {
    /// What is asked, whether on record or not.
    pub(crate) fn asked(&self) -> &Command {
        match self {
            Command::OnRecord(on_record) => &on_record.command,
            command => command,
        }
    }

    /// The same, to be changed.
    #[cfg(feature = "cluster")]
    pub(crate) fn asked_mut(&mut self) -> &mut Command {
        match self {
            Command::OnRecord(on_record) => &mut on_record.command,
            command => command,
        }
    }
}
