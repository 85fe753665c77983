//! What is allowed to happen. Pure: no clock, no chance, no disk; `now` and tokens come in, changes and effects
//! come out.

mod apply;
pub(crate) mod audit;
mod chain;
pub(crate) mod change;
pub(crate) mod claim;
pub(crate) mod command;
pub(crate) mod cursor;
pub(crate) mod dead_letters;
pub(crate) mod due;
mod early;
pub(crate) mod edit;
pub(crate) mod effect;
mod fail;
mod gap;
mod hide;
pub(crate) mod history;
mod hold;
pub(crate) mod holds;
mod judge;
mod kinds;
mod line;
pub(crate) mod lock;
mod on_record;
mod once;
mod operate;
mod order;
pub(crate) mod output;
mod properties;
mod purge;
mod queues;
mod rate;
pub(crate) mod rate_buckets;
mod recall;
pub(crate) mod receipt;
mod receive;
pub(crate) mod record;
pub(crate) mod records;
mod redrive;
pub(crate) mod redriven;
mod remember;
mod remind;
#[cfg(test)]
pub(crate) mod samples;
mod schedule;
mod send;
mod settle;
pub(crate) mod settlements;
mod shorten;
mod sparse;
mod step;
mod taken;
pub(crate) mod topic_record;
#[cfg(test)]
mod topic_samples;
mod topics;
mod transact;
mod workflow;

pub(crate) use crate::engine::rules::apply::Rules;
