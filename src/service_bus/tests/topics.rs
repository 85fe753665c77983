//! What a client sends to a topic keeps its order, whatever of it is refused.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Value;
use crate::amqp::message;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::ClosingFrame;
use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::amqp::tests::peer::Role;
use crate::amqp::tests::peer::Target;
use crate::amqp::tests::peer::Transfer;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::queue::QueueOptions;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::detach;
use crate::service_bus::tests::bare::payload;
use crate::service_bus::tests::bare::says;
use crate::service_bus::tests::bare::transfer;
use crate::service_bus::tests::wire::described;
use crate::topic::Rule;

const COORDINATOR: u32 = 1;

/// A topic whose subscription takes bodies of four bytes, and a client with a sender to it.
async fn stage() -> (Fixture, Queue, Bare) {
    let fixture = Fixture::open().await;
    let topic = fixture.client().create_topic("t").await.unwrap();
    let options = QueueOptions { body_bytes_max: 4, ..QueueOptions::default() };
    let queue = topic.subscribe("s", options, [Rule::everything()]).await.unwrap();
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_sender(0, "t").await;
    (fixture, queue, bare)
}

/// A message of the one session.
fn sends(delivery: u32, body: &str) -> Performative {
    transfer(0, delivery, false, &payload(body, Some("one")))
}

/// A batch of the one session.
fn sends_batch(delivery: u32, bodies: &[&str]) -> Performative {
    let mut batch = BytesMut::new();
    bodies.iter().for_each(|body| message::encode_data(&mut batch, &payload(body, Some("one"))));
    match transfer(0, delivery, false, &batch.freeze()) {
        Performative::Transfer(transfer, payload) => {
            Performative::Transfer(Transfer { message_format: Some(0x8001_3700), ..transfer }, payload)
        }
        other => other,
    }
}

/// How deliveries of the client ended, in their order, each as whether it was accepted.
fn ends(frames: &[Performative]) -> Vec<(u32, bool)> {
    let end = |frame: &Performative| match frame {
        Performative::Disposition(described) if described.role == Role::Receiver => {
            let is_accepted = matches!(described.state, Some(DeliveryOutcome::Accepted));
            (described.first..=described.last.unwrap_or(described.first))
                .map(|delivery| (delivery, is_accepted))
                .collect()
        }
        _ => Vec::new(),
    };
    let mut ends: Vec<(u32, bool)> = frames.iter().flat_map(end).collect();
    ends.sort_unstable();
    ends
}

/// Hears until so many deliveries have ended.
async fn ended(bare: &mut Bare, count: usize) -> Vec<(u32, bool)> {
    let mut frames = Vec::new();
    while ends(&frames).len() < count {
        frames.push(bare.next_frame().await.expect("the endpoint answers"));
    }
    ends(&frames)
}

/// The bodies of what the subscription has, in their order.
async fn stored(fixture: &Fixture, count: u32) -> Vec<String> {
    let mut bare = Bare::connect(fixture).await;
    bare.attach_session(0, "t/subscriptions/s", "one").await;
    bare.says([credit(0, 0, count)]).await;
    bare.bodies(count as usize).await
}

#[tokio::test]
async fn what_follows_a_refused_message_to_a_topic_comes_after_what_was_sent_before_it() {
    let (fixture, _, mut bare) = stage().await;
    // In one write: the batch is read before the group in front of it is answered.
    bare.says([sends(0, "too large"), sends(1, "1"), sends_batch(2, &["2", "3"]), sends(3, "4")]).await;
    assert_eq!(ended(&mut bare, 4).await, [(0, false), (1, true), (2, true), (3, true)]);
    assert_eq!(stored(&fixture, 4).await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_transaction_comes_after_what_was_sent_to_a_topic_before_its_end() {
    let (fixture, _, mut bare) = stage().await;
    let coordinator = Target { coordinator: true, ..Target::default() };
    bare.attach_with(peer::Attach {
        target: Some(coordinator),
        ..peer::attach("c", COORDINATOR, Role::Sender)
    })
    .await;
    let ask = |delivery: u32, code: u64, fields: Vec<Value>| {
        let mut out = BytesMut::new();
        message::encode_value(&mut out, &described(code, fields));
        transfer(COORDINATOR, delivery, false, &out.freeze())
    };
    bare.says([ask(0, 0x31, Vec::new())]).await;
    bare.frames_until(|frame| matches!(frame, Performative::Disposition(_))).await;
    // The first transaction of a connection is called so.
    let transaction = Value::Binary(Bytes::copy_from_slice(&1_u64.to_be_bytes()));
    let in_transaction = peer::raw_frame(0, 0, |out| {
        let (state, no) = (described(0x34, vec![transaction.clone()]), Value::Boolean(false));
        let tag = Value::Binary(Bytes::from_static(b"tag"));
        let fields =
            vec![Value::Uint(0), Value::Uint(1), tag, Value::Uint(0), no.clone(), no, Value::Null, state];
        described(0x14, fields).encode(out);
        out.extend_from_slice(&payload("4", Some("one")));
    });
    let rest = [
        sends(2, "too large"),
        sends(3, "1"),
        sends_batch(4, &["2", "3"]),
        ask(5, 0x32, vec![transaction.clone(), Value::Boolean(false)]),
    ];
    let rest = rest.into_iter().flat_map(says);
    bare.says_bytes(&in_transaction.into_iter().chain(rest).collect::<Vec<u8>>()).await;
    let answered = ended(&mut bare, 5).await;
    assert_eq!(answered[1..], [(2, false), (3, true), (4, true), (5, true)]);
    assert_eq!(stored(&fixture, 4).await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn what_waits_for_the_answer_of_a_topic_is_sent_before_an_end_is_answered() {
    for how in ["link", "session", "connection", "stream"] {
        let (_fixture, queue, mut bare) = stage().await;
        let mut all = vec![sends(0, "too large"), sends(1, "1"), sends_batch(2, &["2", "3"]), sends(3, "4")];
        match how {
            "link" => all.push(detach(0)),
            "session" => all.push(Performative::End(ClosingFrame::default())),
            "connection" => all.push(Performative::Close(ClosingFrame::default())),
            _ => {}
        }
        bare.says(all).await;
        let frames = match how {
            "link" => bare.frames_until(|frame| matches!(frame, Performative::Detach(_))).await,
            "session" => bare.frames_until(|frame| matches!(frame, Performative::End(_))).await,
            "connection" => bare.rest().await,
            _ => bare.finish().await,
        };
        assert_eq!(ends(&frames), [(0, false), (1, true), (2, true), (3, true)], "{how}: {frames:?}");
        let views = queue.peek(SequenceNumber::new(0), 10).await.unwrap();
        assert_eq!(views.len(), 4, "{how}");
    }
}
