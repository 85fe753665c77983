//! What a processor promises of handlers that block their thread.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use seriatim::Context;
use seriatim::Failure;
use seriatim::Outcome;
use seriatim::Processor;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::processor::BatchOutcome;
use seriatim::processor::Blocking;
use seriatim::processor::Handler;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;
use crate::promises::processor::peeked;
use crate::promises::processor::until;
use crate::promises::processor::until_renewed;

/// What threads wait at.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn wait(&self) {
        let (is_open, opened) = &*self.0;
        let is_open = is_open.lock().expect("nobody panics with it");
        drop(opened.wait_while(is_open, |is_open| !*is_open).expect("nobody panics with it"));
    }

    fn open(&self) {
        *self.0.0.lock().expect("nobody panics with it") = true;
        self.0.1.notify_all();
    }
}

async fn fixture_of(workflows: usize) -> Fixture {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(1)).await;
    for workflow in 0..workflows {
        fixture.send(&format!("w{workflow}"), "body").await;
    }
    fixture
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_all_threads_lose_no_lock_nor_do_those_that_wait_for_a_thread() {
    let fixture = fixture_of(8).await;
    let (gate, calls) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (wait, count) = (gate.clone(), calls.clone());
    let handler = move |_: Context, _: Raw| {
        let (wait, count) = (wait.clone(), count.clone());
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            wait.wait();
            Ok::<_, Failure>(Outcome::Complete)
        }
    };
    let pool = Processor::new(fixture.queue.clone()).concurrency(8).start(handler);
    until(|| async { fixture.counts().await.locked == 8 }).await;
    // Three lock times and more.
    let end = seriatim::Clock::now(&fixture.clock) + seconds(100);
    for _ in 0..300_000 {
        let due = fixture.engine.client().next_due().await.expect("the engine is open");
        let now = seriatim::Clock::now(&fixture.clock);
        if now >= end {
            break;
        }
        // No lock runs out while the thread that renews it waits for its turn.
        if due.is_none_or(|due| now + seconds(2) < due) {
            fixture.clock.advance(millis(250));
        }
    }
    let locked = fixture.counts().await.locked;
    gate.open();
    assert!(seriatim::Clock::now(&fixture.clock) >= end, "the locks are renewed");
    assert_eq!(locked, 8);
    until(|| async { fixture.counts().await.completed == 8 }).await;
    pool.stop().await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 8, "each was called once");
}

#[tokio::test]
async fn a_blocking_handler_leaves_the_runtime_to_others() {
    let fixture = fixture_of(3).await;
    let gate = Gate::default();
    let wait = gate.clone();
    let handler = Processor::blocking(move |_: Context, _: Raw| {
        wait.wait();
        Ok::<_, Failure>(Outcome::Complete)
    });
    let pool = Processor::new(fixture.queue.clone()).start(handler);
    until(|| async { fixture.counts().await.locked == 3 }).await;
    gate.open();
    until(|| async { fixture.counts().await.completed == 3 }).await;
    pool.stop().await.unwrap();
}

#[tokio::test]
async fn a_panic_of_a_blocking_handler_is_a_failure() {
    let fixture = fixture_of(1).await;
    let handler = Processor::blocking(|_: Context, _: Vec<Raw>| -> Result<BatchOutcome, Failure> {
        panic!("out of cheese");
    });
    let pool = Processor::new(fixture.queue.clone()).start_batches::<Raw>(4, handler);
    until(|| async { fixture.counts().await.exhausted == 1 }).await;
    pool.stop().await.unwrap();
    let peeked = fixture.queue.peek(seriatim::SequenceNumber::new(0), 1).await.unwrap();
    assert_eq!(peeked[0].attempts[0].reason, "the handler panicked: out of cheese");
}

/// Counts its calls that are over, whether they have ended or were dropped.
struct CountedHandler<F> {
    handler: Blocking<F>,
    over: Arc<AtomicUsize>,
}

struct CallGuard(Arc<AtomicUsize>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<F> Handler<Raw> for CountedHandler<F>
where
    F: Fn(Context, Raw) -> Result<Outcome, Failure> + Clone + Send + Sync + 'static,
{
    async fn handle(&self, context: Context, body: Raw) -> Result<Outcome, Failure> {
        let _call = CallGuard(self.over.clone());
        self.handler.handle(context, body).await
    }
}

async fn no_call_begins_late() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "body").await;
    let (gate, over) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (wait, attempts) = (gate.clone(), Arc::new(Mutex::new(Vec::new())));
    let busy = tokio::task::spawn_blocking(move || wait.wait());
    let seen = attempts.clone();
    let handler = Processor::blocking(move |context: Context, _: Raw| {
        seen.lock().expect("nobody panics with it").push(context.attempt());
        Ok(Outcome::Complete)
    });
    let pool = Processor::new(fixture.queue.clone()).start(CountedHandler { handler, over: over.clone() });
    until(|| async { fixture.counts().await.locked == 1 }).await;
    let workflow = fixture.queue.workflow("w").expect("a good ID");
    workflow.release_lock().await.expect("it is held");
    until(|| async {
        let is_locked = matches!(fixture.status("w").await, Some(WorkflowStatus::Locked { .. }));
        is_locked && peeked(&fixture).await.delivery_count == 2
    })
    .await;
    until_renewed(&fixture).await;
    // The handler of the lost lock has a second to end by itself; the other lock lasts ten times as long.
    let end = seriatim::Clock::now(&fixture.clock) + seconds(5);
    until(|| async {
        if seriatim::Clock::now(&fixture.clock) < end {
            fixture.clock.advance(millis(250));
        }
        over.load(Ordering::SeqCst) == 1
    })
    .await;
    gate.open();
    busy.await.expect("nobody panics with it");
    until(|| async { fixture.counts().await.completed == 1 }).await;
    pool.stop().await.expect("the engine is open");
    assert_eq!(*attempts.lock().expect("nobody panics with it"), [2]);
}

/// A runtime with one thread for what blocks.
fn with_one_thread(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().expect("the runtime starts");
    runtime.block_on(test);
}

#[test]
fn a_blocking_handler_does_not_begin_after_its_message_was_given_back() {
    with_one_thread(no_call_begins_late());
}

async fn none_is_counted_without_a_thread() {
    let fixture = fixture_of(1).await;
    let gate = Gate::default();
    let wait = gate.clone();
    let busy = tokio::task::spawn_blocking(move || wait.wait());
    let handler = Processor::blocking(|_: Context, _: Raw| Ok::<_, Failure>(Outcome::Complete));
    let pool = Processor::new(fixture.queue.clone()).drain(seconds(5)).start(handler);
    until(|| async { fixture.counts().await.locked == 1 }).await;
    let stopped = tokio::spawn(pool.stop());
    until(|| async {
        // Who is told of the end gets its turns before the time to end by itself is over, too.
        for _ in 0..20 {
            fixture.counts().await;
        }
        fixture.clock.advance(millis(250));
        stopped.is_finished()
    })
    .await;
    let again = fixture.next().await;
    gate.open();
    busy.await.expect("nobody panics with it");
    assert_eq!(again.map(|again| again.message().delivery_count), Some(1));
}

#[test]
fn a_blocking_handler_that_finds_no_thread_before_the_drain_is_over_counts_as_no_attempt() {
    with_one_thread(none_is_counted_without_a_thread());
}
