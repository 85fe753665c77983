//! A definition as the daemon has loaded it, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// A definition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DefinitionView {
    /// The queue it declares.
    pub queue: String,
    /// Its file.
    pub file: String,
    /// How many handlers it has; none means that clients receive.
    pub handlers: u64,
    /// How many schedules it has.
    pub schedules: u64,
    /// Whether its handlers are paused.
    pub paused: bool,
    /// When the file was last taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaded_at: Option<WireTime>,
    /// Why the file, as it is now, was not taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// All definitions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DefinitionPage {
    /// The definitions, in order of queue.
    pub definitions: Vec<DefinitionView>,
}
