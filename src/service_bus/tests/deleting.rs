//! Messages that are deleted many at a time.

use std::time::Duration;

use crate::amqp::Value;
use crate::clock::Clock;
use crate::engine::Queue;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::map;

fn unordered() -> QueueOptions {
    QueueOptions { order: Order::None, ..QueueOptions::default() }
}

async fn send(queue: &Queue, bodies: impl IntoIterator<Item = usize>) {
    for body in bodies {
        queue.send(Message::new(body.to_string())).await.unwrap();
    }
}

/// Asks for up to `max` messages accepted before an instant to be deleted; how many were.
async fn delete(client: &mut Wire, max: i32, before_ms: u64) -> i32 {
    let before = Value::Timestamp(i64::try_from(before_ms).unwrap());
    let body = map(vec![("message-count", Value::Int(max)), ("enqueued-time-utc", before)]);
    let reply = client.ask("batch-delete-messages", &body).await;
    match reply.status {
        204 => 0,
        200 => match reply.get("message-count") {
            Value::Int(count) => *count,
            other => panic!("{other:?}"),
        },
        _ => panic!("{reply:?}"),
    }
}

/// The first message that is left.
async fn first(queue: &Queue) -> String {
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().expect("one is left");
    let body = String::from_utf8(delivery.message().body.to_vec()).unwrap();
    delivery.release().await.unwrap();
    body
}

#[tokio::test]
async fn the_first_messages_before_an_instant_are_deleted_and_no_others() {
    let host = Host::open().await;
    let queue = host.queue("q", unordered()).await;
    send(&queue, 0..5).await;
    host.clock.advance(Duration::from_secs(10));
    let between = host.clock.now().as_millis();
    send(&queue, 5..8).await;
    host.clock.advance(Duration::from_secs(1));
    let mut client = host.client().await;
    client.manage("q").await;
    assert_eq!(delete(&mut client, 2, between).await, 2);
    assert_eq!(first(&queue).await, "2");
    assert_eq!(delete(&mut client, 100, between).await, 3, "those that came later stay");
    assert_eq!(first(&queue).await, "5");
    assert_eq!(delete(&mut client, 100, between).await, 0);
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.ready, counts.locked), (3, 0), "{counts:?}");
    let untouched = queue.peek(crate::id::SequenceNumber::new(0), 1).await.unwrap();
    assert!(untouched[0].attempts.is_empty(), "it was given back uncounted: {untouched:?}");
}

#[tokio::test]
async fn what_is_held_set_aside_or_for_later_is_not_deleted() {
    let host = Host::open().await;
    let queue = host.queue("q", unordered()).await;
    send(&queue, 0..3).await;
    let later = host.clock.now() + Duration::from_secs(3_600);
    queue.send(Message::new("later").schedule_at(later)).await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().defer().await.unwrap();
    let held = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let mut client = host.client().await;
    client.manage("q").await;
    assert_eq!(delete(&mut client, 100, u64::from(u32::MAX) * 1_000).await, 1);
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.by_consumer, counts.locked, counts.scheduled, counts.stored()), (1, 1, 1, 3));
    drop(held);
}

#[tokio::test]
async fn more_than_one_commit_takes_are_deleted() {
    let host = Host::open().await;
    let queue = host.queue("q", unordered()).await;
    for _ in 0..2 {
        queue.send_batch((0..800).map(|body| Message::new(body.to_string()))).await.unwrap();
    }
    let mut client = host.client().await;
    client.manage("q").await;
    assert_eq!(delete(&mut client, 1_500, u64::from(u32::MAX) * 1_000).await, 1_500);
    assert_eq!(queue.view().await.unwrap().counts.stored(), 100);
}

#[tokio::test]
async fn a_session_deletes_its_own_and_dead_letters_are_deleted_too() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions::default()).await;
    for session in ["mine", "yours", "mine", "mine"] {
        queue.send(Message::new("x").workflow(session)).await.unwrap();
    }
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").session("mine")).await;
    client.manage("q").await;
    let body = map(vec![("message-count", Value::Int(10)), ("session-id", Value::from("mine"))]);
    let reply = client.ask("batch-delete-messages", &body).await;
    assert_eq!((reply.status, reply.get("message-count")), (200, &Value::Int(3)));
    let of_another = map(vec![("message-count", Value::Int(10)), ("session-id", Value::from("yours"))]);
    assert_eq!(client.ask("batch-delete-messages", &of_another).await.status, 410);

    let mut yours = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    yours.dead_letter("wrong", "").await.unwrap();
    let mut client = host.client().await;
    client.manage("q/$deadletterqueue").await;
    assert_eq!(delete(&mut client, 10, 1).await, 0, "none is so old");
    assert_eq!(delete(&mut client, 10, u64::from(u32::MAX) * 1_000).await, 1);
    assert_eq!(queue.view().await.unwrap().counts.stored(), 0);
}

#[tokio::test]
async fn an_old_dead_letter_is_deleted_although_a_young_one_comes_before_it() {
    let host = Host::open().await;
    let queue = host.queue("q", unordered()).await;
    send(&queue, [0]).await;
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("b", "").await.unwrap();
    host.clock.advance(Duration::from_secs(10));
    let between = host.clock.now().as_millis();
    send(&queue, [1]).await;
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("a", "").await.unwrap();
    let mut client = host.client().await;
    client.manage("q/$deadletterqueue").await;
    assert_eq!(delete(&mut client, 10, between).await, 1);
    let left = queue.receive_dead_letters(10, Duration::ZERO).await.unwrap();
    let left: Vec<_> = left
        .iter()
        .map(|delivery| (&delivery.message().body[..], delivery.message().delivery_count))
        .collect();
    assert_eq!(left, [(&b"1"[..], 2)], "the young one went back uncounted");
}

#[tokio::test]
async fn a_session_with_more_young_messages_than_its_holder_may_have_out_is_deleted_from() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions { order: Order::POSITION, ..QueueOptions::default() }).await;
    // Sent after it, and before it in the session.
    let last = limits::ACCEPTED_AHEAD_MAX as u64 + 1;
    queue.send(Message::new("old").workflow("mine").position(last)).await.unwrap();
    host.clock.advance(Duration::from_secs(10));
    let between = host.clock.now().as_millis();
    for position in 1..last {
        queue.send(Message::new("young").workflow("mine").position(position)).await.unwrap();
    }
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").session("mine")).await;
    client.manage("q").await;
    let before = Value::Timestamp(i64::try_from(between).unwrap());
    let body = map(vec![
        ("message-count", Value::Int(10)),
        ("enqueued-time-utc", before),
        ("session-id", Value::from("mine")),
    ]);
    assert_eq!(client.ask("batch-delete-messages", &body).await.status, 204, "the old one is too far behind");
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.stored(), counts.locked), (last, 0), "{counts:?}");
}

#[tokio::test]
async fn how_many_are_to_be_deleted_is_said() {
    let host = Host::open().await;
    host.queue("q", unordered()).await;
    let mut client = host.client().await;
    client.manage("q").await;
    for wrong in [Value::Null, Value::Int(0), Value::Int(4_001), Value::from("all")] {
        let refused = client.ask("batch-delete-messages", &map(vec![("message-count", wrong)])).await;
        assert!(refused.status == 400 && refused.description.contains("message-count"), "{refused:?}");
    }
    let wrong = map(vec![("message-count", Value::Int(1)), ("enqueued-time-utc", Value::from("now"))]);
    assert_eq!(client.ask("batch-delete-messages", &wrong).await.status, 400);
}
