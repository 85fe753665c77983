//! Connections that mean no good, or cannot do better.

use std::time::Duration;

use serde_json::json;

use crate::queue::QueueOptions;
use crate::server::tests::fixture::Fixture;
use crate::server::tests::wire::Wire;

/// A server that does not wait long.
async fn hasty_fixture() -> Fixture {
    let fixture = Fixture::open_with(|options, _| {
        options.timeouts.head = Duration::from_millis(150);
        options.timeouts.body = Duration::from_millis(150);
        options.timeouts.idle = Duration::from_millis(150);
        options.timeouts.write = Duration::from_millis(150);
    });
    let fixture = fixture.await;
    fixture.create("orders", QueueOptions::default()).await;
    fixture
}

#[tokio::test]
async fn a_head_that_does_not_end_ends_the_connection() {
    let fixture = hasty_fixture().await;
    for beginning in ["", "GET /heal", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut wire = Wire::open(fixture.address).await;
        wire.say(beginning).await;
        assert_eq!(wire.end().await, "", "{beginning:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_ended_and_one_in_use_is_not() {
    let fixture = hasty_fixture().await;
    let mut wire = Wire::open(fixture.address).await;
    for _ in 0..3 {
        wire.say("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        wire.read_until("ok\n").await;
    }
    // A request that takes longer than any timeout: its own time is not counted.
    wire.say("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    wire.read_until("listening").await;
    let queue = fixture.engine.client().queue("orders").unwrap();
    for _ in 0..3 {
        let mut other = Wire::open(fixture.address).await;
        other.say("GET /heal").await;
        other.end().await;
    }
    queue.workflow("w").unwrap().hold("stop").await.unwrap();
    wire.read_until("event: held").await;

    let mut idle = Wire::open(fixture.address).await;
    idle.say("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    idle.read_until("ok\n").await;
    assert_eq!(idle.end().await, "");
}

#[tokio::test]
async fn a_body_that_drips_is_refused() {
    let fixture = hasty_fixture().await;
    for media_type in ["text/plain", "application/x-ndjson"] {
        let mut wire = Wire::open(fixture.address).await;
        let head = format!(
            "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media_type}\r\n\
             content-length: 1000\r\n\r\n"
        );
        wire.say(&head).await;
        wire.say("  ").await;
        let answered = wire.end().await;
        assert!(answered.contains("408") && answered.contains("too_slow"), "{media_type}: {answered}");
    }
}

#[tokio::test]
async fn five_hundred_slow_connections_do_not_stop_the_others() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let mut slow = Vec::new();
    for number in 0..500 {
        let mut wire = Wire::open(fixture.address).await;
        wire.say(match number % 2 {
            0 => "POST /v1/queues/orders/mess",
            _ => "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 90\r\n\r\nx",
        })
        .await;
        slow.push(wire);
    }
    for _ in 0..50 {
        assert_eq!(fixture.call("POST", "/v1/queues/orders/messages", &[], "x").await.status, 201);
    }
    assert_eq!(fixture.receive("orders", json!({ "max": 100 })).await.len(), 50);
}

#[tokio::test]
async fn a_connection_too_many_is_told_to_come_back() {
    let fixture = Fixture::open_with(|options, _| options.connections_max = 2).await;
    let first = Wire::open(fixture.address).await;
    let mut second = Wire::open(fixture.address).await;
    second.say("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    second.read_until("ok\n").await;
    let third = Wire::open(fixture.address).await;
    assert!(third.end().await.starts_with("HTTP/1.1 503 "));
    drop(first);
    // Its place is free as soon as the server has noticed.
    loop {
        let mut next = Wire::open(fixture.address).await;
        next.say("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        if next.end().await.ends_with("ok\n") {
            break;
        }
    }
}

#[tokio::test]
async fn a_head_that_could_mean_two_things_is_refused_and_its_connection_ended() {
    let fixture = Fixture::open().await;
    let heads = [
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n\r\n",
    ];
    for head in heads {
        let mut wire = Wire::open(fixture.address).await;
        wire.say(head).await;
        let answered = wire.end().await;
        assert!(
            answered.starts_with("HTTP/1.1 400 ") && answered.contains("\"malformed\""),
            "{head:?}: {answered}"
        );
    }
}

#[tokio::test]
async fn a_body_with_two_ends_is_read_by_its_chunks_and_its_connection_ended() {
    let fixture = Fixture::open().await;
    let mut wire = Wire::open(fixture.address).await;
    let head = "POST /v1/queues/q/receive HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\
                transfer-encoding: chunked\r\n\r\n4\r\n{  }\r\n0\r\n\r\n";
    wire.say(head).await;
    // What follows could be taken for a part of the body by somebody on the way: it is never answered.
    wire.say("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let answered = wire.end().await;
    assert!(answered.starts_with("HTTP/1.1 404 ") && answered.contains("connection: close"), "{answered}");
    assert_eq!(answered.matches("HTTP/1.1 ").count(), 1, "{answered}");
}

#[tokio::test]
async fn an_address_in_the_request_line_goes_before_the_host_header() {
    let fixture = Fixture::open().await;
    for (address, host, status) in [("localhost", "example.org", 200), ("example.org", "localhost", 421)] {
        let mut wire = Wire::open(fixture.address).await;
        let head =
            format!("GET http://{address}/v1/queues HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        wire.say(&head).await;
        let answered = wire.end().await;
        assert!(answered.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?}: {answered}");
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let fixture = Fixture::open().await;
    let mut wire = Wire::open(fixture.address).await;
    let large = "x".repeat(9_000);
    wire.say(&format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {large}\r\n\r\n")).await;
    assert!(wire.end().await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn a_client_that_sends_more_than_is_taken_still_hears_why() {
    let fixture = Fixture::open().await;
    let mut wire = Wire::open(fixture.address).await;
    wire.say("POST /v1/backup HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16000000\r\n\r\n").await;
    let piece = "x".repeat(1_000_000);
    for _ in 0..16 {
        wire.say(&piece).await;
    }
    assert!(wire.end().await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test]
async fn a_client_that_takes_no_answer_is_left() {
    let fixture = hasty_fixture().await;
    let queue = fixture.engine.client().queue("orders").unwrap();
    let large = crate::message::Message::new(vec![b'x'; 900_000]);
    queue.send_batch(vec![large; 20]).await.unwrap();
    let mut wire = Wire::open(fixture.address).await;
    wire.say("GET /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    wire.read_until("HTTP/1.1 200").await;
    fixture.stopping.cancel();
    fixture.ended.await.unwrap();
}
