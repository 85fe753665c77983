//! What queues there are, for all partitions: one key for each queue in the cluster's bucket, whose revisions are their order.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use async_nats::jetstream::kv;
use futures_util::StreamExt;
use serde::Deserialize;
use serde::Serialize;
use tokio::sync::Notify;

use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::cluster::topic_changes::DefinedCounts;
use crate::cluster::topic_changes::enforce_topic;
use crate::cluster::topic_changes::remove_topic;
use crate::cluster::watching::BucketWatch;
use crate::engine::Client;
use crate::engine::elsewhere::TopicPlan;
use crate::error::OperationError;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::limits;
use crate::queue::Order;
use crate::queue::QueueOptions;

const QUEUE_PREFIX: &str = "queue.";

/// How long nothing has to be heard before it is listened anew, in case the watch hangs: all definitions are told then.
const SILENCE: Duration = Duration::from_secs(60);

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
struct DefinitionBoard {
    known: BTreeMap<QueueName, (u64, QueueDefinition)>,
    /// The greatest revision that was heard.
    seen: u64,
    /// Of which revisions this node knows that every partition has them.
    everywhere: BTreeMap<QueueName, u64>,
}

/// What queues there are, as a node has heard.
pub(crate) struct QueueDefinitions {
    bucket: kv::Store,
    board: Mutex<DefinitionBoard>,
    changed: Notify,
}

impl QueueDefinitions {
    pub(crate) fn new(bucket: kv::Store) -> QueueDefinitions {
        QueueDefinitions { bucket, board: Mutex::default(), changed: Notify::new() }
    }

    fn board(&self) -> MutexGuard<'_, DefinitionBoard> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all that there are.
    ///
    /// # Errors
    /// What the servers say.
    pub(crate) async fn load(&self) -> Result<(), String> {
        // A reader that a server has lost says nothing.
        let late = |_| "what queues there are was not said in time".to_owned();
        let keys = tokio::time::timeout(limits::STREAM_ANSWER, self.bucket.keys()).await.map_err(late)?;
        let mut keys = keys.map_err(|error| error.to_string())?;
        while let Some(key) = tokio::time::timeout(limits::STREAM_ANSWER, keys.next()).await.map_err(late)? {
            let key = key.map_err(|error| error.to_string())?;
            if key.starts_with(QUEUE_PREFIX)
                && let Some(entry) = self.bucket.entry(key).await.map_err(|error| error.to_string())?
            {
                self.note(&entry);
            }
        }
        Ok(())
    }

    /// Follows them until the node is stopped.
    pub(crate) async fn watch(self: Arc<QueueDefinitions>, stop: ClusterStop) {
        let (keys, what) = (format!("{QUEUE_PREFIX}>"), "what queues there are");
        let watch = BucketWatch { keys, what, silence: SILENCE, pause: limits::ROUTE_PAUSE * 10 };
        watch.follow(&self.bucket, &stop, |entry| self.note(entry)).await;
    }

    fn note(&self, entry: &kv::Entry) {
        let Ok(definition) = serde_json::from_slice::<QueueDefinition>(&entry.value) else { return };
        self.know(entry.revision, definition);
    }

    fn know(&self, revision: u64, definition: QueueDefinition) {
        let mut board = self.board();
        board.seen = board.seen.max(revision);
        let name = definition.name().clone();
        if board.known.get(&name).is_none_or(|(known, _)| *known < revision) {
            board.known.insert(name, (revision, definition));
        }
        drop(board);
        self.changed.notify_waiters();
    }

    /// The greatest revision that was heard.
    pub(crate) fn seen(&self) -> u64 {
        self.board().seen
    }

    /// What the servers know of a queue, with its revision; 0 if they know nothing.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] when they do not say.
    pub(crate) async fn entry(
        &self,
        name: &QueueName,
    ) -> Result<(u64, Option<QueueDefinition>), Unavailable> {
        let entry = self.bucket.entry(key_of(name)).await.map_err(|error| failed(&error))?;
        let Some(entry) = entry else { return Ok((0, None)) };
        let definition = serde_json::from_slice(&entry.value).map_err(|error| failed(&error))?;
        Ok((entry.revision, Some(definition)))
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
        if self.board().known.get(key).is_some_and(|(_, definition)| is_there(definition)) {
            return Ok(true);
        }
        Ok(self.entry(key).await?.1.as_ref().is_some_and(is_there))
    }

    /// Whether the order of the queue of a subscription has places, as far as was heard.
    pub(crate) fn takes_places(&self, queue: &QueueName) -> bool {
        let Some((topic, name)) = queue.subscription() else { return true };
        match self.board().known.get(&topic) {
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
        for (_, definition) in self.board().known.values() {
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

    /// Puts a definition behind a revision of the same queue. `None` when another was faster.
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
        let put = match behind {
            0 => self.bucket.create(key_of(&name), bytes).await.map_err(|error| failed(&error)),
            _ => self.bucket.update(key_of(&name), bytes, behind).await.map_err(|error| failed(&error)),
        };
        match put {
            Ok(revision) => {
                self.know(revision, definition);
                Ok(Some(revision))
            }
            // Whether it was another or the servers, the next look says. Any replica answers it, and may be late.
            Err(why) => {
                for _ in 0..limits::LOG_LOOKS_MAX {
                    if self.entry(&name).await?.0 > behind {
                        return Ok(None);
                    }
                    pause(limits::ROUTE_PAUSE).await;
                }
                Err(why)
            }
        }
    }

    /// Whether this node knows that every partition has this revision of a queue.
    pub(crate) fn is_everywhere(&self, name: &QueueName, revision: u64) -> bool {
        self.board().everywhere.get(name).is_some_and(|known| *known >= revision)
    }

    pub(crate) fn note_everywhere(&self, name: &QueueName, revision: u64) {
        self.board().everywhere.insert(name.clone(), revision);
    }

    /// Has what was defined after a revision in force in an engine, up to another that was heard of. Returns up to which.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine ends, or what is to be in force was not heard of in time.
    pub(crate) async fn bring(&self, client: &Client, after: u64, upto: u64) -> Result<u64, Unavailable> {
        self.hear(upto).await?;
        let (seen, mut due): (u64, Vec<_>) = {
            let board = self.board();
            let due = board.known.values().filter(|(revision, _)| *revision > after).cloned();
            (board.seen, due.collect())
        };
        due.sort_by_key(|(revision, _)| *revision);
        for (revision, definition) in due {
            if let Err(error) = enforce(client, revision, &definition).await? {
                tracing::error!(queue = %definition.name(), error, "a partition refuses what all have to have");
            }
        }
        Ok(seen)
    }

    /// Waits until a revision was heard.
    async fn hear(&self, revision: u64) -> Result<(), Unavailable> {
        let heard = async {
            loop {
                let changed = self.changed.notified();
                if self.seen() >= revision {
                    return;
                }
                changed.await;
            }
        };
        let late = || Unavailable::Unanswered("what queues there are was not heard in time".to_owned());
        tokio::time::timeout(limits::ROUTE_WAIT, heard).await.map_err(|_| late())
    }
}

/// Makes an engine have what is defined. Why it refuses that is an answer.
async fn enforce(
    client: &Client,
    revision: u64,
    definition: &QueueDefinition,
) -> Result<Result<(), String>, Unavailable> {
    match definition {
        QueueDefinition::There { name, options, paused } => {
            refusal_of(enforce_queue(client, name, options, *paused).await)
        }
        QueueDefinition::Topic { name, plan } => {
            refusal_of(enforce_topic(client, name, (revision, plan)).await)
        }
        QueueDefinition::Going { name } | QueueDefinition::Gone { name } => {
            let removed = refusal_of(remove_topic(client, name).await)?;
            let deleted = match client.delete_queue(name).await {
                Err(OperationError::Refused(QueueRefusal::QueueNotFound(_))) => Ok(()),
                deleted => deleted,
            };
            Ok(removed.and(refusal_of(deleted)?))
        }
    }
}

fn refusal_of<R: Error>(enforced: Result<(), OperationError<R>>) -> Result<Result<(), String>, Unavailable> {
    match enforced {
        Ok(()) => Ok(Ok(())),
        Err(OperationError::Unavailable(why)) => Err(why),
        Err(OperationError::Refused(refusal)) => Ok(Err(refusal.to_string())),
        Err(OperationError::Misuse(misuse)) => Ok(Err(misuse.to_string())),
    }
}

async fn enforce_queue(
    client: &Client,
    name: &QueueName,
    options: &QueueOptions,
    paused: bool,
) -> Result<(), QueueError> {
    let queue = match client.create_queue(name, options.clone()).await {
        Err(OperationError::Refused(QueueRefusal::QueueExists(_))) => {
            client.change_queue(name, options.clone()).await?;
            client.queue(name)?
        }
        created => created?,
    };
    queue.set_paused(paused).await?;
    Ok(())
}

/// Keys take letters and digits only.
fn key_of(name: &QueueName) -> String {
    let mut key = QUEUE_PREFIX.to_owned();
    for byte in name.as_str().bytes() {
        // Writing to a text cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

fn failed(error: &dyn std::fmt::Display) -> Unavailable {
    Unavailable::Unanswered(format!("what queues there are: {error}"))
}
