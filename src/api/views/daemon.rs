//! What a daemon says of itself, as JSON: its state, its definitions, its schedules.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireDuration;
use crate::api::time::WireTime;
use crate::api::views::blocked::BlockedCause;
use crate::api::views::held_back::HeldBackView;
use crate::api::views::label::EnvironmentView;
use crate::api::views::label::RedactionView;
use crate::api::views::label::TraceUrl;
use crate::clock::ClockSteps;

/// The state of a daemon.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatusView {
    /// The version of the program.
    pub version: String,
    /// Whether work is accepted: `ready`, `starting`, `draining`, `full` (the disk: nothing new is accepted, all else goes on)
    /// or `failed`.
    pub state: String,
    /// Since when it runs.
    pub started_at: WireTime,
    /// The file that keeps everything; absent when it is kept in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How large that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Bytes that are free on its disk, with those that are kept for receiving, settling and purging; absent when that is
    /// not looked after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_free_bytes: Option<u64>,
    /// How many definitions are in use.
    pub definitions: usize,
    /// How many handlers run at this moment.
    pub handlers_running: usize,
    /// How many workflows of each queue do not go on, by cause, as far as the daemon watches them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedCountView>,
    /// Why the definition files as they are now are not in use: every mistake, a line for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_problem: Option<String>,
    /// The fault that has stopped the engine: nothing works any more, and the daemon is about to exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The environment it belongs to, as given when it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentView>,
    /// Where a trace can be looked at: an address with `{trace_id}` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<TraceUrl>,
    /// The cluster of which it is a node; absent when it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The last time that the wall clock of the machine was set by more than a minute, or the machine slept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step: Option<ClockStepView>,
}

impl StatusView {
    /// How many workflows do not go on, of one queue or of all, for one cause or for any.
    pub fn blocked_for(&self, queue: Option<&str>, cause: Option<BlockedCause>) -> u64 {
        let is_meant = |row: &&BlockedCountView| {
            queue.is_none_or(|queue| row.queue == queue) && cause.is_none_or(|cause| row.cause == cause)
        };
        self.blocked.iter().filter(is_meant).map(|row| row.workflows).sum()
    }
}

/// How many workflows of a queue do not go on for a cause.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlockedCountView {
    /// The queue.
    pub queue: String,
    /// Why they do not go on: `retry`, `gap` or `held`.
    pub cause: BlockedCause,
    /// How many.
    pub workflows: u64,
}

/// What the key of a request may do; without keys, what everybody on this machine may.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct KeyView {
    /// The name of the key, as in the audit; `local` where no key is required.
    pub name: String,
    /// Whether a key is required.
    pub is_needed: bool,
    /// Its rights: `send`, `listen`, `manage`. If the request names a queue, those for that queue.
    pub rights: Vec<String>,
    /// Whether it reaches every queue, and what belongs to none, such as the audit.
    pub reaches_all: bool,
}

/// How much came and was completed in the last hour, as far as this process has seen it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RatesView {
    /// In order of queue.
    pub queues: Vec<QueueRatesView>,
    /// How long a commit took on average since the process began, in milliseconds; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_ms_mean: Option<f64>,
}

/// The last hour of a queue: a number for each minute, oldest first; the last is of the minute that is not over.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueRatesView {
    /// The queue.
    pub queue: String,
    /// Messages that were accepted.
    pub accepted: Vec<u64>,
    /// Messages that were completed.
    pub completed: Vec<u64>,
}

/// A step of the wall clock.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClockStepView {
    /// What the clock should have shown.
    pub expected: WireTime,
    /// What it showed.
    pub shown: WireTime,
    /// How often it was set forward since the store was made.
    pub forward: u64,
    /// How often it was set back.
    pub back: u64,
}

impl ClockStepView {
    /// The last step, if there was one.
    pub(crate) fn of(steps: ClockSteps) -> Option<ClockStepView> {
        let step = steps.last?;
        Some(ClockStepView {
            expected: WireTime(step.expected),
            shown: WireTime(step.shown),
            forward: steps.forward,
            back: steps.back,
        })
    }
}

/// A definition in use, and what is wrong with its file as it is now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionView {
    /// The queue it defines.
    pub queue: String,
    /// Its file.
    pub file: String,
    /// Its handlers, each in a few words; none when clients receive.
    pub handlers: Vec<String>,
    /// Whether its handlers are paused.
    pub paused: bool,
    /// How many schedules it has.
    pub schedules: usize,
    /// Exact delays between attempts, the last of which repeats; absent when the queue's backoff says them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_delays: Vec<WireDuration>,
    /// Why nothing is handed out to its handlers right now; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBackView>,
    /// What the page hides of each message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<RedactionView>,
    /// How far its source is copied; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceView>,
    /// When it was loaded.
    pub loaded_at: WireTime,
    /// Why the file as it is now is not in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How far the table of a database is copied into a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceView {
    /// Under which name it is kept how far it is copied.
    pub name: String,
    /// The table.
    pub table: String,
    /// Every row up to this number is copied; absent as long as none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_through: Option<i64>,
    /// How many rows wait to be copied.
    pub rows_behind: u64,
    /// Whether there may be more of them than were counted.
    #[serde(default)]
    pub more_behind: bool,
    /// How many open transactions of the database keep rows back: each of them may still bring a row that comes before.
    #[serde(default)]
    pub waits_for_transactions: usize,
    /// Why it is not copied on; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A schedule, and when it sends next.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleView {
    /// The queue it sends to.
    pub queue: String,
    /// Its name.
    pub name: String,
    /// When, as its definition says.
    pub cron: String,
    /// The time zone in which that is meant.
    pub time_zone: String,
    /// The next instants, soonest first.
    pub next: Vec<WireTime>,
    /// The instant for which it has sent last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<WireTime>,
}
