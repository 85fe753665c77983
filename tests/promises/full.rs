//! A full queue: senders are refused at once, and it can always be drained.

use seriatim::Completion;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::delivery::Redriven;
use seriatim::error::OperateRefusal;
use seriatim::error::SendRefusal;
use seriatim::error::SettleRefusal;
use seriatim::event::EventKind;
use seriatim::queue::ExhaustedPolicy;
use seriatim::view::HoldCause;
use seriatim::view::WorkflowStatus;

use crate::promises::fixture::Fixture;
use crate::promises::fixture::body;
use crate::promises::fixture::seconds;

fn at(position: u64) -> Message {
    Message::new(position.to_string()).workflow("w").position(position)
}

fn full(stored: u64) -> SendRefusal {
    SendRefusal::QueueFull { stored }
}

#[tokio::test]
async fn a_full_queue_takes_the_messages_for_which_stored_ones_wait() {
    let fixture = Fixture::new(QueueOptions::by_position().messages_max(8)).await;
    for position in 3..=10 {
        fixture.send_at("w", position).await;
    }
    let refused = fixture.queue.send(at(11)).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&full(8)), "nobody waits for it");
    let batch = fixture.queue.send_batch([at(1), at(11)]).await.unwrap_err();
    assert_eq!(batch.refusal(), Some(&full(8)), "all or none");
    fixture.send_at("w", 1).await;
    let refused = fixture.queue.send(at(2)).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&full(9)), "an eighth is used up");
    fixture.must().await.complete().await.unwrap();
    fixture.send_at("w", 2).await;
    assert_eq!(fixture.drain().await.len(), 9);
}

#[tokio::test]
async fn a_full_queue_takes_the_predecessor_for_which_stored_ones_wait() {
    let options = QueueOptions::default().messages_max(1).order(seriatim::Order::After);
    let fixture = Fixture::new(options).await;
    fixture.send_after("w", "b", Some("a")).await;
    let other = Message::new("c").workflow("w").message_id("c").after("b");
    assert_eq!(fixture.queue.send(other).await.unwrap_err().refusal(), Some(&full(1)));
    fixture.send_after("w", "a", None).await;
    assert_eq!(fixture.drain().await, ["a", "b"]);
}

#[tokio::test]
async fn what_a_completion_sends_may_exceed_the_limit_by_one_eighth_and_beyond_it_nothing_has_happened() {
    let fixture = Fixture::new(QueueOptions::default().messages_max(16)).await;
    for number in 0..16 {
        fixture.send(&format!("w{number}"), "in").await;
    }
    let sending = |count| (0..count).fold(Completion::new(), |all, _| all.send("q", Message::new("out")));
    let mut delivery = fixture.must().await;
    let refused = delivery.complete_with(sending(4)).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&SettleRefusal::Send(full(16))));
    delivery.complete_with(sending(3)).await.unwrap();
    assert_eq!(fixture.counts().await.ready, 18);
    let mut delivery = fixture.must().await;
    let refused = delivery.complete_with(sending(2)).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&SettleRefusal::Send(full(18))));
    assert_eq!(delivery.message().delivery_count, 1);
    delivery.complete_with(sending(1)).await.expect("it makes room for what it sends");
    assert_eq!(fixture.queue.send(Message::new("x")).await.unwrap_err().refusal(), Some(&full(18)));
}

#[tokio::test]
async fn a_completion_may_send_what_takes_the_room_or_the_place_that_it_frees() {
    let fixture = Fixture::new(QueueOptions::by_position().messages_max(1)).await;
    fixture.send_at("w", 1).await;
    let again = Message::new("other").workflow("w").position(1);
    assert!(fixture.queue.send(again.clone()).await.is_err(), "the place is taken");
    let completion = Completion::new().send("q", again).send("q", at(2));
    let receipts = fixture.must().await.complete_with(completion).await.unwrap();
    assert_eq!(receipts[0], seriatim::Receipt::AlreadySettled, "its place is settled by then");
    assert_eq!(fixture.drain().await, ["2"]);
}

#[tokio::test]
async fn a_message_that_a_completion_cannot_send_is_named_by_its_place_among_all_that_it_sends() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let ledger = fixture.engine.client().create_queue("ledger", QueueOptions::by_position()).await.unwrap();
    let by = ledger.send(at(1)).await.unwrap().sequence_number().unwrap();
    fixture.send_at("w", 1).await;
    let completion = Completion::new()
        .send("q", at(2))
        .send("q", at(3))
        .send("ledger", Message::new("other").workflow("w").position(1));
    let refused = fixture.must().await.complete_with(completion).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&SettleRefusal::Send(SendRefusal::PlaceTaken { index: 2, by })));
}

#[tokio::test]
async fn a_completion_frees_the_link_of_its_own_message_only() {
    let fixture = Fixture::new(QueueOptions::default().order(seriatim::Order::After)).await;
    let first = fixture.send_after("w", "a", None).await;
    let after = |id: &'static str| Message::new(id).workflow("w").message_id(id).first();
    let mut delivery = fixture.must().await;
    let refused = delivery.complete_with(Completion::new().send("q", after("b"))).await.unwrap_err();
    let taken = SendRefusal::PlaceTaken { index: 0, by: first };
    assert_eq!(refused.refusal(), Some(&SettleRefusal::Send(taken)));
    let receipts = delivery.complete_with(Completion::new().send("q", after("a"))).await.unwrap();
    assert_eq!(receipts, [seriatim::Receipt::AlreadySettled]);
}

#[tokio::test]
async fn dead_letters_do_not_fill_a_queue_and_a_redrive_may_exceed_its_limit_by_one_eighth() {
    let fixture = Fixture::new(QueueOptions::by_position().messages_max(2)).await;
    let mut dead = Vec::new();
    for position in 1..=4 {
        dead.push(fixture.send_at("w", position).await);
        fixture.must().await.dead_letter("no", "").await.unwrap();
    }
    fixture.queue.send_batch([at(5), at(6)]).await.expect("dead letters do not count");
    fixture.queue.workflow("w").unwrap().hold("wait").await.unwrap();
    fixture.queue.redrive(dead[0]).await.expect("an eighth, rounded up");
    let refused = fixture.queue.redrive(dead[1]).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&OperateRefusal::Send(full(3))));
    assert_eq!(fixture.counts().await.dead_lettered, 3);
    let told = fixture.queue.workflow("w").unwrap().resume_and_redrive().await.unwrap();
    assert_eq!((told.redriven, told.stayed), (0, 3));
    assert_eq!(fixture.drain().await, ["1", "5", "6"], "what there is no room for stays where it is");
}

#[tokio::test]
async fn an_exhausted_message_holds_its_workflow_when_there_are_as_many_dead_letters_as_there_may_be() {
    for exhausted in [ExhaustedPolicy::Skip, ExhaustedPolicy::Quarantine] {
        let options = QueueOptions::default().delivery_count_max(1).exhausted(exhausted).dead_letters_max(1);
        let fixture = Fixture::new(options).await;
        fixture.send("a", "1").await;
        let second = fixture.send("b", "2").await;
        fixture.must().await.abandon().await.unwrap();
        assert_eq!(fixture.counts().await.dead_lettered, 1);
        fixture.must().await.abandon().await.unwrap();
        assert_eq!(fixture.counts().await.dead_lettered, 1);
        let held = |status: &WorkflowStatus| matches!(status, WorkflowStatus::Held(hold) if hold.cause == HoldCause::Exhausted(second));
        assert!(fixture.status("b").await.as_ref().is_some_and(held));
        fixture.queue.purge_dead_letters().await.unwrap();
        fixture.queue.workflow("b").unwrap().resume().await.unwrap();
        fixture.must().await.abandon().await.unwrap();
        assert_eq!(fixture.counts().await.dead_lettered, 1, "now there is room");
    }
}

#[tokio::test]
async fn an_exhausted_message_without_a_workflow_is_tried_again_until_there_is_room_among_the_dead_letters() {
    let options =
        QueueOptions::default().order(seriatim::Order::None).delivery_count_max(1).dead_letters_max(0);
    let fixture = Fixture::new(options.clone()).await;
    fixture.queue.send(Message::new("m")).await.unwrap();
    let mut events = fixture.engine.events();
    fixture.must().await.abandon().await.unwrap();
    let mut told = std::iter::from_fn(|| events.try_next());
    assert!(told.any(|event| matches!(event.kind, EventKind::Blocked { .. })), "it is told that it waits");
    assert!(fixture.next().await.is_none());
    fixture.clock.advance(options.backoff.max);
    assert_eq!(body(&fixture.must().await), "m");
}

#[tokio::test]
async fn what_would_be_dead_lettered_at_once_is_refused_when_there_is_no_room_for_it() {
    let late = seriatim::queue::LatePolicy::DeadLetter;
    let fixture = Fixture::new(QueueOptions::by_position().dead_letters_max(1).late(late)).await;
    fixture.send_at("w", 1).await;
    fixture.must().await.complete().await.unwrap();
    fixture.queue.send(at(1)).await.unwrap();
    assert_eq!(fixture.queue.send(at(1)).await.unwrap_err().refusal(), Some(&full(1)));
}

#[tokio::test]
async fn a_message_deferred_on_its_last_delivery_has_exactly_one_more() {
    for by_number in [true, false] {
        for loses in [true, false] {
            let fixture = Fixture::new(QueueOptions::default().delivery_count_max(2)).await;
            let number = fixture.send("w", "m").await;
            fixture.must().await.abandon().await.unwrap();
            let mut last = fixture.must().await;
            let until = seriatim::Clock::now(&fixture.clock) + seconds(5);
            last.defer_until(until).await.unwrap();
            let extra = match by_number {
                true => fixture.queue.receive_deferred(&[number]).await.unwrap().remove(0),
                false => {
                    fixture.clock.advance(seconds(5));
                    fixture.must().await
                }
            };
            assert_eq!(extra.message().delivery_count, 3);
            let mut extra = extra;
            match loses {
                true => fixture.clock.advance(seconds(31)),
                false => extra.abandon().await.unwrap(),
            }
            assert!(fixture.next().await.is_none(), "that was the one beyond the maximum");
            let counts = fixture.counts().await;
            let expected = if by_number { (0, 1) } else { (1, 0) };
            assert_eq!((counts.exhausted, counts.dead_lettered), expected, "{counts:?}");
            drop(extra);
        }
    }
}

#[tokio::test]
async fn to_defer_the_delivery_beyond_the_maximum_exhausts_a_message_and_an_operator_may_begin_anew() {
    let fixture = Fixture::new(QueueOptions::default().delivery_count_max(1)).await;
    let number = fixture.send("w", "m").await;
    fixture.must().await.defer_until(seriatim::Clock::now(&fixture.clock) + seconds(1)).await.unwrap();
    fixture.clock.advance(seconds(1));
    fixture.must().await.defer().await.unwrap();
    assert!(fixture.queue.receive_deferred(&[number]).await.is_err(), "it is not deferred");
    assert_eq!(fixture.counts().await.exhausted, 1);
    fixture.queue.workflow("w").unwrap().resume().await.unwrap();
    fixture.must().await.defer().await.unwrap();
    let mut extra = fixture.queue.receive_deferred(&[number]).await.unwrap();
    extra[0].complete().await.unwrap();
    assert_eq!(fixture.counts().await.completed, 1);
}

#[tokio::test]
async fn a_dead_letter_that_is_redriven_as_a_new_message_may_exceed_the_limit_by_one_eighth() {
    let fixture = Fixture::new(QueueOptions::default().messages_max(2)).await;
    let mut dead = Vec::new();
    for body in ["1", "2"] {
        dead.push(fixture.send("w", body).await);
        fixture.must().await.dead_letter("no", "").await.unwrap();
    }
    fixture.send("w", "3").await;
    fixture.send("w", "4").await;
    let redriven = fixture.queue.redrive(dead[0]).await.expect("an eighth, rounded up");
    assert!(matches!(redriven, Redriven::AsNew(_)), "its workflow has gone on: {redriven:?}");
    let refused = fixture.queue.redrive(dead[1]).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&OperateRefusal::Send(full(3))));
    assert_eq!(fixture.drain().await, ["3", "4", "1"]);
}
