//! The queues of an engine.

use crate::engine::client::client::Client;
use crate::engine::client::queue::Queue;
use crate::engine::query::Query;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::verbs::ChangeQueue;
use crate::engine::rules::verbs::CreateQueue;
use crate::engine::rules::verbs::DeleteQueue;
use crate::engine::rules::verbs::Purge;
use crate::engine::view::QueueView;
use crate::error::Misuse;
use crate::error::QueueError;
#[cfg(feature = "daemon")]
use crate::error::QueueRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::queue::QueueOptions;

impl Client {
    /// Creates a queue, unless there is one of this name with the same options. To give one that exists other options, use
    /// [`Client::change_queue`].
    ///
    /// # Errors
    /// [`QueueRefusal::QueueExists`](crate::error::QueueRefusal::QueueExists) when there is one with other options; [`Misuse`] for a bad name or option.
    pub async fn create_queue(
        &self,
        name: impl AsRef<str>,
        options: QueueOptions,
    ) -> Result<Queue, QueueError> {
        let name = QueueName::new(name)?;
        options.check()?;
        self.operate(CreateQueue { name: name.clone(), options: Box::new(options) }).await?;
        Ok(Queue::new(self.clone(), name))
    }

    /// A queue in which the daemon keeps something of its own, created if it is not there; one with other options is taken as it
    /// is, since somebody may have changed it.
    #[cfg(feature = "daemon")]
    pub(crate) async fn own_queue(&self, name: &str, options: QueueOptions) -> Result<Queue, QueueError> {
        match self.create_queue(name, options).await {
            Err(QueueError::Refused(QueueRefusal::QueueExists(_))) => Ok(self.queue(name)?),
            opened => opened,
        }
    }

    /// A handle of a queue, whether it exists or not; operations on one that does not are refused.
    ///
    /// # Errors
    /// [`Misuse`] for a name that no queue can have.
    pub fn queue(&self, name: impl AsRef<str>) -> Result<Queue, Misuse> {
        Ok(Queue::new(self.clone(), QueueName::new(name)?))
    }

    /// Changes the options of a queue, and says whether they are others than before. They apply from the next hand-out on; messages
    /// keep the expiry they have.
    ///
    /// # Errors
    /// [`QueueRefusal::QueueNotFound`](crate::error::QueueRefusal::QueueNotFound);
    /// [`QueueRefusal::OrderInUse`](crate::error::QueueRefusal::OrderInUse) when the order would change while messages or workflows are stored, or cursors
    /// remembered; [`Misuse`] for a bad name or option.
    pub async fn change_queue(
        &self,
        name: impl AsRef<str>,
        options: QueueOptions,
    ) -> Result<bool, QueueError> {
        options.check()?;
        self.operate(ChangeQueue { name: QueueName::new(name)?, options: Box::new(options) }).await
    }

    /// Creates a queue, or gives the one of this name these options.
    #[cfg(feature = "daemon")]
    pub(crate) async fn put_queue(
        &self,
        name: impl AsRef<str>,
        options: QueueOptions,
    ) -> Result<Queue, QueueError> {
        match self.create_queue(&name, options.clone()).await {
            Err(QueueError::Refused(QueueRefusal::QueueExists(_))) => {
                self.change_queue(&name, options).await?;
                Ok(self.queue(name)?)
            }
            created => created,
        }
    }

    /// Deletes a queue with everything in it; its deliveries can no longer be settled. What it stores is removed some at a
    /// time, so that others are served meanwhile: if the future is dropped before it ends, a part may be gone.
    ///
    /// # Errors
    /// [`QueueRefusal::QueueNotFound`](crate::error::QueueRefusal::QueueNotFound).
    pub async fn delete_queue(&self, name: impl AsRef<str>) -> Result<(), QueueError> {
        let name = QueueName::new(name)?;
        self.empty_in_slices(&name).await?;
        self.operate(DeleteQueue { name }).await?;
        Ok(())
    }

    /// Purges what is stored in a queue now, a limited number in a turn, so that others are served meanwhile. What is sent
    /// after that is not waited for, so it ends.
    pub(crate) async fn empty_in_slices(&self, name: &QueueName) -> Result<(), QueueError> {
        if self.is_dry_run() {
            // The deletion is refused, and nothing is to be gone before.
            return Ok(());
        }
        // What refuses a look refuses the deletion, and if it is about the queue, that is put on record there.
        let Ok(view) = self.queue(name)?.view().await else { return Ok(()) };
        if let Some(partition) = view.missing_partitions.first() {
            // The deletion would be refused, too, before anything of it is on record, and nothing is to be gone then.
            let why = format!("what it has of {name} cannot be removed");
            return Err(Unavailable::PartitionStopped { partition: *partition, why }.into());
        }
        let stored = view.counts.stored();
        let mut from = PurgeFrom::Start;
        for _ in 0..stored / limits::SWEEP_MAX as u64 {
            let (queue, scope) = (name.clone(), PurgeScope::Everything);
            // It is a part of the deletion, which is what is put on record.
            let purged = self.inbox().ask(Purge { queue, scope, from }, None).await?;
            let Some(next) = purged.ok().and_then(|purged| purged.next) else { return Ok(()) };
            from = next;
        }
        Ok(())
    }

    /// Up to `limit` queues in order of name, at most 1,000, after the given one (from the start for `None`).
    ///
    /// # Errors
    /// [`Unavailable`] when the engine is closed.
    pub async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
    ) -> Result<Vec<QueueView>, Unavailable> {
        self.look_up(|slot| Query::Queues { after: after.cloned(), limit, slot }).await
    }

    /// All queues, page by page.
    #[cfg(any(feature = "daemon", feature = "cluster"))]
    pub(crate) async fn all_queues(&self) -> Result<Vec<QueueView>, Unavailable> {
        let mut queues: Vec<QueueView> = Vec::new();
        loop {
            let after = queues.last().map(|view| view.name.clone());
            let page = self.queues(after.as_ref(), limits::PAGE_MAX).await?;
            if page.is_empty() {
                return Ok(queues);
            }
            queues.extend(page);
        }
    }

    /// The name of a queue that differs from this one in case only.
    #[cfg(feature = "daemon")]
    pub(crate) async fn queue_named_alike(&self, name: &str) -> Result<Option<QueueName>, Unavailable> {
        match self.look_up(|slot| Query::NamedAlike { name: name.to_owned(), slot }).await {
            // The nodes of a cluster have no word for it.
            Err(Unavailable::Unsupported(_)) => {
                let mut names = self.all_queues().await?.into_iter().map(|view| view.name);
                Ok(names.find(|known| known.as_str().eq_ignore_ascii_case(name)))
            }
            found => found,
        }
    }
}

#[cfg(all(test, feature = "daemon"))]
mod tests {
    use futures_util::future::join_all;

    use crate::limits;
    use crate::queue::QueueOptions;

    #[tokio::test]
    async fn a_queue_is_found_by_its_name_in_any_case_behind_many_others() {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let client = engine.client();
        let names = (0..=limits::PAGE_MAX).map(|number| format!("a{number}"));
        let made = names.map(|name| client.create_queue(name, QueueOptions::default()));
        assert!(join_all(made).await.iter().all(Result::is_ok));
        client.create_queue("Zoo", QueueOptions::default()).await.unwrap();
        let found = client.queue_named_alike("zOO").await.unwrap().expect("it is there");
        assert_eq!(found.as_str(), "Zoo");
        assert_eq!(client.queue_named_alike("zo").await.unwrap(), None);
        engine.close().await;
    }
}
