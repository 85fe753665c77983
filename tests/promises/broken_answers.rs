//! What a hostile reading once broke and is mended: wrong answers, wrong counts, too much in one turn.

use seriatim::Completion;
use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::error::SendRefusal;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::view::WorkflowStatus;

use crate::promises::broken::breathe;
use crate::promises::broken::now;
use crate::promises::broken::once;
use crate::promises::broken::skip_after;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;

// Sends that are answered wrongly.

#[tokio::test]
async fn a_completion_that_sends_to_two_queues_fills_each_with_its_own() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let small = QueueOptions::default().messages_max(1);
    fixture.engine.client().create_queue("small", small).await.unwrap();
    fixture.send("w", "1").await;
    let mut first = fixture.must().await;
    let both = Completion::new().send("q", Message::new("a")).send("small", Message::new("b"));
    let done = first.complete_with(both).await;
    assert!(done.is_ok(), "the small queue is empty: {:?}", done.err());
}

#[tokio::test]
async fn g7_a_duplicate_is_answered_as_one_although_the_queue_is_over_full() {
    let options = QueueOptions::default().duplicate_window(seconds(60));
    let fixture = Fixture::new(options.clone()).await;
    let first = fixture.accept(Message::new("a").message_id("a")).await;
    fixture.accept(Message::new("b").message_id("b")).await;
    let smaller = options.messages_max(1);
    fixture.engine.client().change_queue("q", smaller).await.unwrap();
    let again = fixture.queue.send(Message::new("a").message_id("a")).await;
    assert_eq!(again.ok(), Some(Receipt::Duplicate(first)));
}

#[tokio::test]
async fn g7_a_message_that_comes_twice_in_one_batch_is_kept_once_even_after_its_gap() {
    let options = skip_after(seconds(10)).duplicate_window(seconds(600));
    let fixture = Fixture::new(options).await;
    fixture.send_at("w", 2).await;
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.drain().await, ["2"]);
    let late = || Message::new("1").workflow("w").position(1).message_id("late");
    let receipts = fixture.queue.send_batch([late(), late()]).await.unwrap();
    assert!(matches!(receipts[1], Receipt::Duplicate(_)), "{receipts:?}");
}

// Bounds and idleness.

#[tokio::test]
async fn one_turn_sweeps_a_limited_number() {
    let fixture = Fixture::new(once(ExhaustedPolicy::Quarantine)).await;
    for _ in 0..6 {
        let batch = (0..1_000).map(|_| Message::new("").workflow("w"));
        fixture.queue.send_batch(batch).await.unwrap();
    }
    fixture.must().await.abandon().await.unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&6_000) {
        seen.push(fixture.counts().await.dead_lettered);
    }
    assert!(seen.iter().any(|dead| (2..6_000).contains(dead)), "nobody is served in between: {seen:?}");
}

#[tokio::test]
async fn a_peek_keeps_an_idle_queue() {
    let fixture = Fixture::new(QueueOptions::default().delete_when_idle(seconds(60))).await;
    fixture.clock.advance(seconds(50));
    fixture.queue.peek(seriatim::SequenceNumber::new(0), 1).await.unwrap();
    fixture.clock.advance(seconds(20));
    assert!(fixture.queue.view().await.is_ok(), "it was looked at 20 seconds ago");
}

#[tokio::test]
async fn a_queue_in_which_a_receiver_waits_is_not_idle() {
    let fixture = Fixture::new(QueueOptions::default().delete_when_idle(seconds(60))).await;
    let queue = fixture.queue.clone();
    let waiting =
        tokio::spawn(async move { queue.receive(seconds(3_600)).await.map(|one| one.map(|one| body(&one))) });
    breathe(&fixture).await;
    fixture.clock.advance(seconds(61));
    breathe(&fixture).await;
    let sent = fixture.queue.send(Message::new("1")).await;
    assert!(sent.is_ok(), "{:?}", sent.err());
    assert_eq!(waiting.await.unwrap().unwrap().as_deref(), Some("1"));
}

#[tokio::test]
async fn a_queue_of_which_somebody_has_a_workflow_or_waits_for_a_dead_letter_is_not_idle() {
    let options = || QueueOptions::default().delete_when_idle(seconds(60)).lock(seconds(3_600));
    let fixture = Fixture::new(options()).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    fixture.clock.advance(seconds(61));
    breathe(&fixture).await;
    fixture.accept(Message::new("1").workflow("w")).await;
    assert_eq!(taken.receive(1, seconds(0)).await.unwrap().len(), 1);

    let fixture = Fixture::new(options()).await;
    let queue = fixture.queue.clone();
    let waiting = tokio::spawn(async move { queue.receive_dead_letters(1, seconds(3_600)).await });
    breathe(&fixture).await;
    fixture.clock.advance(seconds(61));
    breathe(&fixture).await;
    fixture.accept(Message::new("1")).await;
    fixture.must().await.dead_letter("bad", "").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn a_queue_is_not_deleted_under_whoever_works_on_one_of_its_messages() {
    let options = QueueOptions::default().delete_when_idle(seconds(60)).delete_with_messages(true);
    let fixture = Fixture::new(options.lock(seconds(40))).await;
    fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    let mut first = fixture.must().await;
    for _ in 0..3 {
        fixture.clock.advance(seconds(30));
        first.renew().await.unwrap();
        breathe(&fixture).await;
    }
    first.complete().await.unwrap();
    assert_eq!(fixture.drain().await, ["2"]);
}

#[tokio::test]
async fn who_holds_a_workflow_passes_a_long_expired_backlog_in_several_turns() {
    let many = 8_000;
    let fixture = Fixture::new(QueueOptions::default().time_to_live(seconds(60)).lock(seconds(3_600))).await;
    for part in 0..8 {
        let messages = (0..many / 8).map(|number| Message::new(format!("{part} {number}")).workflow("w"));
        fixture.queue.send_batch(messages).await.unwrap();
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    fixture.queue.workflow("w").unwrap().hold("stop").await.unwrap();
    let waiting =
        tokio::spawn(async move { taken.receive(1, seconds(7_200)).await.map(|found| found.len()) });
    breathe(&fixture).await;
    let before = fixture.engine.client().commit_stats().commits;
    fixture.clock.advance(seconds(61));
    fixture.queue.workflow("w").unwrap().resume().await.unwrap();
    while fixture.counts().await.dead_lettered < many {}
    let commits = fixture.engine.client().commit_stats().commits - before;
    assert!(commits >= 4, "{many} messages in {commits} commits");
    waiting.abort();
}

#[tokio::test]
async fn a_fault_is_told_as_one_to_whoever_met_it() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let queue = fixture.queue.clone();
    let waiting =
        tokio::spawn(async move { queue.receive_run(0, seconds(3_600)).await.map(|run| run.is_some()) });
    breathe(&fixture).await;
    let mut told = Vec::new();
    for workflow in ["a", "b", "c"] {
        told.extend(
            fixture
                .queue
                .send(Message::new("").workflow(workflow))
                .await
                .err()
                .map(|error| format!("{error:?}")),
        );
    }
    assert!(told.iter().all(|told| told.contains("Stopped")), "{told:?}");
    waiting.abort();
}

#[tokio::test]
async fn i11_resume_of_a_redriven_gap_waits_anew() {
    let gap = GapPolicy { wait: seconds(10), then: GapAction::Hold };
    let fixture = Fixture::new(QueueOptions::by_position().gap(gap)).await;
    fixture.send_at("w", 2).await;
    fixture.clock.advance(seconds(10));
    fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    fixture.counts().await;
    assert_eq!(fixture.status("w").await, Some(WorkflowStatus::WaitingForPredecessor));
}

#[tokio::test]
async fn o9_a_deferred_message_that_is_given_back_is_deferred_again() {
    let fixture = Fixture::new(QueueOptions::default().hold_on_defer(true)).await;
    let number = fixture.send("w", "1").await;
    fixture.must().await.defer().await.unwrap();
    let mut fetched = fixture.queue.receive_deferred(&[number]).await.unwrap();
    fetched[0].release().await.unwrap();
    assert!(fixture.next().await.is_none(), "nobody asked for it by its number");
}

#[tokio::test]
async fn an_operator_is_told_that_a_queue_without_order_cannot_hold_a_workflow() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::None)).await;
    let held = fixture.queue.workflow("w").unwrap().hold("stop").await;
    fixture.send("w", "1").await;
    assert!(held.is_err() || fixture.next().await.is_none(), "it is held and offered");
}

#[tokio::test]
async fn a_scheduled_message_behind_a_gap_is_not_the_head() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let later = now(&fixture) + seconds(60);
    fixture.accept(Message::new("5").workflow("w").position(5).schedule_at(later)).await;
    let skipped = fixture.queue.workflow("w").unwrap().skip_head("no").await;
    assert!(skipped.is_err(), "position 1 is the head, and it is missing");
}

#[tokio::test]
async fn a_message_released_after_its_time_is_not_counted() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.accept(Message::new("1").workflow("w").time_to_live(seconds(5))).await;
    let mut first = fixture.must().await;
    fixture.clock.advance(seconds(6));
    first.release().await.unwrap();
    let dead_letters = fixture.queue.dead_letters(None, 1).await.unwrap();
    assert_eq!(dead_letters[0].delivery_count, 0);
}

#[tokio::test]
async fn g3_the_last_attempt_stays_with_a_message_that_expired_meanwhile() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let number = fixture.accept(Message::new("1").workflow("w").time_to_live(seconds(5))).await;
    let mut first = fixture.must().await;
    fixture.clock.advance(seconds(6));
    first.abandon_after(seconds(1), "disk full").await.unwrap();
    let view = fixture.queue.peek(number, 1).await.unwrap();
    assert_eq!(view[0].attempts.len(), 1, "why did it not succeed?");
}

#[tokio::test]
async fn o4_an_anonymous_message_that_comes_twice_in_one_batch_is_a_duplicate() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let message = |text: &'static str| Message::new(text).workflow("w").position(1);
    let sent = fixture.queue.send_batch([message("same"), message("same")]).await.unwrap();
    let number = sent[0].sequence_number().unwrap();
    assert_eq!(sent, [Receipt::Accepted(number), Receipt::Duplicate(number)]);
    let other = fixture.queue.send_batch([message("same"), message("other")]).await.unwrap_err();
    assert_eq!(other.refusal(), Some(&SendRefusal::PlaceTaken { index: 1, by: number }));
}

#[tokio::test]
async fn a_message_of_a_queue_without_order_shows_its_workflow_id_everywhere() {
    let options = QueueOptions::default().order(Order::None).delivery_count_max(1);
    let fixture = Fixture::new(options).await;
    let mut events = fixture.engine.events();
    fixture.send("w", "1").await;
    fixture.must().await.abandon().await.unwrap();
    let dead_letter = fixture.queue.dead_letters(None, 1).await.unwrap().pop().unwrap();
    assert_eq!(dead_letter.workflow_id.map(|id| id.to_string()), Some("w".to_owned()));
    fixture.queue.redrive(dead_letter.sequence_number).await.unwrap();
    let mut told = 0;
    while let Some(event) = events.try_next() {
        assert_eq!(event.workflow.map(|id| id.to_string()), Some("w".to_owned()), "{:?}", event.kind);
        told += 1;
    }
    assert_eq!(told, 2, "dead-lettered and redriven");
}
