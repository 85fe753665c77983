//! A queue as JSON.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::options::OptionsEnvelope;
use crate::api::time::WireDuration;
use crate::api::time::WireTime;
use crate::api::views::label::RedactionView;
use crate::engine::Counts;
use crate::engine::QueueView;

/// A queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueEnvelope {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created_at: WireTime,
    /// The file that defines it; absent when no file does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Whether its handlers are paused; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Exact delays between attempts as its definition says, the last of which repeats; then there is no backoff.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_delays: Vec<WireDuration>,
    /// What the page hides of each message, as its definition says. The API hides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<RedactionView>,
    /// Until when hand-out pauses because the queue's rate is used up, while messages are ready; absent when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limited_until: Option<WireTime>,
    /// On a cluster, the partitions that no node goes on with: what they have of the queue is not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_partitions: Vec<u16>,
    /// How many messages are where, and how many ended how.
    pub counts: CountsView,
    /// How many ended messages it remembers.
    #[serde(default)]
    pub history: u64,
    /// How many cursors of forgotten workflows it remembers.
    #[serde(default)]
    pub cursors: u64,
    /// How many of these were ever forgotten before their time, because there were too many.
    #[serde(default)]
    pub cursors_cut: u64,
    /// How many settled messages of after-ordered workflows were ever forgotten before their workflows, because a workflow
    /// had more than it may remember.
    #[serde(default)]
    pub links_cut: u64,
    /// Its options, defaults included.
    pub options: OptionsEnvelope,
}

impl QueueEnvelope {
    /// Shows a queue.
    pub fn show(view: &QueueView) -> QueueEnvelope {
        QueueEnvelope {
            name: view.name.to_string(),
            created_at: WireTime(view.created_at),
            definition: None,
            paused: None,
            retry_delays: Vec::new(),
            redact: Vec::new(),
            rate_limited_until: view.rate_limited_until.map(WireTime),
            missing_partitions: view.missing_partitions.clone(),
            counts: CountsView::show(&view.counts),
            history: view.history,
            cursors: view.cursors,
            cursors_cut: view.cursors_cut,
            links_cut: view.links_cut,
            options: OptionsEnvelope::show(&view.options),
        }
    }
}

/// How many messages are where, and how many ended how. `accepted` is the sum of all others but `stored`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountsView {
    /// All that are stored, dead letters included.
    pub stored: u64,
    /// Could be handed out now, or once those before them are settled.
    pub ready: u64,
    /// Handed out.
    pub locked: u64,
    /// Deferred: a predecessor is missing.
    pub early: u64,
    /// Deferred: waiting for a retry.
    #[serde(alias = "failed")]
    pub retry: u64,
    /// Deferred: its retries are exhausted, at the head of a held workflow.
    #[serde(rename = "exhausted", alias = "spent")]
    pub exhausted: u64,
    /// Deferred: set aside by the consumer.
    #[serde(rename = "by_consumer", alias = "asked")]
    pub by_consumer: u64,
    /// Waiting for their instant.
    pub scheduled: u64,
    /// Dead letters.
    pub dead_lettered: u64,
    /// Ended: completed.
    pub completed: u64,
    /// Ended: expired and dropped.
    pub expired: u64,
    /// Ended: cancelled before their instant.
    pub cancelled: u64,
    /// Ended: purged.
    pub purged: u64,
    /// All that were ever accepted.
    pub accepted: u64,
}

impl CountsView {
    /// Shows counts.
    pub fn show(counts: &Counts) -> CountsView {
        CountsView {
            stored: counts.stored(),
            ready: counts.ready,
            locked: counts.locked,
            early: counts.early,
            retry: counts.retry,
            exhausted: counts.exhausted,
            by_consumer: counts.by_consumer,
            scheduled: counts.scheduled,
            dead_lettered: counts.dead_lettered,
            completed: counts.completed,
            expired: counts.expired,
            cancelled: counts.cancelled,
            purged: counts.purged,
            accepted: counts.accepted,
        }
    }

    /// Those that wait for nothing but their turn or their instant.
    pub fn waiting(&self) -> u64 {
        self.ready + self.scheduled
    }

    /// Those that are deferred, for whatever reason.
    pub fn deferred(&self) -> u64 {
        self.early + self.retry + self.exhausted + self.by_consumer
    }
}
