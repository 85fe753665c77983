//! Messages that are scheduled, and cancelled, over the management of a topic.

use std::time::Duration;

use crate::amqp::Value;
use crate::clock::Clock;
use crate::engine::Queue;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::map;
use crate::topic::Filter;
use crate::topic::Rule;

/// A topic with a subscription for everything, one for nothing, and one that gets two copies of each.
async fn with_topic(host: &Host) -> ([Queue; 3], Wire) {
    let topic = host.engine.client().create_topic("t").await.unwrap();
    let options = || QueueOptions { order: Order::None, ..QueueOptions::default() };
    let twice = ["one", "two"].map(|name| Rule::new(name, Filter::True).action("SET a = 1"));
    let queues = [
        topic.subscribe("all", options(), [Rule::everything()]).await.unwrap(),
        topic.subscribe("none", options(), []).await.unwrap(),
        topic.subscribe("twice", options(), twice).await.unwrap(),
    ];
    let mut client = host.client().await;
    client.manage("t").await;
    (queues, client)
}

/// Schedules messages for an hour from now; their numbers.
async fn schedule(host: &Host, client: &mut Wire, bodies: &[&str]) -> Vec<i64> {
    let due = host.clock.now() + Duration::from_secs(3_600);
    let due = Value::Timestamp(i64::try_from(due.as_millis()).unwrap());
    let mut annotations = bytes::BytesMut::new();
    crate::amqp::message::encode_message_annotations(
        &mut annotations,
        &[(Value::symbol("x-opt-scheduled-enqueue-time"), due)],
    );
    let entry = |body: &&str| {
        let payload = [&annotations[..], &data(body.as_bytes())].concat();
        map(vec![("message", Value::Binary(payload.into()))])
    };
    let messages = map(vec![("messages", Value::List(bodies.iter().map(entry).collect()))]);
    let reply = client.ask("schedule-message", &messages).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let numbers = reply.get("sequence-numbers").as_list().unwrap();
    numbers.iter().map(|number| i64::try_from(number.as_u64().unwrap()).unwrap()).collect()
}

async fn cancel(client: &mut Wire, numbers: &[i64]) -> i64 {
    let numbers = numbers.iter().map(|number| Value::Long(*number)).collect();
    client
        .ask("cancel-scheduled-message", &map(vec![("sequence-numbers", Value::Array(numbers))]))
        .await
        .status
}

async fn scheduled(queues: &[Queue; 3]) -> Vec<u64> {
    let mut counts = Vec::new();
    for queue in queues {
        counts.push(queue.view().await.unwrap().counts.scheduled);
    }
    counts
}

#[tokio::test]
async fn what_is_cancelled_comes_to_no_subscription_and_all_else_comes_when_it_is_due() {
    let host = Host::open().await;
    let (queues, mut client) = with_topic(&host).await;
    let [first, second, third] = schedule(&host, &mut client, &["1", "2", "3"]).await[..] else { panic!() };
    let fourth = schedule(&host, &mut client, &["4"]).await[0];
    assert!(first < second && second < third && third < fourth, "{first} {second} {third} {fourth}");
    assert_eq!(scheduled(&queues).await, [4, 0, 8]);
    assert_eq!(cancel(&mut client, &[second, fourth]).await, 200);
    assert_eq!(scheduled(&queues).await, [2, 0, 4]);
    assert_eq!(cancel(&mut client, &[second]).await, 404, "it is gone");
    assert_eq!(cancel(&mut client, &[fourth, third]).await, 404, "one of them is gone");
    assert_eq!(scheduled(&queues).await, [1, 0, 2], "the other is cancelled all the same");
    host.clock.advance(Duration::from_secs(3_600));
    let delivery = queues[0].receive(Duration::from_secs(5)).await.unwrap().unwrap();
    assert_eq!(&delivery.message().body[..], b"1");
    assert_eq!(cancel(&mut client, &[first]).await, 404, "it is not for later any more");
}

#[tokio::test]
async fn a_number_of_another_copy_or_of_nothing_cancels_nothing() {
    let host = Host::open().await;
    let (queues, mut client) = with_topic(&host).await;
    let number = schedule(&host, &mut client, &["1"]).await[0];
    for wrong in [0, number + 100, i64::MAX] {
        assert_eq!(cancel(&mut client, &[wrong]).await, 404);
    }
    assert_eq!(scheduled(&queues).await, [1, 0, 2]);
}

#[tokio::test]
async fn a_message_that_no_subscription_wants_has_the_number_zero() {
    let host = Host::open().await;
    let (queues, mut client) = with_topic(&host).await;
    let topic = host.engine.client().topic("t").unwrap();
    for name in ["all", "twice"] {
        topic.set_rules(name, []).await.unwrap();
    }
    assert_eq!(schedule(&host, &mut client, &["1"]).await, [0]);
    assert_eq!(schedule(&host, &mut client, &["1", "2"]).await, [0, 0]);
    assert_eq!(scheduled(&queues).await, [0, 0, 0]);
}

#[tokio::test]
async fn nothing_else_is_asked_of_the_management_of_a_topic() {
    let host = Host::open().await;
    let (_, mut client) = with_topic(&host).await;
    for operation in ["peek-message", "renew-lock", "batch-delete-messages", "enumerate-rules"] {
        assert_eq!(client.ask(operation, &map(Vec::new())).await.status, 501, "{operation}");
    }
}
