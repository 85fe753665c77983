//! The ordering rules O1 to O12.

use std::time::Duration;

use seriatim::Abandon;
use seriatim::DeadLetterView;
use seriatim::Ending;
use seriatim::GapPolicy;
use seriatim::GapThen;
use seriatim::HoldCause;
use seriatim::Late;
use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::ReceiveRefusal;
use seriatim::Redriven;
use seriatim::SendRefusal;
use seriatim::SettleRefusal;
use seriatim::Spent;
use seriatim::WorkflowStatus;

use crate::promises::house::House;
use crate::promises::house::body;
use crate::promises::house::millis;
use crate::promises::house::seconds;

fn after_order() -> QueueOptions {
    QueueOptions { order: Order::After, ..QueueOptions::default() }
}

#[tokio::test]
async fn o1_a_workflow_has_at_most_one_holder() {
    let house = House::new(QueueOptions::default()).await;
    for body in ["a1", "a2", "a3"] {
        house.send("a", body).await;
    }
    house.send("b", "b1").await;
    let of_a = house.must().await;
    let of_b = house.must().await;
    assert_eq!((body(&of_a), body(&of_b)), ("a1".to_owned(), "b1".to_owned()));
    assert!(house.next().await.is_none(), "a and b have their holders");
    let taken = house.queue.take_workflow("a").await;
    assert_eq!(taken.err().unwrap().refusal(), Some(&ReceiveRefusal::WorkflowLocked));
    drop((of_a, of_b));
}

#[tokio::test]
async fn o2_messages_are_handled_in_order_of_arrival() {
    let house = House::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        house.send("w", body).await;
    }
    assert_eq!(house.drain().await, ["1", "2", "3"]);
}

#[tokio::test]
async fn o2_messages_are_handled_in_order_of_position() {
    let house = House::new(QueueOptions::by_position()).await;
    for position in [4, 2, 1, 5, 3] {
        house.send_at("w", position).await;
    }
    assert_eq!(house.drain().await, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn o2_messages_are_handled_after_their_predecessors() {
    let house = House::new(after_order()).await;
    house.send_after("w", "d", Some("c")).await;
    house.send_after("w", "b", Some("a")).await;
    house.send_after("w", "a", None).await;
    assert_eq!(house.drain().await, ["a", "b"]);
    house.send_after("w", "c", Some("b")).await;
    assert_eq!(house.drain().await, ["c", "d"]);
}

#[tokio::test]
async fn o3_an_early_message_becomes_ready_with_its_predecessor() {
    let house = House::new(QueueOptions::by_position()).await;
    house.send_at("w", 2).await;
    assert!(house.next().await.is_none());
    assert_eq!(house.counts().await.early, 1);
    assert_eq!(house.status("w").await, Some(WorkflowStatus::WaitingForPredecessor));
    house.send_at("w", 1).await;
    assert_eq!(house.counts().await.early, 0);
    assert_eq!(house.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o4_a_position_that_is_settled_is_answered_and_stored_once() {
    let house = House::new(QueueOptions::by_position()).await;
    house.send_at("w", 1).await;
    house.drain().await;
    let again = house.queue.send(Message::new("1").workflow("w").position(1)).await.unwrap();
    assert_eq!(again, Receipt::AlreadySettled);
    assert_eq!(house.counts().await.stored(), 0);
}

#[tokio::test]
async fn o4_late_messages_are_refused_or_dead_lettered_on_demand() {
    for (late, refused) in [(Late::Refuse, true), (Late::DeadLetter, false)] {
        let house = House::new(QueueOptions { late, ..QueueOptions::by_position() }).await;
        house.send_at("w", 1).await;
        house.drain().await;
        let again = house.queue.send(Message::new("1").workflow("w").position(1)).await;
        match refused {
            true => assert_eq!(again.unwrap_err().refusal(), Some(&SendRefusal::AlreadySettled { index: 0 })),
            false => assert!(matches!(again, Ok(Receipt::DeadLettered(_)))),
        }
    }
}

#[tokio::test]
async fn o4_a_pending_position_is_a_duplicate_or_taken_and_never_overwritten() {
    let house = House::new(QueueOptions::by_position()).await;
    let message = |id: &str| Message::new(id.to_owned()).workflow("w").position(7).message_id(id);
    let first = house.accept(message("x")).await;
    assert_eq!(house.queue.send(message("x")).await.unwrap(), Receipt::Duplicate(first));
    let taken = house.queue.send(message("y")).await.unwrap_err();
    assert_eq!(taken.refusal(), Some(&SendRefusal::PlaceTaken { index: 0, by: first }));
    let nameless = house.queue.send(Message::new("y").workflow("w").position(7)).await;
    assert!(nameless.is_err(), "another message without an ID is not the same message");
}

#[tokio::test]
async fn o5_nothing_behind_a_failed_message_is_offered_until_it_is_settled() {
    let house = House::new(QueueOptions::default()).await;
    house.send("w", "1").await;
    house.send("w", "2").await;
    house.send("other", "x").await;
    let mut first = house.must().await;
    first.abandon_after(seconds(60), "try later").await.unwrap();
    assert_eq!(house.drain().await, ["x"], "the others go on");
    house.clock.advance(millis(59_999));
    assert!(house.next().await.is_none(), "a reminder never fires early");
    house.clock.advance(millis(1));
    let mut again = house.must().await;
    assert_eq!((body(&again).as_str(), again.message().delivery_count), ("1", 2));
    assert_eq!(again.message().attempts[0].reason, "try later");
    again.complete().await.unwrap();
    assert_eq!(house.drain().await, ["2"]);
}

#[tokio::test]
async fn o5_the_queues_backoff_delays_within_its_bounds() {
    let house = House::new(QueueOptions::default()).await;
    house.send("w", "1").await;
    let mut delivery = house.must().await;
    delivery.abandon_with(Abandon::with_backoff().reason("busy")).await.unwrap();
    house.clock.advance(seconds(1));
    assert_eq!(house.drain().await, ["1"], "the first delay is at most a second");
}

fn twice(spent: Spent) -> QueueOptions {
    QueueOptions { delivery_count_max: 2, spent: Some(spent), ..QueueOptions::by_position() }
}

async fn spend_the_first(house: &House) {
    for position in 1..=3 {
        house.send_at("w", position).await;
    }
    for _ in 0..2 {
        house.must().await.abandon().await.expect("the lock is held");
    }
}

#[tokio::test]
async fn o6_hold_keeps_the_spent_message_at_the_head_until_resumed() {
    let house = House::new(twice(Spent::Hold)).await;
    spend_the_first(&house).await;
    assert!(house.next().await.is_none());
    let Some(WorkflowStatus::Held(hold)) = house.status("w").await else { panic!("it says that it is held") };
    assert!(matches!(hold.cause, HoldCause::Spent(_)));
    assert_eq!(house.counts().await.spent, 1);
    house.queue.workflow("w").unwrap().resume().await.unwrap();
    let mut again = house.must().await;
    assert_eq!(again.message().delivery_count, 3, "a count is never reset");
    again.complete().await.unwrap();
    assert_eq!(house.drain().await, ["2", "3"]);
}

#[tokio::test]
async fn o6_skip_dead_letters_the_spent_message_and_goes_on() {
    let house = House::new(twice(Spent::Skip)).await;
    spend_the_first(&house).await;
    assert_eq!(house.drain().await, ["2", "3"]);
    let letters = house.queue.dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].letter.reason, "MaxDeliveryCountExceeded");
}

#[tokio::test]
async fn o6_quarantine_dead_letters_all_that_follows_and_redrives_it_in_place() {
    let house = House::new(twice(Spent::Quarantine)).await;
    spend_the_first(&house).await;
    assert!(house.next().await.is_none());
    house.send_at("w", 4).await;
    assert!(house.next().await.is_none());
    assert_eq!(house.counts().await.dead_lettered, 4);
    let told = house.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!((told.redriven, told.stayed), (4, 0));
    assert_eq!(house.drain().await, ["1", "2", "3", "4"]);
}

fn gap(then: GapThen) -> QueueOptions {
    QueueOptions { gap: GapPolicy { wait: seconds(10), then }, ..QueueOptions::by_position() }
}

#[tokio::test]
async fn o7_a_gap_holds_the_workflow_after_its_wait() {
    let house = House::new(gap(GapThen::Hold)).await;
    house.send_at("w", 3).await;
    house.clock.advance(millis(9_999));
    assert_eq!(house.status("w").await, Some(WorkflowStatus::WaitingForPredecessor));
    house.clock.advance(millis(1));
    let view = house.queue.workflow("w").unwrap().view().await.unwrap().unwrap();
    assert!(
        matches!(view.status, WorkflowStatus::Held(ref hold) if hold.cause == HoldCause::Gap),
        "{view:?}"
    );
    let gap = view.gap.unwrap();
    assert_eq!((gap.first_missing, gap.first_waiting), (Some(1), Some(3)));
    house.queue.workflow("w").unwrap().declare_void(1, 2).await.unwrap();
    assert_eq!(house.drain().await, ["3"]);
}

#[tokio::test]
async fn o7_a_skipped_gap_is_recorded_and_what_comes_for_it_is_kept_aside() {
    let house = House::new(gap(GapThen::Skip)).await;
    house.send_at("w", 1).await;
    house.send_at("w", 4).await;
    assert_eq!(house.drain().await, ["1"]);
    house.clock.advance(seconds(10));
    assert_eq!(house.drain().await, ["4"]);
    let late = house.queue.send(Message::new("3").workflow("w").position(3)).await.unwrap();
    assert!(matches!(late, Receipt::DeadLettered(_)), "it was never handled, so it is never ignored");
    let letters: Vec<DeadLetterView> = house.queue.dead_letters(None, 10).await.unwrap();
    assert_eq!(letters[0].letter.reason, "arrived_after_gap");
}

#[tokio::test]
async fn o7_waiting_on_raises_an_alarm_each_time() {
    let house = House::new(gap(GapThen::Wait)).await;
    let mut events = house.engine.events();
    house.send_at("w", 2).await;
    for _ in 0..3 {
        house.clock.advance(seconds(10));
        house.counts().await;
        assert!(matches!(events.try_next().unwrap().kind, seriatim::EventKind::Gap { .. }));
    }
    house.send_at("w", 1).await;
    assert_eq!(house.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o7_what_waits_early_is_bounded() {
    let house = House::new(QueueOptions { early_max: 2, ..QueueOptions::by_position() }).await;
    house.send_at("w", 3).await;
    house.send_at("w", 4).await;
    let full = house.queue.send(Message::new("5").workflow("w").position(5)).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SendRefusal::WorkflowFull { index: 0, early: 2 }));
    house.send_at("w", 1).await;
    house.send_at("w", 2).await;
    assert_eq!(house.drain().await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn o8_a_run_is_settled_by_prefix() {
    let house = House::new(QueueOptions::by_position()).await;
    for position in [1, 2, 3, 4, 6] {
        house.send_at("w", position).await;
    }
    let mut run = house.queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap();
    let bodies: Vec<_> = run.messages().iter().map(|message| message.body.clone()).collect();
    assert_eq!(bodies, ["1", "2", "3", "4"], "6 waits for 5");
    let later = Ending::Abandon(Abandon::after(seconds(5)).reason("not yet"));
    run.complete_first_then(2, later).await.unwrap();
    assert!(house.next().await.is_none());
    house.clock.advance(seconds(5));
    let run = house.queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap();
    let counts: Vec<u32> = run.messages().iter().map(|message| message.delivery_count).collect();
    assert_eq!(counts, [2, 1], "the rest was given back uncounted");
}

#[tokio::test]
async fn o8_a_prefix_of_a_run_can_be_completed_and_the_rest_kept() {
    let house = House::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        house.send("w", body).await;
    }
    let mut run = house.queue.receive_run(10, Duration::ZERO).await.unwrap().unwrap();
    run.complete_first(1).await.unwrap();
    assert_eq!(run.messages().len(), 2);
    assert!(house.next().await.is_none());
    run.complete_all().await.unwrap();
    assert_eq!(house.counts().await.completed, 3);
}

#[tokio::test]
async fn o9_a_message_set_aside_lets_the_workflow_go_on() {
    let house = House::new(QueueOptions::by_position()).await;
    for position in 1..=3 {
        house.send_at("w", position).await;
    }
    let mut first = house.must().await;
    let number = first.sequence_number();
    first.defer().await.unwrap();
    assert_eq!(house.drain().await, ["2", "3"]);
    let mut deferred = house.queue.receive_deferred(&[number]).await.unwrap();
    deferred[0].complete().await.unwrap();
    assert_eq!(house.counts().await.completed, 3);
    let gone = house.queue.receive_deferred(&[number]).await.err().unwrap();
    assert_eq!(gone.refusal(), Some(&ReceiveRefusal::MessageNotFound(number)));
}

#[tokio::test]
async fn o9_a_message_deferred_until_comes_back_before_what_was_not_handed_out() {
    let house = House::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        house.send("w", body).await;
    }
    let mut first = house.must().await;
    first.defer_until(seriatim::Clock::now(&house.clock) + seconds(5)).await.unwrap();
    let mut second = house.must().await;
    house.clock.advance(seconds(5));
    assert!(house.next().await.is_none(), "the second is still held");
    second.complete().await.unwrap();
    assert_eq!(house.drain().await, ["1", "3"]);
}

#[tokio::test]
async fn o9_a_queue_can_wait_for_what_is_deferred() {
    let house = House::new(QueueOptions { hold_on_defer: true, ..QueueOptions::default() }).await;
    house.send("w", "1").await;
    house.send("w", "2").await;
    let mut first = house.must().await;
    let number = first.sequence_number();
    first.defer().await.unwrap();
    assert!(house.next().await.is_none());
    house.queue.receive_deferred(&[number]).await.unwrap()[0].complete().await.unwrap();
    assert_eq!(house.drain().await, ["2"]);
}

#[tokio::test]
async fn o10_ready_workflows_are_offered_in_the_order_in_which_they_became_ready() {
    let house = House::new(QueueOptions::default()).await;
    for workflow in ["a", "b", "c"] {
        house.send(workflow, &format!("{workflow}1")).await;
        house.send(workflow, &format!("{workflow}2")).await;
    }
    assert_eq!(house.drain().await, ["a1", "b1", "c1", "a2", "b2", "c2"]);
}

#[tokio::test]
async fn o10_a_message_without_workflow_that_comes_back_is_offered_before_later_ones() {
    let house = House::new(QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    for body in ["1", "2", "3", "4"] {
        house.send("w", body).await;
    }
    let (mut first, mut second) = (house.must().await, house.must().await);
    second.abandon().await.unwrap();
    first.abandon().await.unwrap();
    assert_eq!(house.drain().await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn o10_a_blocked_workflow_costs_the_others_nothing() {
    let house = House::new(QueueOptions::by_position()).await;
    for from in (2..20_002).step_by(1_000) {
        let batch = (from..from + 1_000).map(|n| Message::new("").workflow("stuck").position(n));
        house.queue.send_batch(batch).await.unwrap();
    }
    house.send_at("free", 1).await;
    assert_eq!(house.drain().await, ["1"]);
    assert_eq!(house.counts().await.early, 20_000);
}

#[tokio::test]
async fn o11_a_dead_letter_returns_to_its_place_while_the_workflow_is_held_before_it() {
    let house = House::new(QueueOptions::by_position()).await;
    let workflow = house.queue.workflow("w").unwrap();
    for position in 1..=3 {
        house.send_at("w", position).await;
    }
    let mut first = house.must().await;
    let number = first.sequence_number();
    workflow.hold("look at it").await.unwrap();
    first.dead_letter("broken", "cannot be parsed").await.unwrap();
    assert_eq!(house.queue.redrive(number).await.unwrap(), Redriven::InPlace);
    workflow.resume().await.unwrap();
    assert_eq!(house.drain().await, ["1", "2", "3"]);
}

#[tokio::test]
async fn o11_a_dead_letter_whose_place_has_passed_becomes_a_new_message_or_is_refused() {
    let house = House::new(QueueOptions::default()).await;
    house.send("w", "1").await;
    let mut first = house.must().await;
    let number = first.sequence_number();
    first.dead_letter("broken", "").await.unwrap();
    house.send("w", "2").await;
    assert!(matches!(house.queue.redrive(number).await.unwrap(), Redriven::AsNew(_)));
    assert_eq!(house.drain().await, ["2", "1"]);

    let house = House::new(QueueOptions::by_position()).await;
    house.send_at("w", 1).await;
    let mut first = house.must().await;
    let number = first.sequence_number();
    first.dead_letter("broken", "").await.unwrap();
    let passed = house.queue.redrive(number).await.unwrap_err();
    assert_eq!(passed.refusal(), Some(&seriatim::OperateRefusal::PlacePassed(number)));
    assert!(matches!(house.queue.redrive_as(number, 2).await.unwrap(), Redriven::AsNew(_)));
    assert_eq!(house.drain().await, ["1"], "its body is what it was");
}

#[tokio::test]
async fn o12_a_taken_workflow_is_offered_to_nobody_else() {
    let house = House::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        house.send("w", body).await;
    }
    let taken = house.queue.take_next_workflow(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(taken.workflow_id().unwrap().as_str(), "w");
    assert!(house.next().await.is_none());
    let mut ahead = taken.receive(2, Duration::ZERO).await.unwrap();
    assert_eq!(ahead.iter().map(body).collect::<Vec<_>>(), ["1", "2"]);
    ahead[0].complete().await.unwrap();
    taken.close().await.unwrap();
    let second = house.must().await;
    assert_eq!((body(&second).as_str(), second.message().delivery_count), ("2", 1), "given back uncounted");
}

#[tokio::test]
async fn o12_when_an_early_one_fails_the_later_ones_are_taken_back() {
    let house = House::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        house.send("w", body).await;
    }
    let taken = house.queue.take_workflow("w").await.unwrap();
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
    let options = QueueOptions { spent: Some(Spent::Skip), ..QueueOptions::default() };
    let house = House::new(options).await;
    for body in ["1", "2", "3"] {
        house.send("w", body).await;
    }
    let taken = house.queue.take_workflow("w").await.unwrap();
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
    let house = House::new(QueueOptions::default()).await;
    let taken = house.queue.take_workflow("w").await.unwrap();
    house.send("w", "1").await;
    assert!(house.next().await.is_none());
    let mut deliveries = taken.receive(1, Duration::ZERO).await.unwrap();
    deliveries[0].complete().await.unwrap();
}
