//! The shortest way through: send, receive, complete.

use serde_json::json;

use crate::queue::QueueOptions;
use crate::server::tests::house::House;

#[tokio::test]
async fn a_message_is_sent_received_and_completed() {
    let house = House::open().await;
    house.create("orders", QueueOptions::default()).await;
    let sent = house.call("POST", "/v1/queues/orders/messages", &[], "hello").await;
    assert_eq!(sent.status, 201);
    assert_eq!(sent.json()["status"], "accepted");

    let received = house.post("/v1/queues/orders/receive", json!({ "max": 10 })).await.json();
    let delivery = &received["deliveries"][0];
    assert_eq!(delivery["body_text"], "hello");
    let path = format!("/v1/queues/orders/deliveries/{}/complete", delivery["delivery"].as_str().unwrap());
    assert_eq!(house.post(&path, json!({})).await.status, 204);

    let again = house.post(&path, json!({})).await;
    assert_eq!((again.status.as_u16(), again.code()), (409, "lock_lost".to_owned()));
}

#[tokio::test]
async fn a_queue_that_does_not_exist_is_told_as_a_problem() {
    let house = House::open().await;
    let sent = house.call("POST", "/v1/queues/orders/messages", &[], "hello").await;
    assert_eq!((sent.status.as_u16(), sent.code()), (404, "queue_not_found".to_owned()));
    assert_eq!(house.get("/nowhere").await.code(), "route_not_found");
    assert_eq!(house.get("/v1/queues/orders/messages").await.code(), "method_not_allowed");
}
