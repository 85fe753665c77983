//! Requests and answers about the daemon around the engine: keys, definitions, schedules, the audit, backups, events.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::views::AuditView;
use crate::api::views::DefinitionView;
use crate::api::views::ScheduleView;

/// What a daemon says at `/healthz` when its store works: who else answers there says something else.
pub(crate) const HEALTHY: &str = "ok\n";

/// What a daemon says at `/readyz` when it is ready.
pub(crate) const READY: &str = "ready\n";

/// For which queue.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeyQuery {
    /// Only the rights for this queue.
    pub queue: Option<String>,
}

/// The definitions in use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionPage {
    /// In order of queue.
    pub definitions: Vec<DefinitionView>,
    /// Why the files as they are now are not in use, if they are not: every mistake, a line for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The schedules.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SchedulePage {
    /// In order of queue and name.
    pub schedules: Vec<ScheduleView>,
}

/// How a schedule is run out of its turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunScheduleRequest {
    /// Why; kept with the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only says what would be sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What a schedule has sent out of its turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunScheduleResponse {
    /// What was done, or would be, in a sentence.
    pub effect: String,
    /// The number of the message; absent with a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Whether nothing was done.
    #[serde(default)]
    pub dry_run: bool,
}

/// Where a backup goes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackupRequest {
    /// The name of the new file, inside the folder the daemon keeps for backups; required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A backup that was made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BackupView {
    /// The file, on the daemon's machine.
    pub path: String,
    /// How many records it has.
    pub records: u64,
}

/// Which part of what operators did.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditQuery {
    /// Where the page before ended; as answered there.
    pub after: Option<String>,
    /// How many entries at most: 100 if it is not given, 1,000 at most.
    pub limit: Option<usize>,
    /// Begins with the newest and goes back in time.
    pub newest: bool,
}

/// What operators did.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditPage {
    /// In the order in which it was done, or newest first.
    pub actions: Vec<AuditView>,
    /// Where the next page begins after; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Which events.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EventsQuery {
    /// Only those of this queue.
    pub queue: Option<String>,
}

/// The event `missed`, sent to a reader that was too slow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissedEvents {
    /// How many events it has not seen; looking is the way to find out what is.
    pub missed: u64,
}
