//! The workloads, by name.

use clap::ValueEnum;
use serde::Deserialize;
use serde::Serialize;

/// A workload: what is sent, and how it is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// 1,000 workflows, sent and handled at once.
    Live,
    /// 10,000 workflows, ordered by position, sent and handled at once: what the daemon's benchmark gives it.
    Wide,
    /// 1,000 workflows, all sent, then drained.
    Backlog,
    /// One workflow of 1,000,000 messages, all sent, then drained by runs.
    Growth,
    /// One workflow, whose runs share a commit.
    Hot,
    /// One workflow, each completion on disk before the next message starts.
    Strict,
    /// 500 messages a second over 100 workflows: from the send call to the handler's start.
    Latency,
    /// As live, but every 50th message fails twice and is tried again after 50 ms, in its place.
    Retry,
    /// As live, but what arrives is shuffled in windows of 8 and ordered by position.
    Shuffled,
    /// As live, beside one workflow in which 100,000 early messages wait.
    Stuck,
    /// As live, beside 1,000,000 idle messages.
    Stored,
    /// As stored, but after a minute in which nothing was asked.
    Idle,
    /// As latency, while 1,000,000 messages of another workflow are purged.
    Purge,
    /// As live, in a queue that remembers how its last 100,000 messages ended.
    History,
    /// As live, but handled as most users begin: an async handler for each message, and no option set.
    Processor,
}

impl Workload {
    /// All of them, in the order in which they are run.
    pub(crate) fn all() -> &'static [Workload] {
        Workload::value_variants()
    }

    /// Whether its messages are sent at a steady pace, to measure how long each takes.
    pub(crate) fn is_paced(self) -> bool {
        matches!(self, Workload::Latency | Workload::Purge)
    }

    /// Its name on the command line and in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::Live => "live",
            Workload::Wide => "wide",
            Workload::Backlog => "backlog",
            Workload::Growth => "growth",
            Workload::Hot => "hot",
            Workload::Strict => "strict",
            Workload::Latency => "latency",
            Workload::Retry => "retry",
            Workload::Shuffled => "shuffled",
            Workload::Stuck => "stuck",
            Workload::Stored => "stored",
            Workload::Idle => "idle",
            Workload::Purge => "purge",
            Workload::History => "history",
            Workload::Processor => "processor",
        }
    }
}
