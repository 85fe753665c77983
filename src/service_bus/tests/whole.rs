//! What a client sends as one is bounded by its bytes.

use bytes::BufMut;
use bytes::BytesMut;

use crate::amqp::Value;
use crate::amqp::message::encode_data;
use crate::amqp::message::encode_message_annotations;
use crate::clock::Clock;
use crate::limits;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::map;

const BATCH: u32 = 0x8001_3700;

fn batch(messages: usize) -> BytesMut {
    let mut out = BytesMut::new();
    for number in 0..messages {
        encode_data(&mut out, &data(number.to_string().as_bytes()));
    }
    out
}

async fn host_with_queue() -> Host {
    let host = Host::open().await;
    host.queue("q", QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    host
}

#[tokio::test]
async fn a_batch_has_as_many_messages_as_its_bytes_hold() {
    let host = host_with_queue().await;
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    client.transfer(0, BATCH, &batch(10_000)).await;
    let answer = client.another_answer().await;
    assert_eq!((answer.code, answer.state(4)), (DISPOSITION, ACCEPTED), "{answer:?}");
    let queue = host.engine.client().queue("q").unwrap();
    assert_eq!(queue.view().await.unwrap().counts.ready, 10_000);
    let mut bomb = BytesMut::new();
    (0..=limits::AMQP_DATA_SECTIONS_MAX).for_each(|_| bomb.put_slice(&[0, 0x53, 0x75, 0xa0, 0]));
    client.transfer(0, BATCH, &bomb).await;
    let answer = client.another_answer().await;
    assert_eq!((answer.code, answer.state(4)), (DISPOSITION, REJECTED), "the connection goes on");
    client.transfer(0, BATCH, &batch(1)).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
}

#[tokio::test]
async fn as_many_messages_are_scheduled_at_once_as_the_bytes_of_the_request_hold() {
    let host = host_with_queue().await;
    let mut client = host.client().await;
    client.manage("q").await;
    let later = i64::try_from(host.clock.now().as_millis()).unwrap() + 60_000;
    let entry = |number: usize| {
        let mut payload = BytesMut::new();
        let at = [(Value::symbol("x-opt-scheduled-enqueue-time"), Value::Timestamp(later))];
        encode_message_annotations(&mut payload, &at);
        encode_data(&mut payload, b"x");
        map(vec![
            ("message-id", Value::from(number.to_string())),
            ("message", Value::Binary(payload.freeze())),
        ])
    };
    let body = map(vec![("messages", Value::List((0..8_000).map(entry).collect()))]);
    let reply = client.ask("schedule-message", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.description);
    assert_eq!(reply.get("sequence-numbers").as_list().unwrap().len(), 8_000);
    let queue = host.engine.client().queue("q").unwrap();
    assert_eq!(queue.view().await.unwrap().counts.scheduled, 8_000);
}
