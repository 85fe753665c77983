//! How deliveries end that are settled together.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::amqp::Value;
use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::amqp::tests::peer::Transfer;
use crate::clock::Clock;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::DISPOSITION;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::REJECTED;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::described;

const LOCK: Duration = Duration::from_secs(30);

#[tokio::test]
async fn of_completions_that_come_together_the_one_whose_lock_was_lost_is_refused() {
    let host = Host::open().await;
    let options = QueueOptions { order: Order::None, lock: LOCK, ..QueueOptions::default() };
    let queue = host.queue("q", options).await;
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    for body in [b"a", b"b"] {
        client.transfer(0, 0, &data(body)).await;
        assert_eq!(client.another_answer().await.code, DISPOSITION);
    }
    client.attach_receiver(1, Source::of("q")).await;
    client.credit(1, 0, 1, false).await;
    assert_eq!(client.another_answer().await.body(), "a");
    host.clock.advance(LOCK - Duration::from_secs(1));
    client.credit(1, 1, 1, false).await;
    assert_eq!(client.another_answer().await.body(), "b");
    // The first lock is over, the second is not.
    host.clock.advance(Duration::from_secs(2));
    let accepted = described(ACCEPTED, Vec::new());
    let both = vec![Value::Boolean(true), Value::Uint(0), Value::Uint(1), Value::Boolean(false), accepted];
    client.say(DISPOSITION, both).await;
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let frames = client.another_answer().await;
        if frames.code == DISPOSITION {
            ends.push((frames.field(1).as_u64(), frames.state(4)));
        }
    }
    ends.sort_unstable();
    assert_eq!(ends, [(Some(0), REJECTED), (Some(1), ACCEPTED)]);
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.completed, counts.stored()), (1, 1), "{counts:?}");
}

fn failed() -> DeliveryOutcome {
    DeliveryOutcome::Modified { delivery_failed: true, undeliverable_here: false, annotations: Vec::new() }
}

/// A client that has a session with two messages and credit for both.
async fn session_of_two() -> (Fixture, Queue, Bare) {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_session(0, "q", "s").await;
    for number in 0..2 {
        queue.send(Message::new(number.to_string()).workflow("s")).await.unwrap();
    }
    bare.says([credit(0, 0, 2)]).await;
    (fixture, queue, bare)
}

#[tokio::test]
async fn what_comes_again_because_one_before_it_has_failed_is_not_said_to_be_a_lost_session() {
    let (_fixture, _queue, mut bare) = session_of_two().await;
    assert_eq!(bare.bodies(2).await, ["0", "1"]);
    let mut conditions = Vec::new();
    for (number, outcome) in [(0, failed()), (1, DeliveryOutcome::Accepted)] {
        bare.says([ends(number, number, false, outcome)]).await;
        let frames = bare.frames_until(|frames| matches!(frames, Performative::Disposition(_))).await;
        let Some(Performative::Disposition(answer)) = frames.into_iter().next_back() else { unreachable!() };
        if let Some(DeliveryOutcome::Rejected(Some(error))) = answer.state {
            conditions.push(error.condition.to_string());
        }
    }
    assert_eq!(conditions, ["com.microsoft:message-lock-lost"]);
}

/// The tags of the next messages.
async fn tags(bare: &mut Bare, count: usize) -> Vec<Bytes> {
    let mut tags = Vec::new();
    while tags.len() < count {
        let frame = bare.next_frame().await.expect("the endpoint sends");
        if let Performative::Transfer(Transfer { delivery_tag: Some(tag), .. }, _) = frame {
            tags.push(tag);
        }
    }
    tags
}

#[tokio::test]
async fn a_message_that_comes_again_has_another_tag() {
    let (_fixture, queue, mut bare) = session_of_two().await;
    let first = tags(&mut bare, 2).await;
    // The second comes again behind the first while its client still has it.
    bare.says([ends(0, 0, true, failed()), credit(0, 2, 2)]).await;
    let again = tags(&mut bare, 2).await;
    assert!(again.iter().all(|tag| !first.contains(tag)), "{first:?} {again:?}");
    // By the first tag nothing can be said of the second delivery.
    bare.says([ends(1, 1, false, DeliveryOutcome::Accepted), ends(2, 3, true, DeliveryOutcome::Accepted)])
        .await;
    let frames = bare.frames_until(|frames| matches!(frames, Performative::Disposition(_))).await;
    let Some(Performative::Disposition(answer)) = frames.last() else { unreachable!("it was waited for") };
    assert!(matches!(answer.state, Some(DeliveryOutcome::Rejected(_))), "{answer:?}");
    bare.finish().await;
    assert_eq!(queue.view().await.unwrap().counts.completed, 2);
}

/// How the endpoint has answered the next of what it was told of deliveries.
async fn answer(bare: &mut Bare) -> DeliveryOutcome {
    let frames = bare.frames_until(|frames| matches!(frames, Performative::Disposition(_))).await;
    match frames.into_iter().next_back() {
        Some(Performative::Disposition(answer)) => answer.state.expect("it says how it ended"),
        _ => unreachable!("it was waited for"),
    }
}

async fn delivery_counts(queue: &Queue) -> Vec<u32> {
    let views = queue.peek(SequenceNumber::new(0), 10).await.unwrap();
    views.iter().map(|view| view.delivery_count).collect()
}

#[tokio::test]
async fn what_of_a_session_is_given_back_together_is_not_counted_whichever_comes_first() {
    for numbers in [[0, 1], [1, 0]] {
        let (_fixture, queue, mut bare) = session_of_two().await;
        assert_eq!(bare.bodies(2).await, ["0", "1"]);
        bare.says(numbers.map(|number| ends(number, number, false, DeliveryOutcome::Released))).await;
        for _ in numbers {
            assert_eq!(answer(&mut bare).await, DeliveryOutcome::Released);
        }
        assert_eq!(delivery_counts(&queue).await, [0, 0], "given back as {numbers:?}");
    }
}

#[tokio::test]
async fn what_of_a_session_is_given_back_after_what_is_before_it_is_not_counted() {
    let (_fixture, queue, mut bare) = session_of_two().await;
    assert_eq!(bare.bodies(2).await, ["0", "1"]);
    for number in [0, 1] {
        bare.says([ends(number, number, false, DeliveryOutcome::Released)]).await;
        assert_eq!(answer(&mut bare).await, DeliveryOutcome::Released);
    }
    assert_eq!(delivery_counts(&queue).await, [0, 0]);
}

#[tokio::test]
async fn a_session_whose_first_message_fails_again_and_again_is_sent_as_many_ahead_as_ever() {
    const AHEAD: u32 = 10;
    let fixture = Fixture::open().await;
    let options = QueueOptions { delivery_count_max: 1_000, ..QueueOptions::default() };
    let queue = fixture.client().create_queue("q", options).await.unwrap();
    for number in 0..AHEAD {
        queue.send(Message::new(number.to_string()).workflow("s")).await.unwrap();
    }
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_session(0, "q", "s").await;
    bare.says([credit(0, 0, AHEAD)]).await;
    // Each time all but the first are taken back, and their client says nothing of them.
    for first in (0..300).step_by(AHEAD as usize) {
        assert_eq!(bare.bodies(AHEAD as usize).await.len(), AHEAD as usize);
        bare.says([ends(first, first, true, failed()), credit(0, first + AHEAD, AHEAD)]).await;
    }
    assert_eq!(bare.bodies(AHEAD as usize).await[9], "9");
}

#[tokio::test]
async fn a_session_ends_when_its_lock_is_lost_and_not_a_moment_before_uncounted() {
    const MOMENT: Duration = Duration::from_millis(2);
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let fixture = Fixture::by(engine, Arc::new(clock.clone())).await;
    let options = QueueOptions { lock: LOCK, ..QueueOptions::default() };
    let queue = fixture.client().create_queue("q", options).await.unwrap();
    // So little that what is shown of engine time does not follow.
    clock.step(clock.now() + MOMENT);
    queue.send(Message::new("0").workflow("s")).await.unwrap();
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_session(0, "q", "s").await;
    bare.says([credit(0, 0, 1)]).await;
    assert_eq!(bare.bodies(1).await, ["0"]);
    clock.advance(LOCK - MOMENT);
    queue.view().await.unwrap();
    bare.attach_receiver(1, "q").await;
    assert!(matches!(queue.accept_workflow("s").await, Err(error) if error.to_string().contains("locked")));
    clock.advance(MOMENT);
    bare.frames_until(|frames| matches!(frames, Performative::Detach(_))).await;
    assert_eq!(queue.peek(SequenceNumber::new(1), 1).await.unwrap()[0].delivery_count, 1);
}
