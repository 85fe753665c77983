//! An engine that is not begun yet: a file that follows a log, until it is to take over.

use std::path::Path;
use std::sync::Arc;

use crate::clock::Clock;
use crate::engine::clocks::ClockReading;
use crate::engine::clocks::Clocks;
use crate::engine::clocks::PassedTime;
use crate::engine::open::Engine;
use crate::engine::open::begin_with;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::log::Log;
use crate::engine::store::snapshot_file::SnapshotSource;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;

/// How much memory a file that follows may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowerOptions(StoreOptions);

impl FollowerOptions {
    /// The options of one of so many files that share what one file has by default, with something for each.
    pub(crate) fn shared_by(files: usize) -> FollowerOptions {
        let defaults = StoreOptions::default();
        let share = |bytes: u64, least: u64| (bytes / files.max(1) as u64).max(least);
        let cache_bytes = share(defaults.cache_bytes as u64, limits::FOLLOWER_BYTES_MIN);
        FollowerOptions(StoreOptions {
            cache_bytes: usize::try_from(cache_bytes).unwrap_or(defaults.cache_bytes),
            generation_bytes: share(defaults.generation_bytes, limits::FOLLOWER_BYTES_MIN),
            ..defaults
        })
    }
}

/// A file that follows a log.
pub(crate) struct Follower {
    store: Store,
}

impl Follower {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// As for an engine.
    pub(crate) fn open(
        path: &Path,
        options: FollowerOptions,
        log: Arc<dyn Log>,
    ) -> Result<Follower, OpenError> {
        Ok(Follower { store: Store::open_behind(path, options.0, log)? })
    }

    /// Reads the log from where the file is to its end.
    ///
    /// # Errors
    /// [`Fault::Log`] when it is not the log that the file has followed so far, or has a hole.
    pub(crate) fn catch_up(&mut self) -> Result<u64, Fault> {
        self.store.catch_up()
    }

    /// The position of the last entry.
    pub(crate) fn position(&self) -> u64 {
        self.store.place().0
    }

    /// The epoch of the last owner.
    pub(crate) fn epoch(&self) -> u32 {
        self.store.epoch()
    }

    /// Where snapshots of the file are taken, while it follows and while it serves.
    pub(crate) fn snapshots(&self) -> SnapshotSource {
        self.store.snapshots()
    }

    /// Takes over, and serves as an engine on this thread until that is closed, or stopped by a fault. `began` is given the engine and its epoch; it begins with the `first` number if it has numbered no message yet.
    /// `passed` is what is known of the time since the last entry was written.
    ///
    /// What the log has failed with is no error: whoever opens the file and reads the log again finds out whether it can go on.
    ///
    /// # Errors
    /// [`Fault::Deposed`] when another was or is faster; any other fault that stopped the engine.
    pub(crate) fn serve(
        self,
        holder: u64,
        first: u64,
        clock: Arc<dyn Clock>,
        passed: PassedTime,
        began: impl FnOnce(Engine, u32),
    ) -> Result<Option<Fault>, OpenError> {
        match self.serve_until_fault(holder, first, clock, passed, began) {
            Err(OpenError::Fault(fault @ (Fault::Log(_) | Fault::Lost { .. }))) => Ok(Some(fault)),
            ended => ended.map(|()| None),
        }
    }

    fn serve_until_fault(
        mut self,
        holder: u64,
        first: u64,
        clock: Arc<dyn Clock>,
        passed: PassedTime,
        began: impl FnOnce(Engine, u32),
    ) -> Result<(), OpenError> {
        self.store.begin_numbers(first);
        let clocks = Clocks::open_after(self.store.stamp(), passed, ClockReading::of(&*clock));
        // Whoever sees this entry come counts on from there.
        self.store.set_stamp(clocks.stamp());
        self.store.take_over(holder)?;
        let epoch = self.store.epoch();
        let (engine, writer) = begin_with(self.store, clock, clocks)?;
        began(engine, epoch);
        Ok(writer.run()?)
    }
}
