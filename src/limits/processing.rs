//! How much a processor has in hand, and for how long.

use std::time::Duration;

use crate::limits::receiving::RECEIVE_MAX;

/// Default of how many deliveries a processor handles at once.
pub const CONCURRENCY_DEFAULT: usize = 64;

/// Most messages that a processor has received ahead of its slots: as many as one receive may hand out.
pub const AHEAD_MAX: usize = RECEIVE_MAX;

/// Most messages that a processor asks for at once: with half of what it may receive ahead there are two groups, and one of them is
/// handled while the other is settled.
pub const AHEAD_GROUP_MAX: usize = AHEAD_MAX / 2;

/// Where nothing is ready but what is in hand, settling so many of them makes it worth to ask for what that has freed.
pub const AHEAD_GROUP_FREED: usize = AHEAD_GROUP_MAX / 4 * 3;

/// A processor receives as much ahead as its handlers begin in this time: long enough for a commit on a slow disk, short
/// enough that another processor of the same queue would not have been much quicker.
pub const AHEAD_FOR: Duration = Duration::from_millis(100);

/// After this time what was received ahead and has not begun is given back uncounted, as soon as it is looked at, which is
/// as often: before half of the shortest lock.
pub const AHEAD_WAITS_MAX: Duration = Duration::from_millis(250);

/// How many times as much as it may receive ahead a processor has in hand beside its slots, what is being settled included.
pub const GROUPS_AHEAD_MAX: usize = 3;

/// Messages that one task of a processor handles before it lets other tasks go on.
pub const RUNNER_TURN_MAX: u32 = 64;

/// How long a task of a processor goes on with messages whose handlers never wait, before it lets other tasks go on.
pub const RUNNER_TURN: Duration = Duration::from_micros(100);

/// Most runs that a processor receives together: each is a request.
pub const RUNS_MAX: usize = 256;

/// Most deliveries a processor handles at once: each has a lock to renew, and most have a task.
pub const CONCURRENCY_MAX: usize = 16_384;

/// Default of how long a processor renews the lock of one delivery: a handler that hangs gives it up in the end.
pub const RENEW_FOR_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// Default of how long a processor that is stopped waits for the handlers that run.
pub const DRAIN_DEFAULT: Duration = Duration::from_secs(30);

/// How long a handler whose lock was lost may clean up before it is dropped.
pub const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// Groups of messages that a processor settles at a time: one that the engine commits, and one behind it. What is done
/// meanwhile waits a moment and is settled together.
pub const GROUPS_UNDER_WAY_MAX: usize = 2;

/// Messages after which a second group leaves although more is about to come: then the engine prepares it while the first is
/// committed, and has enough to do.
pub const GROUP_LARGE: usize = 256;

/// How long a processor waits before it asks again for what could not be answered just now: a node of a cluster is gone, or too much
/// is handed out.
pub const UNANSWERED_PAUSE: Duration = Duration::from_secs(1);

/// How long the daemon waits before it starts handlers again that have ended by themselves, as those of a queue that was deleted do.
pub const HANDLERS_PAUSE: Duration = Duration::from_secs(10);

/// How long one receive of a processor waits; it only bounds how long a lost wake-up could last.
pub const RECEIVE_WAIT: Duration = Duration::from_secs(60);

/// How long a handler pauses when the daemon is too short of file handles, processes or memory to start its program: first so
/// long, twice as long each time it is still so, and at most the second, so that it goes on soon after there is room again.
pub const START_PAUSE_MIN: Duration = Duration::from_millis(100);
/// See [`START_PAUSE_MIN`].
pub const START_PAUSE_MAX: Duration = Duration::from_secs(30);
