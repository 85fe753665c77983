//! What a hostile reading once broke and is mended: stranded, lost or doubled messages.

use std::time::Duration;

use seriatim::Abandon;
use seriatim::Completion;
use seriatim::Message;
use seriatim::Order;
use seriatim::Outcome;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::error::ReceiveRefusal;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::LatePolicy;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

pub(crate) fn once(exhausted: ExhaustedPolicy) -> QueueOptions {
    QueueOptions::default().delivery_count_max(1).exhausted(exhausted)
}

pub(crate) fn after_order() -> QueueOptions {
    QueueOptions::default().order(Order::After)
}

pub(crate) fn skip_after(wait: Duration) -> QueueOptions {
    QueueOptions::by_position().gap(GapPolicy { wait, then: GapAction::Skip })
}

pub(crate) async fn fixture_of_three(options: QueueOptions) -> Fixture {
    let fixture = Fixture::new(options).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    fixture
}

pub(crate) fn now(fixture: &Fixture) -> Timestamp {
    seriatim::Clock::now(&fixture.clock)
}

/// Lets the engine and the tasks of this test go on: each look is a round trip through the thread that writes.
pub(crate) async fn breathe(fixture: &Fixture) {
    for _ in 0..50 {
        tokio::task::yield_now().await;
        let _ = fixture.engine.client().next_due().await;
    }
}

// Stranded: nothing brings the message back.

#[tokio::test]
async fn i5_every_spent_message_that_a_lost_holder_had_is_offered_after_resume() {
    let fixture = fixture_of_three(once(ExhaustedPolicy::Hold)).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let ahead = taken.receive(3, Duration::ZERO).await.unwrap();
    fixture.clock.advance(seconds(31));
    fixture.queue.workflow("w").unwrap().resume().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3"]);
    drop(ahead);
}

#[tokio::test]
async fn i5_a_spent_message_that_is_not_the_head_is_offered_after_resume() {
    let fixture = fixture_of_three(once(ExhaustedPolicy::Hold)).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut ahead = taken.receive(3, Duration::ZERO).await.unwrap();
    ahead[1].abandon().await.unwrap();
    taken.close().await.unwrap();
    fixture.queue.workflow("w").unwrap().resume().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3"]);
}

#[tokio::test]
async fn i5_resume_and_redrive_of_a_spent_head_offers_it() {
    let fixture = fixture_of_three(once(ExhaustedPolicy::Hold)).await;
    fixture.must().await.abandon().await.unwrap();
    fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3"]);
}

/// Of three messages the first is set aside for a minute, and the others are handled.
async fn fixture_with_first_deferred() -> (Fixture, SequenceNumber) {
    let fixture = fixture_of_three(QueueOptions::default()).await;
    let mut first = fixture.must().await;
    let number = first.sequence_number();
    first.defer_until(now(&fixture) + seconds(60)).await.expect("it is held");
    assert_eq!(fixture.drain().await, ["2", "3"]);
    (fixture, number)
}

#[tokio::test]
async fn g6_a_deferred_message_that_is_given_back_still_returns_at_its_instant() {
    let (fixture, number) = fixture_with_first_deferred().await;
    let mut early = fixture.queue.receive_deferred(&[number]).await.unwrap();
    early[0].release().await.unwrap();
    fixture.clock.advance(seconds(60));
    assert_eq!(fixture.drain().await, ["1"]);
}

#[tokio::test]
async fn g6_a_deferred_message_whose_holder_died_still_returns_at_its_instant() {
    let (fixture, number) = fixture_with_first_deferred().await;
    let lost = fixture.queue.receive_deferred(&[number]).await.unwrap();
    fixture.clock.advance(seconds(60));
    assert_eq!(fixture.drain().await, ["1"]);
    drop(lost);
}

#[tokio::test]
async fn g6_a_deferred_message_that_fails_comes_back_when_its_holder_says() {
    let (fixture, number) = fixture_with_first_deferred().await;
    let mut early = fixture.queue.receive_deferred(&[number]).await.unwrap();
    early[0].abandon_after(seconds(5), "not yet").await.unwrap();
    fixture.clock.advance(seconds(4));
    assert_eq!(fixture.drain().await, [""; 0]);
    fixture.clock.advance(seconds(1));
    assert_eq!(fixture.drain().await, ["1"]);
}

#[tokio::test]
async fn o3_the_missing_predecessor_is_accepted_although_the_waiting_room_is_full() {
    let fixture = Fixture::new(after_order().early_max(2)).await;
    fixture.send_after("w", "b", Some("a")).await;
    fixture.send_after("w", "c", Some("b")).await;
    let first = fixture.queue.send(Message::new("a").workflow("w").message_id("a").first()).await;
    assert!(first.is_ok(), "{:?}", first.err());
    assert_eq!(fixture.drain().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn i11_a_live_message_behind_expired_ones_is_handed_to_a_receiver_that_waits() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::None)).await;
    for _ in 0..6 {
        let short = (0..1_000).map(|_| Message::new("dead").time_to_live(seconds(1)));
        fixture.queue.send_batch(short).await.unwrap();
    }
    fixture.accept(Message::new("live")).await;
    fixture.clock.advance(seconds(2));
    let wait = fixture.queue.receive(seconds(3_600));
    let got = tokio::time::timeout(Duration::from_secs(30), wait).await;
    assert!(got.is_ok(), "a message is ready and a receiver waits");
}

// The engine stops, or its receivers starve.

#[tokio::test]
async fn a_run_of_none_that_waits_does_not_stop_the_engine() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let queue = fixture.queue.clone();
    let waiting =
        tokio::spawn(async move { queue.receive_run(0, seconds(3_600)).await.map(|run| run.is_some()) });
    breathe(&fixture).await;
    for workflow in ["a", "b", "c"] {
        let sent = fixture.queue.send(Message::new("").workflow(workflow)).await;
        assert!(sent.is_ok(), "{:?}", sent.err());
    }
    waiting.abort();
}

#[tokio::test]
async fn a_receiver_of_none_does_not_starve_those_behind_it() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let (none, one) = (fixture.queue.clone(), fixture.queue.clone());
    let none = tokio::spawn(async move { none.receive_many(0, seconds(3_600)).await.map(|many| many.len()) });
    breathe(&fixture).await;
    let one = tokio::spawn(async move { one.receive(seconds(3_600)).await.map(|one| one.is_some()) });
    breathe(&fixture).await;
    fixture.send("w", "1").await;
    let got = tokio::time::timeout(Duration::from_secs(5), one).await;
    assert!(got.is_ok(), "a message is ready and a receiver waits");
    none.abort();
}

#[tokio::test]
async fn a_count_beyond_the_run_is_a_misuse_and_no_panic() {
    let fixture = fixture_of_three(QueueOptions::default()).await;
    let mut run = fixture.queue.receive_run(3, Duration::ZERO).await.unwrap().unwrap();
    let wrong = run.complete_first_then(usize::MAX, Outcome::Release).await;
    assert!(wrong.is_err());
    assert_eq!(fixture.counts().await.locked, 3);
}

#[tokio::test]
async fn the_message_behind_the_completed_ones_of_a_run_is_not_completed_too() {
    let fixture = fixture_of_three(QueueOptions::default()).await;
    let mut run = fixture.queue.receive_run(3, Duration::ZERO).await.unwrap().unwrap();
    let wrong = run.complete_first_then(1, Outcome::CompleteWith(Completion::new().state("s"))).await;
    assert!(wrong.unwrap_err().to_string().contains("next"));
    assert_eq!(fixture.counts().await.locked, 3);
}

#[tokio::test]
async fn a_receiver_of_a_taken_workflow_is_told_at_once_that_its_queue_is_gone() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let waiting = tokio::spawn(async move { taken.receive(1, seconds(3_600)).await.map(|many| many.len()) });
    breathe(&fixture).await;
    fixture.engine.client().delete_queue("q").await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(5), waiting).await;
    assert!(told.is_ok(), "the lock is gone, and the receiver still waits");
}

#[tokio::test]
async fn a_receiver_of_a_taken_workflow_is_told_at_once_that_an_operator_released_its_lock() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let waiting = tokio::spawn(async move { taken.receive(1, seconds(3_600)).await.map(|many| many.len()) });
    breathe(&fixture).await;
    fixture.queue.workflow("w").unwrap().release_lock().await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(5), waiting).await;
    assert!(told.is_ok(), "the lock is gone, and the receiver still waits");
}

#[tokio::test]
async fn a_clock_that_steps_back_does_not_delay_what_is_due_now() {
    let fixture = Fixture::new(once(ExhaustedPolicy::Quarantine)).await;
    fixture.send("w", "1").await;
    fixture.must().await.abandon().await.unwrap();
    fixture.counts().await;
    fixture.clock.set(Timestamp::from_millis(now(&fixture).as_millis() - 3_600_000));
    let queue = fixture.queue.clone();
    let waiting = tokio::spawn(async move { queue.receive(seconds(3_600)).await.map(|one| one.is_some()) });
    breathe(&fixture).await;
    fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    let got = tokio::time::timeout(Duration::from_secs(5), waiting).await;
    assert!(got.is_ok(), "the redrive waits for the wall clock to catch up");
}

// Counts and ends.

#[tokio::test]
async fn g3_a_message_fetched_by_number_cannot_fail_for_ever() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(2)).await;
    let number = fixture.send("w", "1").await;
    fixture.must().await.defer().await.unwrap();
    for _ in 0..8 {
        let Ok(mut again) = fixture.queue.receive_deferred(&[number]).await else { break };
        assert!(again[0].message().delivery_count <= 2, "it was spent before");
        again[0].abandon().await.unwrap();
    }
}

#[tokio::test]
async fn i3_when_a_later_message_is_spent_the_earlier_delivery_keeps_its_lock() {
    let fixture = fixture_of_three(once(ExhaustedPolicy::Hold)).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut ahead = taken.receive(3, Duration::ZERO).await.unwrap();
    ahead[1].abandon().await.unwrap();
    assert!(ahead[0].complete().await.is_ok(), "only what is behind the failed one is revoked");
}

#[tokio::test]
async fn i10_the_expiry_of_a_spent_head_lets_the_workflow_go_on() {
    let fixture = Fixture::new(once(ExhaustedPolicy::Hold)).await;
    fixture.accept(Message::new("1").workflow("w").time_to_live(seconds(5))).await;
    fixture.send("w", "2").await;
    fixture.must().await.abandon().await.unwrap();
    fixture.clock.advance(seconds(5));
    assert_eq!(fixture.counts().await.dead_lettered, 1);
    assert_eq!(fixture.drain().await, ["2"]);
}

#[tokio::test]
async fn a_message_that_expired_while_handed_out_is_dead_lettered_when_it_is_revoked() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    fixture.accept(Message::new("2").workflow("w").time_to_live(seconds(5))).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut ahead = taken.receive(2, Duration::ZERO).await.unwrap();
    fixture.clock.advance(seconds(10));
    ahead[0].abandon_after(seconds(3_600), "later").await.unwrap();
    taken.close().await.unwrap();
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.counts().await.dead_lettered, 1, "its time was over 15 seconds ago");
}

// Order, gaps and late messages.

#[tokio::test]
async fn o7_a_skipped_position_that_comes_is_kept_although_late_ones_are_refused() {
    let fixture = Fixture::new(skip_after(seconds(10)).late(LatePolicy::Refuse)).await;
    fixture.send_at("w", 2).await;
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.drain().await, ["2"]);
    let late = fixture.queue.send(Message::new("1").workflow("w").position(1)).await;
    assert!(matches!(late, Ok(Receipt::DeadLettered(_))), "it was never handled: {late:?}");
}

#[tokio::test]
async fn g4_a_completion_may_send_the_very_position_that_is_missing() {
    let fixture = Fixture::new(skip_after(seconds(10))).await;
    fixture.send_at("w", 1).await;
    let mut first = fixture.must().await;
    fixture.send_at("w", 3).await;
    fixture.clock.advance(seconds(11));
    let next = Message::new("2").workflow("w").position(2);
    first.complete_with(Completion::new().send("q", next)).await.unwrap();
    assert_eq!(fixture.drain().await, ["2", "3"]);
    let again = fixture.queue.send(Message::new("2").workflow("w").position(2)).await.unwrap();
    assert_eq!(again, Receipt::AlreadySettled, "position 2 was completed, it was not a gap");
}

#[tokio::test]
async fn g4_a_completion_may_send_the_missing_position_behind_a_later_one() {
    let fixture = Fixture::new(skip_after(seconds(10))).await;
    fixture.send_at("w", 1).await;
    let mut first = fixture.must().await;
    fixture.send_at("w", 4).await;
    fixture.clock.advance(seconds(11));
    let at = |position: u64| Message::new(position.to_string()).workflow("w").position(position);
    let next = Completion::new().send("q", at(3)).send("q", at(2));
    first.complete_with(next).await.unwrap();
    assert_eq!(fixture.drain().await, ["2", "3", "4"]);
    let again = fixture.queue.send(at(2)).await.unwrap();
    assert_eq!(again, Receipt::AlreadySettled, "position 2 was completed, it was not given up");
}

#[tokio::test]
async fn g4_a_completion_that_fills_the_gap_does_not_hold_the_workflow_for_it() {
    let gap = GapPolicy { wait: seconds(10), then: GapAction::Hold };
    let fixture = Fixture::new(QueueOptions::by_position().gap(gap)).await;
    fixture.send_at("w", 1).await;
    let mut first = fixture.must().await;
    fixture.send_at("w", 3).await;
    fixture.clock.advance(seconds(11));
    let next = Message::new("2").workflow("w").position(2);
    first.complete_with(Completion::new().send("q", next)).await.unwrap();
    assert_eq!(fixture.drain().await, ["2", "3"]);
}

#[tokio::test]
async fn o7_a_gap_is_judged_only_when_the_workflow_has_come_to_it() {
    let gap = GapPolicy { wait: seconds(10), then: GapAction::Hold };
    let options = once(ExhaustedPolicy::Quarantine).gap(gap).order(Order::POSITION);
    let fixture = Fixture::new(options).await;
    for position in [1, 2] {
        fixture.send_at("w", position).await;
    }
    fixture.must().await.abandon().await.unwrap();
    assert_eq!(fixture.counts().await.dead_lettered, 2);
    fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!(fixture.counts().await.ready, 2);
    fixture.send_at("w", 4).await;
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.drain().await, ["1", "2"], "3 is missing, but 1 and 2 are there");
}

#[tokio::test]
async fn o11_a_late_duplicate_is_not_put_back_to_a_position_that_was_completed() {
    let fixture = Fixture::new(QueueOptions::by_position().late(LatePolicy::DeadLetter)).await;
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.drain().await, ["1"]);
    fixture.send_at("w", 1).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    workflow.hold("look at it").await.unwrap();
    workflow.resume_and_redrive().await.unwrap();
    fixture.counts().await;
    assert_eq!(fixture.drain().await, [""; 0], "position 1 was completed before");
}

#[tokio::test]
async fn o11_quarantine_of_a_run_is_redriven_whole() {
    let fixture = fixture_of_three(once(ExhaustedPolicy::Quarantine)).await;
    let mut run = fixture.queue.receive_run(3, Duration::ZERO).await.unwrap().unwrap();
    run.complete_first_then(0, Outcome::Abandon(Abandon::now())).await.unwrap();
    assert_eq!(fixture.counts().await.dead_lettered, 3);
    fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3"]);
}

#[tokio::test]
async fn o6_a_quarantine_is_not_lost_to_an_operators_hold() {
    let fixture = fixture_of_three(once(ExhaustedPolicy::Quarantine)).await;
    let mut first = fixture.must().await;
    fixture.queue.workflow("w").unwrap().hold("look at it").await.unwrap();
    first.abandon().await.unwrap();
    fixture.counts().await;
    assert_eq!(fixture.counts().await.dead_lettered, 3, "all that follows goes to the dead letters");
}

#[tokio::test]
async fn a_held_workflow_offers_its_holder_no_deferred_messages_either() {
    let fixture = fixture_of_three(QueueOptions::default()).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut ahead = taken.receive(1, Duration::ZERO).await.unwrap();
    ahead[0].defer().await.unwrap();
    fixture.queue.workflow("w").unwrap().hold("stop").await.unwrap();
    let fetched = taken.receive_deferred(&[ahead[0].sequence_number()]).await;
    assert_eq!(fetched.err().and_then(|error| error.refusal().cloned()), Some(ReceiveRefusal::WorkflowHeld));
}

#[tokio::test]
async fn an_after_ordered_workflow_that_waits_says_so() {
    let fixture = Fixture::new(after_order()).await;
    fixture.send_after("w", "b", Some("a")).await;
    assert_eq!(fixture.status("w").await, Some(WorkflowStatus::WaitingForPredecessor));
}

#[tokio::test]
async fn who_waits_for_dead_letters_is_told_at_once_that_their_queue_is_gone() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let queue = fixture.queue.clone();
    let waiting = tokio::spawn(async move {
        let told = queue.receive_dead_letters(1, seconds(3_600)).await;
        told.map(|many| many.len()).unwrap_err().refusal().cloned()
    });
    breathe(&fixture).await;
    fixture.engine.client().delete_queue("q").await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(5), waiting).await;
    let told = told.expect("the queue is gone, and the receiver still waits").unwrap();
    assert!(matches!(told, Some(ReceiveRefusal::QueueNotFound(_))), "{told:?}");
}
