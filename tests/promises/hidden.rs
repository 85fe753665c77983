//! Messages handed out without a lock: hidden for a while, claimed by whoever was handed them last.

use seriatim::Message;
use seriatim::Order;
use seriatim::QueueOptions;
use seriatim::delivery::Claim;
use seriatim::delivery::Hidden;
use seriatim::error::ReceiveRefusal;
use seriatim::error::SettleRefusal;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::seconds;

async fn fixture() -> Fixture {
    Fixture::new(QueueOptions::default().order(Order::None)).await
}

/// Hides the next message for so many seconds.
async fn hide(fixture: &Fixture, lasts: u64) -> Option<Hidden> {
    fixture.queue.receive_hidden(1, seconds(lasts)).await.expect("the queue exists").pop()
}

async fn refusal(fixture: &Fixture, claim: Claim) -> Option<SettleRefusal> {
    fixture.queue.end_hidden(claim).await.err().and_then(|error| error.refusal().cloned())
}

#[tokio::test]
async fn a_hidden_message_is_offered_again_at_its_instant_and_not_before() {
    let fixture = fixture().await;
    fixture.accept(Message::new("a")).await;
    let first = hide(&fixture, 10).await.unwrap();
    fixture.clock.advance(seconds(9));
    assert!(hide(&fixture, 10).await.is_none());
    fixture.clock.advance(seconds(1));
    let second = hide(&fixture, 10).await.unwrap();
    assert_eq!((first.claim.delivery_count, second.claim.delivery_count), (1, 2));
    fixture.queue.end_hidden(second.claim).await.unwrap();
    assert_eq!(fixture.counts().await.completed, 1);
}

#[tokio::test]
async fn a_claim_is_good_until_the_message_is_handed_out_again() {
    let fixture = fixture().await;
    fixture.accept(Message::new("a")).await;
    let first = hide(&fixture, 10).await.unwrap();
    fixture.clock.advance(seconds(60));
    // Its time is over, but nobody else has it.
    let again = fixture.queue.hide_again(first.claim, seconds(10), None).await.unwrap();
    assert_eq!(refusal(&fixture, first.claim).await, Some(SettleRefusal::LockLost));
    fixture.clock.advance(seconds(10));
    let second = hide(&fixture, 10).await.unwrap();
    assert_eq!(refusal(&fixture, again.claim).await, Some(SettleRefusal::LockLost));
    fixture.queue.end_hidden(second.claim).await.unwrap();
    let gone = SettleRefusal::MessageNotFound(second.claim.sequence_number);
    assert_eq!(refusal(&fixture, second.claim).await, Some(gone));
}

#[tokio::test]
async fn a_message_hidden_again_keeps_its_count_and_has_its_new_body() {
    let fixture = fixture().await;
    fixture.accept(Message::new("step 1")).await;
    let first = hide(&fixture, 10).await.unwrap();
    let second =
        fixture.queue.hide_again(first.claim, seconds(0), Some("step 2 is longer".into())).await.unwrap();
    assert_eq!(second.claim.delivery_count, 1);
    assert_ne!(first.claim, second.claim, "even at the same instant");
    let peeked = fixture.queue.peek_offered(10).await.unwrap();
    assert_eq!((peeked[0].body.as_ref(), peeked[0].delivery_count), (&b"step 2 is longer"[..], 1));
    let third = hide(&fixture, 10).await.unwrap();
    assert_eq!((third.body.as_ref(), third.claim.delivery_count), (&b"step 2 is longer"[..], 2));
}

#[tokio::test]
async fn a_body_larger_than_the_queue_takes_is_refused_and_changes_nothing() {
    let options = QueueOptions::default().body_bytes_max(4);
    let fixture = Fixture::new(options).await;
    fixture.accept(Message::new("a")).await;
    let first = hide(&fixture, 10).await.unwrap();
    let refused = fixture.queue.hide_again(first.claim, seconds(10), Some("12345".into())).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(SettleRefusal::Send(_))), "{refused}");
    fixture.queue.end_hidden(first.claim).await.unwrap();
}

#[tokio::test]
async fn its_sender_may_end_a_message_nobody_was_handed() {
    let fixture = fixture().await;
    let claim = |view: &seriatim::view::MessageView| Claim::of_sender(view.sequence_number, view.accepted_at);
    let ready = fixture.accept(Message::new("a")).await;
    let later = fixture.accept(Message::new("b").schedule_after(&fixture, 60)).await;
    for number in [ready, later] {
        let view = fixture.queue.peek(number, 1).await.unwrap().remove(0);
        fixture.queue.end_hidden(claim(&view)).await.unwrap();
    }
    assert_eq!(fixture.counts().await.cancelled, 2);
    let seen = fixture.accept(Message::new("c")).await;
    hide(&fixture, 10).await.unwrap();
    let view = fixture.queue.peek(seen, 1).await.unwrap().remove(0);
    assert_eq!(refusal(&fixture, claim(&view)).await, Some(SettleRefusal::LockLost));
}

#[tokio::test]
async fn what_its_sender_hides_is_not_fetched_before_its_turn() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    let number = fixture.send_at("w", 5).await;
    let view = fixture.queue.peek(number, 1).await.unwrap().remove(0);
    fixture.queue.hide_again(Claim::of_sender(number, view.accepted_at), seconds(60), None).await.unwrap();
    let refused = fixture.queue.receive_deferred(&[number]).await.expect_err("nobody set it aside");
    assert_eq!(refused.refusal(), Some(&ReceiveRefusal::MessageNotFound(number)));
    fixture.clock.advance(seconds(60));
    assert!(fixture.queue.receive(seconds(0)).await.unwrap().is_none(), "four are missing before it");
    fixture.counts().await;
}

#[tokio::test]
async fn a_scheduled_message_that_is_hidden_again_comes_at_its_new_instant() {
    for order in [Order::None, Order::Arrival, Order::POSITION] {
        let fixture = Fixture::new(QueueOptions::default().order(order)).await;
        let message = Message::new("a").workflow("w").schedule_after(&fixture, 60);
        let message = if order == Order::POSITION { message.position(1) } else { message };
        let number = fixture.accept(message).await;
        let view = fixture.queue.peek(number, 1).await.unwrap().remove(0);
        let claim = Claim::of_sender(number, view.accepted_at);
        fixture.queue.hide_again(claim, seconds(5), None).await.unwrap();
        assert!(hide(&fixture, 10).await.is_none());
        fixture.clock.advance(seconds(5));
        let hidden = hide(&fixture, 10).await.unwrap();
        fixture.queue.end_hidden(hidden.claim).await.unwrap();
        assert_eq!(fixture.counts().await.completed, 1);
    }
}

#[tokio::test]
async fn a_hidden_message_blocks_its_own_workflow_and_no_other() {
    let fixture = Fixture::new(QueueOptions::by_position()).await;
    for (workflow, position) in [("v", 1), ("v", 2), ("w", 1)] {
        fixture.send_at(workflow, position).await;
    }
    let hidden = fixture.queue.receive_hidden(10, seconds(10)).await.unwrap();
    assert_eq!(hidden.len(), 2, "the heads of v and w");
    fixture.queue.end_hidden(hidden[0].claim).await.unwrap();
    let next = hide(&fixture, 10).await.unwrap();
    assert_eq!(next.body.as_ref(), b"2");
}

#[tokio::test]
async fn a_delivery_under_a_lock_voids_every_claim() {
    let fixture = fixture().await;
    fixture.accept(Message::new("a")).await;
    let hidden = hide(&fixture, 10).await.unwrap();
    fixture.clock.advance(seconds(10));
    let mut delivery = fixture.must().await;
    assert_eq!(refusal(&fixture, hidden.claim).await, Some(SettleRefusal::LockLost));
    delivery.complete().await.unwrap();
}

#[tokio::test]
async fn what_is_hidden_stays_so_and_claimed_when_the_file_is_opened_again() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    queue.send_batch([Message::new("a"), Message::new("b")]).await.unwrap();
    let hidden = queue.receive_hidden(2, seconds(60)).await.unwrap();
    engine.close().await;
    let (engine, queue) = fixture.open().await;
    assert!(queue.receive_hidden(2, seconds(60)).await.unwrap().is_empty());
    queue.end_hidden(hidden[0].claim).await.unwrap();
    fixture.clock.advance(seconds(60));
    let again = queue.receive_hidden(2, seconds(60)).await.unwrap();
    assert_eq!(again.iter().map(|hidden| hidden.claim.delivery_count).collect::<Vec<_>>(), [2]);
    engine.close().await;
}

#[tokio::test]
async fn a_hidden_message_expires() {
    let fixture = fixture().await;
    fixture.accept(Message::new("a").time_to_live(seconds(5))).await;
    let hidden = hide(&fixture, 60).await.unwrap();
    fixture.clock.advance(seconds(5));
    let gone = SettleRefusal::MessageNotFound(hidden.claim.sequence_number);
    assert_eq!(refusal(&fixture, hidden.claim).await, Some(gone));
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

/// Schedules a message from the fixture's present.
trait ScheduleAfter {
    fn schedule_after(self, fixture: &Fixture, seconds: u64) -> Message;
}

impl ScheduleAfter for Message {
    fn schedule_after(self, fixture: &Fixture, after: u64) -> Message {
        self.schedule_at(seriatim::Clock::now(&fixture.clock) + seconds(after))
    }
}
