//! There are no transactions: what names one is refused, and nothing else.

use std::time::Duration;

use bytes::Bytes;

use crate::amqp::Value;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::DETACH;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::Source;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::described;

const UNKNOWN: &str = "amqp:transaction:unknown-id";

/// A state that holds only if a transaction does.
fn transactional(outcome: Value) -> Value {
    described(0x34, vec![Value::Binary(Bytes::from_static(b"never declared")), outcome])
}

fn accepted() -> Value {
    described(ACCEPTED, Vec::new())
}

async fn host_with_queue() -> Host {
    let host = Host::open().await;
    host.queue("q", QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    host
}

#[tokio::test]
async fn a_message_in_a_transaction_nobody_declared_is_refused_and_the_link_goes_on() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    client.transfer_in(0, transactional(Value::Null), &data(b"x")).await;
    let answer = client.another_answer().await;
    assert_eq!((answer.code, answer.state(4)), (DISPOSITION, REJECTED));
    assert_eq!(answer.error(4).0, UNKNOWN);
    assert_eq!(queue.view().await.unwrap().counts.stored(), 0);
    client.transfer(0, 0, &data(b"y")).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
    assert_eq!(queue.view().await.unwrap().counts.ready, 1);
}

#[tokio::test]
async fn a_settlement_in_a_transaction_nobody_declared_is_refused_and_settles_nothing() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    for body in ["0", "1"] {
        queue.send(crate::message::Message::new(body)).await.unwrap();
    }
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q")).await;
    client.credit(0, 0, 2, false).await;
    assert_eq!(
        (client.another_answer().await.body(), client.another_answer().await.body()),
        ("0".into(), "1".into())
    );
    let answer = client.settle(0, transactional(accepted())).await;
    assert_eq!((answer.state(4), answer.error(4).0), (REJECTED, UNKNOWN.to_owned()));
    assert_eq!(client.settle(1, accepted()).await.state(4), ACCEPTED, "the link goes on");
    assert_eq!(queue.view().await.unwrap().counts.locked, 1, "it is still the client's");
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
}

#[tokio::test]
async fn who_settles_at_once_in_such_a_transaction_hears_it_by_the_end_of_the_link() {
    let host = host_with_queue().await;
    let queue = host.engine.client().queue("q").unwrap();
    queue.send(crate::message::Message::new("0")).await.unwrap();
    let mut client = host.client().await;
    client.attach_receiver(0, Source::of("q")).await;
    client.credit(0, 0, 1, false).await;
    client.another_answer().await;
    let settled = Value::Boolean(true);
    let fields = vec![settled.clone(), Value::Uint(0), Value::Uint(0), settled, transactional(accepted())];
    client.say(DISPOSITION, fields).await;
    let ended = client.another_answer().await;
    assert_eq!((ended.code, ended.error(2).0), (DETACH, UNKNOWN.to_owned()));
    assert_eq!(queue.view().await.unwrap().counts.locked, 1);
    client.attach_receiver(1, Source::of("q")).await;
}
