//! What a processor promises of messages that are taken.

mod ahead;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::Abandon;
use crate::engine::Completion;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::engine::ReceivedMessage;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::DeliveryEnd;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::processor::Running;
use crate::processor::taker::Assignment;
use crate::processor::taker::Taker;
use crate::queue::QueueOptions;
use crate::testing::ManualClock;

/// For how long locks are renewed.
const RENEW_FOR: Duration = Duration::from_secs(60);

/// What a taker is told.
enum Notice {
    Take(Vec<Assignment>),
    GiveBack(u64),
    Cancel(u64),
    GiveUp(u64),
    GiveUpAll,
}

/// Takes every message whose body is not `alone`, and passes on what it is told.
struct Listener {
    signalled: mpsc::UnboundedSender<Notice>,
    /// Whether what it has taken waits.
    waits: Arc<AtomicBool>,
}

impl Taker for Listener {
    fn takes(&self, message: &ReceivedMessage) -> bool {
        message.body != "alone"
    }

    fn take(&self, assignments: Vec<Assignment>) {
        let _ = self.signalled.send(Notice::Take(assignments));
    }

    fn is_waiting(&self, _number: u64) -> bool {
        self.waits.load(Ordering::SeqCst)
    }

    fn give_back(&self, number: u64) {
        if self.waits.load(Ordering::SeqCst) {
            let _ = self.signalled.send(Notice::GiveBack(number));
        }
    }

    fn cancel(&self, number: u64) {
        let _ = self.signalled.send(Notice::Cancel(number));
    }

    fn give_up(&self, number: u64) {
        let _ = self.signalled.send(Notice::GiveUp(number));
    }

    fn give_up_all(&self) {
        let _ = self.signalled.send(Notice::GiveUpAll);
    }
}

/// A queue with a processor whose messages are taken.
struct Stage {
    _engine: Engine,
    clock: ManualClock,
    queue: Queue,
    running: Running,
    signalled: mpsc::UnboundedReceiver<Notice>,
    waits: Arc<AtomicBool>,
    /// Messages that were handled alone.
    alone: Arc<Semaphore>,
}

impl Stage {
    /// With a message of each of these workflows, or two of one that is named twice.
    async fn new(workflows: &[&str]) -> Stage {
        Stage::with(workflows, |processor| processor).await
    }

    /// With a processor that is set up by `change`.
    async fn with(workflows: &[&str], change: impl FnOnce(Processor) -> Processor) -> Stage {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        for workflow in workflows {
            queue.send(Message::new("1").workflow(*workflow)).await.unwrap();
        }
        let (reply, signalled) = mpsc::unbounded_channel();
        let alone = Arc::new(Semaphore::new(0));
        let handled = alone.clone();
        let handler = move |_: Context, _: Raw| {
            let handled = handled.clone();
            async move {
                handled.add_permits(1);
                Ok::<_, Failure>(Outcome::Complete)
            }
        };
        let waits = Arc::new(AtomicBool::new(false));
        let listener = Listener { signalled: reply, waits: waits.clone() };
        let processor = Processor::new(queue.clone()).drain(Duration::from_secs(5)).renew_for(RENEW_FOR);
        let running = change(processor).taker(Arc::new(listener)).start(handler);
        Stage { _engine: engine, clock, queue, running, signalled, waits, alone }
    }

    /// The next assignments.
    async fn taken(&mut self) -> Vec<Assignment> {
        match self.signalled.recv().await {
            Some(Notice::Take(assignments)) => assignments,
            _ => panic!("something else than messages to take"),
        }
    }

    /// Moves the clock until the taker is told something.
    async fn next_notice(&mut self) -> Notice {
        self.notice_before(Timestamp::MAX).await
    }

    /// The same, but moves it no further than to an instant.
    async fn notice_before(&mut self, until: Timestamp) -> Notice {
        while self.clock.now() < until {
            if let Ok(signalled) = self.signalled.try_recv() {
                return signalled;
            }
            self.go_on().await;
        }
        self.signalled.recv().await.expect("the taker is told something")
    }

    /// Moves the clock a little.
    async fn go_on(&self) {
        // The renewal gets its turns before the clock goes on.
        for _ in 0..50 {
            self.queue.view().await.unwrap();
        }
        // Nor does a lock run out while the thread that renews it waits for its turn.
        let is_locked = self.queue.view().await.unwrap().counts.locked > 0;
        let due = self.queue.client().next_due().await.unwrap();
        if !is_locked || due.is_none_or(|due| self.clock.now() + Duration::from_secs(2) < due) {
            self.clock.advance(Duration::from_millis(250));
        }
    }

    async fn completed(&self, count: u64) {
        while self.queue.view().await.unwrap().counts.completed < count {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn what_is_taken_is_settled_as_the_taker_says_and_the_next_of_its_workflow_comes_then() {
    let mut stage = Stage::new(&["a", "b", "c", "c"]).await;
    let mut taken = stage.taken().await;
    assert_eq!(taken.len(), 3);
    for assignment in taken.drain(..) {
        let first = assignment.context().message().workflow_id.as_ref().is_some_and(|id| id.as_str() == "a");
        assignment.end(if first { Err(Failure::new("not today")) } else { Ok(Outcome::Complete) });
    }
    let behind = stage.taken().await;
    assert_eq!(behind.len(), 1, "the second of c, while a waits for its next attempt");
    for assignment in behind {
        assignment.end(Ok(Outcome::Defer));
    }
    stage.completed(2).await;
    let Notice::Take(again) = stage.next_notice().await else { panic!("a is tried again") };
    assert_eq!((again.len(), again[0].context().attempt()), (1, 2));
    assert_eq!(again[0].context().message().attempts[0].reason, "not today");
    again.into_iter().for_each(|assignment| assignment.end(Ok(Outcome::Complete)));
    stage.running.stop().await.unwrap();
    assert_eq!(stage.queue.view().await.unwrap().counts.completed, 3);
}

#[tokio::test]
async fn suspects_whose_attempts_do_not_end_keep_no_other_from_being_taken() {
    let mut stage = Stage::with(&["a", "b"], |processor| processor.concurrency(2)).await;
    let mut suspects = Vec::new();
    for assignment in stage.taken().await {
        let shared = Failure::new("with another").retry_after(Duration::ZERO);
        assignment.end(Err(Failure { is_shared: true, ..shared }));
    }
    while suspects.len() < 2 {
        suspects.extend(stage.taken().await);
    }
    assert!(suspects.iter().all(|suspect| suspect.context().message().is_suspect()));
    stage.queue.send(Message::new("1").workflow("c")).await.unwrap();
    let taken = tokio::time::timeout(Duration::from_secs(60), stage.taken()).await;
    let other = taken.expect("it is taken beside them");
    assert_eq!(other[0].context().message().workflow_id.as_ref().unwrap().as_str(), "c");
}

#[tokio::test]
async fn what_is_not_taken_is_handled_by_itself() {
    let stage = Stage::new(&[]).await;
    stage.queue.send(Message::new("alone").workflow("w")).await.unwrap();
    stage.alone.acquire().await.unwrap().forget();
    stage.completed(1).await;
    stage.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_is_lost_is_told_to_the_taker_which_is_then_given_a_moment() {
    let mut stage = Stage::new(&["w"]).await;
    let taken = stage.taken().await;
    stage.queue.workflow("w").unwrap().release_lock().await.unwrap();
    // It is offered again at once, and taken again: by another child, or another processor.
    let again = stage.taken().await;
    let Notice::Cancel(number) = stage.next_notice().await else { panic!("it is cancelled first") };
    assert_eq!(number, taken[0].number());
    assert!(taken[0].context().is_cancelled() && !again[0].context().is_cancelled());
    let Notice::GiveUp(number) = stage.next_notice().await else { panic!("then it is given up") };
    assert_eq!(number, taken[0].number());
    // What a lost one says is void.
    taken.into_iter().for_each(|assignment| assignment.end(Ok(Outcome::Complete)));
    again.into_iter().for_each(|assignment| assignment.end(Ok(Outcome::Complete)));
    stage.completed(1).await;
    stage.running.stop().await.unwrap();
    assert_eq!(stage.queue.view().await.unwrap().counts.completed, 1);
}

#[tokio::test]
async fn a_processor_that_is_stopped_waits_for_what_is_taken() {
    let mut stage = Stage::new(&["w"]).await;
    let taken = stage.taken().await;
    let stopped = tokio::spawn(stage.running.stop());
    for _ in 0..50 {
        stage.queue.view().await.unwrap();
    }
    assert!(!stopped.is_finished());
    taken.into_iter().for_each(|assignment| assignment.end(Ok(Outcome::Complete)));
    stopped.await.unwrap().unwrap();
    assert_eq!(stage.queue.view().await.unwrap().counts.completed, 1);
}

#[tokio::test]
async fn what_outlasts_the_drain_is_given_up() {
    let mut stage = Stage::new(&["w"]).await;
    let taken = stage.taken().await;
    let (queue, clock, mut signalled) = (stage.queue, stage.clock, stage.signalled);
    let stopped = tokio::spawn(stage.running.stop());
    let begun = clock.now();
    while signalled.is_empty() {
        // As far as the drain lasts, and not to where the lock runs out before whoever waits for the drain had his turn.
        if clock.now() < begun + Duration::from_secs(20) {
            clock.advance(Duration::from_secs(1));
        }
        queue.view().await.unwrap();
    }
    assert!(matches!(signalled.recv().await, Some(Notice::GiveUpAll)));
    drop(taken);
    stopped.await.unwrap().unwrap();
    let again = queue.receive(Duration::ZERO).await.unwrap();
    assert!(again.is_none(), "it has failed, and waits for its next attempt");
}

#[tokio::test]
async fn what_is_taken_is_given_up_when_its_processor_is_dropped() {
    let (engine, _clock) = crate::testing::engine().await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send(Message::new("1").workflow("w")).await.unwrap();
    let (reply, mut signalled) = mpsc::unbounded_channel();
    let listener = Listener { signalled: reply, waits: Arc::default() };
    let processor = Processor::new(queue).taker(Arc::new(listener));
    let handler = |_: Context, _: Raw| async { Ok::<_, Failure>(Outcome::Complete) };
    let taken = tokio::select! {
        ended = processor.run_until(handler, std::future::pending()) => panic!("{ended:?}"),
        taken = signalled.recv() => taken,
    };
    assert!(matches!(taken, Some(Notice::Take(_))));
    assert!(matches!(signalled.recv().await, Some(Notice::GiveUpAll)));
}

#[tokio::test]
async fn attempts_are_counted_by_how_their_deliveries_ended_and_not_by_what_was_said() {
    let (engine, _clock) = crate::testing::engine().await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for body in ["done", "send", "again"] {
        queue.send(Message::new(body).workflow(body)).await.unwrap();
    }
    let handler = |_: Context, body: Raw| async move {
        Ok::<_, Failure>(match &body.0[..] {
            b"send" => Outcome::CompleteWith(Completion::new().send("no-such-queue", Message::new("1"))),
            b"again" => Outcome::Abandon(Abandon::with_backoff()),
            _ => Outcome::Complete,
        })
    };
    let (noted, mut ended) = mpsc::unbounded_channel();
    let counted = move |end, count| (0..count).for_each(|_| noted.send(end).unwrap());
    let running = Processor::new(queue).counting(counted).start(handler);
    let mut ends = Vec::new();
    for _ in 0..3 {
        ends.push(ended.recv().await.unwrap());
    }
    for end in [DeliveryEnd::Completed, DeliveryEnd::Failed, DeliveryEnd::Abandoned] {
        assert!(ends.contains(&end), "{ends:?}");
    }
    running.stop().await.unwrap();
}
