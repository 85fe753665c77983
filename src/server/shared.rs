//! What every request shares.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::Client;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::live_value::LiveValue;
use crate::inbound::timeouts::Timeouts;
use crate::limits;
use crate::sas::Keys;
use crate::server::host::Host;
use crate::server::host::Placement;

/// What every request shares. Cheap to clone.
pub(crate) type SharedServer = Arc<ServerState>;

/// The engine, and those who know what it does not.
pub(crate) struct ServerState {
    pub(crate) client: Client,
    pub(crate) place: Arc<dyn Placement>,
    pub(crate) host: Arc<dyn Host>,
    /// Who may do what; without keys, everybody on this machine may do everything.
    pub(crate) keys: LiveValue<Keys>,
    pub(crate) timeouts: Timeouts,
    /// Set when the server is about to stop: who waits for something ends now.
    pub(crate) stopping: CancellationToken,
    /// What bodies that are read have in common.
    pub(crate) reading: Arc<BodyLimits>,
    /// Measures how long things take; what is stored has the engine's time.
    pub(crate) clock: Box<dyn Clock>,
}

impl ServerState {
    pub(crate) fn new(
        client: Client,
        place: Arc<dyn Placement>,
        host: Arc<dyn Host>,
        keys: Option<Keys>,
        timeouts: Timeouts,
    ) -> ServerState {
        ServerState {
            client,
            place,
            host,
            keys: LiveValue::new(keys),
            timeouts,
            stopping: CancellationToken::new(),
            reading: Arc::new(BodyLimits::new(limits::HTTP_BODIES_BYTES, timeouts)),
            clock: Box::new(SystemClock::default()),
        }
    }
}
