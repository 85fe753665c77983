//! The outboxes that are copied: those of the definitions in force, each by a task of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::views::SourceView;
use crate::daemon::membership::Membership;
use crate::daemon::outbox_copier::OutboxCopier;
use crate::daemon::outbox_of_queue::OutboxOfQueue;
use crate::daemon::outbox_status::OutboxStatus;
use crate::engine::Queue;
use crate::error::Error;
use crate::id::QueueName;
use crate::intake::Intake;
use crate::own_queues::SOURCES_QUEUE;
use crate::queue::QueueOptions;
use crate::task;

/// The outboxes that are copied.
pub(crate) struct Outboxes {
    intake: Intake,
    membership: Membership,
    copied: std::sync::RwLock<BTreeMap<QueueName, OutboxTask>>,
    /// One replacement at a time.
    tasks: Mutex<BTreeMap<QueueName, Task>>,
    /// Whether nothing is copied any more.
    is_stopped: AtomicBool,
}

/// An outbox, and how it is.
#[derive(Clone)]
struct OutboxTask {
    of_queue: OutboxOfQueue,
    status: Arc<OutboxStatus>,
}

struct Task {
    stopping: CancellationToken,
    running: JoinHandle<()>,
}

impl Task {
    /// Lets go of what is under way: it is done in one transaction or not at all.
    async fn end(self) {
        self.stopping.cancel();
        if let Err(error) = self.running.await {
            tracing::error!(%error, "failed to stop copying a source in order");
        }
    }
}

impl Outboxes {
    /// None is copied yet.
    pub(crate) fn new(intake: Intake, membership: Membership) -> Outboxes {
        let (copied, tasks, is_stopped) = Default::default();
        Outboxes { intake, membership, copied, tasks, is_stopped }
    }

    /// Copies these outboxes, and no others. One that stays as it is goes on without a pause.
    pub(crate) async fn replace(&self, outboxes: Vec<OutboxOfQueue>) -> Result<(), Error> {
        let mut tasks = self.tasks.lock().await;
        if self.is_stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        let before = self.watched();
        let mut after = BTreeMap::new();
        let wanted: BTreeMap<_, _> =
            outboxes.into_iter().map(|of_queue| (of_queue.queue.clone(), of_queue)).collect();
        for (queue, watched) in &before {
            // A replacement that failed has left some without a task.
            if wanted.get(queue) == Some(&watched.of_queue) && tasks.contains_key(queue) {
                after.insert(queue.clone(), watched.clone());
            } else if let Some(task) = tasks.remove(queue) {
                task.end().await;
            }
        }
        for (queue, of_queue) in wanted {
            if after.contains_key(&queue) {
                continue;
            }
            if let Some(task) = tasks.remove(&queue) {
                task.end().await;
            }
            let watched = OutboxTask { of_queue, status: Arc::default() };
            let sources = self.sources().await?;
            let OutboxTask { of_queue, status } = watched.clone();
            let here = (self.intake.clone(), self.membership.clone());
            let copier = OutboxCopier::new(of_queue, sources, here, status)?;
            let stopping = CancellationToken::new();
            let running = task::spawn(copier.run(stopping.clone()));
            tasks.insert(queue.clone(), Task { stopping, running });
            after.insert(queue, watched);
        }
        *self.copied.write().unwrap_or_else(std::sync::PoisonError::into_inner) = after;
        Ok(())
    }

    /// Copies nothing more.
    pub(crate) async fn stop(&self) {
        let mut tasks = self.tasks.lock().await;
        self.is_stopped.store(true, Ordering::Relaxed);
        let tasks = std::mem::take(&mut *tasks);
        for task in tasks.into_values() {
            task.end().await;
        }
    }

    /// The outbox of a queue as the API shows it, if it has one.
    pub(crate) fn show(&self, queue: &QueueName) -> Option<SourceView> {
        self.watched().get(queue).map(|watched| watched.status.show(&watched.of_queue))
    }

    /// Of each queue with an outbox: rows copied since the daemon has started, rows that wait, and whether something is wrong.
    pub(crate) fn counts(&self) -> Vec<(QueueName, (u64, u64, bool))> {
        self.watched().into_iter().map(|(queue, watched)| (queue, watched.status.counts())).collect()
    }

    fn watched(&self) -> BTreeMap<QueueName, OutboxTask> {
        self.copied.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// The queue in which outboxes live, made when the first is there.
    async fn sources(&self) -> Result<Queue, Error> {
        let options = QueueOptions { delivery_count_max: u32::MAX, ..QueueOptions::default() };
        Ok(self.intake.client().own_queue(SOURCES_QUEUE, options).await?)
    }
}
