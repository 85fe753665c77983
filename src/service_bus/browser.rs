//! What is known of a link that looks.

use std::sync::Arc;

use crate::id::SequenceNumber;
use crate::selector::Selector;
use crate::service_bus::backlog::Backlog;
use crate::service_bus::backlog::SeenMessage;
use crate::service_bus::entity::Entity;

/// A link that looks.
pub(crate) struct Browser {
    pub(crate) entity: Entity,
    /// The session whose messages it is shown; without, all.
    pub(crate) session: Option<String>,
    /// What is true of the messages that it is shown.
    pub(crate) selector: Option<Arc<Selector>>,
    /// Where the next look begins.
    pub(crate) next: SequenceNumber,
    pub(crate) is_looking: bool,
    /// Whether it looks again after a while, because there was nothing more.
    pub(crate) is_waiting: bool,
    /// Whether the client drains: it is to be answered when there is nothing more.
    pub(crate) drains: bool,
    /// What was seen and had no room.
    pub(crate) backlog: Backlog<SeenMessage>,
    pub(crate) shown: u64,
}

impl Browser {
    pub(crate) fn new(
        entity: Entity,
        session: Option<String>,
        selector: Option<Arc<Selector>>,
        backlog: Backlog<SeenMessage>,
    ) -> Browser {
        Browser {
            entity,
            session,
            selector,
            next: SequenceNumber::new(0),
            is_looking: false,
            is_waiting: false,
            drains: false,
            backlog,
            shown: 0,
        }
    }

    /// Forgets what was seen and not shown: it is looked at again.
    pub(crate) fn rewind(&mut self) {
        if let Some((first, _)) = self.backlog.front() {
            self.next = *first;
            self.backlog.clear();
        }
    }
}
