//! Answers that list: what there is, and where the next page goes on.

use serde::Deserialize;
use serde::Serialize;

use crate::wire::DeliveryEnvelope;
use crate::wire::Problem;
use crate::wire::views::AuditView;
use crate::wire::views::BlockedView;
use crate::wire::views::DeadLetterEntry;
use crate::wire::views::DefinitionView;
use crate::wire::views::HistoryView;
use crate::wire::views::MessageEnvelope;
use crate::wire::views::QueueEnvelope;
use crate::wire::views::ScheduleView;
use crate::wire::views::WorkflowEnvelope;

/// A page of queues, in order of name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct QueuePage {
    /// The queues.
    pub queues: Vec<QueueEnvelope>,
    /// Where the next page goes on; none at the end.
    #[serde(default)]
    pub after: Option<String>,
}

/// A page of workflows, in order of ID.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkflowPage {
    /// The workflows.
    pub workflows: Vec<WorkflowEnvelope>,
    /// Where the next page goes on; none at the end.
    #[serde(default)]
    pub after: Option<String>,
}

/// A page of messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<MessageEnvelope>,
    /// Where the next page begins; none at the end.
    #[serde(default)]
    pub from: Option<u64>,
}

/// A page of what a queue remembers of messages that have ended, newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HistoryPage {
    /// What has ended.
    pub history: Vec<HistoryView>,
    /// The number before which the next page begins; none at the end.
    #[serde(default)]
    pub before: Option<u64>,
}

/// A page of dead letters, in order of reason and number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeadLetterPage {
    /// The dead letters.
    pub dead_letters: Vec<DeadLetterEntry>,
    /// Where the next page goes on; none at the end.
    #[serde(default)]
    pub after: Option<String>,
}

/// A page of workflows that do not get on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BlockedPage {
    /// The workflows.
    pub blocked: Vec<BlockedView>,
    /// Where the next page goes on; none at the end.
    #[serde(default)]
    pub after: Option<String>,
}

/// Messages that were taken.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Taken {
    /// The lock token of a run, by which it is settled as a whole.
    #[serde(default)]
    pub run: Option<String>,
    /// The messages; none when none came in time.
    pub deliveries: Vec<DeliveryEnvelope>,
}

/// What became of deliveries that were completed together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CompletedTogether {
    /// How many were completed.
    pub completed: usize,
    /// What became of each, in order.
    pub results: Vec<CompletedDelivery>,
}

/// What became of a delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompletedDelivery {
    /// The delivery.
    pub delivery: String,
    /// Why it was not completed; absent when it was.
    #[serde(default)]
    pub error: Option<Problem>,
}

/// All definitions in use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DefinitionPage {
    /// In order of queue.
    pub definitions: Vec<DefinitionView>,
    /// Why the files as they are now are not in use, if they are not: every mistake, a line for each.
    pub problem: Option<String>,
}

/// All schedules.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct SchedulePage {
    pub(crate) schedules: Vec<ScheduleView>,
}

/// A page of what operators did, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AuditPage {
    /// What was done, or tried.
    pub actions: Vec<AuditView>,
    /// Where the next page goes on; none at the end.
    #[serde(default)]
    pub after: Option<String>,
}

/// A copy of the daemon's file that was written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BackupView {
    /// Where, on the daemon's machine.
    pub path: String,
    /// How many records it has.
    pub records: u64,
}
