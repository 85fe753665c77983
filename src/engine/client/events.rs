//! The stream of what happens to workflows.

use thiserror::Error;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::error::TryRecvError;

use crate::engine::inbox::Inbox;
use crate::engine::rules::effect::Event;
use crate::shown::shown;

/// What happens to workflows, from the moment of subscription on: blocked, held, gaps, dead letters, redrives.
///
/// Events are told after they are on disk. They are not stored: who does not listen has to look.
pub struct Events {
    receiver: broadcast::Receiver<Event>,
    /// Knows when the engine has ended: handles, which may live on, could still send.
    inbox: Inbox,
}

shown!(Events {});

/// A reader that was too slow has missed this many events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot read every event: this listener was too slow, and missed some ({0})")]
pub struct EventsLag(pub u64);

impl Events {
    pub(crate) fn new(receiver: broadcast::Receiver<Event>, inbox: Inbox) -> Events {
        Events { receiver, inbox }
    }

    /// Waits for the next event; `None` once the engine is closed, or a fault has stopped it, and every event before that has
    /// been read.
    ///
    /// # Errors
    /// [`EventsLag`] when the reader was too slow; it goes on with the oldest event that is still kept.
    pub async fn next(&mut self) -> Option<Result<Event, EventsLag>> {
        tokio::select! {
            biased;
            received = self.receiver.recv() => match received {
                Ok(event) => Some(Ok(event)),
                Err(RecvError::Lagged(missed)) => Some(Err(EventsLag(missed))),
                Err(RecvError::Closed) => None,
            },
            // Its last event may have come since the line above found none.
            _ = self.inbox.why_ended() => match self.receiver.try_recv() {
                Ok(event) => Some(Ok(event)),
                Err(TryRecvError::Lagged(missed)) => Some(Err(EventsLag(missed))),
                Err(TryRecvError::Empty | TryRecvError::Closed) => None,
            },
        }
    }

    /// The next event, if there is one already. A reader that was too slow is not told, and goes on with the oldest event that
    /// is still kept.
    pub fn try_next(&mut self) -> Option<Event> {
        loop {
            match self.receiver.try_recv() {
                Ok(event) => return Some(event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}
