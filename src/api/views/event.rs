//! Something that happened, as JSON.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireTime;
use crate::engine::Event;
use crate::engine::EventKind;
use crate::queue::HoldKind;

/// Something that happened to a workflow or a queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventView {
    /// What happened: `blocked`, `held`, `resumed`, `gap`, `gap_skipped`, `dead_lettered`, `redriven` or
    /// `queue_deleted`.
    pub event: String,
    /// When.
    pub at: WireTime,
    /// In which queue.
    pub queue: String,
    /// In which workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Which message it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Blocked: when it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<WireTime>,
    /// Blocked, held, dead-lettered: why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Held: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_cause: Option<HoldKind>,
    /// Gap: since when later messages wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<WireTime>,
    /// Gap skipped: the first place that was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Gap skipped: the last place that was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Redriven: whether it returned to its own place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<bool>,
}

impl EventView {
    /// Shows an event.
    pub fn show(event: &Event) -> EventView {
        let mut shown = EventView {
            event: word(&event.kind).to_owned(),
            at: WireTime(event.at),
            queue: event.queue.to_string(),
            workflow_id: event.workflow.as_ref().map(ToString::to_string),
            sequence_number: event.sequence_number.map(|number| number.get()),
            until: None,
            reason: None,
            hold_cause: None,
            since: None,
            from: None,
            to: None,
            in_place: None,
        };
        match &event.kind {
            EventKind::Blocked { until, reason } => {
                shown.until = Some(WireTime(*until));
                shown.reason = Some(reason.clone());
            }
            EventKind::Held { cause, reason } => {
                shown.hold_cause = Some(cause.kind());
                shown.reason = Some(reason.clone());
            }
            EventKind::Gap { since } => shown.since = Some(WireTime(*since)),
            EventKind::GapSkipped { from, to } => (shown.from, shown.to) = (Some(*from), Some(*to)),
            EventKind::DeadLettered { reason } => shown.reason = Some(reason.clone()),
            EventKind::Redriven { in_place } => shown.in_place = Some(*in_place),
            EventKind::Resumed | EventKind::QueueDeleted => {}
        }
        shown
    }
}

fn word(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Blocked { .. } => "blocked",
        EventKind::Held { .. } => "held",
        EventKind::Resumed => "resumed",
        EventKind::Gap { .. } => "gap",
        EventKind::GapSkipped { .. } => "gap_skipped",
        EventKind::DeadLettered { .. } => "dead_lettered",
        EventKind::Redriven { .. } => "redriven",
        EventKind::QueueDeleted => "queue_deleted",
    }
}
