//! What becomes of messages whose time to live is over, at a client that looks at its own clock.

use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::MessageProperties;
use crate::amqp::Value;
use crate::amqp::message::MessageHeader;
use crate::amqp::message::encode_data;
use crate::amqp::message::encode_properties;
use crate::clock::Clock;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::MODIFIED;
use crate::service_bus::tests::wire::described;

const LIVES: Duration = Duration::from_secs(10);

/// What a JMS client sends that made its message a while before.
fn perishable(host: &Host, before: Duration) -> Bytes {
    let created =
        i64::try_from(host.clock.now().as_millis()).unwrap() - i64::try_from(before.as_millis()).unwrap();
    let lives_ms = i64::try_from(LIVES.as_millis()).unwrap();
    let properties = MessageProperties {
        message_id: Value::from("m"),
        creation_time: Some(created),
        absolute_expiry_time: Some(created + lives_ms),
        ..MessageProperties::default()
    };
    let mut out = BytesMut::new();
    MessageHeader { ttl_ms: Some(10_000), ..MessageHeader::default() }.encode(&mut out);
    encode_properties(&mut out, &properties);
    encode_data(&mut out, b"x");
    out.freeze()
}

async fn host_with_queue() -> Host {
    let host = Host::open().await;
    host.queue("q", QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    host
}

#[tokio::test]
async fn a_dead_letter_has_no_expiry_at_which_a_client_would_drop_it() {
    let host = host_with_queue().await;
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    let sent = perishable(&host, Duration::ZERO);
    client.transfer(0, 0, &sent).await;
    assert_eq!(client.another_answer().await.code, DISPOSITION);
    client.attach_receiver(1, Source::of("q")).await;
    client.credit(1, 0, 1, false).await;
    let alive = client.another_answer().await.message();
    assert_eq!(alive.properties, crate::amqp::message::Sections::parse(&sent).unwrap().properties);
    assert_eq!(alive.header().unwrap().ttl_ms, Some(10_000));
    host.clock.advance(LIVES);
    client.attach_receiver(2, Source::of("q/$deadletterqueue")).await;
    // The lock that protected it runs out first.
    host.clock.advance(Duration::from_secs(3_600));
    client.credit(2, 0, 1, false).await;
    let dead_letter = client.another_answer().await;
    assert_eq!(dead_letter.body(), "x");
    let dead_letter = dead_letter.message();
    assert_eq!(dead_letter.header().unwrap().ttl_ms, None);
    assert_eq!(dead_letter.properties().unwrap().absolute_expiry_time, None);
    assert_eq!(dead_letter.properties().unwrap().message_id, Value::from("m"));
}

#[tokio::test]
async fn a_message_that_expires_in_the_hands_of_its_client_is_not_set_aside_for_ever() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    client.transfer(0, 0, &perishable(&host, Duration::from_secs(1))).await;
    assert_eq!(client.another_answer().await.code, DISPOSITION);
    client.attach_receiver(1, Source::of("q")).await;
    client.credit(1, 0, 1, false).await;
    assert_eq!(client.another_answer().await.body(), "x");
    // By its sender's clock its time is over, by the engine's it is not yet.
    host.clock.advance(LIVES - Duration::from_millis(500));
    let undeliverable = described(MODIFIED, vec![Value::Boolean(true), Value::Boolean(true)]);
    assert_eq!(client.settle(0, undeliverable).await.state(4), MODIFIED);
    host.clock.advance(Duration::from_millis(500));
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.dead_lettered, counts.stored()), (1, 1), "{counts:?}");
}
