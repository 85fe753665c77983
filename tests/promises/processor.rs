//! What the processor promises: order, parallel workflows, renewal, cancellation, panics, an orderly stop.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use seriatim::Abandon;
use seriatim::Clock;
use seriatim::Completion;
use seriatim::Context;
use seriatim::Failure;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::SequenceNumber;
use seriatim::processor::BatchOutcome;
use seriatim::queue::Backoff;
use seriatim::testing::drain;
use seriatim::view::MessageView;
use tokio::sync::Notify;
use tokio::sync::Semaphore;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

pub(crate) type Log = Arc<Mutex<Vec<String>>>;

fn text(body: &Raw) -> String {
    String::from_utf8_lossy(&body.0).into_owned()
}

pub(crate) fn note(log: &Log, what: String) {
    log.lock().expect("no test panics with it").push(what);
}

pub(crate) fn noted(log: &Log) -> Vec<String> {
    log.lock().expect("no test panics with it").clone()
}

/// The first message that is stored.
pub(crate) async fn peeked(fixture: &Fixture) -> MessageView {
    let mut page = fixture.queue.peek(SequenceNumber::new(0), 1).await.expect("the queue exists");
    page.pop().expect("a message is stored")
}

/// Lets other tasks and the engine go on until something is as it should be.
pub(crate) async fn until<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    while !condition().await {
        tokio::task::yield_now().await;
    }
}

/// Moves the clock until the lock of workflow `w` has been renewed.
pub(crate) async fn until_renewed(fixture: &Fixture) {
    let locked_until = || async {
        match fixture.status("w").await {
            Some(seriatim::view::WorkflowStatus::Locked { until }) => until,
            other => panic!("{other:?}"),
        }
    };
    let before = locked_until().await;
    until(|| async {
        // The renewal gets its turns before the clock goes on: a machine that is busy loses no lock.
        for _ in 0..50 {
            fixture.counts().await;
        }
        // Nor does a lock run out while the engine's own thread, which renews it, waits for its turn.
        if seriatim::Clock::now(&fixture.clock) + seconds(2) < before {
            fixture.clock.advance(millis(250));
        }
        locked_until().await > before
    })
    .await;
}

type Handling = Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>;

/// Handlers that say that they have begun, and end when they may.
pub(crate) struct HandlerGate {
    begun: Arc<Semaphore>,
    may_end: Arc<Semaphore>,
}

impl HandlerGate {
    pub(crate) fn new() -> HandlerGate {
        let [begun, may_end] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
        HandlerGate { begun, may_end }
    }

    pub(crate) fn handler(&self) -> impl Fn(Context, Raw) -> Handling + use<> {
        let (begun, may_end) = (self.begun.clone(), self.may_end.clone());
        move |_: Context, _: Raw| {
            let (begun, may_end) = (begun.clone(), may_end.clone());
            Box::pin(async move {
                begun.add_permits(1);
                may_end.acquire().await?.forget();
                Ok::<_, Failure>(Outcome::Complete)
            }) as Handling
        }
    }

    /// Waits until so many more have begun.
    pub(crate) async fn begun(&self, count: usize) {
        let count = u32::try_from(count).expect("not so many");
        self.begun.acquire_many(count).await.expect("nobody closes it").forget();
    }

    /// Lets so many end.
    pub(crate) fn open(&self, count: usize) {
        self.may_end.add_permits(count);
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn workflows_run_in_parallel_and_each_one_at_a_time() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in 1..=20 {
        for workflow in ["a", "b", "c"] {
            fixture.send_at(workflow, position).await;
        }
    }
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let log = Log::default();
    let handler = {
        let log = log.clone();
        let most = most.clone();
        move |context: Context, body: Raw| {
            let (running, most, log) = (running.clone(), most.clone(), log.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let id = context.message().workflow_id.clone().ok_or("no workflow")?;
                tokio::task::yield_now().await;
                note(&log, format!("{id}{}", text(&body)));
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, Failure>(Outcome::Complete)
            }
        }
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    until(|| async { fixture.counts().await.completed == 60 }).await;
    pool.stop().await.unwrap();
    assert!((2..=3).contains(&most.load(Ordering::SeqCst)), "three workflows, three at once at most");
    for workflow in ["a", "b", "c"] {
        let of_it: Vec<_> = noted(&log).into_iter().filter(|entry| entry.starts_with(workflow)).collect();
        let in_order: Vec<_> = (1..=20).map(|position| format!("{workflow}{position}")).collect();
        assert_eq!(of_it, in_order);
    }
}

#[tokio::test]
async fn every_outcome_settles_as_it_says() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(5)).await;
    for body in ["done", "state", "later", "retry", "dead", "aside", "panic", "fail"] {
        fixture.send(body, body).await;
    }
    let handler = |context: Context, body: Raw| async move {
        let first = context.attempt() == 1;
        Ok::<_, Failure>(match text(&body).as_str() {
            "state" => Outcome::CompleteWith(Completion::new().state("kept")),
            "later" if first => Outcome::Abandon(Abandon::after(seconds(10))),
            "retry" if first => Outcome::Abandon(Abandon::with_backoff()),
            "dead" => Outcome::DeadLetter { reason: "no".to_owned(), description: "never".to_owned() },
            "aside" => Outcome::Defer,
            "panic" if first => panic!("over"),
            "fail" if first => return Err(Failure::new("failed").retry_after(seconds(5))),
            _ => Outcome::Complete,
        })
    };
    let drained = drain(&fixture.queue, &fixture.clock, handler, HOUR).await.unwrap();
    assert_eq!((drained.completed, drained.failed), (6, 4), "{drained:?}");
    assert_eq!((drained.dead_lettered, drained.set_aside), (1, 1), "{drained:?}");
    let state = fixture.queue.workflow("state").unwrap().state().await.unwrap();
    assert_eq!(state.as_deref(), Some(&b"kept"[..]));
}

#[tokio::test]
async fn what_a_handler_gives_back_unstarted_counts_no_attempt() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let log = Log::default();
    let notes = log.clone();
    let handler = move |context: Context, _: Raw| {
        let notes = notes.clone();
        async move {
            note(&notes, context.attempt().to_string());
            Ok::<_, Failure>(if noted(&notes).len() == 1 { Outcome::Release } else { Outcome::Complete })
        }
    };
    drain(&fixture.queue, &fixture.clock, handler, HOUR).await.unwrap();
    assert_eq!(noted(&log), ["1", "1"]);
}

#[tokio::test]
async fn a_panic_is_a_failure_with_its_text_kept() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(1)).await;
    fixture.send("w", "1").await;
    let handler = |_: Context, body: Raw| async move {
        if text(&body) == "1" {
            panic!("out of cheese");
        }
        Ok::<_, Failure>(Outcome::Complete)
    };
    drain(&fixture.queue, &fixture.clock, handler, seconds(1)).await.unwrap();
    let messages = fixture.queue.workflow("w").unwrap().messages(0, 1).await.unwrap();
    assert_eq!(messages[0].attempts[0].reason, "the handler panicked: out of cheese");
}

#[tokio::test]
async fn a_body_the_handler_cannot_take_is_dead_lettered_and_the_workflow_goes_on() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "not a number").await;
    fixture.send("w", "42").await;
    let handler = |_: Context, number: u32| async move {
        assert_eq!(number, 42);
        Ok::<_, Failure>(Outcome::Complete)
    };
    let drained = drain(&fixture.queue, &fixture.clock, handler, seconds(1)).await.unwrap();
    assert_eq!((drained.completed, drained.dead_lettered), (1, 1));
    assert_eq!(fixture.queue.dead_letters(None, 1).await.unwrap()[0].dead_letter.reason, "MalformedBody");
}

#[tokio::test]
async fn a_failure_keeps_its_place_and_its_delay_is_chosen_per_failure() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "2"] {
        fixture.send("w", body).await;
    }
    let log = Log::default();
    let (notes, clock) = (log.clone(), fixture.clock.clone());
    let start = seriatim::Clock::now(&clock);
    let handler = move |context: Context, body: Raw| {
        let (notes, now) = (notes.clone(), seriatim::Clock::now(&clock));
        async move {
            note(&notes, format!("{} after {} s", text(&body), now.since(start).as_secs()));
            match context.attempt() {
                1 if text(&body) == "1" => Err(Failure::new("busy").retry_after(seconds(7))),
                2 if text(&body) == "1" => Err(Failure::new("busy").retry_at(start + seconds(100))),
                _ => Ok(Outcome::Complete),
            }
        }
    };
    drain(&fixture.queue, &fixture.clock, handler, HOUR).await.unwrap();
    assert_eq!(noted(&log), ["1 after 0 s", "1 after 7 s", "1 after 100 s", "2 after 100 s"]);
}

#[tokio::test]
async fn a_lock_is_renewed_as_long_as_its_handler_may_run() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(10))).await;
    fixture.send("w", "1").await;
    let gate = HandlerGate::new();
    let pool = Processor::new(fixture.queue.clone()).start(gate.handler());
    gate.begun(1).await;
    for _ in 0..5 {
        until_renewed(&fixture).await;
    }
    assert_eq!(peeked(&fixture).await.delivery_count, 1, "the lock was never lost");
    gate.open(1);
    until(|| async { fixture.counts().await.completed == 1 }).await;
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn a_handler_whose_lock_was_lost_is_cancelled_and_its_outcome_is_void() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(10))).await;
    fixture.send("w", "1").await;
    let (started, cancelled) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, cancel) = (started.clone(), cancelled.clone());
    let handler = move |context: Context, _: Raw| {
        let (start, cancel) = (start.clone(), cancel.clone());
        async move {
            start.notify_one();
            if context.attempt() == 1 {
                context.cancelled().await;
                cancel.notify_one();
            }
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    started.notified().await;
    fixture.queue.workflow("w").unwrap().release_lock().await.unwrap();
    fixture.clock.advance(seconds(7));
    cancelled.notified().await;
    until(|| async { fixture.counts().await.completed == 1 }).await;
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn stopping_waits_for_what_runs_and_counts_no_attempt_for_what_does_not() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for workflow in ["a", "b", "c"] {
        fixture.send(workflow, workflow).await;
    }
    let gate = HandlerGate::new();
    let pool = Processor::new(fixture.queue.clone()).concurrency(1).start(gate.handler());
    gate.begun(1).await;
    let stopped = tokio::spawn(pool.stop());
    gate.open(10);
    stopped.await.unwrap().unwrap();
    assert_eq!(fixture.counts().await.completed, 1);
    for _ in 0..2 {
        assert_eq!(fixture.must().await.message().delivery_count, 1, "nobody had these before");
    }
}

#[tokio::test]
async fn a_handler_that_outlasts_the_drain_is_dropped_and_counts_as_failed() {
    drops_what_outlasts_the_drain(0).await;
}

#[tokio::test]
async fn so_is_one_whose_lock_was_renewed() {
    drops_what_outlasts_the_drain(3).await;
}

/// Stops a processor whose only handler never ends, after its lock was renewed so often.
async fn drops_what_outlasts_the_drain(renewals: usize) {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let started = Arc::new(Notify::new());
    let start = started.clone();
    let handler = move |_: Context, _: Raw| {
        let start = start.clone();
        async move {
            start.notify_one();
            std::future::pending::<()>().await;
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let pool = Processor::new(fixture.queue.clone()).drain(seconds(5)).start(handler);
    started.notified().await;
    for _ in 0..renewals {
        until_renewed(&fixture).await;
    }
    let stopped = tokio::spawn(pool.stop());
    until(|| async {
        pass_a_second(&fixture).await;
        stopped.is_finished()
    })
    .await;
    let again = fixture.must().await;
    assert_eq!(again.message().delivery_count, 2);
    let reason = &again.message().attempts[0].reason;
    assert!(reason.contains("when the drain time was over"), "{reason}");
}

/// Lets a second pass, unless the lock of the only message is to be renewed before.
async fn pass_a_second(fixture: &Fixture) {
    let views =
        fixture.queue.peek(SequenceNumber::new(0), 1).await.expect("the queue is there to be looked at");
    let soon = fixture.clock.now() + seconds(5);
    if views.iter().any(|view| view.locked_until.is_some_and(|until| until > soon)) {
        fixture.clock.advance(seconds(1));
    }
}

#[tokio::test]
async fn a_batch_handler_takes_a_run_and_says_how_far_it_came() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in 1..=5 {
        fixture.send_at("w", position).await;
    }
    let log = Log::default();
    let notes = log.clone();
    let handler = move |context: Context, bodies: Vec<u64>| {
        let notes = notes.clone();
        async move {
            note(&notes, format!("{bodies:?}"));
            Ok::<_, Failure>(match context.message().rank {
                1 => BatchOutcome::first(2)
                    .then(Outcome::Abandon(Abandon::after(seconds(5)).reason("3 is busy"))),
                _ => BatchOutcome::all().with(Completion::new().state("done")),
            })
        }
    };
    let pool = Processor::new(fixture.queue.clone()).start_batches(10, handler);
    until(|| async { fixture.counts().await.retry == 1 }).await;
    fixture.clock.advance(seconds(5));
    until(|| async { fixture.counts().await.completed == 5 }).await;
    pool.stop().await.unwrap();
    assert_eq!(noted(&log), ["[1, 2, 3, 4, 5]", "[3, 4, 5]"]);
}

#[tokio::test]
async fn a_failure_whose_properties_are_too_large_keeps_its_delay_and_says_why() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let handler = |_: Context, _: Raw| async move {
        let text = "x".repeat(100_000);
        Ok::<_, Failure>(Outcome::Abandon(Abandon::after(HOUR).reason("busy").property("log", text)))
    };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    until(|| async { fixture.counts().await.retry == 1 }).await;
    pool.stop().await.unwrap();
    let message = peeked(&fixture).await;
    assert!(message.attempts[0].reason.contains("properties"), "{:?}", message.attempts);
    assert!(fixture.next().await.is_none(), "it is not tried again before its time");
    fixture.clock.advance(HOUR);
    assert_eq!(fixture.must().await.message().delivery_count, 2);
}

#[tokio::test]
async fn a_batch_that_says_what_cannot_be_of_its_next_message_has_failed_there() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in 1..=3 {
        fixture.send_at("w", position).await;
    }
    let handler = |_: Context, _: Vec<u64>| async move {
        let impossible = Outcome::DeadLetter { reason: String::new(), description: String::new() };
        Ok::<_, Failure>(BatchOutcome::first(1).then(impossible))
    };
    let pool = Processor::new(fixture.queue.clone()).start_batches(10, handler);
    until(|| async { fixture.counts().await.retry >= 1 }).await;
    pool.stop().await.unwrap();
    assert_eq!(fixture.counts().await.completed, 1);
    let message = peeked(&fixture).await;
    assert!(message.attempts[0].reason.contains("reason"), "{:?}", message.attempts);
}

#[tokio::test]
async fn a_batch_that_asks_for_a_retry_and_does_not_say_why_has_failed_with_a_reason() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 1).await;
    let handler = |_: Context, _: Vec<u64>| async move {
        Ok::<_, Failure>(BatchOutcome::first(0).then(Outcome::Abandon(Abandon::after(HOUR))))
    };
    let pool = Processor::new(fixture.queue.clone()).start_batches(10, handler);
    until(|| async { fixture.counts().await.retry == 1 }).await;
    pool.stop().await.unwrap();
    assert_eq!(peeked(&fixture).await.attempts[0].reason, "the handler asked for a retry");
}

/// A body whose reading panics.
#[derive(Debug)]
struct Unreadable;

impl<'de> serde::Deserialize<'de> for Unreadable {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Unreadable, D::Error> {
        panic!("it cannot be read")
    }
}

#[tokio::test]
async fn a_panic_while_a_body_is_read_is_a_failure_with_its_text_kept() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(1)).await;
    fixture.send("w", "1").await;
    let handler = |_: Context, _: Unreadable| async move { Ok::<_, Failure>(Outcome::Complete) };
    drain(&fixture.queue, &fixture.clock, handler, seconds(1)).await.unwrap();
    let messages = fixture.queue.workflow("w").unwrap().messages(0, 1).await.unwrap();
    assert_eq!(messages[0].attempts[0].reason, "the handler panicked: it cannot be read");
}

#[tokio::test]
async fn a_backoff_of_the_processor_replaces_the_queues() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let backoff = Backoff { first: millis(1), factor: 1, max: millis(1) };
    let handler = |context: Context, _: Raw| async move {
        if context.attempt() < 3 { Err("no") } else { Ok(Outcome::Complete) }
    };
    let pool = Processor::new(fixture.queue.clone()).backoff(backoff).start(handler);
    until(|| async {
        fixture.clock.advance(millis(1));
        fixture.counts().await.completed == 1
    })
    .await;
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn a_processor_of_a_queue_that_is_gone_ends_with_an_error() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let handler = |_: Context, _: Raw| async move { Ok::<_, Failure>(Outcome::Complete) };
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    fixture.engine.client().delete_queue("q").await.unwrap();
    until(|| async { pool.is_finished() }).await;
    assert!(pool.stop().await.is_err());
}
