//! The engine's answer to a send.

use serde::Deserialize;
use serde::Serialize;

use crate::id::SequenceNumber;

/// The engine's answer to a send of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    /// It is stored, under this number.
    Accepted(SequenceNumber),
    /// It was accepted before, under this number; nothing was stored.
    Duplicate(SequenceNumber),
    /// Its place was completed before; nothing was stored.
    AlreadySettled,
    /// It is stored as a dead letter: its place was given up before it came.
    DeadLettered(SequenceNumber),
}

impl Receipt {
    /// The number of the stored message, unless its place was completed before.
    pub fn sequence_number(&self) -> Option<SequenceNumber> {
        match self {
            Receipt::Accepted(number) | Receipt::Duplicate(number) | Receipt::DeadLettered(number) => {
                Some(*number)
            }
            Receipt::AlreadySettled => None,
        }
    }
}
