//! Bounds of receives and of what is handed out.

/// Most deliveries in one receive, whether of many workflows or a run of one.
pub const RECEIVE_MAX: usize = 1_024;

/// Bytes of bodies and headers after which a run or a receive is handed out although more is ready.
pub const RECEIVE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Messages that one command takes through each of its steps side by side: so few that they and their workflows are still in a
/// processor's cache at the last step, and so many that the code of each step is hardly ever loaded again.
pub const SIDE_BY_SIDE_MAX: usize = if cfg!(test) { 3 } else { 16 };

/// Most locks in one engine: they live in memory.
pub const LOCKS_MAX: usize = 65_536;

/// Dead letters, locked or set aside, that one receive passes over before others are served, and dead letters of any kind that one look at
/// other messages does.
pub const DEAD_LETTERS_PASSED_MAX: usize = 1_024;

/// Ranges of positions, settled ahead of their turn, that a look at one workflow shows: more than gaps leave, and few enough for a page of
/// workflows.
pub const SETTLED_AHEAD_MAX: usize = if cfg!(test) { 3 } else { 256 };

/// How often such a look asks for what is settled next: neighbours that were settled in different ways are one range.
pub(crate) const SETTLED_AHEAD_LOOKS: usize = 4 * SETTLED_AHEAD_MAX;

/// Messages that are looked at, at a queue's head, for one that has not expired.
pub const EXPIRED_IN_A_ROW_MAX: usize = 1_024;
