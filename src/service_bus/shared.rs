//! What all connections of an endpoint share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::Client;
use crate::id::QueueName;
use crate::intake::Intake;
use crate::sas::Signatures;
use crate::service_bus::dead_letter_queue::DeadLetterQueues;
use crate::service_bus::entity::Entity;
use crate::service_bus::holds::Holds;
use crate::service_bus::link_window::LastWindows;
use crate::service_bus::link_window::LinkWindow;
use crate::service_bus::meters::Meters;

/// Whether a queue is for clients; the daemon keeps things of its own in others.
pub(crate) type IsOpen = fn(&QueueName) -> bool;

/// What all connections of an endpoint share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) intake: Intake,
    pub(crate) is_open: IsOpen,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) holds: Holds,
    pub(crate) dead_letter_queues: DeadLetterQueues,
    pub(crate) meters: Meters,
    last_windows: Arc<LastWindows>,
    /// What tokens are checked with; without, nobody needs one.
    pub(crate) signatures: Option<Signatures>,
    /// Whether other machines are served.
    pub(crate) is_for_others: bool,
    /// Set when the endpoint is about to stop.
    pub(crate) stopping: CancellationToken,
    requiring_session: RwLock<BTreeSet<QueueName>>,
}

impl Shared {
    pub(crate) fn new(
        intake: Intake,
        is_open: IsOpen,
        clock: Arc<dyn Clock>,
        meters: Meters,
        signatures: Option<Signatures>,
        is_for_others: bool,
    ) -> Shared {
        let client = intake.client().clone();
        Shared {
            dead_letter_queues: DeadLetterQueues::new(client.clone(), clock.clone()),
            client,
            intake,
            is_open,
            clock,
            holds: Holds::default(),
            last_windows: Arc::default(),
            meters,
            signatures,
            is_for_others,
            stopping: CancellationToken::new(),
            requiring_session: RwLock::default(),
        }
    }

    /// The window of a new link that receives from a queue, or its dead letters.
    pub(crate) fn window(&self, entity: &Entity) -> LinkWindow {
        LinkWindow::new(&self.client, entity, &self.last_windows, &self.meters)
    }

    /// Notes that every message of a queue has to name its session.
    pub(crate) fn require_session(&self, queue: QueueName) {
        self.requiring_session.write().unwrap_or_else(PoisonError::into_inner).insert(queue);
    }

    /// Whether every message of a queue has to name its session.
    pub(crate) fn requires_session(&self, queue: &QueueName) -> bool {
        self.requiring_session.read().unwrap_or_else(PoisonError::into_inner).contains(queue)
    }
}
