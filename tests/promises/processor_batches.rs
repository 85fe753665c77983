//! What a batch handler did not do is not done, and nobody's lock is renewed for ever.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use seriatim::Clock;
use seriatim::Context;
use seriatim::Failure;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::processor::BatchOutcome;
use seriatim::queue::Backoff;
use tokio::sync::Notify;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;
use crate::promises::processor::Log;
use crate::promises::processor::note;
use crate::promises::processor::noted;
use crate::promises::processor::peeked;
use crate::promises::processor::until;
use crate::promises::processor::until_renewed;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_batch_handler_that_handled_nothing_has_failed() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 1).await;
    let tried = Arc::new(AtomicUsize::new(0));
    let tries = tried.clone();
    let handler = move |_: Context, _: Vec<u64>| {
        tries.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Failure>(BatchOutcome::first(0)) }
    };
    let backoff = Backoff { first: HOUR, factor: 1, max: HOUR };
    let pool = Processor::new(fixture.queue.clone()).backoff(backoff).start_batches(10, handler);
    until(|| async { tried.load(Ordering::Relaxed) > 0 }).await;
    pool.stop().await.unwrap();
    let message = peeked(&fixture).await;
    assert_eq!((message.attempts.len(), message.delivery_count as usize), (1, tried.load(Ordering::Relaxed)));
    assert_eq!(message.attempts[0].reason, "the handler handled nothing");
}

#[tokio::test]
async fn what_a_batch_handler_could_not_be_shown_is_never_completed_with_the_others() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "no number", "3"] {
        fixture.send("w", body).await;
    }
    let log = Log::default();
    let seen = log.clone();
    let handler = move |_: Context, bodies: Vec<u64>| {
        note(&seen, format!("{bodies:?}"));
        async { Ok::<_, Failure>(BatchOutcome::all()) }
    };
    let pool = Processor::new(fixture.queue.clone()).start_batches(10, handler);
    until(|| async { fixture.queue.view().await.unwrap().counts.completed >= 2 }).await;
    pool.stop().await.unwrap();
    assert_eq!(noted(&log), ["[1]", "[3]"]);
    assert_eq!(fixture.queue.dead_letters(None, 1).await.unwrap()[0].dead_letter.reason, "MalformedBody");
}

#[tokio::test]
async fn what_a_batch_handler_says_of_the_next_does_not_concern_a_message_that_it_could_not_be_shown() {
    for outcome in [BatchOutcome::all(), BatchOutcome::first(1)] {
        let fixture = Fixture::new(QueueOptions::default()).await;
        for body in ["1", "no number"] {
            fixture.send("w", body).await;
        }
        let outcome = outcome.then(Outcome::Defer);
        let handler = move |_: Context, _: Vec<u64>| {
            let outcome = outcome.clone();
            async { Ok::<_, Failure>(outcome) }
        };
        let pool = Processor::new(fixture.queue.clone()).start_batches(10, handler);
        until(|| async { fixture.counts().await.by_consumer + fixture.counts().await.dead_lettered > 0 })
            .await;
        pool.stop().await.unwrap();
        let dead = fixture.queue.dead_letters(None, 1).await.unwrap();
        assert_eq!(dead.first().map(|dead| dead.dead_letter.reason.as_str()), Some("MalformedBody"));
    }
}

#[tokio::test]
async fn a_lock_is_renewed_no_longer_than_its_handler_may_run() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(10))).await;
    fixture.send("w", "1").await;
    let (started, told) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (start, tell) = (started.clone(), told.clone());
    let handler = move |context: Context, _: Raw| {
        let (start, tell) = (start.clone(), tell.clone());
        async move {
            start.notify_one();
            if context.attempt() == 1 {
                context.cancelled().await;
            }
            tell.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let pool = Processor::new(fixture.queue.clone()).renew_for(seconds(20)).start(handler);
    started.notified().await;
    let begun = fixture.clock.now();
    for _ in 0..2 {
        until_renewed(&fixture).await;
    }
    until(|| async {
        fixture.counts().await;
        fixture.clock.advance(millis(250));
        told.load(Ordering::Relaxed) > 0 || fixture.clock.now() > begun + seconds(120)
    })
    .await;
    assert!(told.load(Ordering::Relaxed) > 0, "its time was over, and it was not told");
    pool.stop().await.unwrap();
}
