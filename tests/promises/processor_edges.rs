//! The processor's edges: locks of another length, ends from outside, an engine that goes away.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::task::Poll;

use seriatim::Abandon;
use seriatim::Completion;
use seriatim::Context;
use seriatim::Failure;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::error::ReceiveError;
use seriatim::processor::BatchOutcome;
use seriatim::testing::DrainSummary;
use seriatim::testing::drain;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;
use crate::promises::processor::HandlerGate;
use crate::promises::processor::peeked;
use crate::promises::processor::until;
use crate::promises::processor::until_renewed;

#[tokio::test]
async fn a_lock_is_renewed_by_its_own_time_although_the_queues_was_changed_since() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(600))).await;
    let gate = HandlerGate::new();
    let pool = Processor::new(fixture.queue.clone()).start(gate.handler());
    fixture.send("a", "1").await;
    gate.begun(1).await;
    gate.open(1);
    until(|| async { fixture.counts().await.completed == 1 }).await;
    let shorter = QueueOptions::default().lock(seconds(10));
    fixture.engine.client().change_queue("q", shorter).await.unwrap();
    fixture.send("w", "2").await;
    gate.begun(1).await;
    for _ in 0..3 {
        until_renewed(&fixture).await;
    }
    assert_eq!(peeked(&fixture).await.delivery_count, 1, "the lock was never lost");
    gate.open(1);
    until(|| async { fixture.counts().await.completed == 2 }).await;
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn a_message_whose_handler_was_not_called_counts_no_attempt_when_the_processor_is_dropped() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "m").await;
    let metrics = tokio::runtime::Handle::current().metrics();
    // The task of the handler is there, and it is not its turn yet.
    let is_spawned = std::future::poll_fn(move |_| match metrics.num_alive_tasks() {
        0 => Poll::Pending,
        _ => Poll::Ready(()),
    });
    let handler = |_: Context, _: Raw| async { Err::<Outcome, _>(Failure::new("its task had a turn")) };
    let processor = Processor::new(fixture.queue.clone());
    tokio::select! {
        biased;
        ended = processor.run_until(handler, std::future::pending()) => panic!("{ended:?}"),
        () = is_spawned => {}
    }
    let receive = tokio::time::timeout(seconds(60), fixture.queue.receive(seconds(60)));
    let delivery = receive.await.expect("it is given back").unwrap().expect("it is given back");
    assert_eq!(delivery.message().delivery_count, 1);
    drop(delivery);
}

#[tokio::test]
async fn a_drain_ends_whatever_a_handler_releases() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 1).await;
    fixture.send_at("w", 2).await;
    let releases = |_: Context, _: Raw| async { Ok::<_, Failure>(Outcome::Release) };
    let drained = drain(&fixture.queue, &fixture.clock, releases, millis(20)).await.unwrap();
    assert_eq!(drained, DrainSummary::default());
    let calls = AtomicUsize::new(0);
    let releases_at_first = move |context: Context, _: Raw| {
        assert_eq!(context.attempt(), 1, "a release counts no attempt");
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Failure>(if call < 3 { Outcome::Release } else { Outcome::Complete }) }
    };
    let drained = drain(&fixture.queue, &fixture.clock, releases_at_first, millis(20)).await.unwrap();
    assert_eq!((drained.completed, drained.failed), (2, 0));
}

#[tokio::test]
async fn a_batch_that_sets_a_state_along_with_nothing_done_has_failed() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 1).await;
    let handler = |_: Context, _: Vec<Raw>| async {
        let next = Outcome::Abandon(Abandon::after(seconds(60)));
        Ok::<_, Failure>(BatchOutcome::first(0).then(next).with(Completion::new().state("set")))
    };
    let pool = Processor::new(fixture.queue.clone()).start_batches(10, handler);
    until(|| async { fixture.counts().await.retry == 1 }).await;
    pool.stop().await.unwrap();
    let message = peeked(&fixture).await;
    let reason = &message.attempts[0].reason;
    assert!(reason.contains("no message is completed"), "{reason}");
    assert_eq!(fixture.queue.workflow("w").unwrap().state().await.unwrap(), None);
}

#[test]
fn stopping_a_processor_whose_runtime_has_ended_is_an_error_and_no_panic() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let first = runtime();
    let (_fixture, pool) = first.block_on(async {
        let fixture = Fixture::new(QueueOptions::default()).await;
        let handler = |_: Context, _: Raw| async move { Ok::<_, Failure>(Outcome::Complete) };
        let pool = Processor::new(fixture.queue.clone()).start(handler);
        (fixture, pool)
    });
    drop(first);
    let stopped = runtime().block_on(pool.stop());
    assert!(matches!(stopped, Err(ReceiveError::Unavailable(_))), "{stopped:?}");
}

#[tokio::test]
async fn who_waits_for_the_end_of_a_lock_is_told_when_its_delivery_is_settled() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let (send, mut contexts) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |context: Context, _: Raw| {
        let send = send.clone();
        async move {
            assert!(!context.is_cancelled(), "the handler still runs");
            send.send(context)?;
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    let context = contexts.recv().await.unwrap();
    context.cancelled().await;
    assert!(context.is_cancelled());
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn an_engine_that_is_gone_before_the_drain_is_over_is_told_by_the_stop() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let gate = HandlerGate::new();
    let pool = Processor::new(fixture.queue.clone()).start(gate.handler());
    gate.begun(1).await;
    let mut stopped = tokio::spawn(pool.stop());
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!stopped.is_finished(), "it waits for the handler");
    fixture.engine.close().await;
    gate.open(1);
    let stopped = (&mut stopped).await.unwrap();
    assert!(
        matches!(stopped, Err(ReceiveError::Unavailable(_))),
        "what the handler did is not settled: {stopped:?}"
    );
}

#[tokio::test]
async fn once_it_has_stopped_nothing_of_its_handler_is_left() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for round in 1..=20 {
        let kept = std::sync::Arc::new(());
        let held = kept.clone();
        let handler = move |_: Context, _: Raw| {
            let _held = &held;
            async { Ok::<_, Failure>(Outcome::Complete) }
        };
        let pool = Processor::new(fixture.queue.clone()).start(handler);
        fixture.send("w", "m").await;
        until(|| async { fixture.counts().await.completed == round }).await;
        pool.stop().await.unwrap();
        assert_eq!(std::sync::Arc::strong_count(&kept), 1, "in round {round}");
    }
}
