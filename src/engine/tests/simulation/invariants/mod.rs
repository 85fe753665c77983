//! What is promised, each promise a function with its number in `reliability`.

mod answers;
mod audit;
mod chains;
mod check;
mod counts;
mod cursors;
mod event_listener;
mod history;
mod locks;
mod order;
mod purged;
mod stored;
mod sums;
mod time;
mod work;

pub(crate) use crate::engine::tests::simulation::invariants::check::after_every_turn;
pub(crate) use crate::engine::tests::simulation::invariants::check::thoroughly;
pub(crate) use crate::engine::tests::simulation::invariants::purged::is_purged;
pub(crate) use crate::engine::tests::simulation::invariants::stored::gone;
