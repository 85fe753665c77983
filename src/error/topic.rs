//! Why a change of a topic was refused.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::error::operation::OperationError;
use crate::id::QueueName;
use crate::id::RuleName;
use crate::id::SubscriptionName;

/// Why a change of a topic was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TopicRefusal {
    /// There is no such topic.
    #[error("there is no topic {0}")]
    TopicNotFound(QueueName),
    /// There is a queue of this name.
    #[error("cannot create topic {0}: a queue has this name")]
    NameIsQueue(QueueName),
    /// The topic has no such subscription.
    #[error("topic {0} has no subscription {1}")]
    SubscriptionNotFound(QueueName, SubscriptionName),
    /// There is a subscription of this name with other options or rules.
    #[error("cannot subscribe {1} to topic {0}: it exists with other options or rules")]
    SubscriptionExists(QueueName, SubscriptionName),
    /// The subscription has a rule of this name.
    #[error("cannot add rule {2} to subscription {1} of topic {0}: it has a rule of this name")]
    RuleExists(QueueName, SubscriptionName, RuleName),
    /// The subscription has no rule of this name.
    #[error("subscription {1} of topic {0} has no rule {2}")]
    RuleNotFound(QueueName, SubscriptionName, RuleName),
    /// The topic was changed at the same moment.
    #[error("cannot change topic {0}: it was changed at the same moment; look at it and try again")]
    TopicChanged(QueueName),
    /// There are as many topics as a file may have.
    #[error("cannot create a topic: there are {0} already, more are not allowed")]
    TooManyTopics(usize),
    /// The topic has as many subscriptions as it may have.
    #[error("cannot subscribe to topic {0}: it has {1} subscriptions already, more are not allowed")]
    TooManySubscriptions(QueueName, usize),
    /// Its rules are more, or longer, than one topic may keep.
    #[error(
        "cannot change topic {0}: its rules would be {1} of {2} bytes together, which is more than a topic keeps"
    )]
    TooManyRules(QueueName, usize, usize),
    /// There are as many queues as a file may have; each subscription is one.
    #[error("cannot subscribe: there are {0} queues already, and a subscription is one")]
    TooManyQueues(usize),
    /// The queue of a subscription cannot be given these options.
    #[error("cannot change subscription {0}: {1}")]
    OptionsRefused(QueueName, String),
    /// The disk is nearly full, and what is left of it is kept for receiving, settling and purging.
    #[error(
        "cannot change topic {0}: the disk is nearly full, its last room is kept for draining; free some, or enlarge it"
    )]
    StorageFull(QueueName),
}

/// A change of a topic that was not made.
pub type TopicError = OperationError<TopicRefusal>;

impl From<TopicRefusal> for TopicError {
    fn from(refusal: TopicRefusal) -> TopicError {
        TopicError::Refused(refusal)
    }
}
