//! Limits are judged by what a command leaves behind, neither more nor less.

use seriatim::Abandon;
use seriatim::Completion;
use seriatim::Message;
use seriatim::Outcome;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::delivery::Redriven;
use seriatim::error::SendRefusal;
use seriatim::error::SettleError;
use seriatim::error::SettleRefusal;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

fn room_for(early_max: u64) -> QueueOptions {
    QueueOptions::by_position().early_max(early_max)
}

fn at(position: u64) -> Message {
    Message::new(position.to_string()).workflow("w").position(position)
}

#[tokio::test]
async fn o7_what_a_batch_reaches_in_order_takes_no_early_room() {
    let fixture = Fixture::new(room_for(1)).await;
    fixture.send_at("w", 4).await;
    let sent = fixture.queue.send_batch([at(1), at(2)]).await.unwrap();
    assert!(sent.iter().all(|receipt| matches!(receipt, Receipt::Accepted(_))), "{sent:?}");
    let full = fixture.queue.send_batch([at(6), at(7)]).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SendRefusal::WorkflowFull { index: 0, early: 1 }));
    fixture
        .queue
        .send_batch([at(3), at(5), at(6), at(8)])
        .await
        .expect("4 is reached and frees its room for 8");
    let full = fixture.queue.send_batch([at(7), at(10), at(11)]).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SendRefusal::WorkflowFull { index: 2, early: 1 }));
    assert_eq!(fixture.drain().await, ["1", "2", "3", "4", "5", "6"]);
}

#[tokio::test]
async fn o7_a_chain_that_comes_in_one_batch_takes_no_early_room() {
    let fixture = Fixture::new(room_for(1).order(seriatim::Order::After)).await;
    let link = |id: &str, after: Option<&str>| {
        let message = Message::new(id.to_owned()).workflow("w").message_id(id);
        after.map_or(message.clone().first(), |after| message.after(after))
    };
    fixture.send_after("w", "d", Some("c")).await;
    let batch = [link("a", None), link("b", Some("a")), link("c", Some("b")), link("e", Some("d"))];
    fixture.queue.send_batch(batch).await.unwrap();
    let full = fixture.queue.send_batch([link("x", Some("w")), link("z", Some("y"))]).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SendRefusal::WorkflowFull { index: 1, early: 0 }));
    assert_eq!(fixture.drain().await, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn o7_a_scheduled_message_takes_no_early_room() {
    let fixture = Fixture::new(room_for(1)).await;
    let later = seriatim::Clock::now(&fixture.clock) + seconds(60);
    fixture.queue.send(at(9).schedule_at(later)).await.expect("nothing is early yet");
    fixture.queue.send_batch([at(7).schedule_at(later), at(3)]).await.expect("only 3 is early");
    fixture.queue.send(at(5).schedule_at(later)).await.expect("the room is full, but this is not early");
    assert_eq!(fixture.counts().await.early, 1);
    let full = fixture.queue.send(at(4)).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SendRefusal::WorkflowFull { index: 0, early: 1 }));
}

#[tokio::test]
async fn a_full_queue_redrives_its_own_dead_letter() {
    let fixture = Fixture::new(QueueOptions::default().messages_max(2)).await;
    let number = fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    fixture.must().await.dead_letter("no", "").await.unwrap();
    assert!(matches!(fixture.queue.redrive(number).await.unwrap(), Redriven::AsNew(_)));
    assert_eq!(fixture.drain().await, ["2", "1"]);
}

#[tokio::test]
async fn a_completion_in_a_full_queue_may_send_what_it_makes_room_for() {
    let fixture = Fixture::new(QueueOptions::default().messages_max(2)).await;
    fixture.send("w", "1").await;
    fixture.send("w", "2").await;
    let mut delivery = fixture.must().await;
    let send = |texts: &[&str]| {
        let message = |text: &&str| Message::new(text.to_string()).workflow("w");
        texts.iter().map(message).fold(Completion::new(), |all, message| all.send("q", message))
    };
    let full = delivery.complete_with(send(&["3", "4", "5"])).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SettleRefusal::Send(SendRefusal::QueueFull { stored: 2 })));
    delivery.complete_with(send(&["3"])).await.unwrap();
    let mut run = fixture.queue.receive_run(2, seconds(0)).await.unwrap().unwrap();
    run.complete_first_with(2, send(&["4", "5"])).await.unwrap();
    assert_eq!(fixture.drain().await, ["4", "5"]);
}

#[tokio::test]
async fn a_completion_that_returns_to_a_queue_counts_all_it_sends_there() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let small = QueueOptions::default().messages_max(1);
    fixture.engine.client().create_queue("small", small).await.unwrap();
    fixture.send("w", "1").await;
    let message = || Message::new("next").workflow("w");
    let to_small = |all: Completion| all.send("small", message());
    let completion =
        to_small(to_small(to_small(Completion::new()).send("q", message())).send("q", message()));
    let full = fixture.must().await.complete_with(completion).await.unwrap_err();
    assert_eq!(full.refusal(), Some(&SettleRefusal::Send(SendRefusal::QueueFull { stored: 0 })));
}

#[tokio::test]
async fn properties_do_not_grow_beyond_their_limit_over_the_attempts() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let half = || "x".repeat(40 * 1024);
    fixture.must().await.abandon_with(Abandon::now().property("a", half())).await.unwrap();
    let mut delivery = fixture.must().await;
    let refused = delivery.abandon_with(Abandon::now().property("b", half())).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&SettleRefusal::PropertiesTooLarge { bytes: 2 * 40 * 1024 + 2 }));
    delivery
        .abandon_with(Abandon::now().property("a", half()))
        .await
        .expect("it replaces as much as it adds");
    let mut run = fixture.queue.receive_run(1, seconds(0)).await.unwrap().unwrap();
    let ending = Outcome::Abandon(Abandon::now().property("b", half()));
    assert!(run.complete_first_then(0, ending).await.is_err());
    run.release().await.expect("a settle that was refused has changed nothing");
    assert_eq!(fixture.must().await.message().delivery_count, 3);
}

#[tokio::test]
async fn a_completion_sends_no_more_bytes_than_a_batch_may() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.send("w", "1").await;
    let mega = bytes_of(1024 * 1024);
    let sends = (0..65).fold(Completion::new(), |all, _| all.send("q", Message::new(mega.clone())));
    let mut delivery = fixture.must().await;
    let refused = delivery.complete_with(sends).await.unwrap_err();
    assert!(matches!(&refused, SettleError::Misuse(misuse) if misuse.field() == "sends"), "{refused}");
    delivery.complete().await.unwrap();
}

fn bytes_of(count: usize) -> bytes::Bytes {
    bytes::Bytes::from(vec![0; count])
}
