//! What every request to this endpoint shares.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::definition::DefiningFile;
use crate::engine::Client;
use crate::engine::Queue;
use crate::inbound::inflow::BodyLimits;
use crate::inbound::live_value::LiveValue;
use crate::intake::Intake;
use crate::sas::Keys;
use crate::sas::Signatures;
use crate::storage_queue::meters::StorageMeters;
use crate::storage_queue::names::QUEUE_NAME_LENGTHS;
use crate::storage_queue::names::is_queue_name;
use crate::storage_queue::refusal::StorageRefusal;

/// What every request shares.
pub(crate) type SharedStorage = Arc<StorageState>;

/// The engine, and who may do what with it.
pub(crate) struct StorageState {
    pub(crate) intake: Intake,
    /// The accounts; where there are none, nothing has to be signed.
    pub(crate) keys: LiveValue<Keys>,
    /// What is signed is checked with this where there are no keys.
    pub(crate) everybodys: Signatures,
    pub(crate) defined: DefiningFile,
    pub(crate) reading: Arc<BodyLimits>,
    /// Schedules messages, and judges signatures.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meters: StorageMeters,
    /// Held by who reads a record, changes it and puts it back, and by who makes or deletes a queue, whose metadata are a record. Other
    /// nodes of a cluster do not wait for it.
    pub(crate) changing: Mutex<()>,
}

impl StorageState {
    pub(crate) fn client(&self) -> &Client {
        self.intake.client()
    }

    /// What signatures are checked with now.
    pub(crate) fn signatures(&self) -> Signatures {
        self.keys.load().map_or_else(|| self.everybodys.clone(), Signatures::new)
    }

    /// The queue of a name, whether there is one or not.
    pub(crate) fn queue(&self, name: &str) -> Result<Queue, StorageRefusal> {
        let wrong = || {
            let message = "a queue is named by 3 to 63 small letters, digits and single hyphens";
            StorageRefusal::bad("InvalidResourceName", message)
        };
        if !QUEUE_NAME_LENGTHS.contains(&name.chars().count()) {
            return Err(StorageRefusal::wrong_length());
        }
        if !is_queue_name(name) {
            return Err(wrong());
        }
        self.client().queue(name).map_err(|_| wrong())
    }
}
