//! What a log before the file is made of, and what follows one: the seam as it is seen from above the engine.

pub(crate) use crate::engine::clocks::PassedTime;
pub(crate) use crate::engine::follower::Follower;
pub(crate) use crate::engine::follower::FollowerOptions;
pub(crate) use crate::engine::meter::CommitMeter;
pub(crate) use crate::engine::store::caught::guarded;
pub(crate) use crate::engine::store::log::EachEntry;
pub(crate) use crate::engine::store::log::Entry;
pub(crate) use crate::engine::store::log::Log;
pub(crate) use crate::engine::store::log::LogPlace;
pub(crate) use crate::engine::store::shared_log::AppendAnswer;
pub(crate) use crate::engine::store::shared_log::Bounds;
pub(crate) use crate::engine::store::shared_log::LogServer;
pub(crate) use crate::engine::store::shared_log::ReadError;
pub(crate) use crate::engine::store::shared_log::SharedLog;
pub(crate) use crate::engine::store::snapshot_file::SnapshotFile;
pub(crate) use crate::engine::store::snapshot_file::SnapshotSource;
