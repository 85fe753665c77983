//! Several causes of hold at once, gaps under a holder, and what ends a hold.

use std::time::Duration;

use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::error::OperateRefusal;
use seriatim::event::EventKind;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::HoldKind;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

fn gap(then: GapAction) -> QueueOptions {
    QueueOptions::by_position().gap(GapPolicy { wait: seconds(10), then })
}

async fn causes(fixture: &Fixture) -> Vec<HoldKind> {
    let view = fixture.queue.workflow("w").expect("a good ID").view().await.expect("the engine answers");
    view.map(|view| view.holds.iter().map(|hold| hold.cause.kind()).collect()).unwrap_or_default()
}

#[tokio::test]
async fn a_hold_for_a_gap_ends_when_the_gap_is_filled() {
    let fixture = Fixture::new(gap(GapAction::Hold)).await;
    let mut events = fixture.engine.events();
    fixture.send_at("w", 2).await;
    fixture.clock.advance(seconds(10));
    assert_eq!(causes(&fixture).await, [HoldKind::Gap]);
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.drain().await, ["1", "2"], "its cause is gone");
    let told: Vec<EventKind> = std::iter::from_fn(|| events.try_next()).map(|event| event.kind).collect();
    assert!(told.contains(&EventKind::Resumed), "{told:?}");
}

#[tokio::test]
async fn a_gap_that_is_filled_in_part_waits_anew_for_the_rest() {
    let fixture = Fixture::new(gap(GapAction::Hold)).await;
    fixture.send_at("w", 3).await;
    fixture.clock.advance(seconds(10));
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.drain().await, ["1"]);
    assert_eq!(causes(&fixture).await, []);
    fixture.clock.advance(seconds(10));
    assert_eq!(causes(&fixture).await, [HoldKind::Gap], "position 2 has a wait of its own");
}

#[tokio::test]
async fn an_operators_hold_stands_beside_that_of_a_gap() {
    let fixture = Fixture::new(gap(GapAction::Hold)).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send_at("w", 2).await;
    workflow.hold("look first").await.unwrap();
    fixture.clock.advance(seconds(10));
    assert_eq!(causes(&fixture).await, [HoldKind::Operator, HoldKind::Gap]);
    fixture.send_at("w", 1).await;
    assert_eq!(causes(&fixture).await, [HoldKind::Operator], "the gap is filled");
    assert!(fixture.next().await.is_none());
    workflow.resume().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn a_workflow_goes_on_when_the_last_of_its_causes_is_lifted() {
    let options = QueueOptions::by_position().delivery_count_max(1);
    for order in [[HoldKind::Operator, HoldKind::Exhausted], [HoldKind::Exhausted, HoldKind::Operator]] {
        let fixture = Fixture::new(options.clone()).await;
        let workflow = fixture.queue.workflow("w").unwrap();
        fixture.send_at("w", 1).await;
        fixture.must().await.abandon().await.unwrap();
        workflow.hold("look first").await.unwrap();
        assert_eq!(causes(&fixture).await, [HoldKind::Exhausted, HoldKind::Operator]);
        workflow.resume_for(order[0]).await.unwrap();
        assert_eq!(causes(&fixture).await, [order[1]]);
        assert!(fixture.next().await.is_none());
        let refused = workflow.resume_for(order[0]).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&OperateRefusal::NotHeldFor(order[0])));
        workflow.resume_for(order[1]).await.unwrap();
        assert_eq!(fixture.drain().await, ["1"]);
    }
}

#[tokio::test]
async fn a_resume_without_a_cause_lifts_all_and_an_open_gap_waits_anew() {
    let fixture = Fixture::new(gap(GapAction::Hold)).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send_at("w", 2).await;
    fixture.clock.advance(seconds(10));
    workflow.hold("look first").await.unwrap();
    workflow.resume().await.unwrap();
    assert_eq!(causes(&fixture).await, []);
    fixture.clock.advance(millis(9_999));
    assert_eq!(causes(&fixture).await, []);
    fixture.clock.advance(millis(1));
    assert_eq!(causes(&fixture).await, [HoldKind::Gap]);
}

#[tokio::test]
async fn nothing_is_skipped_while_an_operator_holds_the_workflow() {
    let fixture = Fixture::new(gap(GapAction::Skip)).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send_at("w", 2).await;
    workflow.hold("look first").await.unwrap();
    fixture.clock.advance(seconds(60));
    fixture.send_at("w", 1).await;
    workflow.resume().await.unwrap();
    assert_eq!(fixture.drain().await, ["1", "2"], "position 1 came before anything behind it was handed out");
}

#[tokio::test]
async fn that_a_workflow_could_have_been_idle_is_no_reason_to_judge_its_gap() {
    let skipping = gap(GapAction::Skip).forget_after(seconds(60));
    let fixture = Fixture::new(skipping.clone()).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.drain().await, ["1"]);
    fixture.send_at("w", 3).await;
    workflow.hold("look first").await.unwrap();
    fixture.clock.advance(seconds(10));
    assert_eq!(causes(&fixture).await, [HoldKind::Operator], "nothing is skipped under it");
    let hold = GapPolicy { then: GapAction::Hold, ..skipping.gap };
    let holding = skipping.gap(hold);
    fixture.queue.client().change_queue("q", holding).await.unwrap();
    fixture.clock.advance(seconds(60));
    assert_eq!(causes(&fixture).await, [HoldKind::Operator], "nothing has happened to it");
    fixture.send_at("w", 4).await;
    workflow.resume_for(HoldKind::Operator).await.unwrap();
    fixture.clock.advance(seconds(10));
    assert_eq!(causes(&fixture).await, [HoldKind::Gap], "its gap has waited anew");
}

#[tokio::test]
async fn a_redrive_in_progress_leaves_an_operators_hold_alone() {
    let options = QueueOptions::by_position().delivery_count_max(1);
    let fixture = Fixture::new(options.exhausted(ExhaustedPolicy::Quarantine)).await;
    let workflow = fixture.queue.workflow("w").unwrap();
    fixture.send_at("w", 1).await;
    fixture.must().await.abandon().await.unwrap();
    workflow.resume_and_redrive().await.unwrap();
    workflow.hold("look first").await.unwrap();
    assert_eq!(causes(&fixture).await, [HoldKind::Operator], "the redrive is done, the operator is not");
    workflow.resume().await.unwrap();
    assert_eq!(fixture.drain().await, ["1"]);
}

#[tokio::test]
async fn a_holder_does_not_stop_the_gap_policy_from_skipping() {
    let fixture = Fixture::new(gap(GapAction::Skip)).await;
    fixture.send_at("w", 1).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut first = taken.receive(1, Duration::ZERO).await.unwrap().remove(0);
    fixture.send_at("w", 3).await;
    fixture.clock.advance(seconds(10));
    assert!(taken.receive(1, Duration::ZERO).await.unwrap().is_empty(), "1 is not settled");
    first.complete().await.unwrap();
    let offered = taken.receive(1, Duration::ZERO).await.unwrap();
    assert_eq!(body(&offered[0]), "3", "2 was given up");
}

#[tokio::test]
async fn a_holder_is_woken_when_the_gap_is_skipped() {
    let fixture = Fixture::new(gap(GapAction::Skip)).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    fixture.send_at("w", 2).await;
    let clock = fixture.clock.clone();
    let (received, ()) = tokio::join!(taken.receive(1, seconds(20)), async {
        tokio::task::yield_now().await;
        clock.advance(seconds(10));
        fixture.counts().await;
    });
    assert_eq!(body(&received.unwrap()[0]), "2");
}

#[tokio::test]
async fn a_holder_keeps_its_lock_and_state_when_a_gap_holds_its_workflow() {
    let fixture = Fixture::new(gap(GapAction::Hold)).await;
    fixture.send_at("w", 1).await;
    let mut taken = fixture.queue.accept_workflow("w").await.unwrap();
    taken.receive(1, Duration::ZERO).await.unwrap().remove(0).complete().await.unwrap();
    fixture.send_at("w", 3).await;
    fixture.clock.advance(seconds(10));
    assert!(matches!(fixture.status("w").await, Some(WorkflowStatus::Held(_))));
    taken.renew().await.unwrap();
    taken.set_state(Some("kept".into())).await.unwrap();
    assert!(taken.receive(1, Duration::ZERO).await.unwrap().is_empty());
    fixture.send_at("w", 2).await;
    let bodies = taken.receive(2, Duration::ZERO).await.unwrap();
    assert_eq!(bodies.iter().map(body).collect::<Vec<_>>(), ["2", "3"]);
}

#[tokio::test]
async fn a_holder_does_not_silence_the_alarm_of_a_gap() {
    let fixture = Fixture::new(gap(GapAction::Wait)).await;
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    fixture.send_at("w", 2).await;
    let mut events = fixture.engine.events();
    for _ in 0..3 {
        fixture.clock.advance(seconds(10));
        fixture.counts().await;
        assert!(matches!(events.try_next().unwrap().kind, EventKind::Gap { .. }));
    }
    drop(taken);
}

#[tokio::test]
async fn a_failure_holds_beside_an_operator_and_takes_back_what_is_ahead() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(1)).await;
    for number in ["1", "2", "3"] {
        fixture.send("w", number).await;
    }
    assert_eq!(fixture.queue.view().await.unwrap().options.order, Order::Arrival);
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut out = taken.receive(3, Duration::ZERO).await.unwrap();
    fixture.queue.workflow("w").unwrap().hold("look first").await.unwrap();
    out[0].abandon().await.unwrap();
    assert_eq!(causes(&fixture).await, [HoldKind::Operator, HoldKind::Exhausted]);
    assert!(out[1].complete().await.is_err(), "it is offered again after the one that failed");
}
