//! The name of a delivery, for whoever settles it without its handle.

use std::fmt;
use std::str::FromStr;

use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::verbs::Settle;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// Names a delivery that its handle was let go of, as text too: `17.3.00000007-..`, which is sequence number, delivery
/// count and lock token.
///
/// Whoever knows it can settle the delivery, as long as its lock lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryId {
    pub(crate) token: LockToken,
    pub(crate) sequence_number: SequenceNumber,
    pub(crate) delivery_count: u32,
}

impl DeliveryId {
    /// The message's number.
    pub fn sequence_number(&self) -> SequenceNumber {
        self.sequence_number
    }

    /// The lock token.
    pub fn lock_token(&self) -> LockToken {
        self.token
    }

    /// How often the message was handed out, this time included.
    pub fn delivery_count(&self) -> u32 {
        self.delivery_count
    }

    /// What settles it, in its queue.
    pub(crate) fn to_command(self, queue: &QueueName, settlement: Settlement) -> Settle {
        let DeliveryRef { token, sequence, delivery_count } = self.held();
        Settle { queue: queue.clone(), token, sequence, delivery_count, settlement }
    }

    pub(crate) fn held(&self) -> DeliveryRef {
        DeliveryRef { token: self.token, sequence: self.sequence_number, delivery_count: self.delivery_count }
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.sequence_number, self.delivery_count, self.token)
    }
}

impl FromStr for DeliveryId {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<DeliveryId, Misuse> {
        let wrong = || Misuse::new("delivery", "is not sequence number, delivery count and lock token");
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or_else(wrong);
        let sequence_number = SequenceNumber::new(next()?.parse().map_err(|_| wrong())?);
        let delivery_count = next()?.parse().map_err(|_| wrong())?;
        let token = next()?.parse()?;
        Ok(DeliveryId { token, sequence_number, delivery_count })
    }
}
