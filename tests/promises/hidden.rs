//! Messages handed out without a lock: hidden for a while, claimed by whoever was handed them last.

use seriatim::Claim;
use seriatim::Hidden;
use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::SettleRefusal;

use crate::promises::house::FileHouse;
use crate::promises::house::House;
use crate::promises::house::seconds;

async fn house() -> House {
    House::new(QueueOptions { order: Order::None, ..QueueOptions::default() }).await
}

/// Hides the next message for so many seconds.
async fn hide(house: &House, lasts: u64) -> Option<Hidden> {
    house.queue.hide_next(1, seconds(lasts)).await.expect("the queue exists").pop()
}

async fn refusal(house: &House, claim: Claim) -> Option<SettleRefusal> {
    house.queue.end_hidden(claim).await.err().and_then(|error| error.refusal().cloned())
}

#[tokio::test]
async fn a_hidden_message_is_offered_again_at_its_instant_and_not_before() {
    let house = house().await;
    house.accept(Message::new("a")).await;
    let first = hide(&house, 10).await.unwrap();
    house.clock.advance(seconds(9));
    assert!(hide(&house, 10).await.is_none());
    house.clock.advance(seconds(1));
    let second = hide(&house, 10).await.unwrap();
    assert_eq!((first.claim.delivery_count, second.claim.delivery_count), (1, 2));
    house.queue.end_hidden(second.claim).await.unwrap();
    assert_eq!(house.counts().await.completed, 1);
}

#[tokio::test]
async fn a_claim_is_good_until_the_message_is_handed_out_again() {
    let house = house().await;
    house.accept(Message::new("a")).await;
    let first = hide(&house, 10).await.unwrap();
    house.clock.advance(seconds(60));
    // Its time is over, but nobody else has it.
    let again = house.queue.hide_again(first.claim, seconds(10), None).await.unwrap();
    assert_eq!(refusal(&house, first.claim).await, Some(SettleRefusal::LockLost));
    house.clock.advance(seconds(10));
    let second = hide(&house, 10).await.unwrap();
    assert_eq!(refusal(&house, again.claim).await, Some(SettleRefusal::LockLost));
    house.queue.end_hidden(second.claim).await.unwrap();
    let gone = SettleRefusal::MessageNotFound(second.claim.sequence_number);
    assert_eq!(refusal(&house, second.claim).await, Some(gone));
}

#[tokio::test]
async fn a_message_hidden_again_keeps_its_count_and_has_its_new_body() {
    let house = house().await;
    house.accept(Message::new("step 1")).await;
    let first = hide(&house, 10).await.unwrap();
    let second =
        house.queue.hide_again(first.claim, seconds(0), Some("step 2 is longer".into())).await.unwrap();
    assert_eq!(second.claim.delivery_count, 1);
    assert_ne!(first.claim, second.claim, "even at the same instant");
    let peeked = house.queue.peek_offered(10).await.unwrap();
    assert_eq!((peeked[0].body.as_ref(), peeked[0].delivery_count), (&b"step 2 is longer"[..], 1));
    let third = hide(&house, 10).await.unwrap();
    assert_eq!((third.body.as_ref(), third.claim.delivery_count), (&b"step 2 is longer"[..], 2));
}

#[tokio::test]
async fn a_body_larger_than_the_queue_takes_is_refused_and_changes_nothing() {
    let options = QueueOptions { body_bytes_max: 4, ..QueueOptions::default() };
    let house = House::new(options).await;
    house.accept(Message::new("a")).await;
    let first = hide(&house, 10).await.unwrap();
    let refused = house.queue.hide_again(first.claim, seconds(10), Some("12345".into())).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(SettleRefusal::Send(_))), "{refused}");
    house.queue.end_hidden(first.claim).await.unwrap();
}

#[tokio::test]
async fn its_sender_may_end_a_message_nobody_was_handed() {
    let house = house().await;
    let claim = |view: &seriatim::MessageView| Claim::of_sender(view.sequence_number, view.accepted_at);
    let ready = house.accept(Message::new("a")).await;
    let later = house.accept(Message::new("b").schedule_after(&house, 60)).await;
    for number in [ready, later] {
        let view = house.queue.peek(number, 1).await.unwrap().remove(0);
        house.queue.end_hidden(claim(&view)).await.unwrap();
    }
    assert_eq!(house.counts().await.cancelled, 2);
    let seen = house.accept(Message::new("c")).await;
    hide(&house, 10).await.unwrap();
    let view = house.queue.peek(seen, 1).await.unwrap().remove(0);
    assert_eq!(refusal(&house, claim(&view)).await, Some(SettleRefusal::LockLost));
}

#[tokio::test]
async fn a_scheduled_message_that_is_hidden_again_comes_at_its_new_instant() {
    for order in [Order::None, Order::Arrival, Order::POSITION] {
        let house = House::new(QueueOptions { order, ..QueueOptions::default() }).await;
        let message = Message::new("a").workflow("w").schedule_after(&house, 60);
        let message = if order == Order::POSITION { message.position(1) } else { message };
        let number = house.accept(message).await;
        let view = house.queue.peek(number, 1).await.unwrap().remove(0);
        let claim = Claim::of_sender(number, view.accepted_at);
        house.queue.hide_again(claim, seconds(5), None).await.unwrap();
        assert!(hide(&house, 10).await.is_none());
        house.clock.advance(seconds(5));
        let hidden = hide(&house, 10).await.unwrap();
        house.queue.end_hidden(hidden.claim).await.unwrap();
        assert_eq!(house.counts().await.completed, 1);
    }
}

#[tokio::test]
async fn a_hidden_message_blocks_its_own_workflow_and_no_other() {
    let house = House::new(QueueOptions::by_position()).await;
    for (workflow, position) in [("v", 1), ("v", 2), ("w", 1)] {
        house.send_at(workflow, position).await;
    }
    let hidden = house.queue.hide_next(10, seconds(10)).await.unwrap();
    assert_eq!(hidden.len(), 2, "the heads of v and w");
    house.queue.end_hidden(hidden[0].claim).await.unwrap();
    let next = hide(&house, 10).await.unwrap();
    assert_eq!(next.body.as_ref(), b"2");
}

#[tokio::test]
async fn a_delivery_under_a_lock_voids_every_claim() {
    let house = house().await;
    house.accept(Message::new("a")).await;
    let hidden = hide(&house, 10).await.unwrap();
    house.clock.advance(seconds(10));
    let mut delivery = house.must().await;
    assert_eq!(refusal(&house, hidden.claim).await, Some(SettleRefusal::LockLost));
    delivery.complete().await.unwrap();
}

#[tokio::test]
async fn what_is_hidden_stays_so_and_claimed_when_the_file_is_opened_again() {
    let house = FileHouse::new();
    let (engine, queue) = house.open().await;
    queue.send_batch([Message::new("a"), Message::new("b")]).await.unwrap();
    let hidden = queue.hide_next(2, seconds(60)).await.unwrap();
    engine.close().await;
    let (engine, queue) = house.open().await;
    assert!(queue.hide_next(2, seconds(60)).await.unwrap().is_empty());
    queue.end_hidden(hidden[0].claim).await.unwrap();
    house.clock.advance(seconds(60));
    let again = queue.hide_next(2, seconds(60)).await.unwrap();
    assert_eq!(again.iter().map(|hidden| hidden.claim.delivery_count).collect::<Vec<_>>(), [2]);
    engine.close().await;
}

#[tokio::test]
async fn a_hidden_message_expires() {
    let house = house().await;
    house.accept(Message::new("a").time_to_live(seconds(5))).await;
    let hidden = hide(&house, 60).await.unwrap();
    house.clock.advance(seconds(5));
    let gone = SettleRefusal::MessageNotFound(hidden.claim.sequence_number);
    assert_eq!(refusal(&house, hidden.claim).await, Some(gone));
}

#[test]
fn a_claim_survives_the_way_through_text() {
    let claim = Claim::of_sender(seriatim::SequenceNumber::new(17), seriatim::Timestamp::from_millis(99));
    assert_eq!(claim.to_string(), "17.0.99");
    assert_eq!(claim.to_string().parse(), Ok(claim));
    for wrong in ["", "17", "17.0", "17.0.x", "17.-1.9", "17.0.99.1"] {
        assert!(wrong.parse::<Claim>().is_err(), "{wrong}");
    }
}

/// Schedules a message from a house's present.
trait ScheduleAfter {
    fn schedule_after(self, house: &House, seconds: u64) -> Message;
}

impl ScheduleAfter for Message {
    fn schedule_after(self, house: &House, after: u64) -> Message {
        self.schedule_at(seriatim::Clock::now(&house.clock) + seconds(after))
    }
}
