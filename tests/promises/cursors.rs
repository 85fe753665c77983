//! Remembered cursors: what comes late for a workflow that is forgotten does not begin it anew.

use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::error::OperateRefusal;
use seriatim::error::QueueError;
use seriatim::error::QueueRefusal;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::queue::LatePolicy;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

/// A queue that forgets workflows after 10 s and their cursors after 100 s more.
fn forgetful() -> QueueOptions {
    QueueOptions::by_position().forget_after(seconds(10)).remember_cursor(seconds(100))
}

async fn send(fixture: &Fixture, workflow: &str, position: u64) -> Receipt {
    let message = Message::new(position.to_string()).workflow(workflow).position(position);
    fixture.queue.send(message).await.expect("nothing is refused")
}

/// Completes a workflow's first positions and lets it be forgotten.
async fn pass_and_forget(fixture: &Fixture, workflow: &str, positions: u64) {
    for position in 1..=positions {
        fixture.send_at(workflow, position).await;
    }
    assert_eq!(fixture.drain().await.len() as u64, positions);
    fixture.clock.advance(seconds(10));
    assert_eq!(fixture.status(workflow).await, None, "the workflow is forgotten");
}

async fn cursors(fixture: &Fixture) -> (u64, u64) {
    let view = fixture.queue.view().await.expect("the queue exists");
    (view.cursors, view.cursors_cut)
}

#[tokio::test]
async fn what_comes_late_meets_the_cursor_of_a_forgotten_workflow() {
    let fixture = Fixture::new(forgetful()).await;
    pass_and_forget(&fixture, "w", 2).await;
    assert_eq!(cursors(&fixture).await, (1, 0));
    assert_eq!(send(&fixture, "w", 1).await, Receipt::AlreadySettled);
    assert_eq!(send(&fixture, "w", 2).await, Receipt::AlreadySettled);
    assert_eq!(fixture.status("w").await, None, "a late duplicate stores nothing");
    fixture.send_at("w", 4).await;
    assert_eq!(
        (fixture.counts().await.early, cursors(&fixture).await),
        (1, (0, 0)),
        "it is a workflow again"
    );
    fixture.send_at("w", 3).await;
    assert_eq!(fixture.drain().await, ["3", "4"]);
}

#[tokio::test]
async fn a_cursor_is_forgotten_when_its_time_is_over() {
    let fixture = Fixture::new(forgetful()).await;
    pass_and_forget(&fixture, "w", 2).await;
    fixture.clock.advance(seconds(99));
    assert_eq!(send(&fixture, "w", 2).await, Receipt::AlreadySettled);
    fixture.clock.advance(seconds(1));
    assert_eq!(cursors(&fixture).await, (0, 0), "its time was over, nothing was cut");
    fixture.send_at("w", 2).await;
    assert_eq!(fixture.counts().await.early, 1, "a first position above 1 is early");
    fixture.send_at("w", 1).await;
    assert_eq!(fixture.drain().await, ["1", "2"]);
}

#[tokio::test]
async fn a_position_that_was_given_up_is_not_ignored_when_its_workflow_is_forgotten() {
    let gap = GapPolicy { wait: seconds(5), then: GapAction::Skip };
    let fixture = Fixture::new(forgetful().gap(gap)).await;
    for position in [1, 4, 7] {
        fixture.send_at("w", position).await;
        fixture.clock.advance(seconds(5));
        assert_eq!(fixture.drain().await, [position.to_string()]);
    }
    fixture.clock.advance(seconds(10));
    assert_eq!((fixture.status("w").await, cursors(&fixture).await), (None, (1, 0)));
    assert!(matches!(send(&fixture, "w", 5).await, Receipt::DeadLettered(_)));
    assert_eq!(send(&fixture, "w", 4).await, Receipt::AlreadySettled);
}

#[tokio::test]
async fn of_too_many_cursors_the_oldest_are_forgotten_first_and_counted() {
    let fixture = Fixture::new(forgetful().cursors_max(2)).await;
    for workflow in ["a", "b", "c"] {
        pass_and_forget(&fixture, workflow, 1).await;
    }
    assert_eq!(cursors(&fixture).await, (2, 1));
    assert!(matches!(send(&fixture, "a", 1).await, Receipt::Accepted(_)));
    assert_eq!(send(&fixture, "b", 1).await, Receipt::AlreadySettled);
    assert_eq!(send(&fixture, "c", 1).await, Receipt::AlreadySettled);
    let fewer = forgetful().cursors_max(1);
    fixture.engine.client().change_queue("q", fewer).await.expect("the queue exists");
    assert_eq!(cursors(&fixture).await, (1, 2), "a bound that was lowered is come down to");
}

#[tokio::test]
async fn the_order_stays_while_cursors_are_remembered() {
    let fixture = Fixture::new(forgetful()).await;
    pass_and_forget(&fixture, "w", 1).await;
    let client = fixture.engine.client();
    let by_arrival = forgetful().order(Order::Arrival);
    let refused = client.change_queue("q", by_arrival.clone()).await;
    assert!(matches!(refused, Err(QueueError::Refused(QueueRefusal::OrderInUse(_)))), "{refused:?}");
    client.change_queue("q", forgetful().cursors_max(0)).await.expect("it is allowed");
    assert_eq!(cursors(&fixture).await, (0, 0), "what nobody wants is not cut");
    client.change_queue("q", by_arrival).await.expect("nothing is remembered any more");
}

#[tokio::test]
async fn a_queue_that_is_made_anew_remembers_no_cursor() {
    let fixture = Fixture::new(forgetful()).await;
    pass_and_forget(&fixture, "w", 1).await;
    fixture.engine.client().delete_queue("q").await.expect("the queue exists");
    fixture.engine.client().create_queue("q", forgetful()).await.expect("the name is free");
    assert_eq!(cursors(&fixture).await, (0, 0));
    assert!(matches!(send(&fixture, "w", 1).await, Receipt::Accepted(_)));
}

#[tokio::test]
async fn what_comes_late_for_a_forgotten_workflow_is_not_put_back_before_what_that_has_completed() {
    let fixture = Fixture::new(forgetful().late(LatePolicy::DeadLetter)).await;
    pass_and_forget(&fixture, "w", 2).await;
    let Receipt::DeadLettered(late) = send(&fixture, "w", 1).await else { panic!("its place is settled") };
    fixture.queue.workflow("w").unwrap().hold("look").await.unwrap();
    let refused = fixture.queue.redrive(late).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&OperateRefusal::PlacePassed(late)));
}
