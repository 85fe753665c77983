//! Idempotency keys for sends to a topic: answered as they were, and nothing is stored twice.

use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Topic;
use seriatim::error::SendRefusal;
use seriatim::limits;
use seriatim::topic::Filter;
use seriatim::topic::Rule;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::key;
use crate::promises::fixture::millis;
use crate::promises::fixture::pair;
use crate::promises::fixture::refusal;

/// A topic with two subscriptions that want everything.
async fn topic(engine: &Engine) -> Topic {
    let topic = engine.client().create_topic("orders").await.expect("the topic is new");
    for name in ["audit", "billing"] {
        topic
            .subscribe(name, QueueOptions::default(), [Rule::everything()])
            .await
            .expect("the subscription is new");
    }
    topic
}

/// How many messages each subscription has ever accepted.
async fn accepted(topic: &Topic) -> Vec<u64> {
    let mut counts = Vec::new();
    for subscription in
        topic.view().await.expect("the engine is open").expect("the topic exists").subscriptions
    {
        let queue = topic.subscription(&subscription.name).expect("a good name");
        counts.push(queue.view().await.expect("the queue exists").counts.accepted);
    }
    counts
}

#[tokio::test]
async fn g7_a_send_to_a_topic_is_answered_as_it_was_and_stores_nothing() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let topic = topic(&fixture.engine).await;
    let first = topic.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    let queues: Vec<&str> = first.iter().map(|(queue, _)| queue.as_str()).collect();
    let (audit, billing) = ("orders/subscriptions/audit", "orders/subscriptions/billing");
    assert_eq!(queues, [audit, audit, billing, billing]);
    assert_eq!(topic.send_batch_once(key("k", "pair"), pair()).await.unwrap(), first);
    assert_eq!(accepted(&topic).await, [2, 2]);
    let another = topic.send_batch_once(key("l", "pair"), pair()).await.unwrap();
    assert_ne!(another, first, "another key is another request");
    assert_eq!(accepted(&topic).await, [4, 4]);
}

#[tokio::test]
async fn g7_a_send_to_a_topic_is_answered_as_it_was_whatever_the_topic_has_become() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let topic = topic(&fixture.engine).await;
    let first = topic.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    topic.set_rules("billing", [Rule::new("none", Filter::False)]).await.unwrap();
    topic.subscribe("late", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    fixture.engine.client().delete_queue("orders/subscriptions/audit").await.unwrap();
    assert_eq!(topic.send_batch_once(key("k", "pair"), pair()).await.unwrap(), first);
    assert_eq!(accepted(&topic).await, [2, 0], "billing has what it had, and the new one nothing");
    let long = format!("SET a = '{}'{}", "x".repeat(2_000), "; SET a = a + a".repeat(6));
    topic.add_rule("late", Rule::new("long", Filter::True).action(long)).await.unwrap();
    assert!(topic.send_batch_once(key("l", "pair"), pair()).await.is_err(), "it cannot be sent any more");
    assert_eq!(topic.send_batch_once(key("k", "pair"), pair()).await.unwrap(), first);
}

#[tokio::test]
async fn g7_a_send_to_a_topic_that_nobody_wanted_is_answered_so_again() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let topic = fixture.engine.client().create_topic("orders").await.unwrap();
    assert_eq!(topic.send_batch_once(key("k", "pair"), pair()).await.unwrap(), []);
    topic.subscribe("late", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    assert_eq!(topic.send_batch_once(key("k", "pair"), pair()).await.unwrap(), []);
    assert_eq!(accepted(&topic).await, [0]);
}

#[tokio::test]
async fn g7_a_send_to_a_topic_is_answered_as_it_was_after_a_restart_and_a_backup() {
    let fixture = FileFixture::new();
    let (engine, _) = fixture.open().await;
    let first = topic(&engine).await.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    let copy = fixture.path().with_file_name("copy.redb");
    engine.client().backup(&copy).await.unwrap();
    engine.close().await;
    for path in [fixture.path(), copy] {
        let found = seriatim::store::verify(&path, |_| {}).unwrap();
        assert!(found.is_sound(), "{:?}", found.damages);
        let engine = Engine::builder(&path).clock(fixture.clock.clone()).open().await.unwrap();
        let topic = engine.client().topic("orders").unwrap();
        assert_eq!(topic.send_batch_once(key("k", "pair"), pair()).await.unwrap(), first);
        assert_eq!(accepted(&topic).await, [2, 2]);
        engine.close().await;
    }
}

#[tokio::test]
async fn g7_a_key_of_a_topic_can_be_used_anew_when_its_window_is_over_and_not_before() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let topic = topic(&fixture.engine).await;
    topic.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    fixture.clock.advance(limits::IDEMPOTENCY_WINDOW - millis(1));
    topic.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    assert_eq!(accepted(&topic).await, [2, 2], "asking again does not prolong it");
    fixture.clock.advance(millis(1));
    let anew = topic.send_batch_once(key("k", "other"), pair()).await.unwrap();
    assert_eq!(accepted(&topic).await, [4, 4]);
    fixture.clock.advance(limits::IDEMPOTENCY_WINDOW - millis(1));
    assert_eq!(topic.send_batch_once(key("k", "other"), pair()).await.unwrap(), anew);
}

#[tokio::test]
async fn g7_another_request_to_a_topic_under_a_used_key_is_refused_and_stores_nothing() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let topic = topic(&fixture.engine).await;
    topic.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    let answer = topic.send_batch_once(key("k", "other"), [Message::new("c")]).await;
    assert_eq!(refusal(answer), SendRefusal::KeyReused("k".to_owned()));
    assert_eq!(accepted(&topic).await, [2, 2]);
}

#[tokio::test]
async fn g7_a_refusal_of_a_send_to_a_topic_is_not_kept_so_that_its_sender_may_try_again() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let topic = topic(&fixture.engine).await;
    let small = QueueOptions::default().messages_max(2);
    let full = topic.subscribe("small", small, [Rule::everything()]).await.unwrap();
    topic.send_batch(pair()).await.unwrap();
    let send = || topic.send_batch_once(key("k", "pair"), pair());
    assert_eq!(refusal(send().await), SendRefusal::QueueFull { stored: 2 });
    assert_eq!(accepted(&topic).await, [2, 2, 2]);
    full.purge().await.unwrap();
    assert_eq!(send().await.unwrap().len(), 6);
}

#[tokio::test]
async fn g7_a_deleted_topic_forgets_its_keys_and_keys_belong_to_their_topic() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let client = fixture.engine.client();
    topic(&fixture.engine).await.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    let other = client.create_topic("other").await.unwrap();
    other.subscribe("all", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    other.send_batch_once(key("k", "other"), pair()).await.unwrap();
    fixture.queue.send_batch_once(key("k", "queue"), pair()).await.unwrap();
    client.delete_topic("orders").await.unwrap();
    let anew = topic(&fixture.engine).await;
    anew.send_batch_once(key("k", "anew"), pair()).await.unwrap();
    assert_eq!(accepted(&anew).await, [2, 2]);
    fixture.clock.advance(limits::IDEMPOTENCY_WINDOW);
    anew.send_batch_once(key("k", "later"), pair()).await.unwrap();
    assert_eq!((accepted(&anew).await, accepted(&other).await), (vec![4, 4], vec![2]));
}
