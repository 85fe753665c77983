//! The naive reference: plain vectors and linear scans, written from the contract, so that every answer of the rules
//! can be compared with what the contract says.
//!
//! It knows every command, and queues in order of arrival, by position, after a predecessor and without order.

pub(crate) mod again;
mod answer;
mod chain;
mod fail;
mod gap;
mod hidden;
mod holder;
mod naive;
mod operate;
mod receive;
mod receiving;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod reference;
mod rows;
mod send;
mod settling;
pub(crate) mod topics;

pub(crate) use crate::engine::tests::simulation::reference::reference::Reference;
