//! What a processor promises of messages that it has received ahead of its slots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::message::Message;
use crate::processor::BatchOutcome;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::queue::QueueOptions;
use crate::testing::ManualClock;

/// Messages whose handlers are quick, before one whose handler waits, and as many behind it.
const MANY: usize = 100;

/// How often is looked until something has happened.
const LOOKS_MAX: usize = 100_000;

/// A queue with messages of as many workflows: quick ones, one that is slow, and others behind it.
struct Ahead {
    _engine: Engine,
    clock: ManualClock,
    queue: Queue,
    /// Lets the slow handler end.
    go_on: Arc<Semaphore>,
}

impl Ahead {
    async fn new() -> Ahead {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        let bodies = (0..MANY).map(|_| "quick").chain(["slow"]).chain((0..MANY).map(|_| "behind"));
        let messages = bodies.enumerate().map(|(at, body)| Message::new(body).workflow(format!("w{at}")));
        queue.send_batch(messages).await.unwrap();
        Ahead { _engine: engine, clock, queue, go_on: Arc::new(Semaphore::new(0)) }
    }

    /// With one slot.
    fn processor(&self) -> Processor {
        Processor::new(self.queue.clone()).concurrency(1)
    }

    fn handler(&self) -> impl Handler<Raw> + use<> {
        let go_on = self.go_on.clone();
        move |_: Context, body: Raw| {
            let go_on = go_on.clone();
            async move {
                if body.0 != "quick" {
                    go_on.acquire().await?.forget();
                }
                Ok::<_, Failure>(Outcome::Complete)
            }
        }
    }

    async fn locked(&self) -> u64 {
        self.queue.view().await.unwrap().counts.locked
    }

    /// Waits until the slow handler has begun, and something was received ahead.
    async fn until_ahead(&self) {
        for _ in 0..LOOKS_MAX {
            if self.queue.view().await.unwrap().counts.completed >= MANY as u64 && self.locked().await > 1 {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(self.locked().await > 1, "nothing was received ahead");
        assert!(self.locked().await <= MANY as u64 + 1);
    }

    /// Checks that what is behind the slow one was never counted.
    async fn check_uncounted(&self) {
        let deliveries = self.queue.receive_many(2 * MANY, Duration::ZERO).await.unwrap();
        let behind: Vec<_> = deliveries.iter().filter(|one| one.message().body == "behind").collect();
        assert_eq!(behind.len(), MANY);
        assert!(behind.iter().all(|one| one.message().delivery_count == 1), "nobody had these before");
    }
}

#[tokio::test]
async fn what_is_received_ahead_is_given_back_uncounted_when_its_handler_does_not_begin_soon() {
    let ahead = Ahead::new().await;
    let running = ahead.processor().start(ahead.handler());
    ahead.until_ahead().await;
    let since = ahead.clock.elapsed();
    while ahead.locked().await > 1 {
        ahead.clock.advance(Duration::from_millis(10));
        // Whoever looks after the line gets its turns before the clock goes on.
        for _ in 0..20 {
            ahead.locked().await;
        }
        let lasted = ahead.clock.elapsed() - since;
        assert!(lasted < Duration::from_secs(10), "it has waited for {lasted:?}");
    }
    ahead.check_uncounted().await;
    ahead.go_on.add_permits(MANY + 1);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_received_ahead_is_given_back_uncounted_when_the_processor_is_stopped() {
    let ahead = Ahead::new().await;
    let running = ahead.processor().start(ahead.handler());
    ahead.until_ahead().await;
    let stopped = tokio::spawn(running.stop());
    while ahead.locked().await > 1 {
        tokio::task::yield_now().await;
    }
    ahead.check_uncounted().await;
    ahead.go_on.add_permits(1);
    stopped.await.unwrap().unwrap();
    assert_eq!(ahead.queue.view().await.unwrap().counts.completed, MANY as u64 + 1);
}

#[tokio::test]
async fn what_is_received_ahead_is_given_back_uncounted_when_the_processor_is_dropped() {
    let ahead = Ahead::new().await;
    let processor = ahead.processor();
    tokio::select! {
        ended = processor.run_until(ahead.handler(), std::future::pending()) => panic!("{ended:?}"),
        () = ahead.until_ahead() => {}
    }
    while ahead.locked().await > 0 {
        tokio::task::yield_now().await;
    }
    ahead.check_uncounted().await;
}

#[tokio::test]
async fn nothing_is_received_ahead_before_handlers_have_shown_that_they_are_quick() {
    let ahead = Ahead::new().await;
    let waiting = ahead.go_on.clone();
    let begun = Arc::new(Semaphore::new(0));
    let begin = begun.clone();
    let handler = move |_: Context, _: Raw| {
        let (waiting, begin) = (waiting.clone(), begin.clone());
        async move {
            begin.add_permits(1);
            waiting.acquire().await?.forget();
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let running = Processor::new(ahead.queue.clone()).concurrency(7).start(handler);
    begun.acquire_many(7).await.unwrap().forget();
    for _ in 0..50 {
        assert_eq!(ahead.locked().await, 7);
    }
    ahead.go_on.add_permits(3 * MANY);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn no_more_handlers_run_at_once_than_there_are_slots_and_each_workflow_keeps_its_order() {
    let (engine, _clock) = crate::testing::engine().await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for place in 0..5 {
        let message = |at| Message::new(place.to_string()).workflow(format!("w{at}"));
        queue.send_batch((0..MANY).map(message)).await.unwrap();
    }
    let (running_now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handled: Arc<Mutex<BTreeMap<String, Vec<String>>>> = Arc::default();
    let (now, peak, log) = (running_now.clone(), most.clone(), handled.clone());
    let handler = move |context: Context, body: Raw| {
        let (now, peak, log) = (now.clone(), peak.clone(), log.clone());
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let workflow = context.message().workflow_id.as_ref().unwrap().to_string();
            tokio::task::yield_now().await;
            let body = String::from_utf8(body.0.to_vec())?;
            log.lock().unwrap().entry(workflow).or_default().push(body);
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let running = Processor::new(queue.clone()).concurrency(3).start(handler);
    while queue.view().await.unwrap().counts.completed < 5 * MANY as u64 {
        tokio::task::yield_now().await;
    }
    running.stop().await.unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let handled = handled.lock().unwrap();
    assert_eq!(handled.len(), MANY);
    assert!(handled.values().all(|bodies| bodies == &["0", "1", "2", "3", "4"]), "{handled:?}");
}

#[tokio::test]
async fn what_quick_handlers_handle_takes_few_requests_whatever_the_slots() {
    let ahead = Ahead::new().await;
    ahead.go_on.add_permits(3 * MANY);
    let before = ahead.queue.client().commit_stats().answers;
    let running = ahead.processor().start(ahead.handler());
    let all = 2 * MANY as u64 + 1;
    while ahead.queue.view().await.unwrap().counts.completed < all {
        tokio::task::yield_now().await;
    }
    let requests = ahead.queue.client().commit_stats().answers - before;
    assert!(requests < all / 2, "{all} messages took {requests} requests");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn runs_that_are_received_ahead_are_given_back_uncounted() {
    let ahead = Ahead::new().await;
    let go_on = ahead.go_on.clone();
    let handler = move |_: Context, bodies: Vec<Raw>| {
        let go_on = go_on.clone();
        async move {
            if bodies[0].0 != "quick" {
                go_on.acquire().await?.forget();
            }
            Ok::<_, Failure>(BatchOutcome::all())
        }
    };
    let running = ahead.processor().start_batches(4, handler);
    ahead.until_ahead().await;
    let stopped = tokio::spawn(running.stop());
    while ahead.locked().await > 1 {
        tokio::task::yield_now().await;
    }
    ahead.check_uncounted().await;
    ahead.go_on.add_permits(1);
    stopped.await.unwrap().unwrap();
}
