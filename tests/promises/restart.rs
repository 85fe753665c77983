//! What a restart and a lost lock leave behind: everything is offered again, in the order of hand-out.

use std::time::Duration;

use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Timestamp;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::millis;
use crate::promises::fixture::seconds;

#[tokio::test]
async fn o12_a_workflow_that_was_taken_with_nothing_handed_out_is_offered_after_a_restart() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    queue.send(Message::new("1").workflow("w")).await.unwrap();
    let taken = queue.accept_workflow("w").await.unwrap();
    engine.close().await;
    drop(taken);
    let (_engine, queue) = fixture.open().await;
    let delivery = queue.receive(Duration::ZERO).await.unwrap().expect("the workflow is offered again");
    assert_eq!(delivery.message().delivery_count, 1, "it was never handed out before");
}

#[tokio::test]
async fn o12_a_workflow_whose_holder_has_settled_all_it_had_is_offered_after_a_restart() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    for text in ["1", "2"] {
        queue.send(Message::new(text).workflow("w")).await.unwrap();
    }
    let taken = queue.accept_next_workflow(Duration::ZERO).await.unwrap().unwrap();
    taken.receive(1, Duration::ZERO).await.unwrap()[0].complete().await.unwrap();
    engine.close().await;
    drop(taken);
    let (_engine, queue) = fixture.open().await;
    let delivery = queue.receive(Duration::ZERO).await.unwrap().expect("the workflow is offered again");
    assert_eq!(body(&delivery), "2");
}

#[tokio::test]
async fn a_queue_is_not_idle_because_the_engine_was_not_there() {
    let fixture = FileFixture::new();
    let (engine, _) = fixture.open().await;
    let options = QueueOptions::default().delete_when_idle(seconds(60)).delete_with_messages(true);
    let used = engine.client().create_queue("used", options).await.unwrap();
    used.send(Message::new("1")).await.unwrap();
    let mut delivery = used.receive(Duration::ZERO).await.unwrap().unwrap();
    for _ in 0..4 {
        fixture.clock.advance(seconds(25));
        delivery.renew().await.unwrap();
    }
    engine.close().await;
    drop(delivery);
    fixture.clock.advance(seconds(61));
    let (engine, _) = fixture.open().await;
    let used = engine.client().queue("used").unwrap();
    fixture.clock.advance(seconds(59));
    assert_eq!(used.receive(Duration::ZERO).await.unwrap().as_ref().map(body).as_deref(), Some("1"));
    engine.close().await;
    let (engine, _) = fixture.open().await;
    fixture.clock.advance(seconds(60));
    engine.client().next_due().await.unwrap();
    assert!(engine.client().queue("used").unwrap().view().await.is_err(), "then it was idle for long enough");
}

#[tokio::test]
async fn i14_a_delay_goes_on_from_where_it_was_although_the_clock_was_set_back_meanwhile() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    queue.send(Message::new("before").workflow("w")).await.unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    delivery.abandon_after(seconds(10), "later").await.unwrap();
    engine.close().await;
    fixture.clock.set(Timestamp::from_millis(1_000));
    let (_engine, queue) = fixture.open().await;
    fixture.clock.advance(millis(9_999));
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
    fixture.clock.advance(millis(1));
    assert!(
        queue.receive(Duration::ZERO).await.unwrap().is_some(),
        "nothing is left for the clock to catch up"
    );
}

#[tokio::test]
async fn i9_locks_that_run_out_together_are_lost_in_the_order_of_hand_out() {
    let fixture = Fixture::new(QueueOptions::default().lock(seconds(5))).await;
    let names: Vec<String> = (0..16).map(|number| format!("w{number:02}")).collect();
    let mut deliveries = Vec::new();
    for name in &names {
        fixture.send(name, name).await;
        deliveries.push(fixture.must().await);
    }
    fixture.clock.advance(seconds(5));
    let again = fixture.queue.receive_many(names.len(), Duration::ZERO).await.unwrap();
    assert_eq!(again.iter().map(body).collect::<Vec<_>>(), names);
}
