//! Topics and their subscriptions as they are stored, what is asked of them, and sends that were fanned out.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::id::WorkflowId;
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

/// A topic as it is to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TopicPlan {
    /// Its own; another topic under this name has another.
    pub(crate) number: u64,
    pub(crate) created_at: Timestamp,
    /// In order of name.
    pub(crate) subscriptions: Vec<SubscriptionPlan>,
}

/// A subscription as it is to be, with its queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SubscriptionPlan {
    pub(crate) name: SubscriptionName,
    pub(crate) rules: Vec<Rule>,
    pub(crate) options: Box<QueueOptions>,
    /// Whether its handlers pause.
    pub(crate) paused: bool,
}

impl TopicPlan {
    /// The topic under a name, at a revision.
    pub(crate) fn record(&self, name: &QueueName, revision: u64) -> TopicRecord {
        let subscription = |plan: &SubscriptionPlan| SubscriptionRecord {
            name: plan.name.clone(),
            rules: plan.rules.clone(),
        };
        TopicRecord {
            name: name.clone(),
            number: self.number,
            revision,
            created_at: self.created_at,
            subscriptions: self.subscriptions.iter().map(subscription).collect(),
        }
    }
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
    /// Makes it what it is to be, at a revision that the cluster has given.
    Put {
        revision: u64,
        plan: Box<TopicPlan>,
    },
}

/// By what a message was known when it was sent to a topic: it says where that belongs on a cluster, whatever the rules make of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageOrigin {
    pub(crate) workflow_id: Option<WorkflowId>,
    pub(crate) message_id: Option<MessageId>,
}

/// Copies for queues, chosen by the rules of a topic at one of its revisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fanout {
    /// No topic has the revision 0.
    pub(crate) revision: u64,
    pub(crate) copies: Vec<(QueueName, Vec<NewMessage>)>,
    /// Of the messages as they were sent, also of those that nobody wants.
    pub(crate) origins: Vec<MessageOrigin>,
}

impl Fanout {
    pub(crate) fn copy_count(&self) -> usize {
        self.copies.iter().map(|(_, messages)| messages.len()).sum()
    }

    /// The bytes of bodies and headers.
    pub(crate) fn copy_bytes(&self) -> usize {
        self.copies.iter().flat_map(|(_, messages)| messages).map(NewMessage::len).sum()
    }
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
