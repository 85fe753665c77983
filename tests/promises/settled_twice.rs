//! Settling twice: the same again is answered as it was, and another settlement is told what was done.

use std::future::Future;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use seriatim::Abandon;
use seriatim::Completion;
use seriatim::Message;
use seriatim::Outcome;
use seriatim::QueueOptions;
use seriatim::Run;
use seriatim::error::SettleRefusal;
use seriatim::error::SettledHow;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;

fn already(how: SettledHow) -> Option<SettleRefusal> {
    Some(SettleRefusal::AlreadySettled { how })
}

fn completion(text: &'static str) -> Completion {
    Completion::new().state("s").send("q", Message::new(text).workflow("out"))
}

#[tokio::test]
async fn the_same_completion_again_is_answered_with_the_same_receipts_and_does_nothing() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let mut delivery = fixture.must().await;
    let receipts = delivery.complete_with(completion("a")).await.unwrap();
    assert_eq!(delivery.complete_with(completion("a")).await.unwrap(), receipts);
    assert_eq!(fixture.counts().await.accepted, 2, "it was sent once");
    for other in [completion("b"), completion("a").state("t"), Completion::new()] {
        let refused = delivery.complete_with(other).await.unwrap_err();
        assert_eq!(refused.refusal().cloned(), already(SettledHow::Completed));
    }
    assert_eq!(delivery.abandon().await.unwrap_err().refusal().cloned(), already(SettledHow::Completed));
    let lost = SettleRefusal::LockLost;
    assert_eq!(delivery.renew().await.unwrap_err().refusal(), Some(&lost), "there is nothing to hold");
    fixture.clock.advance(seconds(60));
    assert_eq!(delivery.complete_with(completion("a")).await.unwrap_err().refusal(), Some(&lost));
}

#[tokio::test]
async fn every_other_settlement_is_told_apart_and_answered_again_too() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let later = seriatim::Clock::now(&fixture.clock) + seconds(100);
    let endings = [
        (Outcome::Abandon(Abandon::with_backoff().reason("busy")), SettledHow::Abandoned),
        (Outcome::DeferUntil(later), SettledHow::Deferred),
        (
            Outcome::DeadLetter { reason: "no".to_owned(), description: String::new() },
            SettledHow::DeadLettered,
        ),
        (Outcome::Release, SettledHow::Released),
    ];
    for (at, (ending, how)) in endings.into_iter().enumerate() {
        fixture.send(&format!("w{at}"), "m").await;
        let mut delivery = fixture.must().await;
        delivery.end(ending.clone()).await.unwrap();
        delivery.end(ending).await.expect("the same again");
        assert_eq!(delivery.complete().await.unwrap_err().refusal().cloned(), already(how));
        fixture.queue.workflow(format!("w{at}")).unwrap().hold("done").await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_future_of_a_settle_can_be_asked_again() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let mut delivery = fixture.must().await;
    {
        let mut dropped = std::pin::pin!(delivery.complete_with(completion("a")));
        let polled = dropped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending | Poll::Ready(Ok(_))));
    }
    delivery.complete_with(completion("a")).await.unwrap();
    assert_eq!(fixture.counts().await.accepted, 2, "it was sent once");
}

#[tokio::test]
async fn a_prefix_of_a_run_that_is_asked_again_does_not_complete_the_next_ones() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for text in ["1", "2", "3", "4"] {
        fixture.send("w", text).await;
    }
    let mut run = fixture.queue.receive_run(4, seconds(0)).await.unwrap().unwrap();
    let was_heard = {
        let mut dropped = std::pin::pin!(run.complete_first(2));
        dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    };
    // A quick engine answers before it is asked twice; then there is nothing to ask again.
    if !was_heard {
        run.complete_first(2).await.unwrap();
    }
    assert_eq!(fixture.counts().await.completed, 2);
    run.complete_first(1).await.unwrap();
    run.release().await.unwrap();
    assert_eq!(fixture.drain().await, ["4"]);
}

/// A run of three messages whose first is completed, which its holder has not heard.
async fn completed_unheard(fixture: &Fixture) -> Run {
    let before = fixture.counts().await.completed;
    for text in ["1", "2", "3"] {
        fixture.send("w", text).await;
    }
    let received = fixture.queue.receive_run(3, seconds(0)).await;
    let mut run = received.expect("the queue exists").expect("three are ready");
    {
        let mut dropped = std::pin::pin!(run.complete_first(1));
        let _ = dropped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    assert_eq!(fixture.counts().await.completed, before + 1);
    run
}

#[tokio::test]
async fn a_run_dropped_after_a_completion_that_was_not_heard_is_locked_no_longer() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    drop(completed_unheard(&fixture).await);
    assert_eq!(fixture.drain().await, ["2", "3"]);
}

#[tokio::test]
async fn what_a_run_has_left_is_given_back_after_a_completion_that_was_not_heard() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let mut run = completed_unheard(&fixture).await;
    run.release().await.unwrap();
    run.release().await.expect("the same again");
    assert_eq!(fixture.drain().await, ["2", "3"]);
    let mut run = completed_unheard(&fixture).await;
    run.abandon_all(Abandon::now()).await.unwrap();
    assert_eq!(fixture.drain().await, ["2", "3"]);
}

#[tokio::test]
async fn the_messages_of_a_settled_run_and_of_a_taken_workflow_say_how_they_were_settled() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for text in ["1", "2"] {
        fixture.send("w", text).await;
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut deliveries = taken.receive(2, seconds(0)).await.unwrap();
    deliveries[0].complete().await.unwrap();
    deliveries[0].complete().await.expect("the same again, while the workflow is held");
    deliveries[1].release().await.unwrap();
    let mut again = taken.receive(1, seconds(0)).await.unwrap();
    assert_eq!((body(&again[0]), again[0].message().delivery_count), ("2".to_owned(), 1));
    again[0].complete().await.expect("it was handed out anew");
    assert_eq!(deliveries[1].release().await.unwrap_err().refusal().cloned(), already(SettledHow::Completed));
}

#[tokio::test]
async fn after_a_restart_nobody_knows_what_was_settled() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    queue.send(Message::new("1").workflow("w")).await.unwrap();
    let delivery = queue.receive(seconds(0)).await.unwrap().unwrap();
    let id = delivery.keep();
    queue.settler().complete(id, Completion::new()).await.unwrap();
    queue.settler().complete(id, Completion::new()).await.expect("the same again");
    engine.close().await;
    let (_engine, queue) = fixture.open().await;
    let lost = queue.settler().complete(id, Completion::new()).await.unwrap_err();
    assert_eq!(lost.refusal(), Some(&SettleRefusal::LockLost));
}

/// Under an accepted workflow it may be handed out again at once, by the same name.
#[tokio::test]
async fn a_release_whose_future_is_dropped_says_nothing_of_the_next_hand_out() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "m").await;
    let accepted = fixture.queue.accept_workflow("w").await.unwrap();
    let mut first = accepted.receive(1, seconds(0)).await.unwrap().remove(0);
    {
        let mut releasing = std::pin::pin!(first.release());
        let polled = releasing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending() || matches!(polled, Poll::Ready(Ok(()))));
    }
    let mut again = accepted.receive(1, seconds(0)).await.unwrap().remove(0);
    drop(first);
    fixture.counts().await;
    again.complete().await.expect("it is held");
    assert_eq!(fixture.counts().await.completed, 1);
}
