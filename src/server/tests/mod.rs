//! The server as its callers see it: over a socket.

mod around;
mod authorizing;
mod batches;
mod client;
mod documented;
pub(super) mod fixture;
mod looking;
mod operating;
mod receiving;
mod sending;
mod settling;
mod skipping;
mod slow;
mod topics;
mod wire;
