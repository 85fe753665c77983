//! What a holder has ahead and what waits early is bounded, and what he leaves behind is judged.

use std::time::Duration;

use seriatim::Completion;
use seriatim::Delivery;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::error::ReceiveRefusal;
use seriatim::error::SendRefusal;
use seriatim::error::SettleRefusal;
use seriatim::queue::ExhaustedPolicy;
use seriatim::queue::GapAction;
use seriatim::queue::GapPolicy;
use seriatim::view::HoldCause;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;

fn gap(then: GapAction) -> QueueOptions {
    QueueOptions::by_position().gap(GapPolicy { wait: seconds(10), then })
}

#[tokio::test]
async fn o7_a_gap_whose_wait_is_over_is_judged_by_a_completion_that_sends_something_else() {
    let fixture = Fixture::new(gap(GapAction::Hold)).await;
    fixture.send_at("w", 1).await;
    fixture.send_at("w", 3).await;
    let mut first = fixture.must().await;
    fixture.clock.advance(seconds(10));
    let elsewhere = Message::new("").workflow("other").position(1);
    first.complete_with(Completion::new().send("q", elsewhere)).await.unwrap();
    let status = fixture.status("w").await;
    assert!(
        matches!(&status, Some(WorkflowStatus::Held(hold)) if hold.cause == HoldCause::Gap),
        "what waited for 1 is judged with its end: {status:?}"
    );
}

#[tokio::test]
async fn o12_who_settles_apart_keeps_nothing_ahead_where_a_deferred_message_is_waited_for() {
    let options = QueueOptions::default().exhausted(ExhaustedPolicy::Skip).hold_on_defer(true);
    let fixture = Fixture::new(options).await;
    for body in ["1", "2"] {
        fixture.send("w", body).await;
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    taken.settle_apart().await.unwrap();
    let mut ahead = taken.receive(2, Duration::ZERO).await.unwrap();
    ahead[0].defer_for(seconds(10)).await.unwrap();
    let lost = ahead[1].complete().await.unwrap_err();
    assert_eq!(lost.refusal(), Some(&SettleRefusal::LockLost));
    assert!(taken.receive(2, Duration::ZERO).await.unwrap().is_empty(), "1 is waited for");
    fixture.clock.advance(seconds(10));
    let mut again = taken.receive(2, Duration::ZERO).await.unwrap();
    assert_eq!(again.iter().map(body).collect::<Vec<_>>(), ["1", "2"]);
    for delivery in &mut again {
        delivery.complete().await.unwrap();
    }
}

#[tokio::test]
async fn o12_what_is_given_back_behind_one_that_was_given_back_is_not_counted_either() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    for body in ["1", "2", "3"] {
        fixture.send("w", body).await;
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut ahead = taken.receive(3, Duration::ZERO).await.unwrap();
    for delivery in &mut ahead {
        delivery.release().await.unwrap();
    }
    let counts = |deliveries: &[Delivery]| -> Vec<u32> {
        deliveries.iter().map(|delivery| delivery.message().delivery_count).collect()
    };
    let mut again = taken.receive(3, Duration::ZERO).await.unwrap();
    assert_eq!(counts(&again), [1, 1, 1]);
    again[0].release().await.unwrap();
    let lost = again[1].complete().await.unwrap_err();
    assert_eq!(lost.refusal(), Some(&SettleRefusal::LockLost), "the one before it is to be handled first");
    let last = taken.receive(3, Duration::ZERO).await.unwrap();
    let late = again[2].release().await.unwrap_err();
    assert_eq!(late.refusal(), Some(&SettleRefusal::LockLost), "he has it again");
    assert_eq!(counts(&last), [1, 2, 2]);
}

#[tokio::test]
async fn o7_the_bytes_that_wait_early_are_bounded() {
    let fixture = Fixture::new(QueueOptions::by_position().early_bytes_max(10)).await;
    let at = |position, bytes| Message::new("x".repeat(bytes)).workflow("w").position(position);
    fixture.accept(at(3, 6)).await;
    fixture.accept(at(4, 4)).await;
    let full = fixture.queue.send(at(5, 1)).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SendRefusal::WorkflowFull { index: 0, early: 2 }));
    fixture.accept(at(2, 0)).await;
    fixture.accept(at(1, 100)).await;
    assert_eq!(fixture.drain().await.len(), 4, "what is next waits for nothing");
    fixture.accept(at(6, 10)).await;
}

#[tokio::test]
async fn o12_a_holder_has_a_limited_number_of_messages_ahead() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let most = seriatim::limits::ACCEPTED_AHEAD_MAX;
    let message = |number: usize| Message::new(number.to_string()).workflow("w");
    fixture.queue.send_batch((0..most + 10).map(message)).await.unwrap();
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let mut ahead = taken.receive(most - 2, Duration::ZERO).await.unwrap();
    ahead.extend(taken.receive(9, Duration::ZERO).await.unwrap());
    assert_eq!(ahead.len(), most);
    let refused = taken.receive(1, Duration::ZERO).await.map(|more| more.len()).unwrap_err();
    assert_eq!(refused.refusal(), Some(&ReceiveRefusal::TooManyLocks(most)));
    fixture.queue.complete_all(ahead.iter_mut().take(3)).await.unwrap();
    assert_eq!(taken.receive(9, Duration::ZERO).await.unwrap().len(), 3);
}

#[tokio::test]
async fn o12_a_holder_is_handed_no_deferred_message_of_another_workflow() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let (own, other) = (fixture.send("w", "own").await, fixture.send("other", "other").await);
    for _ in 0..2 {
        fixture.must().await.defer().await.unwrap();
    }
    let taken = fixture.queue.accept_workflow("w").await.unwrap();
    let refused = taken.receive_deferred(&[own, other]).await.err().unwrap();
    assert_eq!(refused.refusal(), Some(&ReceiveRefusal::MessageNotFound(other)), "all or none");
    let mut deferred = taken.receive_deferred(&[own]).await.unwrap();
    assert_eq!(deferred.iter().map(body).collect::<Vec<_>>(), ["own"]);
    deferred[0].complete().await.unwrap();
    assert_eq!(fixture.counts().await.by_consumer, 1, "the other is where it was");
}
