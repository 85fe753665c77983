//! What every request to this endpoint shares.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::definition::Defined;
use crate::engine::Client;
use crate::engine::Queue;
use crate::inbound::inflow::Reading;
use crate::intake::Intake;
use crate::sas::Signatures;
use crate::storage_queue::meters::Meters;
use crate::storage_queue::names::QUEUE_NAME_LENGTHS;
use crate::storage_queue::names::is_queue_name;
use crate::storage_queue::refused::Refused;

/// What every request shares.
pub(crate) type Shared = Arc<AppState>;

/// The engine, and who may do what with it.
pub(crate) struct AppState {
    pub(crate) intake: Intake,
    pub(crate) signatures: Signatures,
    /// Whether every request has to be signed.
    pub(crate) needs_signature: bool,
    pub(crate) defined: Defined,
    pub(crate) reading: Arc<Reading>,
    /// Schedules messages, and judges signatures.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meters: Meters,
    /// Held by who reads a record, changes it and puts it back.
    pub(crate) changing: Mutex<()>,
}

impl AppState {
    pub(crate) fn client(&self) -> &Client {
        self.intake.client()
    }

    /// The queue of a name, whether there is one or not.
    pub(crate) fn queue(&self, name: &str) -> Result<Queue, Refused> {
        let wrong = || {
            let message = "a queue is named by 3 to 63 small letters, digits and single hyphens";
            Refused::bad("InvalidResourceName", message)
        };
        if !QUEUE_NAME_LENGTHS.contains(&name.chars().count()) {
            return Err(Refused::wrong_length());
        }
        if !is_queue_name(name) {
            return Err(wrong());
        }
        self.client().queue(name).map_err(|_| wrong())
    }
}
