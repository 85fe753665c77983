//! A message that is larger than its receiver takes: nothing behind it is sent before it, and nothing is used up.

use std::time::Duration;

use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::tests::peer::Attach;
use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::clock::Timestamp;
use crate::engine::MessageStatus;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::refusal::condition;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::body;
use crate::service_bus::tests::bare::copying;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::deleting;
use crate::service_bus::tests::bare::detach;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::bare::receiver;
use crate::service_bus::tests::bare::request;
use crate::service_bus::tests::bare::sections;
use crate::service_bus::tests::bare::session_receiver;
use crate::service_bus::tests::bare::transfer;

const SMALL: u64 = 1_000;

fn small(asked: Attach) -> Attach {
    Attach { max_message_bytes: Some(SMALL), ..asked }
}

/// Small messages around one that is too large.
async fn fill(queue: &Queue, session: Option<&str>) {
    for body in ["before".to_owned(), "x".repeat(10_000), "behind".to_owned()] {
        let message = Message::new(body);
        queue.send(session.iter().fold(message, |message, id| message.workflow(*id))).await.unwrap();
    }
}

fn is_detach(frames: &Performative) -> bool {
    matches!(frames, Performative::Detach(_))
}

/// What was heard is one message, and the end of the link for the reason that is meant.
fn check(frames: &[Performative], bodies: &[&str]) {
    let got: Vec<String> = frames.iter().filter_map(body).collect();
    assert_eq!(got, bodies);
    let Some(Performative::Detach(detach)) = frames.last() else { panic!("{frames:?}") };
    let error = detach.error.as_ref().expect("it says why");
    assert_eq!(error.condition.as_str(), "amqp:link:message-size-exceeded");
    let description = error.description.as_ref().expect("in a sentence").to_string();
    assert!(description.contains("\"q\"") && description.contains("1000 bytes"), "{description}");
}

/// How often each message was handed out, and whether somebody has it.
async fn counts(queue: &Queue) -> Vec<(u32, bool)> {
    let views = queue.peek(SequenceNumber::new(0), 10).await.unwrap();
    let of = |status: &MessageStatus| matches!(status, MessageStatus::Locked { .. });
    views.iter().map(|view| (view.delivery_count, of(&view.status))).collect()
}

#[tokio::test]
async fn a_session_stops_at_a_message_that_is_too_large_for_its_receiver() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    fill(&queue, Some("s")).await;
    for round in 0..3 {
        let mut bare = Bare::connect(&fixture).await;
        bare.attach_with(small(session_receiver(0, "q", "s"))).await;
        bare.says([credit(0, 0, 10)]).await;
        if round == 0 {
            assert_eq!(bare.bodies(1).await, ["before"]);
            bare.says([ends(0, 0, false, DeliveryOutcome::Accepted)]).await;
        }
        let frames = bare.frames_until(is_detach).await;
        check(&frames, &[]);
        let settled = frames.iter().any(|frames| matches!(frames, Performative::Disposition(_)));
        assert_eq!(settled, round == 0, "what was said before is answered: {frames:?}");
        bare.says([detach(0)]).await;
        assert_eq!(counts(&queue).await, [(0, false); 2], "nothing is used up");
    }
    assert_eq!(queue.view().await.unwrap().counts.completed, 1);
    let known = fixture.meters.too_large.of(queue.name(), Timestamp::from_millis(0));
    assert_eq!((known.len(), known[0].1.bytes_max), (1, SMALL), "operators can see it");
    assert!(known[0].1.bytes > 10_000, "{known:?}");
    // A receiver that takes it goes on from there.
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_session(0, "q", "s").await;
    bare.says([credit(0, 0, 10)]).await;
    assert_eq!(bare.bodies(2).await, ["x".repeat(10_000), "behind".to_owned()]);
    assert!(fixture.meters.too_large.of(queue.name(), Timestamp::from_millis(0)).is_empty(), "it has gone");
}

#[tokio::test]
async fn who_settles_nothing_is_told_too_that_the_next_message_is_too_large() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    fill(&queue, Some("s")).await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_with(small(session_receiver(0, "q", "s"))).await;
    bare.says([credit(0, 0, 10)]).await;
    check(&bare.frames_until(is_detach).await, &["before"]);
    assert_eq!(counts(&queue).await, [(0, false); 3]);
}

#[tokio::test]
async fn a_queue_without_sessions_stops_too() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    fill(&queue, None).await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_with(small(receiver(0, "q"))).await;
    bare.says([credit(0, 0, 10)]).await;
    check(&bare.frames_until(is_detach).await, &["before"]);
    assert_eq!(counts(&queue).await, [(1, true), (0, false), (0, false)]);
}

#[tokio::test]
async fn dead_letters_stop_too() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    queue.send(Message::new("x".repeat(10_000))).await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_with(small(receiver(0, "q/$deadletterqueue"))).await;
    bare.says([credit(0, 0, 10)]).await;
    check(&bare.frames_until(is_detach).await, &[]);
    bare.attach_receiver(1, "q/$deadletterqueue").await;
    bare.says([credit(1, 0, 1)]).await;
    assert_eq!(bare.bodies(1).await, ["x".repeat(10_000)]);
}

#[tokio::test]
async fn nothing_is_deleted_that_was_not_sent() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    fill(&queue, None).await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_with(small(deleting(receiver(0, "q")))).await;
    bare.says([credit(0, 0, 10)]).await;
    check(&bare.frames_until(is_detach).await, &["before"]);
    let stored = queue.view().await.unwrap().counts;
    assert_eq!((stored.completed, stored.ready), (1, 2));
    assert_eq!(counts(&queue).await, [(0, false); 2]);
}

#[tokio::test]
async fn what_waits_for_the_window_of_a_client_is_not_deleted_until_it_is_on_its_way() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    for number in 0..20 {
        queue.send(Message::new(number.to_string())).await.unwrap();
    }
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_with(deleting(receiver(0, "q"))).await;
    let Performative::Flow(flow) = credit(0, 0, 20) else { unreachable!("it is a flow") };
    bare.says([Performative::Flow(super::bare::window(flow, 5))]).await;
    assert_eq!(bare.bodies(5).await.len(), 5);
    bare.says([detach(0)]).await;
    bare.frames_until(is_detach).await;
    let stored = queue.view().await.unwrap().counts;
    assert_eq!((stored.completed, stored.ready), (5, 15), "{stored:?}");
    bare.attach_receiver(1, "q").await;
    bare.says([credit(1, 5, 20)]).await;
    let expected: Vec<String> = (5..20).map(|number: u32| number.to_string()).collect();
    assert_eq!(bare.bodies(15).await, expected);
}

#[tokio::test]
async fn no_link_over_which_a_client_receives_says_how_large_a_message_may_be() {
    let fixture = Fixture::open().await;
    fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    let asked = [
        receiver(0, "q"),
        session_receiver(1, "q", "s"),
        copying(receiver(2, "q")),
        receiver(3, "q/$management"),
        receiver(4, "$cbs"),
    ];
    for asked in asked {
        let answer = bare.attach_with(asked).await;
        assert_eq!(answer.max_message_bytes, Some(0), "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_larger_than_its_client_takes_is_refused_and_hands_nothing_out() {
    let fixture = Fixture::open().await;
    let options = QueueOptions { order: Order::None, ..QueueOptions::default() };
    let queue = fixture.client().create_queue("q", options).await.unwrap();
    let number = queue.send(Message::new("x".repeat(10_000))).await.unwrap().sequence_number().unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().defer().await.unwrap();
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_with(small(receiver(2, "q/$management"))).await;
    bare.attach_sender(1, "q/$management").await;
    bare.says([credit(2, 0, 10)]).await;
    // To have it deleted, and to have it locked.
    for mode in [0, 1] {
        let asked = vec![
            (Value::string("sequence-numbers"), Value::Array(vec![Value::Long(number.get().cast_signed())])),
            (Value::string("receiver-settle-mode"), Value::Uint(mode)),
        ];
        let asked = request("com.microsoft:receive-by-sequence-number", asked);
        bare.says([transfer(1, mode, false, &asked)]).await;
        let frames = bare.frames_until(|frames| matches!(frames, Performative::Transfer(..))).await;
        let answer = frames.last().and_then(sections).expect("it is answered").application_properties();
        let answer = answer.expect("it can be read");
        let refusal = lookup(&answer, "errorCondition").and_then(Value::as_str);
        assert_eq!(refusal, Some(condition::SIZE_EXCEEDED), "{answer:?}");
        let counts = queue.view().await.unwrap().counts;
        assert_eq!((counts.by_consumer, counts.locked), (1, 0), "{counts:?}");
    }
}
