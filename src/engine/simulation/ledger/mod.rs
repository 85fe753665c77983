//! What an outsider knows: every answer of the engine written down, and nothing that was not answered.

pub(crate) mod entry;
pub(crate) mod fact;
mod hear;
mod hidden;
mod holds;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod ledger;
mod settled;
pub(crate) mod told;

pub(crate) use crate::engine::simulation::ledger::ledger::Ledger;
