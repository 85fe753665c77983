//! What is of a session is held as long as the session is.

use std::time::Duration;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::described;
use crate::service_bus::tests::wire::map;

const LOCK: Duration = Duration::from_secs(60);

#[tokio::test]
async fn who_renews_a_message_of_a_session_keeps_the_session() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions { lock: LOCK, ..QueueOptions::default() }).await;
    queue.send(Message::new("0").workflow("s")).await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").session("s")).await;
    client.manage("q").await;
    client.credit(0, 0, 1, false).await;
    let received = client.another_answer().await;
    let annotations = received.message().delivery_annotations().unwrap();
    let token = lookup(&annotations, "x-opt-lock-token").cloned().unwrap();
    for _ in 0..3 {
        host.clock.advance(LOCK / 2);
        let tokens = Value::Array(vec![token.clone()]);
        assert_eq!(client.ask("renew-lock", &map(vec![("lock-tokens", tokens)])).await.status, 200);
    }
    let settled = client.settle(0, described(ACCEPTED, Vec::new())).await;
    assert_eq!(settled.state(4), ACCEPTED);
}

#[tokio::test]
async fn a_deferred_message_of_a_session_can_be_settled_as_long_as_the_session_is_renewed() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions { lock: LOCK, ..QueueOptions::default() }).await;
    let number = queue.send(Message::new("0").workflow("s")).await.unwrap().sequence_number().unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().defer().await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q").session("s")).await;
    client.manage("q").await;
    let session = ("session-id", Value::from("s"));
    let numbers = Value::Array(vec![Value::Long(i64::try_from(number.get()).unwrap())]);
    let fetch =
        vec![("sequence-numbers", numbers), ("receiver-settle-mode", Value::Uint(1)), session.clone()];
    let fetched = client.ask("receive-by-sequence-number", &map(fetch)).await;
    let entry = fetched.get("messages").as_list().unwrap()[0].as_map().unwrap().to_vec();
    let token = lookup(&entry, "lock-token").cloned().unwrap();
    for _ in 0..3 {
        host.clock.advance(LOCK / 2);
        assert_eq!(client.ask("renew-session-lock", &map(vec![session.clone()])).await.status, 200);
    }
    // So many others are held that those are looked for whose locks are over.
    let others = QueueOptions { order: Order::None, ..QueueOptions::default() };
    let others = host.queue("others", others).await;
    let many = u32::try_from(limits::SERVICE_BUS_HOLDS_SWEPT_FROM).unwrap() + 1;
    for half in [many / 2, many - many / 2] {
        others.send_batch((0..half).map(|number| Message::new(number.to_string()))).await.unwrap();
    }
    client.attach_receiver(1, Source::of("others")).await;
    client.credit(1, 0, many, false).await;
    for _ in 0..many {
        client.another_answer().await;
    }
    let complete = vec![
        ("disposition-status", Value::from("completed")),
        ("lock-tokens", Value::Array(vec![token])),
        session,
    ];
    let completed = client.ask("update-disposition", &map(complete)).await;
    assert_eq!(completed.status, 200, "{completed:?}");
    assert_eq!(queue.view().await.unwrap().counts.completed, 1);
}
