//! What the server asks of those who know it: where a message belongs, and what only the daemon can say or do.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::Misuse;
use crate::id::QueueName;
use crate::message::Message;
use crate::wire::Problem;
use crate::wire::views::DefinitionView;
use crate::wire::views::ScheduleView;
use crate::wire::views::StatusView;

/// Where messages belong, as the definitions of their queues say.
pub(crate) trait Place: Send + Sync + 'static {
    /// Fills in workflow and position.
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse>;

    /// The delay of the next attempt after so many hand-outs; `None` when the queue's backoff says it.
    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration>;

    /// After how long a message comes back by itself that was deferred without saying until when, if it does.
    fn defer_delay(&self, queue: &QueueName) -> Option<Duration>;
}

/// What only the daemon knows or can do.
pub(crate) trait Host: Send + Sync + 'static {
    /// Whether work is taken; `Err` says why not, in a sentence.
    fn ready(&self) -> Result<(), String>;

    /// How the daemon is.
    fn status(&self) -> StatusView;

    /// All metrics, in the text format of OpenMetrics.
    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>>;

    /// The definitions in use, in order of queue.
    fn definitions(&self) -> Vec<DefinitionView>;

    /// The definition of a queue.
    fn definition_of(&self, queue: &QueueName) -> Option<DefinitionView> {
        self.definitions().into_iter().find(|definition| definition.queue == queue.as_str())
    }

    /// Reads all definition files again; what is wrong with one is a problem, and then none is changed.
    fn reload(&self) -> BoxFuture<'_, Result<(), Problem>>;

    /// Pauses the handlers of a queue, or lets them go on; a problem when it has none.
    fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), Box<Problem>>;

    /// The schedules, with their next instants.
    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleView>, Problem>>;

    /// The file a backup of this name is written to, inside the folder that is meant for backups.
    fn backup_target(&self, name: &str) -> Result<PathBuf, Misuse>;
}
