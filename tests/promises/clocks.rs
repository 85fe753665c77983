//! Two clocks: durations run on engine time, given instants are compared with the wall clock, and no step of that changes
//! the one or fires the other early.

use std::time::Duration;

use seriatim::Clock;
use seriatim::Context;
use seriatim::Failure;
use seriatim::Message;
use seriatim::Outcome;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::Raw;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::clock::ClockSteps;
use seriatim::testing::ManualClock;
use seriatim::testing::drain;
use seriatim::view::MessageStatus;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn step_forward(clock: &ManualClock, by: Duration) {
    clock.step(clock.now() + by);
}

fn step_back(clock: &ManualClock, by: Duration) {
    let back = clock.now().as_millis() - u64::try_from(by.as_millis()).expect("a small step");
    clock.step(Timestamp::from_millis(back));
}

/// The clock shows tomorrow for 1.7 s, in which something is sent.
async fn glitch(clock: &ManualClock, queue: &Queue) {
    step_forward(clock, DAY);
    queue.send(Message::new("meanwhile")).await.expect("the engine answers");
    clock.advance(millis(1_700));
    step_back(clock, DAY);
}

async fn is_ready(queue: &Queue) -> bool {
    queue.receive(Duration::ZERO).await.expect("the engine answers").is_some()
}

#[tokio::test]
async fn what_is_set_aside_for_a_while_comes_back_after_it_whatever_the_wall_clock_shows() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("aside", "").await;
    fixture.must().await.defer_for(seconds(60)).await.unwrap();
    step_forward(&fixture.clock, DAY);
    assert!(!is_ready(&fixture.queue).await);
    step_back(&fixture.clock, DAY);
    fixture.clock.advance(seconds(60));
    assert!(is_ready(&fixture.queue).await);
}

#[tokio::test]
async fn a_delayed_message_comes_after_its_delay_and_lives_from_then_on_whatever_the_wall_clock_shows() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let message = Message::new("later").delay(seconds(60)).time_to_live(seconds(10));
    let number = fixture.queue.send(message).await.unwrap().sequence_number().unwrap();
    let shown = fixture.queue.peek(number, 1).await.unwrap().remove(0);
    let due = fixture.clock.now() + seconds(60);
    assert_eq!(shown.status, MessageStatus::Scheduled { until: due });
    step_forward(&fixture.clock, DAY);
    // It is noticed now, and believed after half a minute.
    for passed in [0, 40, 19] {
        fixture.clock.advance(seconds(passed));
        assert!(!is_ready(&fixture.queue).await, "a minute has not passed");
    }
    step_back(&fixture.clock, DAY);
    fixture.clock.advance(seconds(1));
    fixture.must().await.release().await.unwrap();
    fixture.clock.advance(seconds(9));
    fixture.must().await.release().await.unwrap();
    fixture.clock.advance(seconds(1));
    assert!(!is_ready(&fixture.queue).await, "it has lived for its ten seconds");
    assert_eq!(fixture.queue.dead_letters(None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_delayed_message_that_is_rescheduled_lives_as_long_as_it_would_have() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let message = Message::new("later").delay(seconds(60)).time_to_live(seconds(10));
    let number = fixture.queue.send(message).await.unwrap().sequence_number().unwrap();
    fixture.queue.reschedule(number, fixture.clock.now() + seconds(120)).await.unwrap();
    fixture.clock.advance(seconds(119));
    assert!(!is_ready(&fixture.queue).await);
    fixture.clock.advance(seconds(10));
    fixture.must().await.complete().await.unwrap();
}

#[tokio::test]
async fn one_forward_step_of_a_day_for_1_7_s_with_one_send_changes_no_lock_and_no_retry() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(2))).await;
    let held = fixture.send("held", "").await;
    let lock = fixture.must().await;
    fixture.send("retried", "").await;
    fixture.must().await.abandon_after(seconds(1), "later").await.unwrap();
    let begun = fixture.clock.now();
    assert_eq!(lock.locked_until(), begun + seconds(2));
    glitch(&fixture.clock, &fixture.queue).await;
    assert_eq!(
        fixture.drain().await.len(),
        2,
        "the retry was due after a second, beside what was sent meanwhile"
    );
    let view = &fixture.queue.peek(held, 1).await.unwrap()[0];
    assert_eq!(view.status, MessageStatus::Locked { until: begun + seconds(2) });
    fixture.clock.advance(millis(300));
    assert!(is_ready(&fixture.queue).await, "the lock has run out after two seconds");
    drop(lock);
}

#[tokio::test]
async fn one_forward_step_of_a_day_changes_no_retry_after_a_restart_either() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    queue.send(Message::new("retried")).await.unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    delivery.abandon_after(seconds(10), "later").await.unwrap();
    glitch(&fixture.clock, &queue).await;
    assert!(queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.is_ok());
    engine.close().await;
    drop(delivery);
    fixture.clock.advance(millis(300));
    let (_engine, queue) = fixture.open().await;
    fixture.clock.advance(millis(7_999));
    assert!(!is_ready(&queue).await, "it was failed 9.999 s ago");
    fixture.clock.advance(millis(1));
    assert!(is_ready(&queue).await, "it was failed 10 s ago");
}

#[tokio::test]
async fn a_restart_while_the_clock_is_a_day_ahead_changes_no_retry_and_no_schedule() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let later = fixture.clock.now() + seconds(3_600);
    queue.send(Message::new("scheduled").schedule_at(later)).await.unwrap();
    queue.send(Message::new("retried")).await.unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    delivery.abandon_after(seconds(10), "later").await.unwrap();
    step_forward(&fixture.clock, DAY);
    queue.workflow("other").unwrap().set_state(Some("stamped".into())).await.unwrap();
    engine.close().await;
    drop(delivery);
    let (_engine, queue) = fixture.open().await;
    assert!(!is_ready(&queue).await);
    fixture.clock.advance(seconds(9));
    step_back(&fixture.clock, DAY);
    assert!(!is_ready(&queue).await);
    fixture.clock.advance(seconds(1));
    assert!(is_ready(&queue).await, "the retry");
    fixture.clock.set(later);
    assert!(is_ready(&queue).await, "the schedule");
}

#[tokio::test]
async fn a_scheduled_message_is_not_early_when_the_clock_steps_forward_and_back() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let due = fixture.clock.now() + seconds(60);
    fixture.accept(Message::new("").schedule_at(due)).await;
    step_forward(&fixture.clock, DAY);
    assert!(fixture.next().await.is_none());
    fixture.clock.advance(millis(29_999));
    assert!(fixture.next().await.is_none(), "the step has not lasted");
    step_back(&fixture.clock, DAY);
    fixture.clock.advance(millis(30_000));
    assert!(fixture.next().await.is_none());
    fixture.clock.advance(millis(1));
    assert_eq!(fixture.clock.now(), due);
    assert!(fixture.next().await.is_some());
}

#[tokio::test]
async fn given_instants_follow_a_step_forward_that_has_lasted() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.accept(Message::new("").schedule_at(fixture.clock.now() + DAY)).await;
    step_forward(&fixture.clock, DAY);
    fixture.counts().await;
    fixture.clock.advance(seconds(30));
    assert!(fixture.next().await.is_some());
}

#[tokio::test]
async fn given_instants_follow_a_step_back_at_once_and_durations_do_not() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let due = fixture.clock.now() + seconds(60);
    fixture.accept(Message::new("scheduled").schedule_at(due)).await;
    fixture.accept(Message::new("lives").time_to_live(seconds(60))).await;
    step_back(&fixture.clock, seconds(3_600));
    fixture.clock.advance(seconds(60));
    assert!(fixture.next().await.is_none(), "the one has expired, the other is due in an hour");
    assert_eq!(fixture.counts().await.scheduled, 1);
    fixture.clock.set(due);
    assert!(fixture.next().await.is_some());
}

#[tokio::test]
async fn a_scheduled_message_lives_from_its_instant_on_whatever_the_clock_does_then() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let due = fixture.clock.now() + seconds(60);
    fixture.accept(Message::new("").schedule_at(due).time_to_live(seconds(10))).await;
    fixture.clock.set(due);
    assert_eq!(fixture.counts().await.ready, 1);
    step_back(&fixture.clock, seconds(3_600));
    fixture.clock.advance(millis(9_999));
    assert_eq!(fixture.counts().await.ready, 1);
    fixture.clock.advance(millis(1));
    assert_eq!(fixture.counts().await.ready, 0, "it has lived for ten seconds");
}

#[tokio::test]
async fn a_step_is_recorded_with_its_size_and_known_after_a_restart() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    step_forward(&fixture.clock, DAY);
    queue.send(Message::new("")).await.unwrap();
    fixture.clock.advance(seconds(1));
    step_back(&fixture.clock, DAY);
    queue.send(Message::new("")).await.unwrap();
    let check = |steps: ClockSteps| {
        assert_eq!((steps.forward, steps.back), (1, 1));
        let last = steps.last.expect("there was one");
        assert!(!last.is_forward() && last.size() == DAY, "{last}");
    };
    check(engine.client().clock_steps());
    engine.close().await;
    let (engine, _) = fixture.open().await;
    check(engine.client().clock_steps());
}

#[tokio::test]
async fn instants_are_shown_by_the_wall_clock() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    step_back(&fixture.clock, DAY);
    let number = fixture.send("w", "").await;
    let delivery = fixture.must().await;
    let now = fixture.clock.now();
    assert_eq!(delivery.message().accepted_at, now);
    assert_eq!(delivery.locked_until(), now + seconds(30));
    fixture.clock.advance(seconds(1));
    let mut delivery = delivery;
    delivery.abandon_after(seconds(10), "later").await.unwrap();
    let view = &fixture.queue.peek(number, 1).await.unwrap()[0];
    assert_eq!((view.attempts[0].at, view.attempts[0].lasted), (now, seconds(1)));
    let until = Some(now + seconds(11));
    assert!(matches!(view.status, MessageStatus::Deferred { until: shown, .. } if shown == until));
    assert_eq!(fixture.engine.client().next_due().await.unwrap(), until);
    assert_eq!(fixture.queue.peek(SequenceNumber::new(0), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_drain_lets_time_pass_until_a_step_of_the_clock_is_believed_and_no_more_than_it_may() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let at = fixture.clock.now() + seconds(3_600);
    fixture.accept(Message::new("in an hour").schedule_at(at)).await;
    step_forward(&fixture.clock, DAY);
    let handler = |_: Context, _: Raw| async { Ok::<_, Failure>(Outcome::Complete) };
    let (shown, passed) = (fixture.clock.now(), fixture.clock.elapsed());
    let drained = drain(&fixture.queue, &fixture.clock, handler, seconds(29)).await.unwrap();
    assert_eq!(drained.completed, 0);
    assert!(fixture.clock.elapsed() - passed <= seconds(29));
    let drained = drain(&fixture.queue, &fixture.clock, handler, seconds(40)).await.unwrap();
    assert_eq!(drained.completed, 1);
    assert_eq!(fixture.clock.now().since(shown), fixture.clock.elapsed() - passed);
}
