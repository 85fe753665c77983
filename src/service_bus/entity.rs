//! The queue that an address names, and how it behaves.

use std::sync::Arc;

use crate::engine::Queue;
use crate::engine::QueueView;
use crate::engine::Topic;
use crate::engine::TopicView;
use crate::id::QueueName;
use crate::limits;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::creation_instant::CreationInstant;
use crate::service_bus::description::Description;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;

/// A queue, or its dead letters.
#[derive(Clone)]
pub(crate) struct Entity {
    pub(crate) queue: Queue,
    pub(crate) is_dead_letters: bool,
    /// Whether these are dead letters that could not be passed on, of which there are none.
    pub(crate) is_transfer: bool,
    pub(crate) options: QueueOptions,
    /// When it was made: another of its name is another entity.
    pub(crate) created_at: CreationInstant,
    /// Its description: what its queue does not know.
    pub(crate) description: Arc<Description>,
    /// The topic, if it is one: its queue is none.
    pub(crate) topic: Option<Topic>,
}

impl Entity {
    pub(crate) fn name(&self) -> &QueueName {
        self.queue.name()
    }

    /// Whether every message has to name its session, and every receiver takes one; a topic leaves that to its subscriptions.
    pub(crate) fn requires_session(&self) -> bool {
        self.topic.is_none() && self.description.requires_session
    }

    /// Refuses what is sent to a subscription.
    pub(crate) fn check_takes_messages(&self) -> Result<(), AmqpRefusal> {
        match self.name().subscription() {
            None => Ok(()),
            Some(_) => {
                let refusal = "nobody sends to a subscription: send to its topic";
                Err(AmqpRefusal::new(condition::NOT_ALLOWED, refusal))
            }
        }
    }

    /// The same by the order that its queue has by now, if that is another; a topic has none.
    pub(crate) async fn with_changed_order(&self) -> Option<Entity> {
        if self.topic.is_some() {
            return None;
        }
        let options = self.queue.options().await.ok()?;
        (options.order != self.options.order).then(|| Entity { options, ..self.clone() })
    }

    /// The largest message a link takes: the largest body, and room for what is said beside it.
    pub(crate) fn message_bytes_max(&self) -> u64 {
        let bytes = self.options.body_bytes_max.saturating_add(limits::PROPERTIES_BYTES_MAX);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Whether its messages have workflows that can be accepted.
    pub(crate) fn has_sessions(&self) -> bool {
        !self.is_dead_letters && self.options.order != Order::None
    }
}

/// A queue or a topic, as it was found by its name.
pub(crate) enum QueueOrTopic {
    Queue(Box<QueueView>),
    Topic(Box<TopicView>),
}

impl QueueOrTopic {
    pub(crate) fn name(&self) -> &str {
        match self {
            QueueOrTopic::Queue(queue) => queue.name.as_str(),
            QueueOrTopic::Topic(topic) => topic.name.as_str(),
        }
    }
}
