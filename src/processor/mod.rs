//! The processor: receives, runs a handler for each delivery, and settles it by its outcome.

mod batch;
mod blocking;
mod context;
mod delays;
mod failure;
mod gate;
mod handler;
mod invocation;
mod line;
mod lock_renewals;
mod pace;
mod pool;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod processor;
mod renewal;
mod settling;
mod signal;
mod single;
mod taker;
#[cfg(test)]
mod tests;

pub use crate::engine::Outcome;
pub use crate::processor::batch::BatchHandler;
pub use crate::processor::batch::BatchOutcome;
pub use crate::processor::blocking::Blocking;
pub use crate::processor::context::Context;
#[cfg(feature = "daemon")]
pub(crate) use crate::processor::delays::NO_REASON;
pub use crate::processor::failure::Failure;
#[cfg(feature = "daemon")]
pub(crate) use crate::processor::gate::Gate;
pub use crate::processor::handler::Body;
pub use crate::processor::handler::Handler;
pub use crate::processor::handler::Raw;
#[cfg(feature = "daemon")]
pub(crate) use crate::processor::invocation::guarded;
pub use crate::processor::pool::Running;
pub use crate::processor::processor::Processor;
#[cfg(feature = "daemon")]
pub(crate) use crate::processor::settling::joined;
#[cfg(all(test, feature = "daemon"))]
pub(crate) use crate::processor::signal::Signal;
pub(crate) use crate::processor::single::DeliveryEnd;
#[cfg(feature = "daemon")]
pub(crate) use crate::processor::taker::Assignment;
#[cfg(feature = "daemon")]
pub(crate) use crate::processor::taker::Taker;
