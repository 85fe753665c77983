//! History: a queue that is told to remembers how each message ended, for so long and so many, and one that is not nothing.

use std::time::Duration;

use seriatim::Clock;
use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::SequenceNumber;
use seriatim::Timestamp;
use seriatim::queue::ExpiryPolicy;
use seriatim::testing::ManualClock;
use seriatim::view::HistoryEnding;
use seriatim::view::HistoryEntry;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

fn remembering(lasts: u64) -> QueueOptions {
    QueueOptions::by_position().history(seconds(lasts))
}

/// What the queue remembers, newest first.
async fn history(fixture: &Fixture) -> Vec<HistoryEntry> {
    fixture.engine.client().next_due().await.expect("the queue exists");
    fixture.queue.history(None, 1_000).await.expect("the queue exists")
}

fn numbers(entries: &[HistoryEntry]) -> Vec<u64> {
    entries.iter().filter_map(|entry| entry.sequence_number).map(SequenceNumber::get).collect()
}

#[tokio::test]
async fn after_a_repair_is_known_when_a_message_was_completed_and_at_which_attempt() {
    let fixture = Fixture::new(remembering(3_600)).await;
    let number = fixture.accept(Message::new("x").workflow("w").position(1).message_id("paid")).await;
    for _ in 0..3 {
        fixture.must().await.abandon_after(seconds(60), "no route").await.unwrap();
        fixture.clock.advance(seconds(600));
    }
    assert_eq!(fixture.queue.history_of(number).await.unwrap(), None, "it has not ended");
    fixture.drain().await;
    let entry = fixture.queue.history_of(number).await.unwrap().expect("it is remembered");
    assert_eq!((entry.ending, entry.delivery_count), (HistoryEnding::Completed, 4));
    assert_eq!(entry.at, fixture.clock.now());
    assert_eq!((entry.positions, entry.message_id.unwrap().as_str()), (Some((1, 1)), "paid"));
    assert_eq!(entry.reason.as_deref(), Some("no route"));
    let workflow = fixture.queue.workflow("w").unwrap();
    assert_eq!(numbers(&workflow.history(None, 10).await.unwrap()), [number.get()]);
    assert!(fixture.queue.workflow("v").unwrap().history(None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_queue_without_a_history_remembers_nothing() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let number = fixture.send_at("w", 1).await;
    fixture.drain().await;
    assert_eq!(fixture.queue.history_of(number).await.unwrap(), None);
    assert!(history(&fixture).await.is_empty());
    assert_eq!(fixture.queue.view().await.unwrap().history, 0);
}

#[tokio::test]
async fn however_a_message_ends_that_is_remembered() {
    let fixture = Fixture::new(remembering(3_600).expired(ExpiryPolicy::Drop)).await;
    let completed = fixture.send_at("a", 1).await;
    fixture.drain().await;
    let expired = fixture.accept(Message::new("x").workflow("b").position(1).time_to_live(seconds(5))).await;
    fixture.clock.advance(seconds(5));
    fixture.engine.client().next_due().await.unwrap();
    let later = fixture.clock.now() + seconds(60);
    let cancelled = fixture.accept(Message::new("x").workflow("c").position(1).schedule_at(later)).await;
    fixture.queue.cancel(cancelled).await.unwrap();
    let purged = fixture.send_at("d", 1).await;
    fixture.queue.workflow("d").unwrap().purge().await.unwrap();
    let removed = fixture.send_at("e", 1).await;
    fixture.must().await.dead_letter("invalid", "").await.unwrap();
    fixture.queue.purge_dead_letters().await.unwrap();
    let again = fixture.send_at("f", 1).await;
    fixture.must().await.dead_letter("invalid", "").await.unwrap();
    fixture.queue.redrive_as(again, 2).await.unwrap();
    fixture.drain().await;
    fixture.queue.workflow("g").unwrap().hold("").await.unwrap();
    fixture.send_at("g", 9).await;
    fixture.queue.workflow("g").unwrap().declare_void(1, 8).await.unwrap();

    let redriven = SequenceNumber::new(again.get() + 1);
    let expected = [
        (Some(completed), HistoryEnding::Completed, None),
        (Some(expired), HistoryEnding::Expired, None),
        (Some(cancelled), HistoryEnding::Cancelled, None),
        (Some(purged), HistoryEnding::Purged, None),
        (Some(removed), HistoryEnding::Purged, Some("invalid")),
        (Some(again), HistoryEnding::Redriven(redriven), Some("invalid")),
        (Some(redriven), HistoryEnding::Completed, None),
        (None, HistoryEnding::Voided, None),
    ];
    let entries = history(&fixture).await;
    let told = |entry: &HistoryEntry| (entry.sequence_number, entry.ending, entry.reason.clone());
    let found: Vec<_> = entries.iter().rev().map(told).collect();
    let expected: Vec<_> =
        expected.into_iter().map(|(number, how, why)| (number, how, why.map(str::to_owned))).collect();
    assert_eq!(found, expected);
    assert_eq!(entries[0].positions, Some((1, 8)));
}

#[tokio::test]
async fn what_is_older_than_the_history_is_forgotten_and_what_is_not_stays() {
    let fixture = Fixture::new(remembering(100)).await;
    fixture.send_at("w", 1).await;
    fixture.drain().await;
    fixture.clock.advance(seconds(60));
    let second = fixture.send_at("w", 2).await;
    fixture.drain().await;
    fixture.clock.advance(seconds(39));
    assert_eq!(history(&fixture).await.len(), 2);
    fixture.clock.advance(seconds(1));
    assert_eq!(numbers(&history(&fixture).await), [second.get()]);
    assert_eq!(fixture.queue.view().await.unwrap().history, 1);
    fixture.clock.advance(seconds(60));
    assert!(history(&fixture).await.is_empty());
    assert_eq!(fixture.engine.client().next_due().await.unwrap().map(|_| ()), Some(()), "its cursor");
}

#[tokio::test]
async fn of_many_the_newest_are_remembered_in_the_order_in_which_they_ended() {
    let fixture = Fixture::new(QueueOptions::default().history(seconds(3_600)).history_max(3)).await;
    let stuck = fixture.send("w", "stuck").await;
    fixture.engine.client().next_due().await.unwrap();
    let mut first = fixture.must().await;
    for n in 0..5 {
        fixture.send(&format!("v{n}"), "x").await;
    }
    fixture.drain().await;
    first.complete().await.unwrap();
    let entries = history(&fixture).await;
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[0].sequence_number, Some(stuck), "the oldest message, and the newest to end");
    assert_eq!(fixture.queue.history(Some(entries[0].number), 1).await.unwrap(), [entries[1].clone()]);
}

#[tokio::test]
async fn a_history_that_is_turned_off_or_shortened_is_forgotten_step_by_step() {
    let fixture = Fixture::new(QueueOptions::default().history(seconds(3_600))).await;
    for _ in 0..3 {
        fixture.queue.send_batch((0..1_000).map(|_| Message::new("x").workflow("w"))).await.unwrap();
        fixture.drain().await;
    }
    assert_eq!(fixture.queue.view().await.unwrap().history, 3_000);
    let client = fixture.engine.client();
    let fewer = QueueOptions::default().history(seconds(3_600)).history_max(700);
    client.change_queue("q", fewer).await.unwrap();
    for _ in 0..10 {
        client.next_due().await.unwrap();
    }
    assert_eq!(fixture.queue.view().await.unwrap().history, 700);
    client.change_queue("q", QueueOptions::default()).await.unwrap();
    for _ in 0..10 {
        client.next_due().await.unwrap();
    }
    assert_eq!(fixture.queue.view().await.unwrap().history, 0);
    assert!(fixture.queue.workflow("w").unwrap().history(None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_history_keeps_no_idle_queue_and_goes_with_it() {
    let idle = QueueOptions::default().delete_when_idle(seconds(60)).history(seconds(10));
    let fixture = Fixture::new(idle).await;
    fixture.send("w", "1").await;
    fixture.drain().await;
    for _ in 0..6 {
        fixture.clock.advance(seconds(10));
        fixture.engine.client().next_due().await.unwrap();
    }
    assert!(fixture.queue.view().await.is_err(), "to forget is no use of the queue");
}

#[tokio::test]
async fn a_message_without_order_is_found_by_the_workflow_it_names() {
    let options = QueueOptions::default().order(seriatim::Order::None).history(seconds(60));
    let fixture = Fixture::new(options).await;
    let number = fixture.send("w", "1").await;
    fixture.drain().await;
    let workflow = fixture.queue.workflow("w").unwrap();
    assert_eq!(numbers(&workflow.history(None, 10).await.unwrap()), [number.get()]);
}

#[tokio::test]
async fn a_history_outlives_a_restart_and_a_backup_and_its_file_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    let start = Timestamp::from_millis(1_000_000);
    let engine = Engine::builder(&path).clock(ManualClock::new(start)).open().await.unwrap();
    let queue = engine.client().create_queue("q", remembering(3_600)).await.unwrap();
    for position in 1..=50 {
        queue.send(Message::new("x").workflow("w").position(position)).await.unwrap();
        queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
    }
    let before = queue.history(None, 100).await.unwrap();
    assert_eq!(before.len(), 50);
    engine.client().backup(&copy).await.unwrap();
    engine.close().await;
    for path in [&path, &copy] {
        let found = seriatim::store::verify(path, |_| {}).unwrap();
        assert!(found.is_sound() && found.compared, "{:#?}", found.damages);
        let clock = ManualClock::new(start);
        let engine = Engine::builder(path).clock(clock.clone()).open().await.unwrap();
        let queue = engine.client().queue("q").unwrap();
        assert_eq!(queue.history(None, 100).await.unwrap(), before);
        clock.advance(seconds(3_600));
        engine.client().next_due().await.unwrap();
        engine.client().next_due().await.unwrap();
        assert!(queue.history(None, 100).await.unwrap().is_empty());
        engine.close().await;
        assert!(seriatim::store::verify(path, |_| {}).unwrap().is_sound());
    }
}
