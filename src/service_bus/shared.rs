//! What all connections of an endpoint share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::Client;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::message::Message;
use crate::sas::Signatures;
use crate::service_bus::dead::Shelves;
use crate::service_bus::holds::Holds;
use crate::service_bus::meters::Meters;

/// Where messages belong, as the definitions of their queues say.
pub(crate) trait Entrance: Send + Sync + 'static {
    /// Fills in workflow and position.
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse>;

    /// The delay of the next attempt after so many hand-outs, if a definition says it; else it is tried again at once.
    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration>;

    /// After how long a deferred message comes back by itself, if a definition says it.
    fn defer_delay(&self, queue: &QueueName) -> Option<Duration>;

    /// Whether a queue is for clients; the daemon keeps things of its own in others.
    fn is_open(&self, queue: &QueueName) -> bool;
}

/// What all connections of an endpoint share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) entrance: Arc<dyn Entrance>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) holds: Holds,
    pub(crate) shelves: Shelves,
    pub(crate) meters: Meters,
    /// What tokens are checked with; without, nobody needs one.
    pub(crate) signatures: Option<Signatures>,
    /// Set when the endpoint is about to stop.
    pub(crate) stopping: CancellationToken,
    requiring_session: RwLock<BTreeSet<QueueName>>,
}

impl Shared {
    pub(crate) fn new(
        client: Client,
        entrance: Arc<dyn Entrance>,
        clock: Arc<dyn Clock>,
        meters: Meters,
        signatures: Option<Signatures>,
    ) -> Shared {
        Shared {
            shelves: Shelves::new(client.clone(), clock.clone()),
            client,
            entrance,
            clock,
            holds: Holds::default(),
            meters,
            signatures,
            stopping: CancellationToken::new(),
            requiring_session: RwLock::default(),
        }
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
