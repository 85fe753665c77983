//! How a dead letter goes back: what an operator changes of it, and how it came back.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::id::Position;
use crate::id::SequenceNumber;

/// How a dead letter came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Redriven {
    /// To its own place, under its own number.
    InPlace,
    /// As a new message, under this number.
    AsNew(SequenceNumber),
}

/// A dead letter that goes back with another body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Edit {
    pub(crate) sequence: SequenceNumber,
    /// Its new position; `None` for its own place.
    pub(crate) position: Option<Position>,
    pub(crate) body: Bytes,
}
