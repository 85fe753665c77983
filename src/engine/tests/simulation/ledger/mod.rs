//! What an outsider knows: every answer of the engine written down, and nothing that was not answered.

pub(crate) mod entry;
pub(crate) mod event_listener;
pub(crate) mod fact;
mod hidden;
mod holds;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod ledger;
mod record;
mod settled;
mod topics;

pub(crate) use crate::engine::tests::simulation::ledger::ledger::Ledger;
