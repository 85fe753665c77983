//! The outboxes that are copied: those of the definitions in force, each by a task of its own.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
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

impl OutboxTask {
    /// Whether the outbox of a newer definition is the same one, however it is copied now.
    fn is_same(&self, newer: &OutboxOfQueue) -> bool {
        let (before, newer) = (&self.of_queue.outbox, &newer.outbox);
        (&before.name, &before.table) == (&newer.name, &newer.table)
    }
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

    /// Copies these outboxes, and no others, or those from before if it fails. One that stays as it is goes on without a pause.
    pub(crate) async fn replace(&self, outboxes: Vec<OutboxOfQueue>) -> Result<(), Error> {
        let mut tasks = self.tasks.lock().await;
        if self.is_stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        let before = self.watched();
        // A replacement that was cut off has left some without a task.
        let (stay, begin): (Vec<_>, Vec<_>) = outboxes.into_iter().partition(|of_queue| {
            tasks.get(&of_queue.queue).is_some_and(|task| !task.running.is_finished())
                && before.get(&of_queue.queue).is_some_and(|watched| watched.of_queue == *of_queue)
        });
        // This may fail, and nothing has changed then.
        let begin = self.copiers(begin, &before).await?;
        let stay: BTreeSet<QueueName> = stay.into_iter().map(|of_queue| of_queue.queue).collect();
        let ended: Vec<QueueName> = tasks.keys().filter(|queue| !stay.contains(*queue)).cloned().collect();
        for queue in ended {
            if let Some(task) = tasks.remove(&queue) {
                task.end().await;
            }
        }
        let mut after = before;
        after.retain(|queue, _| stay.contains(queue));
        for (watched, copier) in begin {
            let queue = watched.of_queue.queue.clone();
            let stopping = CancellationToken::new();
            let running = task::spawn(copier.run(stopping.clone()));
            tasks.insert(queue.clone(), Task { stopping, running });
            after.insert(queue, watched);
        }
        *self.copied.write().unwrap_or_else(std::sync::PoisonError::into_inner) = after;
        Ok(())
    }

    /// What copies these outboxes, none of which runs yet. One that was copied before goes on counting.
    async fn copiers(
        &self,
        outboxes: Vec<OutboxOfQueue>,
        before: &BTreeMap<QueueName, OutboxTask>,
    ) -> Result<Vec<(OutboxTask, OutboxCopier)>, Error> {
        if outboxes.is_empty() {
            return Ok(Vec::new());
        }
        let sources = self.sources().await?;
        let mut copiers = Vec::with_capacity(outboxes.len());
        for of_queue in outboxes {
            let same = before.get(&of_queue.queue).filter(|watched| watched.is_same(&of_queue));
            let status = same.map(|watched| watched.status.clone()).unwrap_or_default();
            let here = (self.intake.clone(), self.membership.clone());
            let copier = OutboxCopier::new(of_queue.clone(), sources.clone(), here, status.clone())?;
            copiers.push((OutboxTask { of_queue, status }, copier));
        }
        Ok(copiers)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::definition::OutboxDefinition;
    use crate::engine::Engine;
    use crate::postgres::OutboxColumns;

    /// The outbox of a queue, in a database that is not there.
    fn outbox(queue: &str, table: &str) -> OutboxOfQueue {
        let outbox = OutboxDefinition {
            name: "outbox".to_owned(),
            url: "postgres://127.0.0.1:1/none".to_owned(),
            table: table.to_owned(),
            password: None,
            tls: false,
            ca_file: None,
            columns: OutboxColumns::default(),
            numbers_are_ids: true,
            delete_copied: false,
            poll: Duration::from_secs(1),
            channel: None,
        };
        OutboxOfQueue { queue: QueueName::new(queue).unwrap(), outbox }
    }

    async fn open() -> (Engine, Outboxes) {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let outboxes = Outboxes::new(Intake::new(engine.client().clone()), Membership::default());
        (engine, outboxes)
    }

    async fn running(outboxes: &Outboxes) -> Vec<String> {
        outboxes.tasks.lock().await.keys().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn an_outbox_that_is_copied_in_another_way_goes_on_counting_and_another_table_begins_anew() {
        let (engine, outboxes) = open().await;
        let orders = QueueName::new("orders").unwrap();
        let copied = || outboxes.counts()[0].1.0;
        outboxes.replace(vec![outbox("orders", "out")]).await.unwrap();
        outboxes.watched()[&orders].status.copied(7, 3);
        let mut changed = outbox("orders", "out");
        changed.outbox.poll = Duration::from_secs(2);
        outboxes.replace(vec![changed.clone()]).await.unwrap();
        assert_eq!(copied(), 3);
        assert_eq!(outboxes.watched()[&orders].of_queue, changed);
        outboxes.replace(vec![outbox("orders", "other")]).await.unwrap();
        assert_eq!(copied(), 0);
        outboxes.stop().await;
        engine.close().await;
    }

    #[tokio::test]
    async fn a_replacement_that_fails_changes_nothing() {
        let (engine, outboxes) = open().await;
        let before = vec![outbox("orders", "out")];
        outboxes.replace(before.clone()).await.unwrap();
        // A definition has no such table; what else may fail needs a full disk.
        let failing = vec![outbox("a", "out"), outbox("b", "")];
        assert!(outboxes.replace(failing).await.is_err());
        assert_eq!(running(&outboxes).await, ["orders"]);
        assert_eq!(outboxes.counts().len(), 1);
        outboxes.replace(before).await.unwrap();
        assert_eq!(running(&outboxes).await, ["orders"]);
        outboxes.replace(Vec::new()).await.unwrap();
        assert_eq!(running(&outboxes).await, [""; 0]);
        engine.close().await;
    }
}
