//! The ordering rules O1 to O12.

use std::time::Duration;

use seriatim::Abandon;
use seriatim::Message;
use seriatim::Order;
use seriatim::Outcome;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::delivery::Redriven;
use seriatim::error::ReceiveRefusal;
use seriatim::error::SendRefusal;
use seriatim::error::SettleRefusal;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::LatePolicy;
use seriatim::view::DeadLetterView;
use seriatim::view::HoldCause;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

fn after_order() -> QueueOptions {
    QueueOptions::default().order(Order::After)
}

#[tokio::test]
async fn o1_a_workflow_has_at_most_one_holder() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["a1", "a2", "a3"] {
        fixture.send("a", body).await;
    }
    fixture.send("b", "b1").await;
    let of_a = fixture.must().await;
    let of_b = fixture.must().await;
    assert_eq!((body(&of_a), body(&of_b)), ("a1".to_owned(), "b1".to_owned()));
    assert!(fixture.next().await.is_none(), "a and b have their holders");
    let taken = fixture.queue.accept_workflow("a").await;
    assert_eq!(taken.err().unwrap().refusal(), Some(&ReceiveRefusal::WorkflowLocked));
    drop((of_a, of_b));
}

#[tokio::test]
async fn o2_messages_are_handled_in_order_of_arrival() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    assert_eq!(fixture.drain().await, ["1", "2", "3"]);
}

#[tokio::test]
async fn o2_messages_are_handled_in_order_of_position() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in [4, 2, 1, 5, 3] {
        fixture.send_at("w", position).await;
    }
    assert_eq!(fixture.drain().await, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn o2_messages_are_handled_after_their_predecessors() {
    let fixture = Fixture::new(after_order()).await;
    fixture.send_after("w", "d", Some("c")).await;
    fixture.send_after("w", "b", Some("a")).await;
    fixture.send_after("w", "a", None).await;
    assert_eq!(fixture.drain().await, ["a", "b"]);
    fixture.send_after("w", "c", Some("b")).await;
    assert_eq!(fixture.drain().await, ["c", "d"]);
}

#[tokio::test]
async fn o3_an_early_message_becomes_ready_with_its_predecessor() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 2).await;
    assert!(fixture.next().await.is_none());
    assert_eq!(fixture.counts().await.early, 1);
    assert_eq!(fixture.status("w").await, Some(WorkflowStatus::WaitingForPredecessor));
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.counts().await.early, 0);
    assert_eq!(fixture.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o4_a_position_that_is_settled_is_answered_and_stored_once() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 1).await;
    fixture.drain().await;
    let again = fixture.queue.send(Message::new("1").workflow("w").position(1)).await.unwrap();
    assert_eq!(again, Receipt::AlreadySettled);
    assert_eq!(fixture.counts().await.stored(), 0);
}

#[tokio::test]
async fn o4_late_messages_are_refused_or_dead_lettered_on_demand() {
    for (late, refused) in [(LatePolicy::Refuse, true), (LatePolicy::DeadLetter, false)] {
        let fixture = Fixture::new(QueueOptions::by_position().late(late)).await;
        fixture.send_at("w", 1).await;
        fixture.drain().await;
        let again = fixture.queue.send(Message::new("1").workflow("w").position(1)).await;
        match refused {
            true => assert_eq!(again.unwrap_err().refusal(), Some(&SendRefusal::AlreadySettled { index: 0 })),
            false => assert!(matches!(again, Ok(Receipt::DeadLettered(_)))),
        }
    }
}

#[tokio::test]
async fn o4_a_pending_position_is_a_duplicate_or_taken_and_never_overwritten() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let message = |id: &str| Message::new(id.to_owned()).workflow("w").position(7).message_id(id);
    let first = fixture.accept(message("x")).await;
    assert_eq!(fixture.queue.send(message("x")).await.unwrap(), Receipt::Duplicate(first));
    let taken = fixture.queue.send(message("y")).await.unwrap_err();
    assert_eq!(taken.refusal(), Some(&SendRefusal::PlaceTaken { index: 0, by: first }));
    let nameless = fixture.queue.send(Message::new("y").workflow("w").position(7)).await;
    assert!(nameless.is_err(), "another message without an ID is not the same message");
}

#[tokio::test]
async fn o5_nothing_behind_a_failed_message_is_offered_until_it_is_settled() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    fixture.send("other", "x").await;
    let mut first = fixture.must().await;
    first.abandon_after(seconds(60), "try later").await.unwrap();
    assert_eq!(fixture.drain().await, ["x"], "the others go on");
    fixture.clock.advance(millis(59_999));
    assert!(fixture.next().await.is_none(), "a reminder never fires early");
    fixture.clock.advance(millis(1));
    let mut again = fixture.must().await;
    assert_eq!((body(&again).as_str(), again.message().delivery_count), ("1", 2));
    assert_eq!(again.message().attempts[0].reason, "try later");
    again.complete().await.unwrap();
    assert_eq!(fixture.drain().await, ["2"]);
}

#[tokio::test]
async fn o5_the_queues_backoff_delays_within_its_bounds() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let mut delivery = fixture.must().await;
    delivery.abandon_with(Abandon::with_backoff().reason("busy")).await.unwrap();
    fixture.clock.advance(seconds(1));
    assert_eq!(fixture.drain().await, ["1"], "the first delay is at most a second");
}

fn twice(exhausted: ExhaustedPolicy) -> QueueOptions {
    QueueOptions::by_position().delivery_count_max(2).exhausted(exhausted)
}

async fn spend_the_first(fixture: &Fixture) {
    for position in 1..=3 {
        fixture.send_at("w", position).await;
    }
    for _ in 0..2 {
        fixture.must().await.abandon().await.expect("the lock is held");
    }
}

#[tokio::test]
async fn o6_hold_keeps_the_spent_message_at_the_head_until_resumed() {
    let fixture = Fixture::new(twice(ExhaustedPolicy::Hold)).await;
    spend_the_first(&fixture).await;
    assert!(fixture.next().await.is_none());
    let Some(WorkflowStatus::Held(hold)) = fixture.status("w").await else {
        panic!("it says that it is held")
    };
    assert!(matches!(hold.cause, HoldCause::Exhausted(_)));
    assert_eq!(fixture.counts().await.exhausted, 1);
    fixture.queue.workflow("w").unwrap().resume().await.unwrap();
    let mut again = fixture.must().await;
    assert_eq!(again.message().delivery_count, 3, "a count is never reset");
    again.complete().await.unwrap();
    assert_eq!(fixture.drain().await, ["2", "3"]);
}

#[tokio::test]
async fn o6_skip_dead_letters_the_spent_message_and_goes_on() {
    let fixture = Fixture::new(twice(ExhaustedPolicy::Skip)).await;
    spend_the_first(&fixture).await;
    assert_eq!(fixture.drain().await, ["2", "3"]);
    let dead_letters = fixture.queue.dead_letters(None, 10).await.unwrap();
    assert_eq!(dead_letters.len(), 1);
    assert_eq!(dead_letters[0].dead_letter.reason, "MaxDeliveryCountExceeded");
}

#[tokio::test]
async fn o6_quarantine_dead_letters_all_that_follows_and_redrives_it_in_place() {
    let fixture = Fixture::new(twice(ExhaustedPolicy::Quarantine)).await;
    spend_the_first(&fixture).await;
    assert!(fixture.next().await.is_none());
    fixture.send_at("w", 4).await;
    assert!(fixture.next().await.is_none());
    assert_eq!(fixture.counts().await.dead_lettered, 4);
    let told = fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!((told.redriven, told.stayed), (4, 0));
    assert_eq!(fixture.drain().await, ["1", "2", "3", "4"]);
}

fn gap(then: GapAction) -> QueueOptions {
    QueueOptions::by_position().gap(GapPolicy { wait: seconds(10), then })
}

#[tokio::test]
async fn o7_a_gap_holds_the_workflow_after_its_wait() {
    let fixture = Fixture::new(gap(GapAction::Hold)).await;
    fixture.send_at("w", 3).await;
    fixture.clock.advance(millis(9_999));
    assert_eq!(fixture.status("w").await, Some(WorkflowStatus::WaitingForPredecessor));
    fixture.clock.advance(millis(1));
    let view = fixture.queue.workflow("w").unwrap().view().await.unwrap().unwrap();
    assert!(
        matches!(view.status, WorkflowStatus::Held(ref hold) if hold.cause == HoldCause::Gap),
        "{view:?}"
    );
    let gap = view.gap.unwrap();
    assert_eq!((gap.first_missing, gap.first_waiting), (Some(1), Some(3)));
    fixture.queue.workflow("w").unwrap().declare_void(1, 2).await.unwrap();
    assert_eq!(fixture.drain().await, ["3"]);
}

#[tokio::test]
async fn o7_a_skipped_gap_is_recorded_and_what_comes_for_it_is_kept_aside() {
    let fixture = Fixture::new(gap(GapAction::Skip)).await;
    fixture.send_at("w", 1).await;
    fixture.send_at("w", 4).await;
    assert_eq!(fixture.drain().await, ["1"]);
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.drain().await, ["4"]);
    let late = fixture.queue.send(Message::new("3").workflow("w").position(3)).await.unwrap();
    assert!(matches!(late, Receipt::DeadLettered(_)), "it was never handled, so it is never ignored");
    let dead_letters: Vec<DeadLetterView> = fixture.queue.dead_letters(None, 10).await.unwrap();
    assert_eq!(dead_letters[0].dead_letter.reason, "arrived_after_gap");
}

#[tokio::test]
async fn o7_waiting_on_raises_an_alarm_each_time() {
    let fixture = Fixture::new(gap(GapAction::Wait)).await;
    let mut events = fixture.engine.events();
    fixture.send_at("w", 2).await;
    for _ in 0..3 {
        fixture.clock.advance(seconds(10));
        fixture.counts().await;
        assert!(matches!(events.try_next().unwrap().kind, seriatim::event::EventKind::Gap { .. }));
    }
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o7_what_waits_early_is_bounded() {
    let fixture = Fixture::new(QueueOptions::by_position().early_max(2)).await;
    fixture.send_at("w", 3).await;
    fixture.send_at("w", 4).await;
    let full = fixture.queue.send(Message::new("5").workflow("w").position(5)).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SendRefusal::WorkflowFull { index: 0, early: 2 }));
    fixture.send_at("w", 1).await;
    fixture.send_at("w", 2).await;
    assert_eq!(fixture.drain().await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn o8_a_run_is_settled_by_prefix() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in [1, 2, 3, 4, 6] {
        fixture.send_at("w", position).await;
    }
    let mut run = fixture.queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap();
    let bodies: Vec<_> = run.messages().iter().map(|message| message.body.clone()).collect();
    assert_eq!(bodies, ["1", "2", "3", "4"], "6 waits for 5");
    let later = Outcome::Abandon(Abandon::after(seconds(5)).reason("not yet"));
    run.complete_first_then(2, later).await.unwrap();
    assert!(fixture.next().await.is_none());
    fixture.clock.advance(seconds(5));
    let run = fixture.queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap();
    let counts: Vec<u32> = run.messages().iter().map(|message| message.delivery_count).collect();
    assert_eq!(counts, [2, 1], "the rest was given back uncounted");
}

#[tokio::test]
async fn o8_a_prefix_of_a_run_can_be_completed_and_the_rest_kept() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    let mut run = fixture.queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap();
    run.complete_first(1).await.unwrap();
    assert_eq!(run.messages().len(), 2);
    assert!(fixture.next().await.is_none());
    run.complete_all().await.unwrap();
    assert_eq!(fixture.counts().await.completed, 3);
}

#[tokio::test]
async fn o9_a_message_set_aside_lets_the_workflow_go_on() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in 1..=3 {
        fixture.send_at("w", position).await;
    }
    let mut first = fixture.must().await;
    let number = first.sequence_number();
    first.defer().await.unwrap();
    assert_eq!(fixture.drain().await, ["2", "3"]);
    let mut deferred = fixture.queue.receive_deferred(&[number]).await.unwrap();
    deferred[0].complete().await.unwrap();
    assert_eq!(fixture.counts().await.completed, 3);
    let gone = fixture.queue.receive_deferred(&[number]).await.err().unwrap();
    assert_eq!(gone.refusal(), Some(&ReceiveRefusal::MessageNotFound(number)));
}

#[tokio::test]
async fn o9_a_message_deferred_until_comes_back_before_what_was_not_handed_out() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    let mut first = fixture.must().await;
    first.defer_until(seriatim::Clock::now(&fixture.clock) + seconds(5)).await.unwrap();
    let mut second = fixture.must().await;
    fixture.clock.advance(seconds(5));
    assert!(fixture.next().await.is_none(), "the second is still held");
    second.complete().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "3"]);
}

#[tokio::test]
async fn o9_a_queue_can_wait_for_what_is_deferred() {
    let fixture = Fixture::new(QueueOptions::default().hold_on_defer(true)).await;
    fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    let mut first = fixture.must().await;
    let number = first.sequence_number();
    first.defer().await.unwrap();
    assert!(fixture.next().await.is_none());
    fixture.queue.receive_deferred(&[number]).await.unwrap()[0].complete().await.unwrap();
    assert_eq!(fixture.drain().await, ["2"]);
}

#[tokio::test]
async fn o10_ready_workflows_are_offered_in_the_order_in_which_they_became_ready() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for workflow in ["a", "b", "c"] {
        fixture.send(workflow, &format!("{workflow}1")).await;
        fixture.send(workflow, &format!("{workflow}2")).await;
    }
    assert_eq!(fixture.drain().await, ["a1", "b1", "c1", "a2", "b2", "c2"]);
}

#[tokio::test]
async fn o10_a_message_without_workflow_that_comes_back_is_offered_before_later_ones() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::None)).await;
    for body in ["1", "2", "3", "4"] {
        fixture.send("w", body).await;
    }
    let (mut first, mut second) = (fixture.must().await, fixture.must().await);
    second.abandon().await.unwrap();
    first.abandon().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn o10_what_is_given_back_in_the_millisecond_in_which_it_was_sent_finds_its_place() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::None)).await;
    for body in ["1", "2", "3", "4"] {
        fixture.send("w", body).await;
    }
    let (mut first, mut second) = (fixture.must().await, fixture.must().await);
    second.release().await.unwrap();
    first.release().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn o10_a_blocked_workflow_costs_the_others_nothing() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for from in (2..20_002).step_by(1_000) {
        let batch = (from..from + 1_000).map(|n| Message::new("").workflow("stuck").position(n));
        fixture.queue.send_batch(batch).await.unwrap();
    }
    fixture.send_at("free", 1).await;
    assert_eq!(fixture.drain().await, ["1"]);
    assert_eq!(fixture.counts().await.early, 20_000);
}

#[tokio::test]
async fn o11_a_dead_letter_returns_to_its_place_while_the_workflow_is_held_before_it() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    for position in 1..=3 {
        fixture.send_at("w", position).await;
    }
    let mut first = fixture.must().await;
    let number = first.sequence_number();
    workflow.hold("look at it").await.unwrap();
    first.dead_letter("broken", "cannot be parsed").await.unwrap();
    assert_eq!(fixture.queue.redrive(number).await.unwrap(), Redriven::InPlace);
    workflow.resume().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2", "3"]);
}

#[tokio::test]
async fn o11_a_dead_letter_whose_place_has_passed_becomes_a_new_message_or_is_refused() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let mut first = fixture.must().await;
    let number = first.sequence_number();
    first.dead_letter("broken", "").await.unwrap();
    fixture.send("w", "2").await;
    assert!(matches!(fixture.queue.redrive(number).await.unwrap(), Redriven::AsNew(_)));
    assert_eq!(fixture.drain().await, ["2", "1"]);

    let fixture = Fixture::new(QueueOptions::by_position()).await;
    fixture.send_at("w", 1).await;
    let mut first = fixture.must().await;
    let number = first.sequence_number();
    first.dead_letter("broken", "").await.unwrap();
    let passed = fixture.queue.redrive(number).await.unwrap_err();
    assert_eq!(passed.refusal(), Some(&seriatim::error::OperateRefusal::PlacePassed(number)));
    assert!(matches!(fixture.queue.redrive_as(number, 2).await.unwrap(), Redriven::AsNew(_)));
    assert_eq!(fixture.drain().await, ["1"], "its body is what it was");
}

#[tokio::test]
async fn o12_a_taken_workflow_is_offered_to_nobody_else() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    let taken = fixture.queue.accept_next_workflow(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(taken.workflow_id().unwrap().as_str(), "w");
    assert!(fixture.next().await.is_none());
    let mut ahead = taken.receive(2, Duration::ZERO).await.unwrap();
    assert_eq!(ahead.iter().map(body).collect::<Vec<_>>(), ["1", "2"]);
    ahead[0].complete().await.unwrap();
    taken.close().await.unwrap();
    let second = fixture.must().await;
    assert_eq!((body(&second).as_str(), second.message().delivery_count), ("2", 1), "given back uncounted");
}

#[tokio::test]
async fn o12_when_an_early_one_fails_the_later_ones_are_taken_back() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut ahead = taken.receive(3, Duration::ZERO).await.unwrap();
    ahead[0].abandon().await.unwrap();
    let lost = ahead[1].complete().await.unwrap_err();
    assert_eq!(lost.refusal(), Some(&SettleRefusal::LockLost));
    let mut again = taken.receive(3, Duration::ZERO).await.unwrap();
    assert_eq!(again.iter().map(body).collect::<Vec<_>>(), ["1", "2", "3"]);
    for delivery in &mut again {
        delivery.complete().await.unwrap();
    }
}

#[tokio::test]
async fn o12_who_settles_apart_keeps_what_he_has_ahead_where_failed_messages_are_skipped() {
    let options = QueueOptions::default().exhausted(ExhaustedPolicy::Skip);
    let fixture = Fixture::new(options).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    taken.settle_apart().await.unwrap();
    let mut ahead = taken.receive(2, Duration::ZERO).await.unwrap();
    ahead[0].abandon().await.unwrap();
    ahead[1].complete().await.unwrap();
    let mut again = taken.receive(9, Duration::ZERO).await.unwrap();
    assert_eq!(again.iter().map(body).collect::<Vec<_>>(), ["1", "3"]);
    for delivery in &mut again {
        delivery.complete().await.unwrap();
    }
    taken.close().await.unwrap();
}

#[tokio::test]
async fn o12_a_workflow_without_messages_can_be_taken_by_name() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    fixture.send("w", "1").await;
    assert!(fixture.next().await.is_none());
    let mut deliveries = taken.receive(1, Duration::ZERO).await.unwrap();
    deliveries[0].complete().await.unwrap();
}
