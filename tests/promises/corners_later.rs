//! More corner cases: what is known of messages that come late, and what a change of a queue leaves as it was.

use seriatim::Clock;
use seriatim::Completion;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::error::OperateRefusal;
use seriatim::queue::LatePolicy;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

#[tokio::test]
async fn an_operator_sets_no_state_of_a_workflow_that_somebody_has() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let workflow = fixture.queue.workflow("w").unwrap();
    let mut held = fixture.must().await;
    let refused = workflow.set_state(Some("operator".into())).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&OperateRefusal::WorkflowLocked));
    held.complete_with(Completion::new().state("holder")).await.unwrap();
    assert_eq!(workflow.state().await.unwrap().as_deref(), Some(&b"holder"[..]));
    workflow.set_state(Some("operator".into())).await.unwrap();
    assert_eq!(workflow.state().await.unwrap().as_deref(), Some(&b"operator"[..]));
}

#[tokio::test]
async fn a_message_that_is_cancelled_takes_no_id_from_the_one_that_came_after_its_window() {
    let fixture = Fixture::new(QueueOptions::default().duplicate_window(seconds(60))).await;
    let message = || Message::new("").workflow("w").message_id("id");
    let first = fixture.accept(message().schedule_at(fixture.clock.now() + seconds(600))).await;
    fixture.clock.advance(seconds(60));
    let second = fixture.accept(message()).await;
    fixture.queue.cancel(first).await.unwrap();
    assert_eq!(fixture.queue.send(message()).await.unwrap(), Receipt::Duplicate(second));
}

#[tokio::test]
async fn what_is_rescheduled_to_an_instant_that_is_over_lives_from_now_on() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let now = fixture.clock.now();
    let message = Message::new("late").schedule_at(now + seconds(600)).time_to_live(seconds(5));
    let number = fixture.accept(message).await;
    fixture.clock.advance(seconds(100));
    fixture.queue.reschedule(number, now).await.unwrap();
    fixture.clock.advance(millis(4_999));
    assert_eq!(fixture.drain().await, ["late"]);
}

#[tokio::test]
async fn a_dead_letter_that_came_too_late_is_known_by_its_id_within_the_duplicate_window() {
    let options = QueueOptions::by_position().late(LatePolicy::DeadLetter).duplicate_window(seconds(60));
    let fixture = Fixture::new(options).await;
    fixture.send_at("w", 1).await;
    fixture.drain().await;
    let late = || Message::new("").workflow("w").position(1).message_id("late");
    let Receipt::DeadLettered(number) = fixture.queue.send(late()).await.unwrap() else {
        panic!("its place is settled")
    };
    assert_eq!(fixture.queue.send(late()).await.unwrap(), Receipt::Duplicate(number));
    assert_eq!(fixture.counts().await.dead_lettered, 1);
}

#[tokio::test]
async fn a_queue_that_is_paused_stays_so_whatever_else_changes_of_it() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.queue.set_paused(true).await.unwrap();
    let client = fixture.engine.client();
    client.change_queue("q", QueueOptions::default().lock(seconds(60))).await.unwrap();
    let view = fixture.queue.view().await.unwrap();
    assert!(view.paused && view.options.lock == seconds(60), "{view:?}");
}

#[tokio::test]
async fn a_look_at_messages_is_a_use_of_a_queue_and_one_at_counts_is_none() {
    let fixture = Fixture::new(QueueOptions::default().delete_when_idle(seconds(60))).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.clock.advance(seconds(59));
    workflow.messages(0, 1).await.unwrap();
    fixture.clock.advance(seconds(59));
    fixture.queue.peek(seriatim::SequenceNumber::new(0), 1).await.unwrap();
    fixture.clock.advance(seconds(59));
    fixture.queue.peek_offered(1).await.unwrap();
    fixture.clock.advance(seconds(59));
    workflow.view().await.unwrap();
    fixture.clock.advance(seconds(1));
    assert!(fixture.queue.view().await.is_err(), "nobody has used it for a minute");
}

#[tokio::test]
async fn a_dry_run_refuses_what_it_cannot_try_and_leaves_queues_and_topics_as_they_are() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "m").await;
    let dry = fixture.engine.client().dry_run();
    let refused = [
        dry.delete_queue("q").await.map(drop).unwrap_err().to_string(),
        dry.create_queue("another", QueueOptions::default()).await.map(drop).unwrap_err().to_string(),
        dry.change_queue("q", QueueOptions::by_position()).await.map(drop).unwrap_err().to_string(),
        dry.queue("q").unwrap().set_paused(true).await.map(drop).unwrap_err().to_string(),
        dry.create_topic("topic").await.map(drop).unwrap_err().to_string(),
    ];
    assert!(refused.iter().all(|text| text.starts_with("dry_run ")), "{refused:?}");
    assert_eq!(fixture.counts().await.ready, 1);
    assert_eq!(fixture.engine.client().queues(None, 10).await.unwrap().len(), 1);
}
