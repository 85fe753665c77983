//! The stream of what happens to workflows.

use thiserror::Error;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::engine::rules::effect::Event;

/// What happens to workflows, from the moment of subscription on: blocked, held, gaps, dead letters, redrives.
///
/// Events are told after they are on disk. They are not stored: who does not listen has to look.
pub struct Events {
    receiver: broadcast::Receiver<Event>,
}

/// A reader that was too slow has missed this many events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot read every event: this listener was too slow, and missed some ({0})")]
pub struct EventsLag(pub u64);

impl Events {
    pub(crate) fn new(receiver: broadcast::Receiver<Event>) -> Events {
        Events { receiver }
    }

    /// Waits for the next event; `None` once the engine is closed.
    ///
    /// # Errors
    /// [`EventsLag`] when the reader was too slow; it goes on with the oldest event that is still kept.
    pub async fn next(&mut self) -> Option<Result<Event, EventsLag>> {
        match self.receiver.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(RecvError::Lagged(missed)) => Some(Err(EventsLag(missed))),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }
}
