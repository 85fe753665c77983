//! What is asked of a topic, by the command that asks it.

use crate::cluster::definition_change::DefinitionChange;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::TopicChange;
use crate::engine::elsewhere::verbs;
use crate::id::QueueName;
use crate::id::SubscriptionName;

/// What is asked of a topic.
pub(crate) enum TopicAsk {
    Topic(TopicChange),
    Subscription { queue: QueueName, name: SubscriptionName, change: DefinitionChange },
}

impl TopicAsk {
    /// What a command asks of which topic, if it is about one.
    pub(crate) fn of(command: &Command) -> Option<(QueueName, TopicAsk)> {
        match command.asked() {
            Command::ChangeTopic(verbs::ChangeTopic { name, change }) => {
                Some((name.clone(), TopicAsk::Topic(change.clone())))
            }
            _ => {
                let (queue, change) = DefinitionChange::of(command)?;
                let (topic, name) = queue.subscription()?;
                Some((topic, TopicAsk::Subscription { queue: queue.clone(), name, change }))
            }
        }
    }

    /// Whether a queue is to be gone that another could be taken for later.
    pub(crate) fn ends_something(&self) -> bool {
        match self {
            TopicAsk::Topic(change) => matches!(change, TopicChange::Delete),
            TopicAsk::Subscription { change, .. } => matches!(change, DefinitionChange::Delete),
        }
    }

    pub(crate) fn answer(&self, is_changed: bool) -> Reply {
        match self {
            TopicAsk::Topic(_) => Reply::Topic(Ok(is_changed)),
            TopicAsk::Subscription { .. } => Reply::Queue(Ok(is_changed)),
        }
    }
}
