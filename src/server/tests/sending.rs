//! One message a request.

use bytes::Bytes;
use serde_json::json;

use crate::limits;
use crate::queue::QueueOptions;
use crate::server::tests::fixture::Fixture;
use crate::server::tests::wire::Wire;

const MESSAGES: &str = "/v1/queues/orders/messages";

#[tokio::test]
async fn a_message_is_sent_received_and_completed() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let sent = fixture.call("POST", MESSAGES, &[], "hello").await;
    assert_eq!((sent.status.as_u16(), sent.json()["status"].as_str()), (201, Some("accepted")));
    let delivery = &fixture.receive("orders", json!({ "max": 10 })).await[0];
    assert_eq!(delivery["body_text"], "hello");
    assert_eq!(delivery["sequence_number"], sent.json()["sequence_number"]);
    let path = format!("/v1/queues/orders/deliveries/{}/complete", delivery["delivery"].as_str().unwrap());
    assert_eq!(fixture.post(&path, json!({})).await.status, 204);
    let again = fixture.post(&path, json!({})).await;
    assert_eq!(again.status, 204, "the same again is answered as it was");
}

#[tokio::test]
async fn what_is_not_there_is_told_as_a_problem() {
    let fixture = Fixture::open().await;
    let sent = fixture.call("POST", MESSAGES, &[], "hello").await;
    assert_eq!((sent.status.as_u16(), sent.code()), (404, "queue_not_found".to_owned()));
    assert!(sent.json()["detail"].as_str().unwrap().contains("orders"), "{sent:?}");
    assert_eq!(fixture.get("/nowhere").await.code(), "route_not_found");
    assert_eq!(fixture.delete("/v1/queues").await.code(), "method_not_allowed");
}

#[tokio::test]
async fn headers_say_what_a_message_is() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::by_position()).await;
    let headers = [
        ("content-type", "application/json"),
        ("seriatim-workflow-id", "order-17"),
        ("seriatim-position", "1"),
        ("seriatim-message-id", "m-1"),
        ("seriatim-subject", "paid"),
        ("seriatim-correlation-id", "c-1"),
        ("seriatim-reply-to", "answers"),
        ("seriatim-property-tenant", "blue"),
        ("seriatim-time-to-live", "1h"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ];
    assert_eq!(fixture.call("POST", MESSAGES, &headers, r#"{"cents":1999}"#).await.status, 201);
    let delivery = fixture.receive("orders", json!({})).await.remove(0);
    for (field, value) in [
        ("workflow_id", "order-17"),
        ("message_id", "m-1"),
        ("subject", "paid"),
        ("correlation_id", "c-1"),
        ("reply_to", "answers"),
        ("content_type", "application/json"),
    ] {
        assert_eq!(delivery[field], value, "{field}");
    }
    assert_eq!((&delivery["position"], &delivery["body"]["cents"]), (&json!(1), &json!(1999)));
    assert_eq!(delivery["properties"]["tenant"], "blue");
    assert!(delivery["properties"]["traceparent"].as_str().unwrap().starts_with("00-4bf9"));
    assert!(delivery["expires_at"].is_string());
}

#[tokio::test]
async fn a_cloud_event_finds_its_workflow_and_place() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::by_position()).await;
    let event = [
        ("ce-specversion", "1.0"),
        ("ce-id", "e-1"),
        ("ce-type", "com.shop.paid"),
        ("ce-source", "/shop"),
        ("ce-partitionkey", "order-17"),
        ("ce-sequence", "1"),
    ];
    assert_eq!(fixture.call("POST", MESSAGES, &event, "x").await.status, 201);
    let delivery = fixture.receive("orders", json!({})).await.remove(0);
    assert_eq!((&delivery["workflow_id"], &delivery["position"]), (&json!("order-17"), &json!(1)));
    assert_eq!((&delivery["message_id"], &delivery["subject"]), (&json!("e-1"), &json!("com.shop.paid")));
    assert_eq!(delivery["properties"]["ce-source"], "/shop");
}

#[tokio::test]
async fn a_message_without_what_its_definition_reads_is_refused_by_name() {
    let fixture = Fixture::open().await;
    fixture.create("by-body", QueueOptions::by_position()).await;
    let path = "/v1/queues/by-body/messages";
    let sent = fixture.call("POST", path, &[], r#"{"order":"a","version":1}"#).await;
    assert_eq!(sent.status, 201);
    let refused = fixture.call("POST", path, &[], r#"{"order":"a"}"#).await;
    assert_eq!((refused.status.as_u16(), refused.json()["field"].as_str()), (422, Some("/version")));
    let refused = fixture.call("POST", path, &[("seriatim-position", "x")], r#"{"order":"a"}"#).await;
    assert_eq!(refused.json()["field"], "seriatim_position");
}

#[tokio::test]
async fn a_packed_body_is_refused_and_says_what_to_do() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    assert_eq!(fixture.put("/v1/topics/prices", json!({})).await.status, 201);
    assert_eq!(fixture.put("/v1/topics/prices/subscriptions/all", json!({})).await.status, 201);
    let state = "/v1/queues/orders/workflow/state?id=w";
    for (method, path) in [("POST", MESSAGES), ("POST", "/v1/topics/prices/messages"), ("PUT", state)] {
        for encoding in ["gzip", "identity, br", "X-Zip"] {
            let refused = fixture.call(method, path, &[("content-encoding", encoding)], "x").await;
            assert_eq!((refused.status.as_u16(), refused.code()), (415, "unsupported_media_type".to_owned()));
            let detail = refused.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains("leave Content-Encoding out"), "{path} {encoding}: {detail}");
        }
        let plain = fixture.call(method, path, &[("content-encoding", "Identity")], "x").await;
        assert!(plain.status.is_success(), "{path}: {plain:?}");
    }
    assert_eq!(fixture.receive("orders", json!({ "max": 10 })).await.len(), 1);
}

#[tokio::test]
async fn a_message_that_was_sent_before_is_told_so() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::by_position()).await;
    let send = async |position: &'static str, body: &'static str| {
        let headers = [("seriatim-workflow-id", "w"), ("seriatim-position", position)];
        fixture.call("POST", MESSAGES, &headers, body).await
    };
    let first = send("1", "a").await.json()["sequence_number"].clone();
    let again = send("1", "a").await;
    assert_eq!((again.status.as_u16(), &again.json()["sequence_number"]), (200, &first));
    assert_eq!(again.json()["status"], "duplicate");
    let taken = send("1", "b").await;
    assert_eq!((taken.status.as_u16(), taken.code()), (409, "place_taken".to_owned()));
    let mismatch = fixture.call("POST", MESSAGES, &[("seriatim-workflow-id", "w")], "c").await;
    assert_eq!((mismatch.status.as_u16(), mismatch.code()), (422, "place_mismatch".to_owned()));
}

#[tokio::test]
async fn a_scheduled_message_can_be_cancelled_once() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let at = [("seriatim-schedule-at", "2099-01-01T00:00:00Z")];
    let number = fixture.call("POST", MESSAGES, &at, "later").await.json()["sequence_number"].clone();
    assert!(fixture.receive("orders", json!({})).await.is_empty());
    let path = format!("{MESSAGES}/{number}");
    assert_eq!(fixture.get(&path).await.json()["status"], "scheduled");
    assert_eq!(fixture.delete(&path).await.status, 204);
    assert_eq!(fixture.delete(&path).await.code(), "not_scheduled");
    assert_eq!(fixture.get(&path).await.code(), "message_not_found");
    assert_eq!(fixture.get(&format!("{MESSAGES}/x")).await.json()["field"], "number");
}

#[tokio::test]
async fn a_scheduled_message_comes_at_another_instant_and_its_place_is_given_back_or_void() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::by_position()).await;
    let place = async |position: &'static str, at: &[(&'static str, &'static str)]| {
        let headers = [&[("seriatim-workflow-id", "w"), ("seriatim-position", position)], at].concat();
        fixture.call("POST", MESSAGES, &headers, position).await.json()["sequence_number"].clone()
    };
    let at = [("seriatim-schedule-at", "2099-01-01T00:00:00Z")];
    let (first, second) = (place("1", &at).await, place("2", &at).await);
    place("3", &[]).await;
    let reschedule = format!("{MESSAGES}/{first}/reschedule");
    let later = json!({ "at": "2098-01-01T00:00:00Z" });
    assert_eq!(fixture.post(&reschedule, later.clone()).await.status, 204);
    let shown = fixture.get(&format!("{MESSAGES}/{first}")).await.json();
    assert_eq!(
        (&shown["status"], &shown["until"]),
        (&json!("scheduled"), &json!("2098-01-01T00:00:00.000Z"))
    );
    assert_eq!(fixture.delete(&format!("{MESSAGES}/{second}?void=true")).await.status, 204);
    assert_eq!(fixture.delete(&format!("{MESSAGES}/{first}")).await.status, 204);
    assert_eq!(fixture.post(&reschedule, later).await.code(), "not_scheduled");
    assert!(fixture.receive("orders", json!({})).await.is_empty(), "position 1 is missing again");
    let again = place("1", &[]).await;
    assert!(again.as_u64() > first.as_u64());
    assert_eq!(fixture.receive("orders", json!({})).await.len(), 1);
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_back() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions { messages_max: 1, ..QueueOptions::default() }).await;
    assert_eq!(fixture.call("POST", MESSAGES, &[], "1").await.status, 201);
    let full = fixture.call("POST", MESSAGES, &[], "2").await;
    assert_eq!((full.status.as_u16(), full.code()), (429, "queue_full".to_owned()));
    assert_eq!(full.headers["retry-after"], "1");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions { body_bytes_max: 10, ..QueueOptions::default() }).await;
    let large = fixture.call("POST", MESSAGES, &[], Bytes::from(vec![b'x'; 11])).await;
    assert_eq!((large.status.as_u16(), large.code()), (413, "body_too_large".to_owned()));

    let mut wire = Wire::open(fixture.address).await;
    let head =
        "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    wire.say(head).await;
    assert!(wire.read_until("\r\n").await.contains("413"), "not one byte of the body has come");
}

#[tokio::test]
async fn a_body_larger_than_its_queue_takes_is_refused_before_it_is_read_or_cut_where_it_is_too_large() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let begun = "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\n";
    let mut wire = Wire::open(fixture.address).await;
    wire.say(&format!("{begun}content-length: 60000000\r\n\r\n")).await;
    assert!(wire.read_until("\r\n").await.contains("413"), "not one byte of the body has come");
    let mut wire = Wire::open(fixture.address).await;
    let (size, piece) = (limits::BODY_BYTES_MAX / 4, "x".repeat(limits::BODY_BYTES_MAX / 4));
    wire.say(&format!("{begun}transfer-encoding: chunked\r\n\r\n")).await;
    for _ in 0..5 {
        wire.say(&format!("{size:x}\r\n{piece}\r\n")).await;
    }
    assert!(wire.read_until("\r\n").await.contains("413"), "the last chunk has not come");
    let missing = fixture.call("POST", "/v1/queues/nobody/messages", &[], "x".repeat(100_000)).await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn a_request_that_is_repeated_with_its_key_is_answered_and_not_done_again() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let key = ("idempotency-key", "k-1");
    let first = fixture.call("POST", MESSAGES, &[key], "x").await;
    let again = fixture.call("POST", MESSAGES, &[key, ("traceparent", "another trace")], "x").await;
    assert_eq!(first.json()["sequence_number"], again.json()["sequence_number"]);
    for (headers, body) in [(&[key][..], "y"), (&[key, ("seriatim-subject", "s")], "x")] {
        let other = fixture.call("POST", MESSAGES, headers, body).await;
        assert_eq!((other.status.as_u16(), other.code()), (422, "key_reused".to_owned()));
    }
    assert_eq!(fixture.receive("orders", json!({ "max": 10 })).await.len(), 1);
}

#[tokio::test]
async fn a_request_with_two_keys_is_refused() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    assert_eq!(fixture.put("/v1/topics/prices", json!({})).await.status, 201);
    let keys = [("idempotency-key", "k-1"), ("idempotency-key", "k-2")];
    for path in [MESSAGES, "/v1/topics/prices/messages"] {
        let refused = fixture.call("POST", path, &keys, "x").await;
        assert_eq!(
            (refused.code().as_str(), &refused.json()["field"]),
            ("misuse", &json!("idempotency_key"))
        );
    }
    assert!(fixture.receive("orders", json!({})).await.is_empty());
}

#[tokio::test]
async fn lines_are_the_same_with_less_of_their_time_left() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let headers = [("idempotency-key", "k-1"), ("content-type", "application/x-ndjson")];
    let atomic = format!("{MESSAGES}?atomic=true");
    let send = async |time_to_live: &str, body: &str| {
        let line = format!("{{\"message_id\":\"m\",\"time_to_live\":\"{time_to_live}\",\"body\":{body}}}\n");
        fixture.call("POST", &atomic, &headers, line).await
    };
    let first = send("60s", "{\"a\": 1}").await;
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(send("59.4s", "{\"a\": 1}").await.body, first.body);
    assert_eq!(send("60s", "{\"a\":1}").await.code(), "key_reused", "bodies are kept byte for byte");
    let forever =
        fixture.call("POST", &atomic, &headers, "{\"message_id\":\"m\",\"body\":{\"a\": 1}}\n").await;
    assert_eq!(forever.code(), "key_reused");
    assert_eq!(fixture.receive("orders", json!({ "max": 10 })).await.len(), 1);
}

#[tokio::test]
async fn a_batch_is_repeatable_only_as_a_whole() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let headers = [("idempotency-key", "k-1"), ("content-type", "application/x-ndjson")];
    let atomic = format!("{MESSAGES}?atomic=true");
    let first = fixture.call("POST", &atomic, &headers, "{}\n{}\n").await;
    assert_eq!(first.status, 201);
    assert_eq!(fixture.call("POST", &atomic, &headers, "{}\n{}\n").await.body, first.body);
    assert_eq!(fixture.call("POST", &atomic, &headers, "{}\n").await.code(), "key_reused");
    assert_eq!(fixture.call("POST", MESSAGES, &headers, "{}").await.json()["field"], "idempotency_key");
    assert_eq!(fixture.receive("orders", json!({ "max": 10 })).await.len(), 2);
}
