//! When a failed message is tried again whose failure does not say so.

#[cfg(feature = "daemon")]
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Abandon;
use crate::engine::Queue;
use crate::error::Unavailable;
use crate::queue::Backoff;

/// The reason of an attempt whose handler wants another and gives none.
pub(crate) const NO_REASON: &str = "the handler asked for a retry";

/// When a failed message is tried again whose failure does not say so.
#[derive(Clone, Default)]
pub(crate) enum Delays {
    /// As the queue says.
    #[default]
    OfQueue,
    /// By a backoff other than the queue's.
    Backoff(Backoff),
    /// By exact delays; where there is none, as the queue says.
    #[cfg(feature = "daemon")]
    Exact(Arc<dyn Fn(u32) -> Option<Duration> + Send + Sync>),
}

impl Delays {
    /// How a failed attempt ends: after the delay that it chose, the processor's, or the queue's, and with a reason.
    pub(crate) fn apply(
        &self,
        abandon: Abandon,
        queue: &Queue,
        attempt: u32,
    ) -> Result<Abandon, Unavailable> {
        let abandon = if abandon.reason.is_empty() { abandon.reason(NO_REASON) } else { abandon };
        Ok(match self.after(queue, attempt)? {
            Some(delay) if abandon.is_with_backoff() => abandon.retry_after(delay),
            _ => abandon,
        })
    }

    /// The delay after an attempt; none when the queue says it.
    fn after(&self, queue: &Queue, attempt: u32) -> Result<Option<Duration>, Unavailable> {
        Ok(match self {
            Delays::OfQueue => None,
            Delays::Backoff(backoff) => Some(backoff.delay(attempt, queue.client().entropy()?)),
            #[cfg(feature = "daemon")]
            Delays::Exact(after) => after(attempt),
        })
    }
}
