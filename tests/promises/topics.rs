//! Topics: every subscription that wants a message gets it, or none does.

use std::time::Duration;

use seriatim::Engine;
use seriatim::Message;
use seriatim::Order;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::Topic;
use seriatim::error::QueueRefusal;
use seriatim::error::SendRefusal;
use seriatim::error::TopicRefusal;
use seriatim::message::PropertyValue;
use seriatim::topic::Correlation;
use seriatim::topic::Filter;
use seriatim::topic::Rule;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;

fn options() -> QueueOptions {
    QueueOptions::default()
}

async fn topic() -> (Fixture, Topic) {
    let fixture = Fixture::new(options()).await;
    let topic = fixture.engine.client().create_topic("orders").await.expect("the topic is new");
    (fixture, topic)
}

async fn subscribe(topic: &Topic, name: &str, filter: Filter) -> Queue {
    let rules = [Rule::new("r", filter)];
    topic.subscribe(name, options(), rules).await.expect("the subscription is new")
}

async fn bodies(queue: &Queue) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.expect("the queue exists") {
        bodies.push(body(&delivery));
        delivery.complete().await.expect("the lock is held");
    }
    bodies
}

async fn accepted(queue: &Queue) -> u64 {
    queue.view().await.expect("the queue exists").counts.accepted
}

#[tokio::test]
async fn every_subscription_that_wants_a_message_gets_it_in_order() {
    let (_fixture, topic) = topic().await;
    let all = subscribe(&topic, "all", Filter::True).await;
    let none = subscribe(&topic, "none", Filter::False).await;
    let large = subscribe(&topic, "large", Filter::sql("amount >= 3")).await;
    let third = Correlation::default().subject("s").property("amount", 3_i64);
    let third = subscribe(&topic, "third", Filter::Correlation(third)).await;
    for amount in 1..6_i64 {
        let message = Message::new(amount.to_string()).workflow("w").subject("s").property("amount", amount);
        let copies = topic.send(message).await.unwrap();
        assert_eq!(copies.len(), [1, 1, 3, 2, 2][usize::try_from(amount).unwrap() - 1], "{copies:?}");
    }
    assert_eq!(bodies(&all).await, ["1", "2", "3", "4", "5"]);
    assert_eq!(bodies(&large).await, ["3", "4", "5"]);
    assert_eq!(bodies(&third).await, ["3"]);
    assert_eq!(bodies(&none).await, [""; 0]);
}

#[tokio::test]
async fn all_subscriptions_get_a_message_or_none_does() {
    let (_fixture, topic) = topic().await;
    let first = subscribe(&topic, "first", Filter::True).await;
    let small = options().messages_max(1);
    let full = topic.subscribe("second", small, [Rule::everything()]).await.unwrap();
    topic.send(Message::new("1").workflow("w")).await.unwrap();
    let refused = topic.send(Message::new("2").workflow("w")).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(SendRefusal::QueueFull { stored: 1 })), "{refused}");
    let pair = [Message::new("2").workflow("w"), Message::new("3").workflow("w")];
    assert!(topic.send_batch(pair).await.is_err());
    assert_eq!((accepted(&first).await, accepted(&full).await), (1, 1));
    bodies(&full).await;
    topic.send(Message::new("4").workflow("w")).await.unwrap();
    assert_eq!(bodies(&first).await, ["1", "4"]);
    assert_eq!(bodies(&full).await, ["4"]);
}

#[tokio::test]
async fn each_rule_with_an_action_makes_a_copy_of_its_own_and_all_others_one() {
    let (_fixture, topic) = topic().await;
    let rules = [
        Rule::new("a", Filter::True),
        Rule::new("b", Filter::sql("amount > 1")).action("SET amount = amount * 2; SET sys.Label = 'twice'"),
        Rule::new("c", Filter::sql("1 = 1")),
        Rule::new("d", Filter::True).action("REMOVE amount"),
    ];
    let queue = topic.subscribe("s", options(), rules).await.unwrap();
    let message = Message::new("x").workflow("w").property("amount", 21_i64);
    assert_eq!(topic.send(message).await.unwrap().len(), 3);
    let mut seen = Vec::new();
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        let headers = &delivery.message().headers;
        let property = |name: &str| headers.properties.get(name).cloned();
        seen.push((property("RuleName"), property("amount"), headers.subject.clone()));
        delivery.complete().await.unwrap();
    }
    let text = |text: &str| Some(PropertyValue::from(text));
    let expected = [
        (None, Some(PropertyValue::Integer(21)), None),
        (text("b"), Some(PropertyValue::Integer(42)), Some("twice".to_owned())),
        (text("d"), None, None),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_subscription_is_a_queue_in_everything_else() {
    let (fixture, topic) = topic().await;
    let ordered = QueueOptions::by_position();
    let queue = topic.subscribe("s", ordered, [Rule::everything()]).await.unwrap();
    topic.send(Message::new("2").workflow("w").position(2)).await.unwrap();
    topic.send(Message::new("1").workflow("w").position(1)).await.unwrap();
    assert_eq!(bodies(&queue).await, ["1", "2"]);
    let client = fixture.engine.client();
    let changed = QueueOptions::by_position().delivery_count_max(2);
    assert!(client.change_queue(queue.name(), changed).await.unwrap());
    assert_eq!(queue.view().await.unwrap().options.order, Order::POSITION);
    client.delete_queue(queue.name()).await.unwrap();
    assert_eq!(topic.view().await.unwrap().expect("the topic is there").subscriptions, []);
    assert_eq!(topic.send(Message::new("3").workflow("w").position(3)).await.unwrap(), []);
}

#[tokio::test]
async fn a_dry_run_of_a_topics_end_takes_nothing_from_its_subscriptions() {
    let (fixture, topic) = topic().await;
    let all = subscribe(&topic, "all", Filter::True).await;
    // More than one slice of a deletion.
    for first in [0, 400] {
        topic.send_batch((first..first + 400).map(|n| Message::new(n.to_string()))).await.unwrap();
    }
    let refused = fixture.engine.client().dry_run().delete_topic("orders").await.unwrap_err();
    assert!(refused.to_string().starts_with("dry_run "), "{refused}");
    assert_eq!(all.view().await.unwrap().counts.stored(), 800);
}

#[tokio::test]
async fn each_subscription_has_an_order_of_its_own() {
    let (_fixture, topic) = topic().await;
    let all = || [Rule::everything()];
    let placed = topic.subscribe("placed", QueueOptions::by_position(), all()).await.unwrap();
    let arrived = topic.subscribe("arrived", options(), all()).await.unwrap();
    for position in [3, 1, 2] {
        topic.send(Message::new(position.to_string()).workflow("w").position(position)).await.unwrap();
    }
    assert_eq!(bodies(&placed).await, ["1", "2", "3"]);
    assert_eq!(bodies(&arrived).await, ["3", "1", "2"]);
    let refused = topic.send(Message::new("4").workflow("w")).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(SendRefusal::PlaceMismatch { .. })), "{refused}");
    assert_eq!(accepted(&arrived).await, 3, "none got it");
}

#[tokio::test]
async fn rules_that_change_apply_to_the_next_message() {
    let (_fixture, topic) = topic().await;
    let queue = subscribe(&topic, "s", Filter::False).await;
    topic.send(Message::new("1")).await.unwrap();
    topic.add_rule("s", Rule::everything()).await.unwrap();
    topic.send(Message::new("2")).await.unwrap();
    topic.remove_rule("s", "$Default").await.unwrap();
    topic.send(Message::new("3")).await.unwrap();
    assert!(topic.set_rules("s", [Rule::new("new", Filter::sql("sys.Subject LIKE 'y%'"))]).await.unwrap());
    topic.send(Message::new("4").subject("yes")).await.unwrap();
    assert_eq!(bodies(&queue).await, ["2", "4"]);
    let names: Vec<_> = topic.rules("s").await.unwrap().iter().map(|rule| rule.name().to_owned()).collect();
    assert_eq!(names, ["new"]);
}

#[tokio::test]
async fn senders_that_race_with_a_change_of_rules_are_judged_by_one_of_both() {
    let (_fixture, topic) = topic().await;
    let left = subscribe(&topic, "left", Filter::True).await;
    let right = subscribe(&topic, "right", Filter::False).await;
    let changing = topic.clone();
    let changes = async {
        for at in 0..40_u64 {
            let rule = if at % 2 == 0 { Filter::False } else { Filter::True };
            changing.set_rules("left", [Rule::new("r", rule)]).await.expect("the subscription is there");
        }
    };
    let sends = async {
        for at in 0..200_u64 {
            topic.send(Message::new(at.to_string())).await.expect("the topic is there");
        }
    };
    tokio::join!(changes, sends);
    assert!(accepted(&left).await >= 100 && accepted(&left).await <= 200);
    assert_eq!(accepted(&right).await, 0);
}

#[tokio::test]
async fn a_topic_and_a_queue_never_have_the_same_name() {
    let (fixture, topic) = topic().await;
    let client = fixture.engine.client();
    let refused = client.create_queue("orders", options()).await.expect_err("a topic has the name");
    assert!(matches!(refused.refusal(), Some(QueueRefusal::NameIsTopic(_))), "{refused}");
    let refused = client.create_topic("q").await.expect_err("a queue has the name");
    assert!(matches!(refused.refusal(), Some(TopicRefusal::NameIsQueue(_))), "{refused}");
    let refused =
        client.create_queue("orders/subscriptions/s", options()).await.expect_err("nobody has subscribed");
    assert!(matches!(refused.refusal(), Some(QueueRefusal::NotSubscribed(_))), "{refused}");
    assert!(client.topic("orders/subscriptions/s").is_err());
    let wrong = topic.subscribe("s", options(), [Rule::new("r", Filter::sql("a = "))]).await.err().unwrap();
    assert!(
        wrong.to_string().contains("of rule r: a value or a condition is missing, at character 5"),
        "{wrong}"
    );
    let other = subscribe(&topic, "s", Filter::True).await;
    assert!(topic.subscribe("s", options(), [Rule::new("r", Filter::True)]).await.is_ok(), "the same again");
    let refused = topic.subscribe("s", options(), []).await.err().unwrap();
    assert!(matches!(refused.refusal(), Some(TopicRefusal::SubscriptionExists(..))), "{refused}");
    topic.send(Message::new("1")).await.unwrap();
    client.delete_topic("orders").await.unwrap();
    assert!(other.view().await.is_err(), "its queue is gone with it");
    let refused = topic.send(Message::new("1")).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(SendRefusal::TopicNotFound(_))), "{refused}");
    client.create_queue("orders", options()).await.unwrap();
}

#[tokio::test]
async fn topics_are_on_disk_and_in_a_backup_and_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    let engine = Engine::open(&path).await.unwrap();
    let topic = engine.client().create_topic("orders").await.unwrap();
    subscribe(&topic, "large", Filter::sql("amount > 1")).await;
    topic.send(Message::new("1").property("amount", 2_i64)).await.unwrap();
    let view = topic.view().await.unwrap();
    engine.client().backup(&copy).await.unwrap();
    engine.close().await;
    for path in [path, copy] {
        let found = seriatim::store::verify(&path, |_| {}).unwrap();
        assert!(found.is_sound(), "{:?}", found.damages);
        let engine = Engine::open(&path).await.unwrap();
        let topic = engine.client().topic("orders").unwrap();
        assert_eq!(topic.view().await.unwrap(), view);
        topic.send(Message::new("2").property("amount", 2_i64)).await.unwrap();
        topic.send(Message::new("3").property("amount", 1_i64)).await.unwrap();
        assert_eq!(bodies(&topic.subscription("large").unwrap()).await, ["1", "2"]);
        engine.close().await;
    }
}

#[tokio::test]
async fn a_failure_of_a_topic_is_passed_on_as_any_other() {
    async fn subscribe_to_none(fixture: &Fixture) -> Result<(), seriatim::Error> {
        let topic = fixture.engine.client().topic("none")?;
        topic.subscribe("all", options(), []).await?;
        Ok(())
    }
    let failed = subscribe_to_none(&Fixture::new(options()).await).await.unwrap_err();
    assert!(
        matches!(&failed, seriatim::Error::Topic(topic) if matches!(topic.refusal(), Some(TopicRefusal::TopicNotFound(_)))),
        "{failed:?}"
    );
}

#[tokio::test]
async fn of_rules_that_are_added_at_once_none_is_lost() {
    let (_fixture, topic) = topic().await;
    subscribe(&topic, "s", Filter::True).await;
    let mut adding = tokio::task::JoinSet::new();
    for number in 0..4 {
        let topic = topic.clone();
        adding.spawn(async move { topic.add_rule("s", Rule::new(format!("r{number}"), Filter::True)).await });
    }
    for added in adding.join_all().await {
        added.unwrap();
    }
    assert_eq!(topic.rules("s").await.unwrap().len(), 5, "each was changed as the others had left it");
}
