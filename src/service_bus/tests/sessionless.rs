//! What comes without a session to where every message has to name one.

use std::time::Duration;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::engine::Queue;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::administering::entry;
use crate::service_bus::tests::administering::put;
use crate::service_bus::tests::administering::queue;
use crate::service_bus::tests::bare::payload;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::ReceivedFrame;
use crate::service_bus::tests::wire::Wire;

const FILTER: &str = "com.microsoft:session-filter";

const SESSIONS: &str = "<RequiresSession>true</RequiresSession>";

/// Asks for the next session of an entity.
async fn next_session(client: &mut Wire, handle: u32, entity: &str) -> ReceivedFrame {
    client.attach_receiver(handle, Source::of(entity).filter(FILTER, Value::Null)).await
}

/// The session that a receiver was given.
fn session(attached: &ReceivedFrame) -> Option<String> {
    let Value::Described(source) = attached.field(5) else { return None };
    let filter = source.1.as_list()?.get(7)?.as_map()?;
    lookup(filter, FILTER)?.undescribed().as_str().map(str::to_owned)
}

/// Bodies and reasons of dead letters.
async fn dead_letters(host: &Host, entity: &str, count: usize) -> Vec<(String, String)> {
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of(&format!("{entity}/$deadletterqueue"))).await;
    let mut read = Vec::new();
    for dead_letter in client.drained(0, 100).await {
        let said = dead_letter.message().application_properties().unwrap();
        let reason = lookup(&said, "DeadLetterReason").and_then(Value::as_str).unwrap_or_default();
        read.push((dead_letter.body(), reason.to_owned()));
    }
    assert_eq!(read.len(), count, "{read:?}");
    read
}

fn null(body: &str) -> (String, String) {
    (body.to_owned(), "Session ID is null.".to_owned())
}

#[tokio::test]
async fn what_comes_by_a_topic_without_a_session_is_a_dead_letter_and_the_next_session_has_a_name() {
    let host = Host::open().await;
    assert_eq!(put(&host, "/t", &entry("TopicDescription", "")).await.status, 201);
    let subscription = entry("SubscriptionDescription", SESSIONS);
    assert_eq!(put(&host, "/t/Subscriptions/s", &subscription).await.status, 201);
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("t")]).await;
    for (body, of) in [("lost", None), ("found", Some("one"))] {
        client.transfer(0, 0, &payload(body, of)).await;
        assert_eq!(client.another_answer().await.state(4), ACCEPTED);
    }
    let attached = next_session(&mut client, 1, "t/subscriptions/s").await;
    assert_eq!(session(&attached).as_deref(), Some("one"), "{attached:?}");
    client.credit(1, 0, 10, false).await;
    assert_eq!(client.another_answer().await.body(), "found");
    assert_eq!(dead_letters(&host, "t/subscriptions/s", 1).await, [null("lost")]);
}

async fn queue_with_sessions(host: &Host) -> Queue {
    assert_eq!(put(host, "/q", &queue(SESSIONS)).await.status, 201);
    host.engine.client().queue("q").unwrap()
}

#[tokio::test]
async fn what_comes_while_somebody_waits_for_a_session_is_a_dead_letter_and_the_wait_goes_on() {
    let host = Host::open().await;
    let queue = queue_with_sessions(&host).await;
    let mut client = host.client().await;
    client.ask_for_receiver(0, Source::of("q").filter(FILTER, Value::Null)).await;
    queue.send(Message::new("lost")).await.unwrap();
    queue.send(Message::new("found").workflow("one")).await.unwrap();
    let attached = client.another_answer().await;
    assert_eq!(session(&attached).as_deref(), Some("one"), "{attached:?}");
    assert_eq!(dead_letters(&host, "q", 1).await, [null("lost")]);
}

#[tokio::test]
async fn one_request_for_a_session_passes_no_more_than_some_messages_without_one() {
    let host = Host::open().await;
    let queue = queue_with_sessions(&host).await;
    let lost = (0..=limits::SERVICE_BUS_SESSIONLESS_PASSED_MAX).map(|_| Message::new("lost"));
    let sent = lost.chain([Message::new("found").workflow("one")]).collect::<Vec<_>>();
    queue.send_batch(sent).await.unwrap();
    let mut client = host.client().await;
    let attached = next_session(&mut client, 0, "q").await;
    assert_eq!(client.refusal(&attached).await.0, "com.microsoft:timeout");
    let dead = queue.view().await.unwrap().counts.dead_lettered;
    assert_eq!(usize::try_from(dead).unwrap(), limits::SERVICE_BUS_SESSIONLESS_PASSED_MAX);
    let attached = next_session(&mut client, 1, "q").await;
    assert_eq!(session(&attached).as_deref(), Some("one"), "{attached:?}");
}

#[tokio::test]
async fn a_message_without_a_session_is_received_as_a_session_where_none_is_required() {
    let host = Host::open().await;
    let queue = host.queue("q", QueueOptions { order: Order::Arrival, ..QueueOptions::default() }).await;
    queue.send(Message::new("alone")).await.unwrap();
    let mut client = host.client().await;
    assert_eq!(next_session(&mut client, 0, "q").await.code, ATTACH);
    client.credit(0, 0, 1, false).await;
    assert_eq!(client.another_answer().await.body(), "alone");
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
}
