//! What a processor promises of many messages at once: completed together, judged each for itself, kept while they last.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use seriatim::Context;
use seriatim::Failure;
use seriatim::Message;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::QueueOptions;
use seriatim::Raw;
use tokio::sync::Semaphore;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;
use crate::promises::processor::HandlerGate;
use crate::promises::processor::until;
use crate::promises::processor::until_renewed;

/// A fixture whose workflows have one message each, and a processor that holds all of them until it is let go on.
async fn fixture_with_all_held(workflows: usize) -> (Fixture, seriatim::processor::Running, HandlerGate) {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for workflow in 0..workflows {
        fixture.send(&format!("w{workflow}"), "body").await;
    }
    let gate = HandlerGate::new();
    let pool = Processor::new(fixture.queue.clone()).concurrency(workflows).start(gate.handler());
    gate.begun(workflows).await;
    (fixture, pool, gate)
}

#[tokio::test]
async fn what_many_handlers_have_done_is_completed_in_few_requests() {
    let (fixture, pool, gate) = fixture_with_all_held(200).await;
    let before = fixture.engine.client().commit_stats().answers;
    gate.open(200);
    until(|| async { fixture.counts().await.completed == 200 }).await;
    let requests = fixture.engine.client().commit_stats().answers - before;
    assert!(requests < 20, "200 completions took {requests} requests");
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_was_lost_keeps_no_other_from_being_completed() {
    let (fixture, pool, gate) = fixture_with_all_held(3).await;
    fixture.queue.workflow("w1").unwrap().release_lock().await.unwrap();
    // The three end together; then there is a slot in which the one that lost its lock is handled again.
    gate.open(3);
    until(|| async { fixture.counts().await.completed == 2 }).await;
    gate.open(1);
    until(|| async { fixture.counts().await.completed == 3 }).await;
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_done_when_a_processor_is_stopped_is_completed_before_it_ends() {
    let (fixture, pool, gate) = fixture_with_all_held(50).await;
    let stopped = tokio::spawn(pool.stop());
    gate.open(50);
    stopped.await.unwrap().unwrap();
    assert_eq!(fixture.counts().await.completed, 50);
}

#[tokio::test]
async fn what_is_done_is_completed_although_nobody_waits_for_the_processor_any_more() {
    // More than go into the requests that are under way when it is dropped.
    const MANY: u32 = 3_000;
    let fixture = Fixture::new(QueueOptions::default()).await;
    for first in (0..MANY).step_by(1_000) {
        let messages =
            (first..first + 1_000).map(|number| Message::new("body").workflow(format!("w{number}")));
        fixture.queue.send_batch(messages).await.unwrap();
    }
    let [started, go_on, done] = [(); 3].map(|()| Arc::new(Semaphore::new(0)));
    let (start, gate, end) = (started.clone(), go_on.clone(), done.clone());
    let handler = move |_: Context, _: Raw| {
        let (start, gate, end) = (start.clone(), gate.clone(), end.clone());
        async move {
            start.add_permits(1);
            gate.acquire().await?.forget();
            end.add_permits(1);
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let all_done = async {
        let _all = started.acquire_many(MANY).await.unwrap();
        go_on.add_permits(MANY as usize);
        done.acquire_many(MANY).await.map(drop)
    };
    let processor = Processor::new(fixture.queue.clone()).concurrency(MANY as usize);
    tokio::select! {
        ended = processor.run_until(handler, std::future::pending()) => panic!("{ended:?}"),
        all = all_done => all.unwrap(),
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
        let counts = fixture.counts().await;
        if counts.completed == u64::from(MANY) {
            return;
        }
    }
    panic!("{:?}", fixture.counts().await);
}

/// Notes that it was dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_handler_that_always_has_something_to_do_is_dropped_when_its_lock_is_lost() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(10))).await;
    fixture.send("w", "1").await;
    let (started, is_gone) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let (start, gone) = (started.clone(), is_gone.clone());
    let handler = move |context: Context, _: Raw| {
        start.add_permits(1);
        let dropped = Dropped(gone.clone());
        async move {
            let _dropped = dropped;
            while context.attempt() == 1 {
                tokio::task::consume_budget().await;
            }
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    let _one = started.acquire().await.unwrap();
    fixture.queue.workflow("w").unwrap().hold("").await.unwrap();
    fixture.queue.workflow("w").unwrap().release_lock().await.unwrap();
    for _ in 0..1_000 {
        fixture.clock.advance(seconds(1));
        fixture.counts().await;
        if is_gone.load(Ordering::Relaxed) {
            return pool.stop().await.unwrap();
        }
    }
    panic!("it runs on without its lock");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_keeps_its_thread_busy_keeps_its_lock() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(10))).await;
    fixture.send("w", "1").await;
    let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel();
    let (finish, finished) = mpsc::channel::<()>();
    let finished = Arc::new(Mutex::new(finished));
    let handler = move |_: Context, _: Raw| {
        let (started, finished) = (started.clone(), finished.clone());
        async move {
            started.send(())?;
            // No await: whoever shares its task has to wait.
            let _ = finished.lock().map(|finished| finished.recv());
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    has_started.recv().await.unwrap();
    until_renewed(&fixture).await;
    finish.send(()).unwrap();
    until(|| async { fixture.counts().await.completed == 1 }).await;
    pool.stop().await.unwrap();
}
