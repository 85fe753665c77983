//! Why nothing is handed out to handlers for a while, as JSON.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireTime;

/// Why nothing is handed out to the handlers of a definition for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBackView {
    /// Why.
    pub cause: HeldBackCause,
    /// When it goes on.
    pub until: WireTime,
    /// The error of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why nothing is handed out to the handlers of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeldBackCause {
    /// The rate of a handler is used up.
    RateLimited,
    /// The daemon is too short of file handles, processes or memory to start a program.
    CannotStart,
}
