//! What a sender is answered.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::Problem;

/// What became of a message that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptView {
    /// The message's number; of a duplicate, the number of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Whether it was stored now; a daemon that answers lines leaves out what everybody expects.
    #[serde(default)]
    pub status: ReceiptStatus,
}

/// Whether a message was stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    /// It is stored.
    #[default]
    Accepted,
    /// It was accepted before, under this number.
    Duplicate,
    /// Its place was completed before; nothing was stored.
    AlreadySettled,
    /// It is stored as a dead letter: its place was given up before it came.
    DeadLettered,
}

/// What became of one line of messages that were sent as lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SentLine {
    /// The message was refused.
    Refused {
        /// Why.
        error: Problem,
    },
    /// It was taken.
    Sent(ReceiptView),
}
