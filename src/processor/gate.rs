//! Who may keep a processor from receiving for a while.

use std::time::Duration;

use crate::engine::ReceivedMessage;

/// Keeps a processor from receiving, so that what it may not handle yet is not handed out at all: nothing is counted, and
/// nobody holds a lock meanwhile.
pub(crate) trait Gate: Send + Sync {
    /// How many messages may be handed out now, or for how long none. Time is what has passed on the engine's clock.
    fn open(&self, elapsed: Duration) -> Result<usize, Duration>;

    /// Notes a message that was handed out.
    fn note(&self, message: &ReceivedMessage);
}
