//! The failure of one kind of operation: a refusal, a misuse, or an engine that cannot answer.

use thiserror::Error;

use crate::error::fault::Unavailable;
use crate::error::misuse::Misuse;
use crate::error::operate::OperateRefusal;
use crate::error::queue::QueueRefusal;
use crate::error::receive::ReceiveRefusal;
use crate::error::send::SendRefusal;
use crate::error::settle::SettleRefusal;

/// The failure of one kind of operation.
#[derive(Clone, Debug, Error)]
pub enum OperationError<R: std::error::Error + 'static> {
    /// A normal answer: no. Nothing was changed.
    #[error(transparent)]
    Refused(R),
    /// A value that is not allowed; nothing was sent to the engine.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The engine is closed or has stopped. Whether the operation took effect is not known.
    #[error(transparent)]
    Unavailable(Unavailable),
}

impl<R: std::error::Error + 'static> OperationError<R> {
    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&R> {
        match self {
            OperationError::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether what was asked may have been done all the same.
    #[cfg(feature = "daemon")]
    pub(crate) fn may_be_done(&self) -> bool {
        matches!(self, OperationError::Unavailable(why) if why.may_be_done())
    }
}

impl<R: std::error::Error + 'static> From<Unavailable> for OperationError<R> {
    fn from(unavailable: Unavailable) -> OperationError<R> {
        match unavailable {
            // It is what was asked that is wrong, and was not done.
            Unavailable::TooLarge { bytes, bytes_max } => {
                let problem =
                    format!("or its answer has {bytes} bytes, at most {bytes_max} are allowed on a cluster");
                OperationError::Misuse(Misuse::new("request", problem).known_as("too_large"))
            }
            Unavailable::Unsupported(why) => {
                let problem = format!("cannot be done: on a cluster {why}");
                OperationError::Misuse(Misuse::new("request", problem).known_as("unsupported"))
            }
            unavailable => OperationError::Unavailable(unavailable),
        }
    }
}

/// The failure to send, schedule or cancel.
pub type SendError = OperationError<SendRefusal>;
/// The failure to receive, or to accept a workflow.
pub type ReceiveError = OperationError<ReceiveRefusal>;
/// The failure to settle or renew a delivery.
pub type SettleError = OperationError<SettleRefusal>;
/// The failure to create, change or delete a queue.
pub type QueueError = OperationError<QueueRefusal>;
/// The failure to operate on a workflow, a dead letter or a queue's content.
pub type OperateError = OperationError<OperateRefusal>;
