//! Why a settle or a renewal was refused.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::error::send::SendRefusal;
use crate::id::SequenceNumber;

/// How a delivery was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SettledHow {
    /// It was completed.
    Completed,
    /// It was given back as a failed attempt.
    Abandoned,
    /// It was set aside.
    Deferred,
    /// It was moved aside for good.
    DeadLettered,
    /// It was given back as if it had not been handed out.
    Released,
}

impl fmt::Display for SettledHow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SettledHow::Completed => "completed",
            SettledHow::Abandoned => "abandoned",
            SettledHow::Deferred => "deferred",
            SettledHow::DeadLettered => "dead-lettered",
            SettledHow::Released => "released",
        })
    }
}

/// Why a settle or a renewal was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SettleRefusal {
    /// The lock is not held any more: it ran out, was released, or the engine was opened anew.
    #[error("cannot settle: the lock was lost")]
    LockLost,
    /// The delivery was settled in the last minute, in another way than this.
    #[error("cannot settle: the delivery is settled already (it was {how})")]
    AlreadySettled {
        /// How it was settled.
        how: SettledHow,
    },
    /// There is no such queue any more.
    #[error("cannot settle: there is no such queue")]
    QueueNotFound,
    /// The delivery has no such message, or it was settled more than a minute ago.
    #[error("cannot settle message {0}: the delivery does not hold it")]
    MessageNotFound(SequenceNumber),
    /// The delivery holds no workflow that could keep a state: its message belongs to none, or is a dead letter. It is still held.
    #[error("cannot set the state: the delivery holds no workflow")]
    NoWorkflow,
    /// The message's properties, with those of this settle, have more bytes than allowed; the delivery is still held.
    #[error("cannot settle: the message's properties would have {bytes} bytes")]
    PropertiesTooLarge {
        /// How many bytes they would have.
        bytes: usize,
    },
    /// The delivery is that of a dead letter, which cannot become one again; it is still held.
    #[error("cannot dead-letter message {0}: it is a dead letter already")]
    AlreadyDeadLettered(SequenceNumber),
    /// A message that should be sent with the settle was refused; the delivery is still held.
    #[error(transparent)]
    Send(SendRefusal),
}
