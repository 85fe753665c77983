//! Measures the promises: order, one at a time, on disk. Every run checks what it measures.
//!
//! The workloads are written once, for any contender; `seriatim bench` runs them on the engine, and the benches in
//! `benches/` beside other contenders too.

mod body;
mod checker;
mod contender;
mod drain;
mod embedded;
mod error;
mod feed;
mod folder;
mod handler;
mod loss;
mod measure;
mod meter;
mod outcome;
mod pace;
mod plan;
mod progress;
mod raw;
mod round;
mod spread;
mod workload;

pub(crate) use crate::bench::embedded::Embedded;
pub(crate) use crate::bench::error::BenchError;
pub(crate) use crate::bench::folder::Folder;
pub(crate) use crate::bench::measure::measure;
pub(crate) use crate::bench::outcome::Outcome;
pub(crate) use crate::bench::plan::Plan;
pub(crate) use crate::bench::progress::Progress;
pub(crate) use crate::bench::workload::Workload;
