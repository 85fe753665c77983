//! What can go wrong, in three kinds: a refusal is an answer, a fault stops the engine, a misuse names its field.

mod any;
#[cfg(feature = "daemon")]
mod cause;
mod fault;
mod misuse;
mod open;
mod operate;
mod operation;
mod queue;
mod receive;
mod send;
mod settle;
mod topic;

pub use any::Error;
#[cfg(feature = "daemon")]
pub(crate) use cause::innermost;
#[cfg(feature = "daemon")]
pub(crate) use cause::root_cause;
pub use fault::Fault;
pub use fault::Unavailable;
pub use misuse::Misuse;
pub use open::OpenError;
pub use operate::OperateRefusal;
pub use operation::OperateError;
pub use operation::OperationError;
pub use operation::QueueError;
pub use operation::ReceiveError;
pub use operation::SendError;
pub use operation::SettleError;
pub use queue::QueueRefusal;
pub use receive::ReceiveRefusal;
pub use send::SendRefusal;
pub use settle::SettleRefusal;
pub use settle::SettledHow;
pub use topic::TopicError;
pub use topic::TopicRefusal;
