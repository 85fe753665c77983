//! Ways out of a hold: what an operator asks for stays, and what is redriven is offered.

use seriatim::HoldCause;
use seriatim::Message;
use seriatim::OperateRefusal;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Redriven;
use seriatim::Spent;
use seriatim::WorkflowStatus;

use crate::promises::house::House;
use crate::promises::house::body;
use crate::promises::house::seconds;

fn once(order: Order, spent: Spent) -> QueueOptions {
    QueueOptions { order, delivery_count_max: 1, spent: Some(spent), ..QueueOptions::default() }
}

async fn held_by(house: &House) -> Option<HoldCause> {
    match house.status("w").await {
        Some(WorkflowStatus::Held(hold)) => Some(hold.cause),
        _ => None,
    }
}

#[tokio::test]
async fn o6_a_single_redrive_is_refused_as_long_as_its_workflow_is_quarantined() {
    let house = House::new(once(Order::POSITION, Spent::Quarantine)).await;
    let first = house.send_at("w", 1).await;
    let second = house.send_at("w", 2).await;
    house.must().await.abandon().await.unwrap();
    for number in [first, second] {
        let refused = house.queue.redrive(number).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&OperateRefusal::Quarantined(number)));
        let refused = house.queue.redrive_as(number, 7).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&OperateRefusal::Quarantined(number)));
    }
    assert_eq!(house.counts().await.dead_lettered, 2, "nothing came back only to be dead-lettered again");
    house.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!(house.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o11_a_message_for_itself_is_recovered_by_redrive_after_a_quarantine() {
    let house = House::new(once(Order::None, Spent::Quarantine)).await;
    let number = house.accept(Message::new("1").workflow("w")).await;
    house.send("w", "2").await;
    house.must().await.abandon().await.unwrap();
    assert_eq!(house.counts().await.dead_lettered, 1, "nothing follows it that could be quarantined");
    assert_eq!(house.queue.redrive(number).await.unwrap(), Redriven::InPlace);
    assert_eq!(house.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn o6_a_spent_message_for_itself_is_dead_lettered_because_nobody_could_resume_it() {
    for order in [Order::Arrival, Order::POSITION, Order::None] {
        let house = House::new(once(order, Spent::Hold)).await;
        let number = house.accept(Message::new("1")).await;
        house.must().await.abandon().await.unwrap();
        let counts = house.counts().await;
        assert_eq!((counts.spent, counts.dead_lettered), (0, 1), "{order:?}");
        assert_eq!(house.queue.redrive(number).await.unwrap(), Redriven::InPlace);
        assert_eq!(house.drain().await, ["1"]);
    }
}

#[tokio::test]
async fn an_operators_hold_outlasts_the_policys() {
    let house = House::new(once(Order::POSITION, Spent::Hold)).await;
    let workflow = house.queue.workflow("w").unwrap();
    house.send_at("w", 2).await;
    house.clock.advance(seconds(600));
    assert_eq!(held_by(&house).await, Some(HoldCause::Gap));
    workflow.hold("look first").await.unwrap();
    workflow.declare_void(1, 1).await.unwrap();
    assert_eq!(held_by(&house).await, Some(HoldCause::Operator));
    assert!(house.next().await.is_none(), "the operator has not resumed it");
    workflow.resume().await.unwrap();
    let mut delivery = house.must().await;
    delivery.abandon().await.unwrap();
    assert!(matches!(held_by(&house).await, Some(HoldCause::Spent(_))));
    workflow.hold("look again").await.unwrap();
    workflow.retry_now().await.unwrap();
    assert!(house.next().await.is_none(), "the operator has not resumed it");
    workflow.resume().await.unwrap();
    assert_eq!(body(&house.must().await), "2");
}

#[tokio::test]
async fn an_operators_hold_ends_no_quarantine() {
    let house = House::new(once(Order::POSITION, Spent::Quarantine)).await;
    house.send_at("w", 1).await;
    house.must().await.abandon().await.unwrap();
    house.queue.workflow("w").unwrap().hold("look first").await.unwrap();
    assert!(matches!(held_by(&house).await, Some(HoldCause::Quarantine(_))));
}

#[tokio::test]
async fn an_after_ordered_workflow_that_was_forgotten_begins_anew() {
    let options = QueueOptions { order: Order::After, forget_after: seconds(60), ..QueueOptions::default() };
    let house = House::new(options).await;
    house.send_after("w", "b", Some("a")).await;
    house.send_after("w", "d", Some("c")).await;
    house.queue.workflow("w").unwrap().purge().await.unwrap();
    house.clock.advance(seconds(60));
    assert_eq!(house.status("w").await, None, "it is forgotten");
    for (id, after) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("c"))] {
        house.send_after("w", id, after).await;
    }
    assert_eq!(house.drain().await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn what_was_settled_before_the_chain_came_is_passed_when_it_comes() {
    let options = QueueOptions { order: Order::After, forget_after: seconds(60), ..QueueOptions::default() };
    let house = House::new(options).await;
    let later = seriatim::Clock::now(&house.clock) + seconds(600);
    let scheduled = Message::new("b").workflow("w").message_id("b").after("a").schedule_at(later);
    let number = house.accept(scheduled).await;
    house.send_after("w", "c", Some("b")).await;
    house.queue.cancel_and_void(number).await.unwrap();
    house.send_after("w", "a", None).await;
    assert_eq!(house.drain().await, ["a", "c"]);
    house.clock.advance(seconds(60));
    assert_eq!(house.status("w").await, None, "it is forgotten");
    house.send_after("w", "a", None).await;
    house.send_after("w", "b", Some("a")).await;
    assert_eq!(house.drain().await, ["a", "b"]);
}
