//! The answer to a command of any kind.

use std::convert::Infallible;

use serde::Deserialize;
use serde::Serialize;

use crate::engine::rules::command::HandoverAnswer;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::PurgeStep;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::UnlockedMessage;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::transact::RefusedStep;
use crate::engine::rules::verb::VerbOutcome;
use crate::engine::rules::verb::surely;
use crate::error::OperateRefusal;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::TopicRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// The answer to a command of any kind; a refusal is an answer. Whoever asks one verb is answered by its own type.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Whether something was created or changed.
    Queue(Result<bool, QueueRefusal>),
    /// The same of a topic.
    Topic(Result<bool, TopicRefusal>),
    Send(Result<Vec<Receipt>, SendRefusal>),
    /// What became of each copy, and in which queue.
    PublishOnce(Result<Vec<(QueueName, Receipt)>, SendRefusal>),
    HandOver(Result<HandoverAnswer, SendRefusal>),
    Receive(Result<Vec<LockedMessage>, ReceiveRefusal>),
    AcceptWorkflow(Result<Option<WorkflowGrant>, ReceiveRefusal>),
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
    /// The answer to each step, in order; or which of them was refused, and how: then none was done.
    Transact(Result<Vec<Reply>, RefusedStep>),
    /// An internal command was done; whether there is more of it.
    Done {
        more: bool,
    },
}

/// The same for the answer in it, whichever that is.
macro_rules! each {
    ($reply:expr, $any:pat => $then:expr) => {
        match $reply {
            Reply::Queue($any) => $then,
            Reply::Topic($any) => $then,
            Reply::Send($any) => $then,
            Reply::PublishOnce($any) => $then,
            Reply::HandOver($any) => $then,
            Reply::Receive($any) => $then,
            Reply::AcceptWorkflow($any) => $then,
            Reply::ReceiveHidden($any) => $then,
            Reply::HideAgain($any) => $then,
            Reply::Settle($any) => $then,
            Reply::CompleteAll($any) => $then,
            Reply::SendEach($any) => $then,
            Reply::Operate($any) => $then,
            Reply::Redrive($any) => $then,
            Reply::Purge($any) => $then,
            Reply::Transact($any) => $then,
            Reply::Done { more: $any } => $then,
        }
    };
}

impl VerbOutcome for Reply {
    fn is_refusal(&self) -> bool {
        each!(self, answer => answer.is_refusal())
    }

    fn refusal(&self) -> Option<String> {
        each!(self, answer => answer.refusal())
    }

    fn count(&self) -> u64 {
        each!(self, answer => answer.count())
    }

    fn first_number(&self) -> Option<SequenceNumber> {
        each!(self, answer => answer.first_number())
    }

    fn note_entry(&mut self, entry: u64) {
        each!(self, answer => answer.note_entry(entry))
    }
}

impl VerbOutcome for () {
    fn count(&self) -> u64 {
        1
    }
}

impl VerbOutcome for bool {
    fn count(&self) -> u64 {
        u64::from(*self)
    }
}

impl VerbOutcome for Redriven {
    fn count(&self) -> u64 {
        1
    }
}

impl VerbOutcome for Vec<Receipt> {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn first_number(&self) -> Option<SequenceNumber> {
        self.first().and_then(Receipt::sequence_number)
    }
}

impl VerbOutcome for PurgeStep {
    fn count(&self) -> u64 {
        self.count
    }

    fn note_entry(&mut self, entry: u64) {
        self.entry = Some(entry);
    }
}

impl VerbOutcome for Vec<Result<(), SettleRefusal>> {
    fn is_refusal(&self) -> bool {
        self.iter().all(Result::is_err)
    }
}

impl VerbOutcome for Vec<Result<Receipt, SendRefusal>> {
    fn is_refusal(&self) -> bool {
        self.iter().all(Result::is_err)
    }
}

impl VerbOutcome for SettleResult {}
impl VerbOutcome for Vec<(QueueName, Receipt)> {}
impl VerbOutcome for HandoverAnswer {}
impl VerbOutcome for Vec<LockedMessage> {}
impl VerbOutcome for Option<WorkflowGrant> {}
impl VerbOutcome for Vec<UnlockedMessage> {}
impl VerbOutcome for Box<UnlockedMessage> {}
impl VerbOutcome for Vec<Reply> {}

/// Makes replies of the answers to verbs, and the answers of replies again.
macro_rules! replies {
    ($($done:ty, $refusal:ty => $answer:ident $reply:expr, of $kind:ident $pattern:tt $back:expr;)*) => {
        $(
            impl From<Result<$done, $refusal>> for Reply {
                fn from($answer: Result<$done, $refusal>) -> Reply {
                    $reply
                }
            }

            impl TryFrom<Reply> for Result<$done, $refusal> {
                type Error = OtherReply;

                fn try_from(reply: Reply) -> Result<Result<$done, $refusal>, OtherReply> {
                    match reply {
                        Reply::$kind $pattern => Ok($back),
                        _ => Err(OtherReply),
                    }
                }
            }
        )*
    };
}

/// A reply that answers another verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherReply;

replies! {
    bool, QueueRefusal => answer Reply::Queue(answer), of Queue (answer) answer;
    bool, TopicRefusal => answer Reply::Topic(answer), of Topic (answer) answer;
    Vec<Receipt>, SendRefusal => answer Reply::Send(answer), of Send (answer) answer;
    (), SendRefusal => answer Reply::Send(answer.map(|()| Vec::new())), of Send (answer) answer.map(drop);
    Vec<(QueueName, Receipt)>, SendRefusal => answer Reply::PublishOnce(answer), of PublishOnce (answer) answer;
    HandoverAnswer, SendRefusal => answer Reply::HandOver(answer), of HandOver (answer) answer;
    Vec<LockedMessage>, ReceiveRefusal => answer Reply::Receive(answer), of Receive (answer) answer;
    Option<WorkflowGrant>, ReceiveRefusal => answer Reply::AcceptWorkflow(answer), of AcceptWorkflow (answer) answer;
    Vec<UnlockedMessage>, ReceiveRefusal => answer Reply::ReceiveHidden(answer), of ReceiveHidden (answer) answer;
    Box<UnlockedMessage>, SettleRefusal => answer Reply::HideAgain(answer), of HideAgain (answer) answer;
    SettleResult, SettleRefusal => answer Reply::Settle(answer), of Settle (answer) answer;
    (), SettleRefusal => answer Reply::Settle(answer.map(|()| SettleResult::default())), of Settle (answer) answer.map(drop);
    Vec<Result<(), SettleRefusal>>, Infallible => answer Reply::CompleteAll(surely(answer)), of CompleteAll (answers) Ok(answers);
    Vec<Result<Receipt, SendRefusal>>, Infallible => answer Reply::SendEach(surely(answer)), of SendEach (answers) Ok(answers);
    (), OperateRefusal => answer Reply::Operate(answer), of Operate (answer) answer;
    Redriven, OperateRefusal => answer Reply::Redrive(answer), of Redrive (answer) answer;
    PurgeStep, OperateRefusal => answer Reply::Purge(answer), of Purge (answer) answer;
    Vec<Reply>, RefusedStep => answer Reply::Transact(answer), of Transact (answer) answer;
    (), Infallible => answer { surely(answer); Reply::Done { more: false } }, of Done { more: _ } Ok(());
    bool, Infallible => answer Reply::Done { more: surely(answer) }, of Done { more } Ok(more);
}

impl From<Result<Reply, Infallible>> for Reply {
    fn from(answer: Result<Reply, Infallible>) -> Reply {
        surely(answer)
    }
}
