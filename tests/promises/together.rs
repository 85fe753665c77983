//! Many deliveries completed, and many messages sent, in one request, each judged for itself.

use std::time::Duration;

use seriatim::Delivery;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::error::SendError;
use seriatim::error::SendRefusal;
use seriatim::error::SettleError;
use seriatim::error::SettleRefusal;
use seriatim::error::SettledHow;
use seriatim::limits;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;

async fn receive(fixture: &Fixture, max: usize) -> Vec<Delivery> {
    fixture.queue.receive_many(max, Duration::ZERO).await.expect("the queue exists")
}

#[tokio::test]
async fn deliveries_of_many_workflows_are_completed_together() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for workflow in ["a", "b", "c"] {
        fixture.send_at(workflow, 1).await;
        fixture.send_at(workflow, 2).await;
    }
    let mut deliveries = receive(&fixture, 10).await;
    let answers = fixture.queue.complete_all(&mut deliveries).await.unwrap();
    assert_eq!(answers, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(fixture.counts().await.completed, 3);
    drop(deliveries);
    let next = receive(&fixture, 10).await;
    assert_eq!(next.iter().map(body).collect::<Vec<_>>(), ["2", "2", "2"], "every workflow goes on");
    assert!(next.iter().all(|delivery| delivery.message().delivery_count == 1), "a drop gave nothing back");
}

#[tokio::test]
async fn a_lost_lock_refuses_its_own_delivery_and_no_other() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(5))).await;
    for workflow in ["a", "b", "c"] {
        fixture.send(workflow, workflow).await;
    }
    let mut deliveries = receive(&fixture, 10).await;
    fixture.clock.advance(seconds(3));
    deliveries[1].renew().await.unwrap();
    deliveries[2].renew().await.unwrap();
    fixture.clock.advance(seconds(3));
    let answers = fixture.queue.complete_all(&mut deliveries).await.unwrap();
    assert_eq!(answers, [Err(SettleRefusal::LockLost), Ok(()), Ok(())]);
    drop(deliveries);
    assert_eq!(fixture.drain().await, ["a"]);
}

#[tokio::test]
async fn a_delivery_that_is_settled_already_is_told_apart() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("a", "1").await;
    fixture.send("b", "2").await;
    fixture.send("c", "3").await;
    let mut deliveries = receive(&fixture, 10).await;
    deliveries[0].complete().await.unwrap();
    deliveries[2].release().await.unwrap();
    let answers = fixture.queue.complete_all(&mut deliveries).await.unwrap();
    let how = SettledHow::Released;
    assert_eq!(answers, [Ok(()), Ok(()), Err(SettleRefusal::AlreadySettled { how })]);
    assert_eq!(fixture.counts().await.completed, 2);
}

#[tokio::test]
async fn several_ahead_of_one_taken_workflow_are_completed_together_in_any_order() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for position in 1..=4 {
        fixture.send_at("w", position).await;
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut deliveries = taken.receive(4, Duration::ZERO).await.unwrap();
    let answers = fixture.queue.complete_all(deliveries.iter_mut().rev()).await.unwrap();
    assert_eq!(answers, [Ok(()), Ok(()), Ok(()), Ok(())]);
    assert_eq!(fixture.counts().await.completed, 4);
}

#[tokio::test]
async fn when_the_queue_is_gone_every_delivery_is_told_so() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("a", "1").await;
    fixture.send("b", "2").await;
    let mut deliveries = receive(&fixture, 10).await;
    fixture.engine.client().delete_queue("q").await.unwrap();
    let answers = fixture.queue.complete_all(&mut deliveries).await.unwrap();
    assert_eq!(answers, [Err(SettleRefusal::QueueNotFound), Err(SettleRefusal::QueueNotFound)]);
}

#[tokio::test]
async fn a_delivery_of_another_queue_or_one_too_many_is_a_misuse_and_completes_none() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let other = fixture.engine.client().create_queue("other", QueueOptions::default()).await.unwrap();
    for number in 0..=limits::COMPLETE_ALL_MAX {
        fixture.send(&format!("w{number}"), "body").await;
    }
    other.send(Message::new("elsewhere")).await.unwrap();
    let mut deliveries = receive(&fixture, limits::COMPLETE_ALL_MAX).await;
    deliveries.extend(other.receive(Duration::ZERO).await.unwrap());
    let refused = fixture.queue.complete_all(deliveries.iter_mut().skip(1)).await.unwrap_err();
    assert!(matches!(refused, SettleError::Misuse(_)), "{refused}");
    deliveries.pop();
    deliveries.extend(receive(&fixture, 1).await);
    let refused = fixture.queue.complete_all(&mut deliveries).await.unwrap_err();
    assert!(matches!(refused, SettleError::Misuse(_)), "{refused}");
    assert_eq!(fixture.counts().await.completed, 0);
    deliveries.pop();
    fixture.queue.complete_all(&mut deliveries).await.unwrap();
    assert_eq!(fixture.counts().await.completed, limits::COMPLETE_ALL_MAX as u64);
}

#[tokio::test]
async fn a_message_that_is_refused_keeps_no_other_of_its_request_from_being_accepted() {
    let fixture = Fixture::new(QueueOptions::by_position().messages_max(4)).await;
    let at = |position| Message::new(format!("{position}")).workflow("w").position(position);
    let other = Message::new("another").workflow("w").position(2).message_id("x");
    let sent =
        fixture.queue.send_each([at(1), at(2), other, at(0), at(2), at(3), at(4), at(5)]).await.unwrap();
    let numbers: Vec<_> = sent.iter().map(|answer| answer.as_ref().ok().copied()).collect();
    let refusals: Vec<_> = sent.iter().map(|answer| answer.as_ref().err()).collect();
    let number = |at: usize| numbers[at].unwrap().sequence_number().unwrap();
    assert!(number(0) < number(1) && number(1) < number(5) && number(5) < number(6));
    let taken = Some(&SendRefusal::PlaceTaken { index: 2, by: number(1) });
    assert_eq!(refusals[2].unwrap().refusal(), taken);
    assert!(matches!(refusals[3], Some(SendError::Misuse(misuse)) if misuse.field() == "position"));
    assert_eq!(numbers[4], Some(Receipt::Duplicate(number(1))));
    assert_eq!(refusals[7].unwrap().refusal(), Some(&SendRefusal::QueueFull { stored: 4 }));
    assert_eq!(fixture.drain().await, ["1", "2", "3", "4"]);
    assert_eq!(fixture.counts().await.accepted, 4);
}

#[tokio::test]
async fn messages_for_no_queue_are_refused_each() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let nowhere = fixture.queue.client().queue("nowhere").unwrap();
    let sent = nowhere.send_each([Message::new("a"), Message::new("b")]).await.unwrap();
    let refused = |answer: &Result<_, SendError>| matches!(answer, Err(error) if matches!(error.refusal(), Some(SendRefusal::QueueNotFound(_))));
    assert!(sent.len() == 2 && sent.iter().all(refused));
}
