//! Ways out of a hold: what an operator asks for stays, and what is redriven is offered.

use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::delivery::Redriven;
use seriatim::error::OperateRefusal;
use seriatim::queue::ExhaustedPolicy;
use seriatim::view::HoldCause;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;

fn once(order: Order, exhausted: ExhaustedPolicy) -> QueueOptions {
    QueueOptions::default().order(order).delivery_count_max(1).exhausted(exhausted)
}

async fn held_by(fixture: &Fixture) -> Option<HoldCause> {
    match fixture.status("w").await {
        Some(WorkflowStatus::Held(hold)) => Some(hold.cause),
        _ => None,
    }
}

#[tokio::test]
async fn o6_a_single_redrive_is_refused_as_long_as_its_workflow_is_quarantined() {
    let fixture = Fixture::new(once(Order::POSITION, ExhaustedPolicy::Quarantine)).await;
    let first = fixture.send_at("w", 1).await;
    let second = fixture.send_at("w", 2).await;
    fixture.must().await.abandon().await.unwrap();
    for number in [first, second] {
        let refused = fixture.queue.redrive(number).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&OperateRefusal::Quarantined(number)));
        let refused = fixture.queue.redrive_as(number, 7).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&OperateRefusal::Quarantined(number)));
    }
    assert_eq!(fixture.counts().await.dead_lettered, 2, "nothing came back only to be dead-lettered again");
    fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o11_a_message_for_itself_is_recovered_by_redrive_after_a_quarantine() {
    let fixture = Fixture::new(once(Order::None, ExhaustedPolicy::Quarantine)).await;
    let number = fixture.accept(Message::new("1").workflow("w")).await;
    fixture.send("w", "2").await;
    fixture.must().await.abandon().await.unwrap();
    assert_eq!(fixture.counts().await.dead_lettered, 1, "nothing follows it that could be quarantined");
    assert_eq!(fixture.queue.redrive(number).await.unwrap(), Redriven::InPlace);
    assert_eq!(fixture.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o6_a_spent_message_for_itself_is_dead_lettered_because_nobody_could_resume_it() {
    for order in [Order::Arrival, Order::POSITION, Order::None] {
        let fixture = Fixture::new(once(order, ExhaustedPolicy::Hold)).await;
        let number = fixture.accept(Message::new("1")).await;
        fixture.must().await.abandon().await.unwrap();
        let counts = fixture.counts().await;
        assert_eq!((counts.exhausted, counts.dead_lettered), (0, 1), "{order:?}");
        assert_eq!(fixture.queue.redrive(number).await.unwrap(), Redriven::InPlace);
        assert_eq!(fixture.drain().await, ["1"]);
    }
}

#[tokio::test]
async fn an_operators_hold_outlasts_the_policys() {
    let fixture = Fixture::new(once(Order::POSITION, ExhaustedPolicy::Hold)).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send_at("w", 2).await;
    fixture.clock.advance(seconds(600));
    assert_eq!(held_by(&fixture).await, Some(HoldCause::Gap));
    workflow.hold("look first").await.unwrap();
    workflow.declare_void(1, 1).await.unwrap();
    assert_eq!(held_by(&fixture).await, Some(HoldCause::Operator));
    assert!(fixture.next().await.is_none(), "the operator has not resumed it");
    workflow.resume().await.unwrap();
    let mut delivery = fixture.must().await;
    delivery.abandon().await.unwrap();
    assert!(matches!(held_by(&fixture).await, Some(HoldCause::Exhausted(_))));
    workflow.hold("look again").await.unwrap();
    workflow.retry_now().await.unwrap();
    assert!(fixture.next().await.is_none(), "the operator has not resumed it");
    workflow.resume().await.unwrap();
    assert_eq!(body(&fixture.must().await), "2");
}

#[tokio::test]
async fn an_operators_hold_ends_no_quarantine() {
    let fixture = Fixture::new(once(Order::POSITION, ExhaustedPolicy::Quarantine)).await;
    fixture.send_at("w", 1).await;
    fixture.must().await.abandon().await.unwrap();
    fixture.queue.workflow("w").unwrap().hold("look first").await.unwrap();
    assert!(matches!(held_by(&fixture).await, Some(HoldCause::Quarantine(_))));
}

#[tokio::test]
async fn an_after_ordered_workflow_that_was_forgotten_begins_anew() {
    let options = QueueOptions::default().order(Order::After).forget_after(seconds(60));
    let fixture = Fixture::new(options).await;
    fixture.send_after("w", "b", Some("a")).await;
    fixture.send_after("w", "d", Some("c")).await;
    fixture.queue.workflow("w").unwrap().purge().await.unwrap();
    fixture.clock.advance(seconds(60));
    assert_eq!(fixture.status("w").await, None, "it is forgotten");
    for (id, after) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("c"))] {
        fixture.send_after("w", id, after).await;
    }
    assert_eq!(fixture.drain().await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn what_was_settled_before_the_chain_came_is_passed_when_it_comes() {
    let options = QueueOptions::default().order(Order::After).forget_after(seconds(60));
    let fixture = Fixture::new(options).await;
    let later = seriatim::Clock::now(&fixture.clock) + seconds(600);
    let scheduled = Message::new("b").workflow("w").message_id("b").after("a").schedule_at(later);
    let number = fixture.accept(scheduled).await;
    fixture.send_after("w", "c", Some("b")).await;
    fixture.queue.cancel_and_void(number).await.unwrap();
    fixture.send_after("w", "a", None).await;
    assert_eq!(fixture.drain().await, ["a", "c"]);
    fixture.clock.advance(seconds(60));
    assert_eq!(fixture.status("w").await, None, "it is forgotten");
    fixture.send_after("w", "a", None).await;
    fixture.send_after("w", "b", Some("a")).await;
    assert_eq!(fixture.drain().await, ["a", "b"]);
}
