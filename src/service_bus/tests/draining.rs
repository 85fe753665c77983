//! A client that drains is sent what is there, in order, and told when that was all.

use std::time::Duration;

use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::message::Message;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::body;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::drain;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::bare::is_drained;
use crate::service_bus::tests::buffers::Dice;

async fn fill(queue: &Queue, numbers: std::ops::Range<u32>, session: Option<&str>) {
    for number in numbers {
        let message = Message::new(number.to_string());
        queue.send(session.iter().fold(message, |message, id| message.workflow(*id))).await.unwrap();
    }
}

fn numbers(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

/// A client that gives credit, drains at once or a little later, and settles what it got, again and again, while messages
/// come.
async fn drain_while_messages_come(session: Option<&'static str>, seed: u64) {
    const COUNT: u32 = 300;
    println!("seed {seed}");
    // On a disk, what was handed out is on its way for as long as a commit lasts.
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path().join("store.redb")).await.unwrap();
    let (fixture, mut dice) = (Fixture::on(engine).await, Dice(seed));
    let queue = fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    match session {
        Some(session) => bare.attach_session(0, "q", session).await,
        None => bare.attach_receiver(0, "q").await,
    }
    let filling = {
        let queue = queue.clone();
        tokio::spawn(async move { fill(&queue, 0..COUNT, session).await })
    };
    let (mut received, mut counted, mut bodies) = (0, 0, Vec::new());
    while received < COUNT {
        let given = 1 + dice.below(40) as u32;
        bare.says([credit(0, counted, given)]).await;
        for _ in 0..dice.below(60) {
            tokio::task::yield_now().await;
        }
        bare.says([drain(0, counted, given)]).await;
        let frames = bare.frames_until(is_drained).await;
        // What was not used counts as used.
        counted = counted_to(&frames);
        let before = received;
        let got: Vec<String> = frames.iter().filter_map(body).collect();
        received += got.len() as u32;
        bodies.extend(got);
        if received > before {
            bare.says([ends(before, received - 1, dice.below(2) == 0, DeliveryOutcome::Accepted)]).await;
        }
    }
    filling.await.unwrap();
    assert_eq!(bodies, numbers(0..COUNT), "seed {seed}");
}

/// What the endpoint counts at the end of a drain.
fn counted_to(frames: &[Performative]) -> u32 {
    let count = frames.iter().find_map(|frames| match frames {
        Performative::Flow(flow) if is_drained(frames) => flow.delivery_count,
        _ => None,
    });
    count.expect("the drain is over")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_drained_while_messages_come_stays_in_order() {
    for seed in 0..3 {
        drain_while_messages_come(Some("s"), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_drained_while_messages_come_stays_in_order() {
    for seed in 0..3 {
        drain_while_messages_come(None, seed).await;
    }
}

#[tokio::test]
async fn a_drain_ends_when_all_that_was_there_was_sent() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_session(0, "q", "s").await;
    let (mut received, mut counted) = (0, 0);
    for round in 0..100 {
        bare.says([credit(0, counted, 500)]).await;
        fill(&queue, round * 7..(round + 1) * 7, Some("s")).await;
        // They are stored, so they are there.
        bare.says([drain(0, counted, 500)]).await;
        let frames = bare.frames_until(is_drained).await;
        let bodies: Vec<String> = frames.iter().filter_map(body).collect();
        assert_eq!(bodies, numbers(round * 7..(round + 1) * 7));
        bare.says([ends(received, received + 6, true, DeliveryOutcome::Accepted)]).await;
        (received, counted) = (received + 7, counted_to(&frames));
    }
}

#[tokio::test]
async fn what_too_many_locks_hold_back_is_not_there_for_a_drain_and_ends_no_link() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    fill(&queue, 0..300, Some("s")).await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_session(0, "q", "s").await;
    bare.says([credit(0, 0, 500)]).await;
    assert_eq!(bare.bodies(256).await, numbers(0..256));
    bare.says([drain(0, 0, 500)]).await;
    let frames = bare.frames_until(is_drained).await;
    assert_eq!(frames.len(), 1, "{frames:?}");
    let counted = counted_to(&frames);
    bare.says([ends(0, 255, true, DeliveryOutcome::Accepted), credit(0, counted, 44)]).await;
    assert_eq!(bare.bodies(44).await, numbers(256..300));
    // Those that were deferred and fetched by number take room of which the link knows nothing.
    fill(&queue, 300..600, Some("s")).await;
    bare.says([credit(0, counted + 44, 500)]).await;
    assert_eq!(bare.bodies(212).await, numbers(300..512));
    bare.says([ends(256, 300, false, DeliveryOutcome::Accepted)]).await;
    assert_eq!(bare.bodies(45).await, numbers(512..557));
}

#[tokio::test]
async fn credit_that_is_taken_back_loses_no_place() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_receiver(0, "q").await;
    let mut bodies = Vec::new();
    for round in 0..200 {
        bare.says([credit(0, bodies.len() as u32, 10)]).await;
        tokio::task::yield_now().await;
        let filling = fill(&queue, round * 3..(round + 1) * 3, None);
        let (_, ()) = tokio::join!(filling, bare.says([credit(0, bodies.len() as u32, 0)]));
        // What was sent before the credit was taken back has come; a drain says where that is.
        bare.says([drain(0, bodies.len() as u32, 0)]).await;
        let frames =
            bare.frames_until(|frames| matches!(frames, Performative::Flow(flow) if flow.drain)).await;
        bodies.extend(frames.iter().filter_map(body));
    }
    let left = 600 - bodies.len();
    bare.says([credit(0, bodies.len() as u32, 1_000)]).await;
    bodies.extend(bare.bodies(left).await);
    assert_eq!(bodies, numbers(0..600));
    let left = queue.receive_many(10, Duration::ZERO).await.unwrap();
    assert!(left.is_empty(), "{} messages are left", left.len());
}

#[tokio::test]
async fn dead_letters_that_were_being_fetched_are_sent_to_a_client_that_drains() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_receiver(0, "q/$deadletterqueue").await;
    let mut counted = 0;
    for number in 0..50 {
        bare.says([credit(0, counted, 10)]).await;
        fill(&queue, number..number + 1, None).await;
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        delivery.dead_letter("bad", "").await.unwrap();
        bare.says([drain(0, counted, 10)]).await;
        let frames = bare.frames_until(is_drained).await;
        let bodies: Vec<String> = frames.iter().filter_map(body).collect();
        assert_eq!(bodies, numbers(number..number + 1));
        bare.says([ends(number, number, true, DeliveryOutcome::Accepted)]).await;
        counted = counted_to(&frames);
    }
}
