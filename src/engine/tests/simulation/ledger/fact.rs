//! What the ledger has heard in one turn, each with what it knew before.

use crate::clock::Timestamp;
use crate::engine::rules::due::Due;
use crate::engine::rules::receipt::Receipt;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::error::SendRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// Whether a delivery is its holder's, as far as its holder can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Current,
    /// The lock was lost, or the message is settled.
    Void,
    /// An earlier delivery of the same holder has failed, so that this one may have been taken back.
    Unsure,
}

/// Something that was answered.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    Sent {
        receipt: Receipt,
        /// The highest number that was given before.
        last: u64,
        /// The number under which its ID is remembered.
        remembered: Option<SequenceNumber>,
        /// Whether a message with this number waits for the same place.
        is_pending: bool,
    },
    SentOnce {
        digest: u64,
        /// What is remembered under its key: the digest of the request, and what was answered to it.
        remembered: Option<(u64, Vec<Receipt>)>,
        answer: Result<Vec<Receipt>, SendRefusal>,
    },
    Delivered {
        queue: QueueName,
        sequence: SequenceNumber,
        token: LockToken,
        delivery_count: u32,
        /// The lowest and highest delivery count it could have.
        expected: (u32, u32),
        ended: Option<End>,
        /// The instant before which it may not be handed out, unless it is asked for by number.
        not_before: Option<Due>,
        locked_until: Timestamp,
        /// Until when it should be locked.
        expected_until: Option<Timestamp>,
        /// Others who hold its workflow.
        holders: Vec<LockToken>,
        is_known: bool,
        is_fetched: bool,
        /// Somebody's word that lets it be handed out once more although it is exhausted.
        is_excused: bool,
    },
    Settled {
        standing: Standing,
        is_done: bool,
        is_lost: bool,
    },
    Renewed {
        locked_until: Timestamp,
        expected_until: Option<Timestamp>,
    },
    Completed {
        sequence: SequenceNumber,
        ended: Option<End>,
    },
    /// A message has another instant, which may be over.
    Rescheduled(SequenceNumber),
    Cancelled {
        queue: QueueName,
        sequence: SequenceNumber,
        is_done: bool,
        is_known: bool,
        /// Whether it was accepted for an instant that has not come.
        is_scheduled: bool,
        was_delivered: bool,
    },
}
