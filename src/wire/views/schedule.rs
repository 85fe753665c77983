//! A schedule and its next ticks, as JSON.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::time::WireTime;

/// A schedule of a definition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleView {
    /// The queue it sends to.
    pub queue: String,
    /// Its name.
    pub name: String,
    /// Its cron expression.
    pub cron: String,
    /// Its time zone.
    pub time_zone: String,
    /// The last tick that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<WireTime>,
    /// The next ticks.
    pub next: Vec<WireTime>,
}

/// All schedules.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedulePage {
    /// The schedules, in order of queue and name.
    pub schedules: Vec<ScheduleView>,
}
