//! What whoever was handed a hidden message shows to end it.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::Misuse;
use crate::id::SequenceNumber;

/// Proof that a message that is hidden without a lock was handed out to you last: its number, and the count and instant
/// of that hand-out. Text too: `17.3.1735689600000`.
///
/// It is no secret: whoever may receive from the queue could make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claim {
    /// The message's number.
    pub sequence_number: SequenceNumber,
    /// How often it was handed out.
    pub delivery_count: u32,
    /// When it was last handed out or hidden; when it was accepted, as long as nobody was handed it.
    pub at: Timestamp,
}

impl Claim {
    /// The claim of whoever sent a message, as long as nobody was handed it.
    pub fn of_sender(sequence_number: SequenceNumber, accepted_at: Timestamp) -> Claim {
        Claim { sequence_number, delivery_count: 0, at: accepted_at }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.sequence_number, self.delivery_count, self.at.as_millis())
    }
}

impl FromStr for Claim {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<Claim, Misuse> {
        let wrong = || Misuse::new("claim", "is not sequence number, delivery count and instant");
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or_else(wrong);
        let sequence_number = SequenceNumber::new(next()?.parse().map_err(|_| wrong())?);
        let delivery_count = next()?.parse().map_err(|_| wrong())?;
        let at = Timestamp::from_millis(next()?.parse().map_err(|_| wrong())?);
        Ok(Claim { sequence_number, delivery_count, at })
    }
}
