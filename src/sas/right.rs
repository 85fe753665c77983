//! What a key allows.

use serde::Deserialize;

/// What a key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Right {
    /// Sending messages.
    Send,
    /// Receiving, settling and looking.
    Listen,
    /// Everything.
    Manage,
}

impl Right {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Right::Send => "send",
            Right::Listen => "listen",
            Right::Manage => "manage",
        }
    }
}
