//! Replays a git history through the engine, fails some of it, kills the engine's process on the way, and compares the
//! end with git's own tree.

mod engine_process;
mod error;
mod feed;
mod handle;

mod path_state;
mod plan;
mod progress;
mod replay_store;
mod report;
mod story;
mod supervise;
#[cfg(feature = "cluster")]
mod supervise_cluster;
mod supervision;

pub(crate) use crate::demo::replay::engine_process::run_engine_process;
pub(crate) use crate::demo::replay::error::ReplayError;
pub(crate) use crate::demo::replay::plan::EnginePlan;
pub(crate) use crate::demo::replay::plan::Handling;
pub(crate) use crate::demo::replay::plan::NodePlan;
pub(crate) use crate::demo::replay::plan::ReplayPlan;
pub(crate) use crate::demo::replay::supervise::replay;
