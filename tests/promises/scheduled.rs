//! Messages that are scheduled: their places, cancelled, void and moved to another instant.

use seriatim::Clock;
use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::error::SendRefusal;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::view::Deferral;
use seriatim::view::MessageStatus;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

#[tokio::test]
async fn a_scheduled_message_with_a_position_holds_its_place() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let at = fixture.clock.now() + seconds(60);
    let scheduled = fixture.accept(Message::new("1").workflow("w").position(1).schedule_at(at)).await;
    fixture.send_at("w", 2).await;
    assert_eq!(fixture.status("w").await, Some(WorkflowStatus::Scheduled { until: at }));
    let view = fixture.queue.workflow("w").unwrap().view().await.unwrap().unwrap();
    assert_eq!(view.gap, None, "a known predecessor is no gap");
    fixture.queue.cancel_and_void(scheduled).await.unwrap();
    assert_eq!(fixture.drain().await, ["2"]);
    let again = fixture.queue.cancel(scheduled).await.unwrap_err();
    assert_eq!(again.refusal(), Some(&SendRefusal::NotScheduled(scheduled)));
}

#[tokio::test]
async fn a_scheduled_message_in_order_of_arrival_comes_at_its_time() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let at = fixture.clock.now() + seconds(60);
    let number = fixture.accept(Message::new("later").workflow("w").schedule_at(at)).await;
    fixture.send("w", "now").await;
    assert_eq!(fixture.drain().await, ["now"]);
    fixture.clock.advance(seconds(60));
    let too_late = fixture.queue.cancel(number).await.unwrap_err();
    assert_eq!(too_late.refusal(), Some(&SendRefusal::NotScheduled(number)));
    assert_eq!(fixture.drain().await, ["later"]);
}

#[tokio::test]
async fn a_cancelled_position_is_missing_until_it_is_sent_again_and_its_gap_waits_from_then() {
    let gap = GapPolicy { wait: seconds(10), then: GapAction::Hold };
    let fixture = Fixture::new(QueueOptions::by_position().gap(gap)).await;
    let at = fixture.clock.now() + seconds(600);
    let first = fixture.accept(Message::new("1").workflow("w").position(1).schedule_at(at)).await;
    fixture.send_at("w", 2).await;
    fixture.send_at("w", 4).await;
    fixture.clock.advance(seconds(60));
    fixture.queue.cancel(first).await.unwrap();
    let counts = fixture.counts().await;
    assert_eq!((counts.early, counts.ready, counts.cancelled), (2, 0, 1), "{counts:?}");
    assert_eq!(fixture.drain().await, [""; 0]);
    let view = fixture.queue.workflow("w").unwrap().view().await.unwrap().unwrap();
    let gap = view.gap.expect("position 1 is missing");
    assert_eq!((gap.first_missing, gap.due), (Some(1), Some(fixture.clock.now() + seconds(10))));
    let again = fixture.queue.send(Message::new("again").workflow("w").position(1)).await.unwrap();
    assert!(matches!(again, Receipt::Accepted(_)), "{again:?}");
    assert_eq!(fixture.drain().await, ["again", "2"]);
}

#[tokio::test]
async fn a_place_that_is_cancelled_and_void_is_settled_in_the_same_transaction() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let at = fixture.clock.now() + seconds(60);
    let first = fixture.accept(Message::new("1").workflow("w").position(1).schedule_at(at)).await;
    fixture.send_at("w", 2).await;
    fixture.queue.cancel_and_void(first).await.unwrap();
    assert_eq!(fixture.drain().await, ["2"]);
    let late = fixture.queue.send(Message::new("1").workflow("w").position(1)).await.unwrap();
    assert!(matches!(late, Receipt::DeadLettered(_)), "{late:?}");
}

#[tokio::test]
async fn a_cancelled_link_of_a_chain_is_missing_until_it_is_sent_again() {
    let fixture = Fixture::new(QueueOptions::default().order(Order::After)).await;
    let at = fixture.clock.now() + seconds(60);
    fixture.send_after("w", "a", None).await;
    let later = Message::new("b").workflow("w").message_id("b").after("a").schedule_at(at);
    let second = fixture.accept(later).await;
    fixture.send_after("w", "c", Some("b")).await;
    fixture.send_after("w", "d", Some("c")).await;
    fixture.queue.cancel(second).await.unwrap();
    assert_eq!(fixture.counts().await.early, 2);
    assert_eq!(fixture.drain().await, ["a"]);
    fixture.send_after("w", "b", Some("a")).await;
    assert_eq!(fixture.drain().await, ["b", "c", "d"]);
}

#[tokio::test]
async fn a_rescheduled_message_comes_at_its_new_instant_in_its_own_place() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let now = fixture.clock.now();
    let message = Message::new("1").workflow("w").position(1).message_id("m").time_to_live(seconds(5));
    let first = fixture.accept(message.schedule_at(now + seconds(60))).await;
    fixture.send_at("w", 2).await;
    fixture.queue.reschedule(first, now + seconds(120)).await.unwrap();
    fixture.clock.advance(seconds(119));
    assert_eq!(fixture.drain().await, [""; 0]);
    fixture.clock.advance(seconds(1));
    let mut delivery =
        fixture.queue.receive(seconds(0)).await.unwrap().expect("it is due, and lives for five seconds");
    assert_eq!((delivery.sequence_number(), delivery.message().delivery_count), (first, 1));
    delivery.complete().await.unwrap();
    let third =
        fixture.accept(Message::new("3").workflow("w").position(3).schedule_at(now + seconds(999))).await;
    fixture.queue.reschedule(third, now).await.unwrap();
    assert_eq!(fixture.drain().await, ["2", "3"]);
    let again = fixture.queue.reschedule(third, now).await.unwrap_err();
    assert_eq!(again.refusal(), Some(&SendRefusal::NotScheduled(third)));
}

#[tokio::test]
async fn what_stands_behind_a_scheduled_head_is_shown_as_early() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let at = fixture.clock.now() + seconds(60);
    let scheduled = fixture.accept(Message::new("1").workflow("w").position(1).schedule_at(at)).await;
    let behind = fixture.send_at("w", 2).await;
    let early = MessageStatus::Deferred { why: Deferral::Early, until: None };
    let shown = fixture.queue.peek(scheduled, 2).await.unwrap();
    let statuses: Vec<_> = shown.iter().map(|message| message.status.clone()).collect();
    assert_eq!(statuses, [MessageStatus::Scheduled { until: at }, early]);
    fixture.clock.advance(seconds(60));
    assert_eq!(fixture.queue.peek(behind, 1).await.unwrap()[0].status, MessageStatus::Ready);
}
