//! What is skipped: the message that was looked at.

use std::time::Duration;

use serde_json::json;

use crate::message::Message;
use crate::queue::QueueOptions;
use crate::server::tests::fixture::Fixture;
use crate::server::tests::operating::fail_all;
use crate::server::tests::operating::operate;
use crate::server::tests::operating::send;

#[tokio::test]
async fn what_was_looked_at_is_skipped_and_nothing_that_came_to_the_head_since() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    for _ in 0..3 {
        queue.send(Message::new("x").workflow("w")).await.unwrap();
    }
    fail_all(&queue).await;
    let looked = operate(&fixture, "w", "skip", json!({ "dry_run": true })).await.json();
    let number = looked["sequence_number"].as_u64().unwrap();
    assert!(looked["effect"].as_str().unwrap().starts_with(&format!("message {number} is dead-lettered")));
    let request = json!({ "reason": "a test", "sequence_number": number });
    let skipped = operate(&fixture, "w", "skip", request.clone()).await.json();
    assert_eq!(skipped["sequence_number"], number);
    let again = operate(&fixture, "w", "skip", request.clone()).await;
    assert_eq!(again.code(), "not_at_head");
    assert_eq!(operate(&fixture, "w", "hold", request).await.code(), "misuse");
    let counts = &fixture.get("/v1/queues/orders").await.json()["counts"];
    assert_eq!(counts["dead_lettered"], 1);
}

#[tokio::test]
async fn what_came_back_before_the_message_of_a_hold_is_skipped_as_it_is_at_the_head() {
    let fixture = Fixture::open().await;
    let options = QueueOptions { delivery_count_max: 1, ..QueueOptions::by_position() };
    let queue = fixture.create("orders", options).await;
    for position in [1, 2] {
        send(&queue, "w", position).await;
    }
    let mut first = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let number = first.sequence_number();
    first.dead_letter("unreadable", "").await.unwrap();
    fail_all(&queue).await;
    queue.redrive(number).await.unwrap();
    let skipped = operate(&fixture, "w", "skip", json!({ "reason": "a test" })).await.json();
    assert_eq!(skipped["sequence_number"], number.get());
}
