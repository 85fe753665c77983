//! What all connections of an endpoint share.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::definition::DefiningFile;
use crate::engine::Client;
use crate::id::QueueName;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::live_value::LiveValue;
use crate::inbound::timeouts::Timeouts;
use crate::intake::Intake;
use crate::limits;
use crate::sas::Keys;
use crate::sas::Signatures;
use crate::service_bus::changeable::DefinedByFile;
use crate::service_bus::description::Descriptions;
#[cfg(test)]
use crate::service_bus::description::RECORDS_QUEUE;
use crate::service_bus::entity::Entity;
use crate::service_bus::holds::ClientHolds;
use crate::service_bus::link_window::LastWindows;
use crate::service_bus::link_window::LinkWindow;
use crate::service_bus::meters::Meters;

/// Whether a queue is for clients; the daemon keeps things of its own in others.
pub(crate) type IsOpen = fn(&QueueName) -> bool;

/// Whose queues are whose.
#[derive(Clone)]
pub(crate) struct Owners {
    pub(crate) is_open: IsOpen,
    pub(crate) defined: DefiningFile,
    /// Whether other nodes of a cluster describe entities too.
    pub(crate) are_several: bool,
}

#[cfg(test)]
impl Owners {
    /// Every queue is for clients, and no file defines one.
    pub(crate) fn nobody() -> Owners {
        let is_open: IsOpen = |queue| queue.as_str() != RECORDS_QUEUE;
        Owners { is_open, defined: Arc::new(|_| None), are_several: false }
    }
}

/// What all connections of an endpoint share.
pub(crate) struct EndpointState {
    pub(crate) client: Client,
    pub(crate) intake: Intake,
    pub(crate) is_open: IsOpen,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) holds: ClientHolds,
    pub(crate) meters: Meters,
    last_windows: Arc<LastWindows>,
    /// What tokens are checked with; without, nobody needs one.
    pub(crate) keys: LiveValue<Keys>,
    /// Whether other machines are served.
    pub(crate) is_for_others: bool,
    /// Set when the endpoint is about to stop.
    pub(crate) stopping: CancellationToken,
    /// The descriptions of entities: what their queues do not know.
    pub(crate) descriptions: Descriptions,
    pub(crate) defined: DefiningFile,
    /// Bodies of administration clients.
    pub(crate) reading: Arc<BodyLimits>,
    /// Held by whoever looks at an entity or what is said of it, and changes that.
    pub(crate) administering: Mutex<()>,
}

impl EndpointState {
    pub(crate) fn new(
        intake: Intake,
        Owners { is_open, defined, are_several }: Owners,
        clock: Arc<dyn Clock>,
        meters: Meters,
        keys: LiveValue<Keys>,
        is_for_others: bool,
    ) -> EndpointState {
        let client = intake.client().clone();
        EndpointState {
            descriptions: Descriptions::new(client.clone(), are_several),
            defined,
            reading: Arc::new(BodyLimits::new(limits::SERVICE_BUS_DOCUMENTS_BYTES, Timeouts::default())),
            administering: Mutex::default(),
            client,
            intake,
            is_open,
            clock,
            holds: ClientHolds::default(),
            last_windows: Arc::default(),
            meters,
            keys,
            is_for_others,
            stopping: CancellationToken::new(),
        }
    }

    /// What tokens are checked with now; without, nobody needs one.
    pub(crate) fn signatures(&self) -> Option<Signatures> {
        self.keys.load().map(Signatures::new)
    }

    /// Refuses to change what a file defines.
    pub(crate) fn check_undefined(&self, name: &QueueName) -> Result<(), DefinedByFile> {
        (self.defined)(name).map_or(Ok(()), |file| Err(DefinedByFile::new(name, file)))
    }

    /// The window of a new link that receives from a queue, or its dead letters.
    pub(crate) fn window(&self, entity: &Entity) -> LinkWindow {
        LinkWindow::new(&self.client, entity, &self.last_windows, &self.meters)
    }
}
