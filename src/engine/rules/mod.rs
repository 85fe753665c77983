//! What is allowed to happen. Pure: no clock, no chance, no disk; `now` and tokens come in, changes and effects
//! come out.

mod apply;
pub(crate) mod audit;
mod chain;
pub(crate) mod change;
pub(crate) mod command;
mod early;
pub(crate) mod effect;
mod fail;
mod gap;
mod hide;
mod judge;
mod line;
pub(crate) mod lock;
mod on_record;
mod once;
mod operate;
mod order;
mod purge;
mod queues;
mod receive;
pub(crate) mod record;
pub(crate) mod records;
mod redrive;
mod remind;
#[cfg(test)]
pub(crate) mod samples;
mod send;
mod settle;
mod step;
mod taken;
mod workflow;

pub(crate) use crate::engine::rules::apply::Rules;
