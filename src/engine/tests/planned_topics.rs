//! A topic that is put as it is planned is that, whatever it was, and nothing else is changed.

use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::engine::Topic;
use crate::engine::rules::topic_record::SubscriptionPlan;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::topic_record::TopicPlan;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::id::SubscriptionName;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::topic::Rule;

fn plan(number: u64, names: &[&str], options: QueueOptions) -> TopicPlan {
    let subscription = |name: &&str| SubscriptionPlan {
        name: SubscriptionName::new(name).unwrap(),
        rules: vec![Rule::everything()],
        options: Box::new(options.clone()),
        paused: true,
    };
    let subscriptions = names.iter().map(subscription).collect();
    TopicPlan { number, created_at: Timestamp::from_millis(77), subscriptions }
}

async fn put(topic: &Topic, revision: u64, plan: TopicPlan) -> Result<bool, TopicError> {
    topic.change(TopicChange::Put { revision, plan: Box::new(plan) }).await
}

/// How many messages a subscription has; `None` if there is no such queue.
async fn stored(topic: &Topic, name: &str) -> Option<u64> {
    match topic.subscription(name).unwrap().view().await {
        Ok(view) => Some(view.counts.stored()),
        Err(QueueError::Refused(QueueRefusal::QueueNotFound(_))) => None,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_topic_is_what_it_is_planned_to_be_and_what_stays_keeps_its_messages() {
    let engine = Engine::in_memory().open().await.unwrap();
    let topic = engine.client().topic("t").unwrap();
    let options = QueueOptions::default();
    assert!(put(&topic, 9, plan(5, &["a", "b"], options.clone())).await.unwrap());
    assert!(!put(&topic, 9, plan(5, &["a", "b"], options.clone())).await.unwrap(), "it is that already");
    let view = topic.view().await.unwrap().unwrap();
    assert_eq!((view.subscriptions.len(), view.created_at), (2, Timestamp::from_millis(77)));
    assert_eq!(topic.send(Message::new("x").workflow("w")).await.unwrap().len(), 2);
    let longer = options.clone().messages_max(7);
    assert!(put(&topic, 12, plan(5, &["b", "c"], longer.clone())).await.unwrap());
    assert_eq!((stored(&topic, "a").await, stored(&topic, "b").await), (None, Some(1)));
    let view = topic.subscription("b").unwrap().view().await.unwrap();
    assert!(view.paused && view.options == longer, "{view:?}");
    assert_eq!(topic.send(Message::new("y").workflow("w")).await.unwrap().len(), 2);
    assert_eq!((stored(&topic, "b").await, stored(&topic, "c").await), (Some(2), Some(1)));
    // Another topic of this name, whose subscription has the same name.
    assert!(put(&topic, 20, plan(19, &["b"], longer)).await.unwrap());
    assert_eq!((stored(&topic, "b").await, stored(&topic, "c").await), (Some(0), None));
}

#[tokio::test]
async fn a_plan_that_does_not_fit_is_refused_and_changes_nothing() {
    let engine = Engine::in_memory().open().await.unwrap();
    engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let queue = engine.client().topic("q").unwrap();
    let refused = put(&queue, 9, plan(5, &["a"], QueueOptions::default())).await.unwrap_err();
    assert!(matches!(refused, TopicError::Refused(TopicRefusal::NameIsQueue(_))), "{refused:?}");
    let topic = engine.client().topic("t").unwrap();
    put(&topic, 9, plan(5, &["a", "b"], QueueOptions::default())).await.unwrap();
    let before = topic.view().await.unwrap();
    let mut other = plan(5, &["b", "c"], QueueOptions::default());
    *other.subscriptions[0].options = QueueOptions::by_position();
    let refused = put(&topic, 10, other).await.unwrap_err();
    assert!(matches!(refused, TopicError::Refused(TopicRefusal::OptionsRefused(..))), "{refused:?}");
    assert_eq!(topic.view().await.unwrap(), before);
    assert_eq!(stored(&topic, "a").await, Some(0));
}

#[tokio::test]
async fn a_plan_of_before_changes_nothing() {
    let engine = Engine::in_memory().open().await.unwrap();
    let topic = engine.client().topic("t").unwrap();
    put(&topic, 9, plan(5, &["a", "b"], QueueOptions::default())).await.unwrap();
    assert_eq!(topic.send(Message::new("x").workflow("w")).await.unwrap().len(), 2);
    assert!(!put(&topic, 8, plan(5, &["a"], QueueOptions::default())).await.unwrap());
    assert!(!put(&topic, 4, plan(3, &["a", "b"], QueueOptions::default())).await.unwrap());
    assert_eq!((stored(&topic, "a").await, stored(&topic, "b").await), (Some(1), Some(1)));
}
