//! Idempotency keys: a request that is sent again is answered as it was, and nothing is stored twice.

use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Receipt;
use seriatim::SequenceNumber;
use seriatim::error::SendRefusal;
use seriatim::id::IdempotencyKey;
use seriatim::limits;

use crate::promises::fixture::FileFixture;
use crate::promises::fixture::Fixture;
use crate::promises::fixture::key;
use crate::promises::fixture::millis;
use crate::promises::fixture::pair;
use crate::promises::fixture::refusal;

#[tokio::test]
async fn g7_the_same_request_is_answered_as_it_was_and_stores_nothing() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    let first = fixture.queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    assert_eq!(first, [1, 2].map(|number| Receipt::Accepted(SequenceNumber::new(number))));
    fixture.drain().await;
    let again = fixture.queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    assert_eq!(again, first, "although the messages are completed by now");
    let another = fixture.queue.send_batch_once(key("l", "pair"), pair()).await.unwrap();
    assert_ne!(another, first, "another key is another request");
    assert_eq!(fixture.counts().await.accepted, 4);
}

#[tokio::test]
async fn g7_the_same_request_is_answered_as_it_was_after_a_restart() {
    let fixture = FileFixture::new();
    let (engine, queue) = fixture.open().await;
    let first = queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    engine.close().await;
    let (_engine, queue) = fixture.open().await;
    assert_eq!(queue.send_batch_once(key("k", "pair"), pair()).await.unwrap(), first);
    assert_eq!(queue.view().await.unwrap().counts.accepted, 2);
}

#[tokio::test]
async fn g7_a_key_can_be_used_anew_when_its_window_is_over_and_not_before() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    fixture.clock.advance(limits::IDEMPOTENCY_WINDOW - millis(1));
    fixture.queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    assert_eq!(fixture.counts().await.accepted, 2, "asking again does not prolong it");
    fixture.clock.advance(millis(1));
    let anew = fixture.queue.send_batch_once(key("k", "other"), pair()).await.unwrap();
    assert_eq!(anew[0], Receipt::Accepted(SequenceNumber::new(3)));
    fixture.clock.advance(limits::IDEMPOTENCY_WINDOW - millis(1));
    assert_eq!(fixture.queue.send_batch_once(key("k", "other"), pair()).await.unwrap(), anew);
}

#[tokio::test]
async fn g7_another_request_under_a_used_key_is_refused_and_stores_nothing() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    let answer = fixture.queue.send_batch_once(key("k", "other"), [Message::new("c")]).await;
    assert_eq!(refusal(answer), SendRefusal::KeyReused("k".to_owned()));
    assert_eq!(fixture.counts().await.accepted, 2);
}

#[tokio::test]
async fn g7_a_refusal_is_not_kept_so_that_its_sender_may_try_again() {
    let options = QueueOptions::default().messages_max(1);
    let fixture = Fixture::new(options).await;
    fixture.send("w", "first").await;
    let send = || fixture.queue.send_batch_once(key("k", "one"), [Message::new("second").workflow("w")]);
    assert_eq!(refusal(send().await), SendRefusal::QueueFull { stored: 1 });
    fixture.drain().await;
    assert_eq!(send().await.unwrap(), [Receipt::Accepted(SequenceNumber::new(2))]);
}

#[tokio::test]
async fn g7_a_deleted_queue_forgets_its_keys() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    let client = fixture.engine.client();
    client.delete_queue("q").await.unwrap();
    let queue = client.create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send_batch_once(key("k", "other"), pair()).await.unwrap();
    assert_eq!(queue.view().await.unwrap().counts.accepted, 2);
}

#[tokio::test]
async fn g7_keys_belong_to_their_queue() {
    let fixture = Fixture::new(QueueOptions::default()).await;
    fixture.queue.send_batch_once(key("k", "pair"), pair()).await.unwrap();
    let other = fixture.engine.client().create_queue("r", QueueOptions::default()).await.unwrap();
    other.send_batch_once(key("k", "other"), pair()).await.unwrap();
    assert_eq!(other.view().await.unwrap().counts.accepted, 2);
}

#[test]
fn an_idempotency_key_is_a_text_of_1_to_128_bytes() {
    assert!(IdempotencyKey::new("k".repeat(128), 0).is_ok());
    for text in [String::new(), "k".repeat(129)] {
        assert!(IdempotencyKey::new(&text, 0).is_err(), "{} bytes", text.len());
    }
}
