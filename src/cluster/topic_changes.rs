//! What changes of a topic make of its plan, and a plan in an engine.

use crate::clock::Timestamp;
use crate::cluster::definition_change::DefinitionChange;
use crate::engine::Client;
use crate::engine::elsewhere::SubscriptionPlan;
use crate::engine::elsewhere::TopicChange;
use crate::engine::elsewhere::TopicPlan;
use crate::engine::elsewhere::check_size;
use crate::error::OperationError;
use crate::error::QueueRefusal;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::id::QueueName;
use crate::id::SubscriptionName;

/// Why a queue keeps its order: whether each partition could have another is not known before all have.
pub(crate) const ORDER_STAYS: &str = "the order of a queue cannot be changed: delete it, and create it anew";

/// Revisions of topics are those of the bucket. By this they differ from the numbers that an engine gives.
const OF_BUCKET: u64 = 1 << 63;

/// The revision of a topic whose plan is at a revision of the bucket.
pub(crate) fn topic_revision(of_bucket: u64) -> u64 {
    of_bucket | OF_BUCKET
}

/// The revision of the bucket at which the plan of a topic is.
pub(crate) fn bucket_revision(of_topic: u64) -> u64 {
    of_topic & !OF_BUCKET
}

/// How many there are of what is limited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DefinedCounts {
    pub(crate) topics: usize,
    /// Those of subscriptions among them.
    pub(crate) queues: usize,
}

/// A topic that is to be changed.
pub(crate) struct PlannedTopic<'a> {
    pub(crate) name: &'a QueueName,
    /// That of the bucket.
    pub(crate) revision: u64,
    pub(crate) plan: &'a TopicPlan,
}

/// The plan of a new topic. Behind each revision of its key there is one.
pub(crate) fn new_plan(behind: u64, created_at: Timestamp) -> TopicPlan {
    TopicPlan { number: topic_revision(behind), created_at, subscriptions: Vec::new() }
}

impl PlannedTopic<'_> {
    /// The plan as a change makes it; `None` when it stays as it is.
    pub(crate) fn change(
        &self,
        change: &TopicChange,
        (counts, queues_max): (DefinedCounts, usize),
    ) -> Result<Option<TopicPlan>, TopicRefusal> {
        let mut plan = self.plan.clone();
        match change {
            TopicChange::Create => return Ok(None),
            TopicChange::Subscribe { name, options, rules } => match self.place(name) {
                Ok(at)
                    if plan.subscriptions[at].rules == *rules
                        && plan.subscriptions[at].options == *options =>
                {
                    return Ok(None);
                }
                Ok(_) => return Err(TopicRefusal::SubscriptionExists(self.name.clone(), name.clone())),
                Err(_) if counts.queues >= queues_max => {
                    return Err(TopicRefusal::TooManyQueues(counts.queues));
                }
                Err(at) => {
                    let (name, options, rules) = (name.clone(), options.clone(), rules.clone());
                    plan.subscriptions.insert(at, SubscriptionPlan { name, rules, options, paused: false });
                }
            },
            TopicChange::SetRules { name, revision, rules } => {
                if bucket_revision(*revision) != self.revision {
                    return Err(TopicRefusal::TopicChanged(self.name.clone()));
                }
                let missing = |_| TopicRefusal::SubscriptionNotFound(self.name.clone(), name.clone());
                let known = &mut plan.subscriptions[self.place(name).map_err(missing)?];
                if known.rules == *rules {
                    return Ok(None);
                }
                known.rules.clone_from(rules);
            }
            TopicChange::Delete | TopicChange::Put { .. } => return Ok(None),
        }
        check_size(&plan.record(self.name, 0))?;
        Ok(Some(plan))
    }

    /// The plan as a change of the queue of a subscription makes it.
    pub(crate) fn change_queue(
        &self,
        queue: &QueueName,
        subscription: &SubscriptionName,
        change: DefinitionChange,
    ) -> Result<Option<TopicPlan>, QueueRefusal> {
        let mut plan = self.plan.clone();
        let at = match (self.place(subscription), &change) {
            (Ok(at), _) => at,
            (Err(_), DefinitionChange::Create(_)) => return Err(QueueRefusal::NotSubscribed(queue.clone())),
            (Err(_), _) => return Err(QueueRefusal::QueueNotFound(queue.clone())),
        };
        let known = &mut plan.subscriptions[at];
        match change {
            DefinitionChange::Create(options) if known.options != options => {
                return Err(QueueRefusal::QueueExists(queue.clone()));
            }
            DefinitionChange::Create(_) => return Ok(None),
            DefinitionChange::Options(options) if known.options == options => return Ok(None),
            DefinitionChange::Options(options) => known.options = options,
            DefinitionChange::Pause(paused) if known.paused == paused => return Ok(None),
            DefinitionChange::Pause(paused) => known.paused = paused,
            DefinitionChange::Delete => drop(plan.subscriptions.remove(at)),
        }
        Ok(Some(plan))
    }

    /// Where a subscription is, or would be.
    fn place(&self, name: &SubscriptionName) -> Result<usize, usize> {
        self.plan.subscriptions.binary_search_by(|known| known.name.cmp(name))
    }
}

/// Makes an engine have a topic as it is planned. What is stored for subscriptions that are no more is removed before, some at a
/// time.
///
/// # Errors
/// What the engine says.
pub(crate) async fn enforce_topic(
    client: &Client,
    name: &QueueName,
    (revision, plan): (u64, &TopicPlan),
) -> Result<(), TopicError> {
    let topic = client.topic(name)?;
    if let Some(known) = client.topic_record(name).await? {
        let stays = |name: &SubscriptionName| {
            known.number == plan.number && plan.subscriptions.iter().any(|plan| plan.name == *name)
        };
        for gone in known.subscriptions.iter().filter(|known| !stays(&known.name)) {
            empty(client, &QueueName::of_subscription(name, &gone.name)?).await?;
        }
    }
    let (revision, plan) = (topic_revision(revision), Box::new(plan.clone()));
    topic.change(TopicChange::Put { revision, plan }).await.map(drop)
}

/// Makes an engine have no topic under a name.
///
/// # Errors
/// What the engine says.
pub(crate) async fn remove_topic(client: &Client, name: &QueueName) -> Result<(), TopicError> {
    match client.delete_topic(name).await {
        Err(OperationError::Refused(TopicRefusal::TopicNotFound(_))) => Ok(()),
        removed => removed,
    }
}

async fn empty(client: &Client, queue: &QueueName) -> Result<(), TopicError> {
    match client.empty_in_slices(queue).await {
        Ok(()) | Err(OperationError::Refused(_)) => Ok(()),
        Err(OperationError::Misuse(misuse)) => Err(misuse.into()),
        Err(OperationError::Unavailable(unavailable)) => Err(unavailable.into()),
    }
}
