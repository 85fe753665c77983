//! Any failure of any operation, for callers that only pass it on.

use std::sync::Arc;

use thiserror::Error;

use crate::error::fault::Fault;
use crate::error::fault::Unavailable;
use crate::error::misuse::Misuse;
use crate::error::open::OpenError;
#[cfg(feature = "daemon")]
use crate::error::operate::OperateRefusal;
use crate::error::operation::OperateError;
use crate::error::operation::QueueError;
use crate::error::operation::ReceiveError;
use crate::error::operation::SendError;
use crate::error::operation::SettleError;
#[cfg(feature = "daemon")]
use crate::error::queue::QueueRefusal;
#[cfg(feature = "daemon")]
use crate::error::send::SendRefusal;
use crate::error::topic::TopicError;
#[cfg(feature = "daemon")]
use crate::error::topic::TopicRefusal;

/// Any failure of any operation.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Opening failed.
    #[error(transparent)]
    Open(#[from] Arc<OpenError>),
    /// Sending failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Receiving failed.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Settling failed.
    #[error(transparent)]
    Settle(#[from] SettleError),
    /// Changing a queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Changing a topic failed.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// Operating failed.
    #[error(transparent)]
    Operate(#[from] OperateError),
    /// The engine is closed or has stopped.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A fault of the disk, or of what is on it.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A value was not allowed.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

#[cfg(feature = "daemon")]
impl Error {
    /// Whether it was refused because the disk is nearly full.
    pub(crate) fn is_of_full_disk(&self) -> bool {
        matches!(
            self,
            Error::Queue(QueueError::Refused(QueueRefusal::StorageFull(_)))
                | Error::Topic(TopicError::Refused(TopicRefusal::StorageFull(_)))
                | Error::Send(SendError::Refused(SendRefusal::StorageFull))
                | Error::Operate(OperateError::Refused(OperateRefusal::Send(SendRefusal::StorageFull)))
        )
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Error {
        Error::Open(Arc::new(error))
    }
}
