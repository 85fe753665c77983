//! What waits for the peer's window.

use bytes::Bytes;

/// More than what a frame holds besides its payload: header, numbers and tag.
pub(crate) const TRANSFER_BYTES_MAX: usize = 96;

/// What waits for the peer's window.
#[derive(Debug)]
pub(crate) enum PendingTransfer {
    Delivery(OutgoingDelivery),
    /// The news that a link's credit is used up; it may not overtake the deliveries that used it.
    Drained {
        handle: u32,
    },
}

/// A delivery, or what is left of one.
#[derive(Debug)]
pub(crate) struct OutgoingDelivery {
    pub(crate) handle: u32,
    pub(crate) number: u32,
    pub(crate) tag: Bytes,
    pub(crate) format: u32,
    pub(crate) settled: bool,
    /// Whether a part of it is written.
    pub(crate) has_begun: bool,
    pub(crate) payload: Bytes,
}

impl PendingTransfer {
    pub(crate) fn handle(&self) -> u32 {
        match self {
            PendingTransfer::Delivery(delivery) => delivery.handle,
            PendingTransfer::Drained { handle } => *handle,
        }
    }

    /// The delivery that waits.
    pub(crate) fn number(&self) -> Option<u32> {
        match self {
            PendingTransfer::Delivery(delivery) => Some(delivery.number),
            PendingTransfer::Drained { .. } => None,
        }
    }

    /// What it takes of the room for what waits.
    pub(crate) fn cost(&self) -> usize {
        match self {
            PendingTransfer::Delivery(delivery) => TRANSFER_BYTES_MAX + delivery.payload.len(),
            PendingTransfer::Drained { .. } => TRANSFER_BYTES_MAX,
        }
    }
}
