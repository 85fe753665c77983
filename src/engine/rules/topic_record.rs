//! Topics and their subscriptions as they are stored, what is asked of them, and sends that were fanned out.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::limits;
use crate::message::NewMessage;
use crate::queue::QueueOptions;
use crate::topic::Rule;

/// A topic. Its subscriptions are queues beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TopicRecord {
    pub(crate) name: QueueName,
    /// Its own; another topic under this name has another.
    pub(crate) number: u64,
    /// Another with each change; never given twice.
    pub(crate) revision: u64,
    pub(crate) created_at: Timestamp,
    /// In order of name.
    pub(crate) subscriptions: Vec<SubscriptionRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SubscriptionRecord {
    pub(crate) name: SubscriptionName,
    /// In the order in which they were added.
    pub(crate) rules: Vec<Rule>,
}

/// What is asked of one topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum TopicChange {
    Create,
    /// With its subscriptions and everything in them.
    Delete,
    Subscribe {
        name: SubscriptionName,
        options: Box<QueueOptions>,
        rules: Vec<Rule>,
    },
    /// Gives a subscription other rules, if nobody has changed the topic since this revision.
    SetRules {
        name: SubscriptionName,
        revision: u64,
        rules: Vec<Rule>,
    },
}

/// Copies for queues, chosen by the rules of a topic at one of its revisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fanout {
    /// No topic has the revision 0.
    pub(crate) revision: u64,
    pub(crate) copies: Vec<(QueueName, Vec<NewMessage>)>,
}

impl TopicRecord {
    pub(crate) fn subscription(&self, name: &SubscriptionName) -> Option<&SubscriptionRecord> {
        let at = self.subscriptions.binary_search_by(|subscription| subscription.name.cmp(name));
        at.ok().map(|at| &self.subscriptions[at])
    }

    pub(crate) fn bytes(&self) -> usize {
        let rules = self.subscriptions.iter().flat_map(|subscription| &subscription.rules);
        rules.map(Rule::len).sum::<usize>() + self.subscriptions.len() * limits::SUBSCRIPTION_NAME_BYTES_MAX
    }
}
