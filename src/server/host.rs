//! What the server asks of those who know it: where a message belongs, and what only the daemon can say or do.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::api::Problem;
use crate::api::views::ClusterView;
use crate::api::views::DefinitionView;
use crate::api::views::RatesView;
use crate::api::views::ScheduleView;
use crate::api::views::StatusView;
use crate::clock::Timestamp;
use crate::engine::Client;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::message::Message;

/// A message that stands still because its receivers announce less than it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OversizeMessage {
    pub(crate) sequence_number: SequenceNumber,
    pub(crate) bytes: u64,
    /// What the last receiver takes at most.
    pub(crate) bytes_max: u64,
    pub(crate) since: Timestamp,
}

/// Receivers of a queue that are sent nothing for now, because what they were sent ahead has lost its locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowStall {
    /// How many messages one is sent ahead at most.
    pub(crate) messages: usize,
    pub(crate) since: Timestamp,
}

/// Where messages belong, as the definitions of their queues say.
pub(crate) trait Placement: Send + Sync + 'static {
    /// Fills in workflow and position.
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse>;

    /// The delay of the next attempt after so many hand-outs; `None` when the queue's backoff says it.
    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration>;

    /// After how long a message comes back by itself that was deferred without saying until when, if it does.
    fn defer_delay(&self, queue: &QueueName) -> Option<Duration>;
}

/// What only the daemon knows or can do.
pub(crate) trait Host: Send + Sync + 'static {
    /// Whether work is accepted; `Err` says why not, in a sentence.
    fn ready(&self) -> Result<(), String>;

    /// How the daemon is.
    fn status(&self) -> StatusView;

    /// All metrics, in the text format of OpenMetrics.
    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>>;

    /// The definitions in use, in order of queue.
    fn definitions(&self) -> Vec<DefinitionView>;

    /// Why the definition files as they are now are not in use, if they are not: every mistake, a line for each.
    fn reload_problem(&self) -> Option<String>;

    /// The definition of a queue.
    fn definition_of(&self, queue: &QueueName) -> Option<DefinitionView> {
        self.definitions().into_iter().find(|definition| definition.queue == queue.as_str())
    }

    /// Whether a queue is the daemon's own, so that others may look at it, and nothing else.
    fn is_own(&self, queue: &QueueName) -> bool;

    /// Reads all definition files again; what is wrong with one is a problem, and then none is changed.
    fn reload(&self) -> BoxFuture<'_, Result<(), Problem>>;

    /// Pauses the handlers of a queue, or lets them go on; a problem when it has none.
    /// The client acts for whoever asks.
    fn set_paused<'a>(
        &'a self,
        client: &'a Client,
        queue: &'a QueueName,
        paused: bool,
    ) -> BoxFuture<'a, Result<(), Problem>>;

    /// The messages of a queue that are too large for who receives them, in order of number.
    fn too_large(&self, queue: &QueueName) -> Vec<OversizeMessage> {
        let _ = queue;
        Vec::new()
    }

    /// Whether receivers of a queue are sent nothing for now.
    fn full_window(&self, queue: &QueueName) -> Option<WindowStall> {
        let _ = queue;
        None
    }

    /// The schedules, with their next instants.
    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleView>, Problem>>;

    /// How much came and was completed in the last hour.
    fn rates(&self) -> RatesView {
        RatesView::default()
    }

    /// What the cluster looks like of which the daemon is a node.
    fn cluster(&self) -> BoxFuture<'_, Result<ClusterView, Problem>> {
        no_cluster()
    }

    /// Has a node of the cluster give its partitions to others, or take some again.
    fn drain_node<'a>(&'a self, node: &'a str, drains: bool) -> BoxFuture<'a, Result<(), Problem>> {
        let _ = (node, drains);
        no_cluster()
    }

    /// Has a node of the cluster own a partition; without one, the hash decides again.
    fn move_partition<'a>(
        &'a self,
        partition: u16,
        node: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), Problem>> {
        let _ = (partition, node);
        no_cluster()
    }

    /// The message that a schedule would send at this instant, with its place.
    fn scheduled_now(&self, queue: &QueueName, schedule: &str) -> Result<Message, Box<Problem>>;

    /// The file a backup of this name is written to, inside the folder that is meant for backups.
    fn backup_target(&self, name: &str) -> Result<PathBuf, Misuse>;
}

fn no_cluster<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, Problem>> {
    let detail =
        "the daemon keeps its messages in a file of its own; `seriatim run --cluster` makes it a node";
    std::future::ready(Err(Problem::new("no_cluster", detail))).boxed()
}
