//! A handler whose completion finds a queue full: nobody is to blame, so no attempt is used up, and the message waits.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use seriatim::Completion;
use seriatim::Context;
use seriatim::Failure;
use seriatim::Message;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::processor::BatchOutcome;
use seriatim::queue::Backoff;
use seriatim::queue::ExhaustedPolicy;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;
use crate::promises::processor::until;

/// More attempts than a message has in all.
const ATTEMPTS: usize = 12;

/// A fixture whose messages are dead letters after two failures, and a queue `out` with room for none that a completion sends.
async fn fixture_and_full_queue() -> (Fixture, Queue) {
    let fixture = Fixture::new(
        QueueOptions::default()
            .lock(seconds(12 * 60 * 60))
            .delivery_count_max(2)
            .exhausted(ExhaustedPolicy::Skip)
            .backoff(Backoff { first: seconds(1), factor: 2, max: seconds(600) }),
    )
    .await;
    let options = QueueOptions::default().messages_max(1);
    let out = fixture.engine.client().create_queue("out", options).await.expect("the queue is new");
    out.send(Message::new("first")).await.expect("there is room");
    fixture.send("before", "1").await;
    let sends = Completion::new().send("out", Message::new("second"));
    fixture.must().await.complete_with(sends).await.expect("an eighth is left");
    (fixture, out)
}

/// Until when workflow `w` waits, and why.
async fn waits(fixture: &Fixture) -> Option<(Timestamp, String)> {
    match fixture.status("w").await {
        Some(WorkflowStatus::Blocked { until: Some(until), reason, .. }) => Some((until, reason)),
        _ => None,
    }
}

/// Lets the handler try it again and again; the longest it had to wait.
async fn try_often(fixture: &Fixture, attempts: &AtomicUsize) -> std::time::Duration {
    let mut longest = millis(0);
    while attempts.load(Ordering::SeqCst) < ATTEMPTS {
        until(|| async { waits(fixture).await.is_some() }).await;
        let (due, _) = waits(fixture).await.expect("it waits");
        let now = seriatim::Clock::now(&fixture.clock);
        longest = longest.max(due.since(now));
        let before = attempts.load(Ordering::SeqCst);
        fixture.clock.advance(due.since(now));
        until(|| async { attempts.load(Ordering::SeqCst) > before }).await;
    }
    until(|| async { waits(fixture).await.is_some() }).await;
    longest
}

async fn make_room(fixture: &Fixture, out: &Queue) {
    for _ in 0..2 {
        let delivery = out.receive(millis(0)).await.expect("the queue exists");
        delivery.expect("it is full").complete().await.expect("the lock is held");
    }
    fixture.clock.advance(seconds(600));
}

#[tokio::test]
async fn a_full_queue_behind_a_handler_uses_up_no_attempt() {
    let (fixture, out) = fixture_and_full_queue().await;
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    let handler = move |_: Context, _: Raw| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, Failure>(Outcome::CompleteWith(Completion::new().send("out", Message::new("x")))) }
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    fixture.send("w", "2").await;
    let longest = try_often(&fixture, &attempts).await;
    assert!(longest > seconds(2), "the delay grows as that of failures does: {longest:?}");
    let (_, reason) = waits(&fixture).await.unwrap();
    assert!(reason.contains("no room in out") && reason.contains("the queue is full"), "{reason}");
    let message = fixture.queue.peek(SequenceNumber::new(0), 1).await.unwrap().remove(0);
    assert_eq!((message.delivery_count, fixture.counts().await.dead_lettered), (0, 0));
    make_room(&fixture, &out).await;
    until(|| async { fixture.counts().await.completed == 2 }).await;
    assert_eq!(fixture.counts().await.dead_lettered, 0);
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn a_full_queue_behind_a_batch_uses_up_no_attempt_and_makes_no_suspects() {
    let (fixture, out) = fixture_and_full_queue().await;
    fixture.send("w", "2").await;
    fixture.send("w", "3").await;
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    let handler = move |_: Context, bodies: Vec<Raw>| {
        assert_eq!(bodies.len(), 2, "they are handled together each time");
        counted.fetch_add(1, Ordering::SeqCst);
        let sends = Completion::new().send("out", Message::new("x"));
        async { Ok::<_, Failure>(BatchOutcome::all().with(sends)) }
    };
    let pool = Processor::new(fixture.queue.clone()).start_batches(10, handler);
    try_often(&fixture, &attempts).await;
    let messages = fixture.queue.peek(SequenceNumber::new(0), 2).await.unwrap();
    assert!(messages.iter().all(|message| message.delivery_count == 0), "{messages:?}");
    make_room(&fixture, &out).await;
    until(|| async { fixture.counts().await.completed == 3 }).await;
    assert_eq!(fixture.counts().await.dead_lettered, 0);
    pool.stop().await.unwrap();
}
