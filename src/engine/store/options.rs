//! How a store is opened.

use std::time::Duration;

use crate::limits;

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreOptions {
    pub(crate) cache_bytes: usize,
    /// Two-phase commit: bit rot cannot silently roll back the last commit.
    pub(crate) strict: bool,
    pub(crate) quick_repair: bool,
    /// How many bytes of journal rows fill a generation.
    pub(crate) generation_bytes: u64,
    /// By how much every sync of the file is made longer, to see what a slower disk would do.
    pub(crate) sync_delay: Duration,
    /// How many full generations are kept in the journal before the oldest is flushed.
    pub(crate) generations: usize,
    /// How large a file may be to have every page of it checked when it is opened.
    pub(crate) check_bytes_max: u64,
    /// How much of the disk is kept free for what has to go on; 0 when that is not looked after.
    pub(crate) head_room_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            cache_bytes: limits::STORE_CACHE_BYTES,
            strict: false,
            quick_repair: false,
            generation_bytes: limits::GENERATION_BYTES,
            generations: limits::GENERATIONS,
            check_bytes_max: limits::CHECK_BYTES_MAX,
            sync_delay: Duration::ZERO,
            head_room_bytes: 0,
        }
    }
}
