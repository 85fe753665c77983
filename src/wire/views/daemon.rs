//! What a daemon says of itself, as JSON: its state, its definitions, its schedules.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireDuration;
use crate::wire::time::WireTime;

/// The state of a daemon.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatusView {
    /// The version of the program.
    pub version: String,
    /// Whether work is taken: `ready`, `starting` or `draining`.
    pub state: String,
    /// Since when it runs.
    pub started_at: WireTime,
    /// The file that keeps everything; absent when it is kept in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How large that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// How many definitions are in use.
    pub definitions: usize,
    /// How many handlers run at this moment.
    pub handlers_running: usize,
    /// Why the definition files as they are now are not in use: every mistake, a line for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_problem: Option<String>,
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
    /// When it was loaded.
    pub loaded_at: WireTime,
    /// Why the file as it is now is not in use.
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
