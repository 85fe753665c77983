//! The corner cases that were decided once, so that nobody has to guess.

use std::time::Duration;

use seriatim::Clock;
use seriatim::Completion;
use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::error::OperateRefusal;
use seriatim::error::QueueRefusal;
use seriatim::error::ReceiveRefusal;
use seriatim::error::SendRefusal;
use seriatim::event::EventKind;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::ExpiryPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::view::HoldCause;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

#[tokio::test]
async fn an_expired_message_counts_as_settled_and_wakes_what_waits_behind_it() {
    for expired in [ExpiryPolicy::DeadLetter, ExpiryPolicy::Drop] {
        let fixture = Fixture::new(QueueOptions::by_position().expired(expired)).await;
        fixture.accept(Message::new("1").workflow("w").position(1).time_to_live(seconds(5))).await;
        fixture.send_at("w", 2).await;
        fixture.clock.advance(seconds(5));
        assert_eq!(fixture.drain().await, ["2"]);
        let counts = fixture.counts().await;
        assert_eq!(counts.dead_lettered + counts.expired, 1);
    }
}

#[tokio::test]
async fn a_workflow_goes_on_past_a_place_that_was_settled_ahead_of_its_turn() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 1).await;
    fixture.accept(Message::new("2").workflow("w").position(2).time_to_live(seconds(5))).await;
    fixture.send_at("w", 3).await;
    let mut first = fixture.must().await;
    fixture.clock.advance(seconds(5));
    first.complete().await.unwrap();
    let view = fixture.queue.workflow("w").unwrap().view().await.unwrap().unwrap();
    assert_eq!(view.next_position, Some(3), "position 2 expired while 1 was handed out");
    assert_eq!(fixture.drain().await, ["3"]);
}

#[tokio::test]
async fn a_message_that_was_cancelled_or_purged_may_be_sent_again_within_the_duplicate_window() {
    let options = QueueOptions::default().duplicate_window(seconds(60));
    let fixture = Fixture::new(options).await;
    let message = || Message::new("").workflow("w").message_id("id");
    let at = fixture.clock.now() + seconds(30);
    let first = fixture.accept(message().schedule_at(at)).await;
    assert_eq!(fixture.queue.send(message()).await.unwrap(), Receipt::Duplicate(first));
    fixture.queue.cancel(first).await.unwrap();
    let second = fixture.accept(message()).await;
    assert!(second > first, "it was cancelled");
    assert_eq!(fixture.queue.send(message()).await.unwrap(), Receipt::Duplicate(second));
    fixture.queue.purge().await.unwrap();
    let third = fixture.accept(message()).await;
    assert!(third > second, "it was purged");
    fixture.must().await.dead_letter("r", "d").await.unwrap();
    assert_eq!(fixture.queue.send(message()).await.unwrap(), Receipt::Duplicate(third), "it was accepted");
    fixture.queue.purge().await.unwrap();
    assert!(fixture.accept(message()).await > third, "its dead letter was purged");
}

#[tokio::test]
async fn the_duplicate_window_is_half_open_for_each_of_more_ids_than_one_turn_can_forget() {
    let count = 2 * seriatim::limits::REMINDERS_PER_TURN;
    let options = QueueOptions::default().duplicate_window(seconds(60));
    let fixture = Fixture::new(options).await;
    let message = |number: usize| Message::new("").message_id(number.to_string());
    for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
        fixture.queue.send_batch(chunk.iter().copied().map(message)).await.unwrap();
    }
    fixture.clock.advance(seconds(60));
    let again = fixture.queue.send_batch([count - 1, 0].map(message)).await.unwrap();
    assert!(again.iter().all(|receipt| matches!(receipt, Receipt::Accepted(_))), "{again:?}");
}

#[tokio::test]
async fn a_message_that_is_handed_out_is_protected_from_expiry_until_it_comes_back() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.accept(Message::new("1").workflow("w").time_to_live(seconds(5))).await;
    let mut delivery = fixture.must().await;
    fixture.clock.advance(seconds(6));
    assert_eq!(fixture.counts().await.locked, 1);
    delivery.abandon().await.unwrap();
    assert!(fixture.next().await.is_none());
    let dead_letters = fixture.queue.dead_letters(None, 10).await.unwrap();
    assert_eq!(dead_letters[0].dead_letter.reason, "TTLExpiredException");
}

#[tokio::test]
async fn two_messages_cannot_name_one_predecessor() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::After)).await;
    let first = fixture.send_after("w", "b", Some("a")).await;
    let rival = Message::new("c").workflow("w").message_id("c").after("a");
    let taken = fixture.queue.send(rival).await.unwrap_err();
    assert_eq!(taken.refusal(), Some(&SendRefusal::PlaceTaken { index: 0, by: first }));
    let itself = Message::new("d").workflow("w").message_id("d").after("d");
    assert!(matches!(
        fixture.queue.send(itself).await.unwrap_err().refusal(),
        Some(SendRefusal::PlaceMismatch { .. })
    ));
}

#[tokio::test]
async fn messages_that_name_each_other_do_not_stop_the_engine() {
    let options = QueueOptions::default().order(Order::After);
    let gap = GapPolicy { wait: seconds(10), then: GapAction::Skip };
    let fixture = Fixture::new(options.gap(gap)).await;
    fixture.send_after("w", "a", Some("b")).await;
    fixture.send_after("w", "b", Some("a")).await;
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.counts().await.dead_lettered, 2);
}

#[tokio::test]
async fn a_dead_predecessor_holds_an_after_ordered_workflow_or_counts_as_settled() {
    for (exhausted, held) in [(ExhaustedPolicy::Hold, true), (ExhaustedPolicy::Skip, false)] {
        let options = QueueOptions::default().order(Order::After).exhausted(exhausted);
        let fixture = Fixture::new(options).await;
        fixture.send_after("w", "a", None).await;
        fixture.send_after("w", "b", Some("a")).await;
        fixture.must().await.dead_letter("broken", "").await.unwrap();
        assert_eq!(fixture.next().await.is_none(), held);
        let status = fixture.status("w").await;
        let is_held = matches!(status, Some(WorkflowStatus::Held(ref hold)) if matches!(hold.cause, HoldCause::Predecessor(_)));
        assert_eq!(is_held, held, "{status:?}");
    }
}

#[tokio::test]
async fn messages_without_a_workflow_id_have_no_order() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for body in ["1", "2", "3"] {
        fixture.accept(Message::new(body)).await;
    }
    let handed = fixture.queue.receive_many(10, Duration::ZERO).await.unwrap();
    assert_eq!(handed.len(), 3);
}

#[tokio::test]
async fn a_queue_without_order_treats_every_message_for_itself() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::None)).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    let mut handed = fixture.queue.receive_many(10, Duration::ZERO).await.unwrap();
    assert_eq!(handed.len(), 3);
    assert_eq!(handed[0].message().workflow_id.as_ref().unwrap().as_str(), "w");
    handed[1].abandon_after(seconds(5), "later").await.unwrap();
    handed[2].complete().await.unwrap();
    let unordered = fixture.queue.accept_workflow("w").await.err().unwrap();
    assert!(matches!(unordered.refusal(), Some(ReceiveRefusal::Unordered(_))));
}

#[tokio::test]
async fn a_place_that_does_not_fit_the_order_is_refused() {
    let mismatch = |error: seriatim::error::SendError| {
        matches!(error.refusal(), Some(SendRefusal::PlaceMismatch { .. }))
    };
    let by_position = Fixture::new(QueueOptions::by_position()).await;
    let arrival = Fixture::new(QueueOptions::default()).await;
    let placed = Message::new("").workflow("w").position(1);
    assert!(mismatch(by_position.queue.send(Message::new("").workflow("w")).await.unwrap_err()));
    assert!(mismatch(by_position.queue.send(Message::new("").position(1)).await.unwrap_err()));
    assert!(mismatch(arrival.queue.send(placed).await.unwrap_err()));
}

#[tokio::test]
async fn a_batch_is_accepted_whole_or_not_at_all() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let batch = [(1, "x"), (2, "y"), (1, "z")]
        .map(|(n, id)| Message::new("").workflow("w").position(n).message_id(id));
    let refused = fixture.queue.send_batch(batch).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(SendRefusal::PlaceTaken { index: 2, .. })), "{refused}");
    assert_eq!(fixture.counts().await.accepted, 0);
    let batch = [3, 2, 1].map(|n| Message::new(n.to_string()).workflow("w").position(n));
    fixture.queue.send_batch(batch).await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3"]);
}

#[tokio::test]
async fn an_operator_can_retry_now_skip_and_release() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    assert_eq!(workflow.retry_now().await.unwrap_err().refusal(), Some(&OperateRefusal::NothingWaits));
    fixture.must().await.abandon_after(seconds(600), "later").await.unwrap();
    workflow.retry_now().await.unwrap();
    let mut held = fixture.must().await;
    assert_eq!(workflow.skip_head("no").await.unwrap_err().refusal(), Some(&OperateRefusal::WorkflowLocked));
    workflow.release_lock().await.unwrap();
    assert!(held.complete().await.is_err());
    workflow.skip_head("it is broken").await.unwrap();
    assert_eq!(fixture.drain().await, ["2"]);
    assert_eq!(fixture.queue.dead_letters(None, 1).await.unwrap()[0].dead_letter.description, "it is broken");
}

#[tokio::test]
async fn a_held_workflow_offers_nothing_and_says_why() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send("w", "1").await;
    workflow.hold("bad deploy").await.unwrap();
    assert!(fixture.next().await.is_none());
    let Some(WorkflowStatus::Held(hold)) = fixture.status("w").await else { panic!("it is held") };
    assert_eq!((hold.cause, hold.reason.as_str()), (HoldCause::Operator, "bad deploy"));
    workflow.resume().await.unwrap();
    assert_eq!(workflow.resume().await.unwrap_err().refusal(), Some(&OperateRefusal::NotHeld));
    assert_eq!(fixture.drain().await, ["1"]);
}

#[tokio::test]
async fn a_position_that_is_not_missing_cannot_be_declared_void() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send_at("w", 1).await;
    fixture.send_at("w", 5).await;
    let there = workflow.declare_void(2, 5).await.unwrap_err();
    assert!(matches!(there.refusal(), Some(OperateRefusal::NotMissing(position)) if position.get() == 5));
    workflow.declare_void(3, 4).await.unwrap();
    assert_eq!(fixture.drain().await, ["1"]);
    workflow.skip_gap().await.unwrap();
    assert_eq!(fixture.drain().await, ["5"]);
}

#[tokio::test]
async fn the_order_of_a_queue_in_use_cannot_change_but_everything_else_can() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let client = fixture.engine.client();
    let refused = client.change_queue("q", QueueOptions::by_position()).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(QueueRefusal::OrderInUse(_))));
    let shorter = QueueOptions::default().lock(seconds(2));
    assert!(client.change_queue("q", shorter.clone()).await.unwrap());
    assert!(!client.change_queue("q", shorter).await.unwrap(), "nothing changed");
    let mut delivery = fixture.must().await;
    fixture.clock.advance(seconds(2));
    assert!(delivery.complete().await.is_err());
}

#[tokio::test]
async fn an_idle_queue_deletes_itself_only_when_it_is_empty() {
    let options = QueueOptions::default().delete_when_idle(seconds(60));
    let fixture = Fixture::new(options).await;
    fixture.send("w", "1").await;
    fixture.clock.advance(seconds(61));
    assert_eq!(fixture.drain().await, ["1"]);
    fixture.clock.advance(seconds(59));
    assert!(fixture.next().await.is_none(), "a receive is a use");
    fixture.clock.advance(seconds(59));
    fixture.counts().await;
    fixture.clock.advance(seconds(1));
    assert!(fixture.queue.view().await.is_err());
    assert!(fixture.engine.client().queues(None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_workflow_says_when_its_state_was_last_set_by_the_wall_clock() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    let set_at = async || {
        let view = workflow.view().await.unwrap().expect("it is there");
        assert!(view.has_state || view.state_set_at.is_none());
        view.state_set_at
    };
    fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    assert_eq!(set_at().await, None);
    workflow.set_state(Some("s".into())).await.unwrap();
    let first = fixture.clock.now();
    assert_eq!(set_at().await, Some(first));
    fixture.clock.advance(seconds(5));
    fixture.must().await.complete().await.unwrap();
    assert_eq!(set_at().await, Some(first), "a completion that keeps it does not set it");
    fixture.must().await.complete_with(Completion::new().state("s")).await.unwrap();
    assert_eq!(set_at().await, Some(first + seconds(5)), "the same bytes set it, too");
    fixture.send("w", "3").await;
    workflow.set_state(None).await.unwrap();
    assert_eq!(set_at().await, None);
}

#[tokio::test]
async fn a_queue_with_a_state_a_hold_or_a_young_cursor_is_not_idle() {
    let idle = QueueOptions::default().delete_when_idle(seconds(60));
    let by_position = idle.clone().order(Order::POSITION).forget_after(seconds(600));
    let fixture = Fixture::new(idle).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    workflow.set_state(Some("kept".into())).await.unwrap();
    fixture.clock.advance(seconds(100));
    assert_eq!(workflow.state().await.unwrap(), Some("kept".into()), "a state is not lost");
    workflow.set_state(None).await.unwrap();
    workflow.hold("look first").await.unwrap();
    fixture.clock.advance(seconds(100));
    assert!(matches!(fixture.status("w").await, Some(WorkflowStatus::Held(_))));
    workflow.resume().await.unwrap();
    fixture.clock.advance(seconds(100));
    assert!(fixture.queue.view().await.is_err(), "nothing is known of any workflow");

    let fixture = Fixture::new(by_position).await;
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.drain().await, ["1"]);
    fixture.clock.advance(seconds(599));
    let again = fixture.queue.send(Message::new("1").workflow("w").position(1)).await.unwrap();
    assert_eq!(again, Receipt::AlreadySettled, "its cursor is younger than `forget_after`");
    fixture.clock.advance(seconds(1_000));
    fixture.engine.client().next_due().await.unwrap();
    assert!(fixture.queue.view().await.is_err());
}

#[tokio::test]
async fn an_idle_queue_that_keeps_something_is_looked_at_again_after_as_long() {
    let fixture = Fixture::new(QueueOptions::default().delete_when_idle(seconds(60))).await;
    fixture.send("w", "1").await;
    fixture.must().await.dead_letter("bad", "").await.unwrap();
    let client = fixture.engine.client();
    let due = async || client.next_due().await.unwrap().expect("it is looked at again");
    for _ in 0..5 {
        let now = due().await;
        fixture.clock.set(now);
        assert_eq!(due().await, now + seconds(60));
    }
}

#[tokio::test]
async fn a_deleted_queue_takes_everything_with_it_and_a_new_one_begins_anew() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let number = fixture.send_at("w", 1).await;
    fixture.send_at("w", 3).await;
    let waiting = tokio::spawn({
        let queue = fixture.engine.client().queue("q").unwrap();
        async move { queue.accept_next_workflow(seconds(1)).await.map(|taken| taken.is_some()) }
    });
    let _ = waiting.await;
    fixture.engine.client().delete_queue("q").await.unwrap();
    assert!(fixture.queue.receive(Duration::ZERO).await.is_err());
    fixture.engine.client().create_queue("q", QueueOptions::by_position()).await.unwrap();
    assert_eq!(fixture.counts().await.accepted, 0);
    fixture.clock.advance(seconds(1_000_000));
    let next = fixture.send_at("w", 1).await;
    assert!(next > number, "sequence numbers are never reused");
}

#[tokio::test]
async fn a_receiver_waits_and_is_served_when_work_comes() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let (queue, client) = (fixture.queue.clone(), fixture.engine.client().clone());
    let receiver =
        tokio::spawn(async move { queue.receive(seconds(60)).await.unwrap().map(|found| body(&found)) });
    while client.next_due().await.is_ok() && !receiver.is_finished() {
        if fixture.counts().await.accepted == 0 {
            fixture.send("w", "1").await;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(receiver.await.unwrap().as_deref(), Some("1"));
}

#[tokio::test]
async fn a_receiver_that_went_away_gives_its_message_back_uncounted() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let receive = fixture.queue.receive(seconds(60));
    let gone = tokio::time::timeout(millis(20), receive).await;
    assert!(gone.is_err());
    fixture.send("w", "1").await;
    let delivery = loop {
        if let Some(delivery) = fixture.next().await {
            break delivery;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(delivery.message().delivery_count, 1);
}

#[tokio::test]
async fn a_delivery_that_is_dropped_is_given_back_as_a_failed_attempt() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    drop(fixture.must().await);
    let again = fixture.must().await;
    assert_eq!(again.message().delivery_count, 2);
    assert_eq!(again.message().attempts[0].reason, "it was dropped without being settled");
}

#[tokio::test]
async fn properties_changed_with_an_abandon_stay_with_the_message() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.accept(Message::new("1").workflow("w").property("kept", "a")).await;
    let abandon = seriatim::Abandon::now().property("step", 2_i64);
    fixture.must().await.abandon_with(abandon).await.unwrap();
    let again = fixture.must().await;
    let properties = &again.message().headers.properties;
    assert_eq!(properties["kept"], "a".into());
    assert_eq!(properties["step"], 2_i64.into());
}

#[tokio::test]
async fn a_workflow_with_nothing_stored_is_forgotten_after_a_while() {
    let options = QueueOptions::by_position().forget_after(seconds(100)).cursors_max(0);
    let fixture = Fixture::new(options).await;
    fixture.send_at("w", 1).await;
    fixture.drain().await;
    fixture.clock.advance(seconds(99));
    let again = || Message::new("1").workflow("w").position(1);
    assert_eq!(fixture.queue.send(again()).await.unwrap(), Receipt::AlreadySettled);
    fixture.clock.advance(seconds(1));
    assert_eq!(fixture.status("w").await, None);
    assert!(matches!(fixture.queue.send(again()).await.unwrap(), Receipt::Accepted(_)));
}

#[tokio::test]
async fn a_workflow_that_was_used_again_is_remembered_from_then_on() {
    let options = QueueOptions::by_position().forget_after(seconds(100));
    let fixture = Fixture::new(options).await;
    fixture.send_at("w", 1).await;
    fixture.drain().await;
    fixture.clock.advance(seconds(50));
    fixture.send_at("w", 2).await;
    fixture.drain().await;
    fixture.clock.advance(seconds(99));
    let again = Message::new("2").workflow("w").position(2);
    assert_eq!(fixture.queue.send(again).await.unwrap(), Receipt::AlreadySettled);
    fixture.clock.advance(seconds(60));
    assert_eq!(fixture.status("w").await, None);
}

#[tokio::test]
async fn events_tell_what_happens_to_workflows() {
    let options = QueueOptions::default().delivery_count_max(2);
    let fixture = Fixture::new(options).await;
    let mut events = fixture.engine.events();
    fixture.send("w", "1").await;
    fixture.must().await.abandon_after(seconds(1), "first").await.unwrap();
    fixture.clock.advance(seconds(1));
    fixture.must().await.abandon().await.unwrap();
    fixture.queue.workflow("w").unwrap().skip_head("give up").await.unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = events.try_next() {
        kinds.push(match event.kind {
            EventKind::Blocked { reason, .. } => format!("blocked: {reason}"),
            EventKind::Held { .. } => "held".to_owned(),
            EventKind::DeadLettered { reason } => format!("dead: {reason}"),
            EventKind::Resumed => "resumed".to_owned(),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(kinds, ["blocked: first", "held", "dead: SkippedByOperator", "resumed"]);
}

#[tokio::test]
async fn a_redrive_begins_the_time_to_live_anew() {
    for options in [QueueOptions::default().order(Order::None), QueueOptions::default()] {
        let fixture = Fixture::new(options.time_to_live(seconds(60))).await;
        let lives = Message::new("1").workflow("w").time_to_live(seconds(5));
        let number = fixture.accept(lives).await;
        fixture.accept(Message::new("2").workflow("v")).await;
        for _ in 0..2 {
            fixture.must().await.dead_letter("broken", "").await.unwrap();
        }
        fixture.clock.advance(seconds(3_600));
        for number in fixture.queue.dead_letters(None, 10).await.unwrap() {
            fixture.queue.redrive(number.sequence_number).await.unwrap();
        }
        fixture.clock.advance(millis(4_999));
        assert_eq!(fixture.counts().await.ready, 2, "{number} lives again");
        fixture.clock.advance(millis(1));
        assert_eq!(fixture.drain().await, ["2"], "as long as its sender said");
        fixture.accept(Message::new("3").workflow("v")).await;
        fixture.must().await.dead_letter("broken", "").await.unwrap();
        let dead_letters = fixture.queue.dead_letters(None, 10).await.unwrap();
        let last = dead_letters.iter().map(|dead_letter| dead_letter.sequence_number).max().unwrap();
        fixture.queue.redrive(last).await.unwrap();
        fixture.clock.advance(seconds(60));
        assert!(fixture.drain().await.is_empty(), "and as long as its queue says");
    }
}
