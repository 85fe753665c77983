//! Measures the promises: order, one at a time, on disk. Every run checks what it measures.
//!
//! The workloads are written once, for any contender; `seriatim bench` runs them on the engine, and the benches in
//! `benches/` beside other contenders too.

mod apart;
pub(crate) mod body;
mod checker;
pub(crate) mod contender;
mod drain;
mod embedded;
pub(crate) mod error;
#[cfg(test)]
mod faulty_queue;
mod feed;
pub(crate) mod folder;
mod handler;
mod loss;
pub(crate) mod measure;
pub(crate) mod message;
mod meter;
mod outcome;
mod pace;
pub(crate) mod plan;
pub(crate) mod progress;
mod purge;
pub(crate) mod raw;
mod round;
mod spread;
mod workload;

pub(crate) use crate::bench::apart::run_apart;
pub(crate) use crate::bench::apart::run_here;
pub(crate) use crate::bench::embedded::EmbeddedEngine;
pub(crate) use crate::bench::error::BenchError;
pub(crate) use crate::bench::outcome::BenchOutcome;
pub(crate) use crate::bench::plan::BenchPlan;
pub(crate) use crate::bench::workload::Workload;
