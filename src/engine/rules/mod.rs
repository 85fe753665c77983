//! What is allowed to happen. Pure: no clock, no chance, no disk; `now` and tokens come in, changes and effects
//! come out.

mod accepted;
mod apply;
pub(crate) mod audit;
mod chain;
pub(crate) mod change;
pub(crate) mod claim;
mod clock_work;
pub(crate) mod command;
#[cfg(test)]
pub(crate) mod command_samples;
mod complete;
pub(crate) mod cursor;
pub(crate) mod dead_letters;
pub(crate) mod due;
mod early;
pub(crate) mod edit;
pub(crate) mod effect;
mod fail;
mod gap;
mod hand_over;
pub(crate) mod held_messages;
mod hide;
pub(crate) mod history;
mod hold;
mod holders;
pub(crate) mod holds;
mod incoming;
mod judge;
mod line;
pub(crate) mod lock;
pub(crate) mod log_weight;
mod on_record;
mod once;
mod open_workflow;
mod operate;
mod operators;
mod order;
pub(crate) mod output;
mod producers;
mod properties;
mod purge;
mod queues;
mod rate;
pub(crate) mod rate_buckets;
mod recall;
pub(crate) mod receipt;
mod receive;
mod receivers;
pub(crate) mod record;
pub(crate) mod records;
mod redrive;
pub(crate) mod redriven;
mod remember;
mod remind;
pub(crate) mod reply;
#[cfg(test)]
pub(crate) mod reply_samples;
mod revoked;
pub(crate) mod room_need;
#[cfg(test)]
pub(crate) mod samples;
mod schedule;
mod send;
mod settle;
pub(crate) mod settlements;
mod shorten;
mod sparse;
pub(crate) mod step;
mod topic_plan;
pub(crate) mod topic_record;
#[cfg(test)]
pub(crate) mod topic_samples;
pub(crate) mod topics;
pub(crate) mod transact;
pub(crate) mod verb;
pub(crate) mod verbs;
pub(crate) mod waits_for;
mod workflow;
pub(crate) mod workflow_record;

pub(crate) use crate::engine::rules::apply::Rules;
