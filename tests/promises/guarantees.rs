//! The guarantees G1 to G8, and what a restart keeps.

use std::time::Duration;

use seriatim::Clock;
use seriatim::Completion;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::Timestamp;
use seriatim::error::SendRefusal;
use seriatim::error::SettleRefusal;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

#[tokio::test]
async fn g1_what_was_acknowledged_is_there_after_the_file_is_opened_again() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let first = queue.send(Message::new("1").workflow("w")).await.unwrap();
    engine.close().await;
    assert!(queue.send(Message::new("2")).await.is_err(), "a closed engine acknowledges nothing");
    let (_engine, queue) = fixture.open().await;
    let delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(Some(delivery.sequence_number()), first.sequence_number());
}

#[tokio::test]
async fn g2_a_lost_lock_cannot_complete() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(5))).await;
    fixture.send("w", "1").await;
    let mut zombie = fixture.must().await;
    fixture.clock.advance(millis(4_999));
    assert!(zombie.renew().await.is_ok(), "a valid token is never refused");
    fixture.clock.advance(seconds(5));
    assert_eq!(zombie.complete().await.unwrap_err().refusal(), Some(&SettleRefusal::LockLost));
    assert_eq!(zombie.renew().await.unwrap_err().refusal(), Some(&SettleRefusal::LockLost));
    let mut again = fixture.must().await;
    assert_eq!(again.message().delivery_count, 2);
    assert!(zombie.complete().await.is_err(), "a stale token never changes anything");
    again.complete().await.unwrap();
}

#[tokio::test]
async fn g2_lost_locks_missing_messages_and_missing_queues_are_told_apart() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut deliveries = taken.receive(2, Duration::ZERO).await.unwrap();
    let number = deliveries[0].sequence_number();
    deliveries[0].complete().await.unwrap();
    fixture.clock.advance(seconds(20));
    taken.renewal().renew().await.unwrap();
    fixture.clock.advance(seconds(20));
    taken.renewal().renew().await.unwrap();
    fixture.clock.advance(seconds(20));
    let twice = deliveries[0].complete().await.unwrap_err();
    assert_eq!(twice.refusal(), Some(&SettleRefusal::MessageNotFound(number)));
    fixture.engine.client().delete_queue("q").await.unwrap();
    let gone = deliveries[1].complete().await.unwrap_err();
    assert_eq!(gone.refusal(), Some(&SettleRefusal::QueueNotFound));
}

#[tokio::test]
async fn g2_a_token_from_before_a_restart_is_refused() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    queue.send(Message::new("1").workflow("w")).await.unwrap();
    let before = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let token = before.lock_token();
    engine.close().await;
    drop(before);
    let (_engine, queue) = fixture.open().await;
    let after = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    assert_ne!(after.lock_token().as_bytes()[..4], token.as_bytes()[..4], "the epoch was raised");
}

#[tokio::test]
async fn g3_the_delivery_count_is_on_disk_before_the_handler_starts() {
    let fixture = FileFixture::new();
    for count in 1..=3 {
        let (engine, queue) = fixture.open().await;
        if count == 1 {
            queue.send(Message::new("1").workflow("w")).await.unwrap();
        }
        let delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        assert_eq!(delivery.message().delivery_count, count);
        assert_eq!(delivery.message().attempts.len(), count as usize - 1);
        engine.close().await;
        // The handler never gets to settle: the engine is gone under it.
        drop(delivery);
    }
}

#[tokio::test]
async fn g3_the_last_attempts_stay_with_the_message() {
    let options = QueueOptions::default().delivery_count_max(100);
    let fixture = Fixture::new(options).await;
    fixture.send("w", "1").await;
    for attempt in 1..=10 {
        let mut delivery = fixture.must().await;
        fixture.clock.advance(millis(7));
        delivery.abandon_after(seconds(1), format!("attempt {attempt}")).await.unwrap();
        fixture.clock.advance(seconds(1));
    }
    let delivery = fixture.must().await;
    let attempts = &delivery.message().attempts;
    assert_eq!(attempts.len(), 8);
    assert_eq!((attempts[7].reason.as_str(), attempts[7].delivery_count), ("attempt 10", 10));
    assert_eq!(attempts[7].lasted, millis(7));
}

#[tokio::test]
async fn g4_a_completion_its_sends_and_its_state_are_one_transaction() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let out = fixture.engine.client().create_queue("out", QueueOptions::by_position()).await.unwrap();
    fixture.send("w", "1").await;
    let mut delivery = fixture.must().await;
    let receipt = |position| {
        Completion::new().state("s").send("out", Message::new("x").workflow("o").position(position))
    };
    let receipts = delivery.complete_with(receipt(1)).await.unwrap();
    assert!(matches!(receipts[..], [Receipt::Accepted(_)]));
    let state = fixture.queue.workflow("w").unwrap().state().await.unwrap();
    assert_eq!(state.as_deref(), Some(&b"s"[..]));
    assert!(out.receive(Duration::ZERO).await.unwrap().is_some());
}

#[tokio::test]
async fn g4_when_a_send_is_refused_nothing_has_happened_and_the_delivery_is_held() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let mut delivery = fixture.must().await;
    let nowhere = Completion::new().state("s").send("nowhere", Message::new("x"));
    let refused = delivery.complete_with(nowhere).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(SettleRefusal::Send(SendRefusal::QueueNotFound(_)))));
    assert_eq!(fixture.queue.workflow("w").unwrap().state().await.unwrap(), None);
    delivery.complete().await.unwrap();
}

#[tokio::test]
async fn g5_a_settle_is_durable_before_the_successor_is_handed_out() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    for body in ["1", "2"] {
        queue.send(Message::new(body).workflow("w")).await.unwrap();
    }
    queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
    let second = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    engine.close().await;
    drop(second);
    let (_engine, queue) = fixture.open().await;
    let again = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(body(&again), "2", "the first stays settled");
}

#[tokio::test]
async fn g6_a_reminder_survives_a_restart_and_is_late_but_never_early() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let at = fixture.clock.now() + seconds(60);
    queue.send(Message::new("scheduled").schedule_at(at)).await.unwrap();
    queue.send(Message::new("retried").workflow("w")).await.unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    delivery.abandon_after(seconds(30), "later").await.unwrap();
    engine.close().await;
    fixture.clock.advance(millis(29_999));
    let (engine, queue) = fixture.open().await;
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
    fixture.clock.advance(millis(1));
    assert_eq!(body(&queue.receive(Duration::ZERO).await.unwrap().unwrap()), "retried");
    engine.close().await;
    fixture.clock.advance(seconds(3_600));
    let (_engine, queue) = fixture.open().await;
    let handed = queue.receive_many(10, Duration::ZERO).await.unwrap();
    assert_eq!(handed.len(), 2, "late is allowed, lost is not");
}

#[tokio::test]
async fn g6_a_clock_that_steps_back_fires_nothing_early() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    fixture.must().await.abandon_after(seconds(10), "later").await.unwrap();
    let start = fixture.clock.now();
    fixture.clock.set(Timestamp::from_millis(start.as_millis() - 3_600_000));
    assert!(fixture.next().await.is_none());
    fixture.clock.advance(millis(9_999));
    assert!(fixture.next().await.is_none());
    fixture.clock.advance(millis(1));
    assert_eq!(fixture.drain().await, ["1"]);
}

#[tokio::test]
async fn g7_the_same_message_id_is_accepted_once_within_the_window() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let message = || Message::new("1").message_id("id");
    let first = queue.send(message()).await.unwrap().sequence_number().unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
    engine.close().await;
    fixture.clock.advance(millis(59_999));
    let (_engine, queue) = fixture.open().await;
    assert_eq!(queue.send(message()).await.unwrap(), Receipt::Duplicate(first));
    fixture.clock.advance(millis(1));
    assert!(matches!(queue.send(message()).await.unwrap(), Receipt::Accepted(_)), "the window is half open");
}

#[tokio::test]
async fn g7_a_retry_of_ours_is_never_taken_for_a_duplicate() {
    let options = QueueOptions::default().duplicate_window(seconds(60));
    let fixture = Fixture::new(options).await;
    let number = fixture.accept(Message::new("1").workflow("w").message_id("id")).await;
    fixture.must().await.abandon().await.unwrap();
    fixture.must().await.dead_letter("broken", "").await.unwrap();
    assert!(matches!(fixture.queue.redrive(number).await.unwrap(), seriatim::delivery::Redriven::AsNew(_)));
    assert_eq!(fixture.drain().await, ["1"]);
}

#[tokio::test]
async fn g8_every_accepted_message_is_accounted_for() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in [1, 2, 3, 4, 9] {
        fixture.send_at("w", position).await;
    }
    let later = Message::new("later").schedule_at(fixture.clock.now() + seconds(60));
    let cancelled = fixture.accept(later.clone()).await;
    fixture.accept(later).await;
    fixture.accept(Message::new("brief").time_to_live(seconds(1))).await;
    fixture.queue.cancel(cancelled).await.unwrap();
    fixture.clock.advance(seconds(1));
    fixture.must().await.complete().await.unwrap();
    fixture.must().await.dead_letter("broken", "").await.unwrap();
    fixture.must().await.defer().await.unwrap();
    let held = fixture.must().await;
    let counts = fixture.counts().await;
    let stored = (counts.locked, counts.by_consumer, counts.early, counts.scheduled, counts.dead_lettered);
    assert_eq!(stored, (1, 1, 1, 1, 2), "{counts:?}");
    assert_eq!((counts.accepted, counts.completed, counts.cancelled), (8, 1, 1), "{counts:?}");
    assert_eq!(fixture.queue.purge().await.unwrap(), 5, "what is handed out stays");
    drop(held);
    assert_eq!(fixture.drain().await, ["4"]);
    let counts = fixture.counts().await;
    assert_eq!((counts.stored(), counts.purged), (0, 5), "{counts:?}");
}
