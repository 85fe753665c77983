//! What queues there are, for all partitions: one key for each queue in the cluster's bucket, whose revisions are their order.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::kv;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::StreamExt;
use serde::Deserialize;
use serde::Serialize;
use tokio::sync::Notify;

use crate::cluster::connection::in_time;
use crate::cluster::connection::put_unless_changed;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::cluster::topic_changes::DefinedCounts;
use crate::cluster::watching::BucketWatch;
use crate::engine::elsewhere::TopicPlan;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::mutex::Mutex;
use crate::queue::Order;
use crate::queue::QueueOptions;

const QUEUE_PREFIX: &str = "queue.";

/// What is to be of a queue in every partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum QueueDefinition {
    There {
        name: QueueName,
        options: Box<QueueOptions>,
        paused: bool,
    },
    /// It is a topic, whose subscriptions are queues.
    Topic {
        name: QueueName,
        plan: Box<TopicPlan>,
    },
    /// It is being deleted: some partitions may have it.
    Going {
        name: QueueName,
    },
    /// No partition has it, so that another of the same name may be created.
    Gone {
        name: QueueName,
    },
}

impl QueueDefinition {
    pub(crate) fn name(&self) -> &QueueName {
        match self {
            QueueDefinition::There { name, .. }
            | QueueDefinition::Topic { name, .. }
            | QueueDefinition::Going { name }
            | QueueDefinition::Gone { name } => name,
        }
    }
}

#[derive(Default)]
struct DefinitionState {
    known: BTreeMap<QueueName, (u64, QueueDefinition)>,
    /// Up to which revision all were heard. What this node has put itself is known before what was put before it.
    heard: u64,
    /// Of which revisions this node knows that every partition has them.
    everywhere: BTreeMap<QueueName, u64>,
}

/// What queues there are, as a node has heard.
pub(crate) struct QueueDefinitions {
    bucket: kv::Store,
    state: Mutex<DefinitionState>,
    changed: Notify,
    /// Held while all are read: whoever waits for it may have heard them by then.
    pub(crate) loading: tokio::sync::Mutex<()>,
    /// How often reading them all has failed.
    pub(crate) failed_loads: AtomicU64,
    /// How often something was known that is newer.
    changes: AtomicU64,
    /// How often all were looked at, in tests.
    #[cfg(test)]
    pub(crate) walks: AtomicU64,
    #[cfg(test)]
    is_deaf: std::sync::atomic::AtomicBool,
    /// How many names there may be in a test.
    #[cfg(test)]
    pub(crate) names_allowed: std::sync::OnceLock<usize>,
}

impl QueueDefinitions {
    pub(crate) fn new(bucket: kv::Store) -> QueueDefinitions {
        QueueDefinitions {
            bucket,
            state: Mutex::default(),
            changed: Notify::new(),
            loading: tokio::sync::Mutex::default(),
            failed_loads: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            #[cfg(test)]
            walks: AtomicU64::new(0),
            #[cfg(test)]
            is_deaf: std::sync::atomic::AtomicBool::new(false),
            #[cfg(test)]
            names_allowed: std::sync::OnceLock::new(),
        }
    }

    /// Reads all that there are, in the order in which they were put, until the newest that the leader of the bucket has: the server that
    /// reads them out may be behind it.
    ///
    /// # Errors
    /// What the servers say.
    pub(crate) async fn load(&self) -> Result<(), String> {
        let newest = self.newest().await?;
        // A reader that a server has lost says nothing.
        let late = |_| "what queues there are was not said in time".to_owned();
        let watch = self.bucket.watch_with_history(format!("{QUEUE_PREFIX}>"));
        let watch = tokio::time::timeout(limits::STREAM_ANSWER, watch).await.map_err(late)?;
        let (mut watch, mut reached) = (watch.map_err(|error| error.to_string())?, 0);
        while reached < newest {
            let entry = tokio::time::timeout(limits::STREAM_ANSWER, watch.next()).await.map_err(late)?;
            let entry = entry.ok_or("the reader of what queues there are has ended")?;
            let entry = entry.map_err(|error| error.to_string())?;
            let definition = serde_json::from_slice(&entry.value).map_err(|error| error.to_string())?;
            self.know(entry.revision, definition);
            reached = entry.revision;
        }
        self.note_heard(newest);
        Ok(())
    }

    /// Sees to it that all were heard that there are now: a watch may hang when a server has died.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when they could not be.
    pub(crate) async fn catch_up(&self) -> Result<(), Unavailable> {
        let newest = self.newest().await.map_err(|error| failed(&error))?;
        let is_heard = || self.state.lock().heard >= newest;
        match self.wait_until(is_heard, limits::DEFINITIONS_WAIT).await {
            true => Ok(()),
            false => self.load_unless(is_heard).await,
        }
    }

    /// Reads all, unless they were heard while others did: a node that takes over many partitions reads them once, and if that
    /// fails, none of those that wait tries it again after the other.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when they could not be read.
    pub(crate) async fn load_unless(&self, is_heard: impl Fn() -> bool) -> Result<(), Unavailable> {
        let failures = || self.failed_loads.load(Ordering::Relaxed);
        let before = failures();
        let _loading = self.loading.lock().await;
        if is_heard() {
            return Ok(());
        }
        if failures() != before {
            return Err(failed(&"they could not be read a moment ago"));
        }
        let loaded = self.load().await;
        self.failed_loads.fetch_add(u64::from(loaded.is_err()), Ordering::Relaxed);
        loaded.map_err(|error| failed(&error))
    }

    /// The greatest revision of all.
    async fn newest(&self) -> Result<u64, String> {
        let last = self.last_of(&format!("{QUEUE_PREFIX}>")).await?;
        Ok(last.map_or(0, |message| message.sequence))
    }

    /// What the leader of the bucket has of a key, with its revision.
    async fn read(&self, key: &str) -> Result<Option<(u64, QueueDefinition)>, String> {
        let Some(message) = self.last_of(key).await? else { return Ok(None) };
        let definition = serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?;
        Ok(Some((message.sequence, definition)))
    }

    /// The last message of a key, or of all that a subject stands for. Replicas, which answer sooner, may be late.
    pub(crate) async fn last_of(&self, keys: &str) -> Result<Option<StreamMessage>, String> {
        let subject = format!("{}{keys}", self.bucket.prefix);
        let found = async {
            match self.bucket.stream.get_last_raw_message_by_subject(&subject).await {
                Ok(message) => Ok(Some(message)),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        in_time(limits::NATS_ANSWER, found).await
    }

    /// Follows them until the node is stopped.
    pub(crate) async fn watch(self: Arc<QueueDefinitions>, stop: ClusterStop) {
        let watch = BucketWatch::seldom(QUEUE_PREFIX, "what queues there are");
        watch.follow(&self.bucket, &stop, |entry| self.note(entry)).await;
    }

    fn note(&self, entry: &kv::Entry) {
        #[cfg(test)]
        if self.is_deaf.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let Ok(definition) = serde_json::from_slice::<QueueDefinition>(&entry.value) else { return };
        self.know(entry.revision, definition);
        self.note_heard(entry.revision);
    }

    fn know(&self, revision: u64, definition: QueueDefinition) {
        let mut state = self.state.lock();
        let name = definition.name().clone();
        if state.known.get(&name).is_none_or(|(known, _)| *known < revision) {
            state.known.insert(name, (revision, definition));
            self.changes.fetch_add(1, Ordering::Release);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Notes that all up to a revision were heard.
    fn note_heard(&self, revision: u64) {
        let mut state = self.state.lock();
        state.heard = state.heard.max(revision);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Hears nothing more of what is put, as when the watch hangs, or hears again.
    #[cfg(test)]
    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, std::sync::atomic::Ordering::Relaxed);
    }

    /// What the servers know of a queue, with its revision; 0 if they know nothing.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when they do not say.
    pub(crate) async fn entry(
        &self,
        name: &QueueName,
    ) -> Result<(u64, Option<QueueDefinition>), Unavailable> {
        let read = self.read(&key_of(name)).await.map_err(|error| failed(&error))?;
        Ok(read.map_or((0, None), |(revision, definition)| (revision, Some(definition))))
    }

    /// What there is under a name, with its revision: as the servers say, or as was heard if that is newer.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when they do not say.
    pub(crate) async fn newest_of(
        &self,
        name: &QueueName,
    ) -> Result<(u64, Option<QueueDefinition>), Unavailable> {
        if let (revision, Some(definition)) = self.entry(name).await? {
            self.know(revision, definition);
        }
        let known = self.state.lock().known.get(name).cloned();
        Ok(known.map_or((0, None), |(revision, definition)| (revision, Some(definition))))
    }

    /// Sees to it that a name can be had that nothing was ever called by: names stay in the bucket when what they named is deleted.
    ///
    /// # Errors
    /// [`Unavailable::Unsupported`] when there are too many.
    pub(crate) fn check_new_name(&self) -> Result<(), Unavailable> {
        let names_max = limits::DEFINED_NAMES_MAX;
        #[cfg(test)]
        let names_max = self.names_allowed.get().copied().unwrap_or(names_max);
        match self.state.lock().known.len() < names_max {
            true => Ok(()),
            false => Err(Unavailable::Unsupported(
                "no further name can be had, as those of deleted queues and topics stay: take one of these again",
            )),
        }
    }

    /// Whether there is a queue, as far as was heard, or else as the servers say.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when they do not say.
    pub(crate) async fn is_there(&self, name: &QueueName) -> Result<bool, Unavailable> {
        let subscription = name.subscription();
        let key = subscription.as_ref().map_or(name, |(topic, _)| topic);
        let is_there = |definition: &QueueDefinition| match (definition, &subscription) {
            (QueueDefinition::There { .. }, None) => true,
            (QueueDefinition::Topic { plan, .. }, Some((_, name))) => {
                plan.subscriptions.iter().any(|known| known.name == *name)
            }
            _ => false,
        };
        if self.state.lock().known.get(key).is_some_and(|(_, definition)| is_there(definition)) {
            return Ok(true);
        }
        Ok(self.entry(key).await?.1.as_ref().is_some_and(is_there))
    }

    /// Whether the order of the queue of a subscription has places, as far as was heard.
    pub(crate) fn takes_places(&self, queue: &QueueName) -> bool {
        let Some((topic, name)) = queue.subscription() else { return true };
        match self.state.lock().known.get(&topic) {
            Some((_, QueueDefinition::Topic { plan, .. })) => {
                let known = plan.subscriptions.iter().find(|known| known.name == name);
                !known.is_some_and(|known| matches!(known.options.order, Order::None | Order::Arrival))
            }
            _ => true,
        }
    }

    /// How many there are, as far as was heard.
    pub(crate) fn counts(&self) -> DefinedCounts {
        let mut counts = DefinedCounts { topics: 0, queues: 0 };
        for (_, definition) in self.state.lock().known.values() {
            match definition {
                QueueDefinition::There { .. } => counts.queues += 1,
                QueueDefinition::Topic { plan, .. } => {
                    counts.topics += 1;
                    counts.queues += plan.subscriptions.len();
                }
                QueueDefinition::Going { .. } | QueueDefinition::Gone { .. } => {}
            }
        }
        counts
    }

    /// Puts a definition behind a revision of the same queue. `None` when another was faster, which put something else.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when the servers do not say.
    pub(crate) async fn put(
        &self,
        definition: QueueDefinition,
        behind: u64,
    ) -> Result<Option<u64>, Unavailable> {
        let name = definition.name().clone();
        let bytes = serde_json::to_vec(&definition).expect("a definition can be written").into();
        match put_unless_changed(&self.bucket, &key_of(&name), bytes, behind).await {
            Ok(revision) => {
                self.know(revision, definition);
                Ok(Some(revision))
            }
            // Whether it was another or the servers, the next look says. A leader that has just been elected may be late.
            Err(why) => {
                for _ in 0..limits::LOG_LOOKS_MAX {
                    match self.entry(&name).await? {
                        // It was put though nobody has said so, or another has put the same.
                        (revision, Some(found)) if revision > behind && found == definition => {
                            self.know(revision, found);
                            return Ok(Some(revision));
                        }
                        (revision, _) if revision > behind => return Ok(None),
                        _ => pause(limits::ROUTE_PAUSE).await,
                    }
                }
                Err(failed(&why))
            }
        }
    }

    /// Whether this node knows that every partition has this revision of a queue.
    pub(crate) fn is_everywhere(&self, name: &QueueName, revision: u64) -> bool {
        self.state.lock().everywhere.get(name).is_some_and(|known| *known >= revision)
    }

    pub(crate) fn note_everywhere(&self, name: &QueueName, revision: u64) {
        self.state.lock().everywhere.insert(name.clone(), revision);
    }

    /// Waits until a queue was heard of at a revision, or a later one. All are read if that takes too long: a watch may hang when a
    /// server has died.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when it was not in time.
    pub(crate) async fn hear(&self, name: &QueueName, revision: u64) -> Result<(), Unavailable> {
        let is_known = || self.state.lock().known.get(name).is_some_and(|(known, _)| *known >= revision);
        if self.wait_until(is_known, limits::DEFINITIONS_WAIT).await {
            return Ok(());
        }
        let loaded = tokio::select! {
            loaded = self.load_unless(is_known) => loaded,
            () = self.until(is_known) => return Ok(()),
        };
        // A leader that has just been elected may be late, and the watch may go on.
        match self.wait_until(is_known, limits::ROUTE_WAIT).await {
            true => Ok(()),
            false => loaded.and(Err(failed(&"they were not heard in time"))),
        }
    }

    /// How many changes were heard: whoever has in force what is due after it has read this has nothing to do before it is more.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Every definition that is known and due, in the order in which they were put.
    pub(crate) fn due(&self, is_due: impl Fn(&QueueName, u64) -> bool) -> Vec<(u64, QueueDefinition)> {
        #[cfg(test)]
        self.walks.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock();
        let due = state.known.values().filter(|(revision, known)| is_due(known.name(), *revision));
        let mut due: Vec<_> = due.cloned().collect();
        drop(state);
        due.sort_by_key(|(revision, _)| *revision);
        due
    }

    /// Waits until something was heard; false when it was not in time.
    async fn wait_until(&self, is_so: impl Fn() -> bool, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.until(is_so)).await.is_ok()
    }

    /// Waits until something was heard.
    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so() {
                return;
            }
            changed.await;
        }
    }
}

fn key_of(name: &QueueName) -> String {
    key_with(QUEUE_PREFIX, name)
}

/// A key of a queue. Keys take letters and digits only.
pub(crate) fn key_with(prefix: &str, name: &QueueName) -> String {
    let mut key = prefix.to_owned();
    for byte in name.as_str().bytes() {
        // Writing to a text cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

fn failed(error: &dyn std::fmt::Display) -> Unavailable {
    Unavailable::Unanswered(format!("what queues there are: {error}"))
}
