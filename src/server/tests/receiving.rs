//! Receiving and waiting.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::engine::Queue;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::server::tests::fixture::Fixture;
use crate::server::tests::wire::Wire;

#[tokio::test]
async fn a_receiver_that_waits_is_answered_when_a_message_comes() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let waiting = fixture.receive("orders", json!({ "wait": "60s" }));
    let sending = async {
        // The manual clock stands still: only the message can end the wait.
        queue.send(Message::new("hello")).await.unwrap();
    };
    let (deliveries, ()) = tokio::join!(waiting, sending);
    assert_eq!(deliveries[0]["body_text"], "hello");
}

#[tokio::test]
async fn a_receiver_that_asks_for_raw_bodies_has_each_byte_of_a_json_body() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let text = "{\n \"a\": 1.10, \"a\": 9007199254740993\n}";
    queue.send(Message::new(text).content_type("application/json")).await.unwrap();
    let deliveries = fixture.receive("orders", json!({ "raw": true })).await;
    assert_eq!((&deliveries[0]["body_text"], deliveries[0].get("body")), (&json!(text), None));
    let path = format!("/v1/queues/orders/deliveries/{}/defer", deliveries[0]["delivery"].as_str().unwrap());
    assert_eq!(fixture.post(&path, json!({})).await.status, 204);
    let asked = json!({ "sequence_numbers": [deliveries[0]["sequence_number"]], "raw": true });
    let fetched = fixture.post("/v1/queues/orders/receive_deferred", asked).await.json();
    assert_eq!(fetched["deliveries"][0]["body_text"], text);
}

#[tokio::test]
async fn who_looks_at_raw_bodies_sees_each_byte_of_a_json_body() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let text = "{\n \"a\": 1.10, \"a\": 9007199254740993\n}";
    queue.send(Message::new(text).content_type("application/json").subject("s")).await.unwrap();
    let messages = "/v1/queues/orders/messages";
    let plain = fixture.get(&format!("{messages}/1")).await.json();
    assert!(plain["body"].is_object() && plain.get("body_text").is_none(), "{plain}");
    let shown = fixture.get(&format!("{messages}/1?raw=true")).await.json();
    assert_eq!((&shown["body_text"], shown.get("body")), (&json!(text), None));
    for path in ["?raw=true", "?raw=true&subject=s"] {
        let page = fixture.get(&format!("{messages}{path}")).await.json();
        assert_eq!(page["messages"][0]["body_text"], text, "{path}");
    }
}

#[tokio::test]
async fn a_wait_ends_in_time_with_nothing() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let mut waiting = std::pin::pin!(fixture.receive("orders", json!({ "wait": "10s" })));
    let deliveries = loop {
        tokio::select! {
            deliveries = &mut waiting => break deliveries,
            () = tokio::task::yield_now() => fixture.clock.advance(Duration::from_secs(1)),
        }
    };
    assert!(deliveries.is_empty());
}

#[tokio::test]
async fn a_server_that_stops_tells_who_waits_that_there_is_nothing() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let mut wire = Wire::open(fixture.address).await;
    let head = "POST /v1/queues/orders/receive HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
                content-length: 14\r\n\r\n";
    wire.say(head).await;
    wire.read_until("100 Continue\r\n\r\n").await;
    wire.say("{\"wait\":\"60s\"}").await;
    fixture.stopping.cancel();
    assert!(wire.end().await.ends_with("{\"deliveries\":[]}"));
    fixture.ended.await.unwrap();
    let gone = tokio::net::TcpStream::connect(fixture.address).await;
    assert!(gone.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn one_message_of_each_workflow_is_handed_out_and_a_run_of_one() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    for workflow in ["a", "b"] {
        for position in 1..=3 {
            queue.send(Message::new("x").workflow(workflow).position(position)).await.unwrap();
        }
    }
    let deliveries = fixture.receive("orders", json!({ "max": 10 })).await;
    assert_eq!(deliveries.len(), 2);
    assert!(deliveries.iter().all(|delivery| delivery["position"] == 1));
    for delivery in &deliveries {
        let path = format!("/v1/queues/orders/deliveries/{}/release", delivery["delivery"].as_str().unwrap());
        assert_eq!(fixture.post(&path, json!({})).await.status, 204);
    }
    let run = fixture.post("/v1/queues/orders/receive", json!({ "max": 10, "run": true })).await.json();
    let positions: Vec<_> =
        run["deliveries"].as_array().unwrap().iter().map(|one| &one["position"]).collect();
    assert_eq!(positions, [1, 2, 3]);
    assert_eq!(run["run"], run["deliveries"][0]["lock_token"]);
    assert_eq!(
        run["deliveries"][1].get("delivery"),
        None,
        "none of a run is settled before those ahead of it"
    );
    assert_eq!(run["deliveries"][0]["delivery_count"], 1, "a release is not counted");
}

#[tokio::test]
async fn what_was_set_aside_is_fetched_by_number_with_its_state() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    queue.send(Message::new("x").workflow("a")).await.unwrap();
    queue.workflow("a").unwrap().set_state(Some("{\"n\":1}".into())).await.unwrap();
    let delivery = fixture.receive("orders", json!({ "state": true })).await.remove(0);
    assert_eq!(delivery["state"]["n"], 1);
    let path = format!("/v1/queues/orders/deliveries/{}/defer", delivery["delivery"].as_str().unwrap());
    assert_eq!(fixture.post(&path, json!({})).await.status, 204);

    let asked = json!({ "sequence_numbers": [delivery["sequence_number"]], "state": true });
    let fetched = fixture.post("/v1/queues/orders/receive_deferred", asked.clone()).await.json();
    assert_eq!(fetched["deliveries"][0]["state"]["n"], 1);
    let again = fixture.post("/v1/queues/orders/receive_deferred", asked).await;
    assert_eq!(again.status, 404, "{again:?}");
}

#[tokio::test]
async fn a_request_that_cannot_be_read_says_what_is_wrong() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let path = "/v1/queues/orders/receive";
    let json_type = [("content-type", "application/json")];
    let malformed = fixture.call("POST", path, &json_type, "{\"max\":").await;
    assert_eq!((malformed.status.as_u16(), malformed.code()), (400, "malformed".to_owned()));
    let unknown = fixture.post(path, json!({ "maximum": 1 })).await;
    assert_eq!((unknown.status.as_u16(), unknown.json()["field"].as_str()), (422, Some("maximum")));
    assert_eq!(fixture.post(path, json!({ "max": "ten" })).await.code(), "misuse");
    assert_eq!(fixture.post(path, json!({ "max": 0 })).await.json()["field"], "max");
    let form = fixture.call("POST", path, &[("content-type", "text/plain")], "max=1").await;
    assert_eq!((form.status.as_u16(), form.code()), (415, "unsupported_media_type".to_owned()));
    assert_eq!(fixture.call("POST", path, &[], "").await.status, 200, "an empty body asks for one message");
    assert_eq!(fixture.post("/v1/queues/nowhere/receive", json!({})).await.code(), "queue_not_found");
    assert_eq!(fixture.post("/v1/queues/a%2Fb/receive", json!({})).await.json()["field"], "queue_name");
}

#[tokio::test]
async fn dead_letters_are_received_and_settled_as_messages_are() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    queue.send(Message::new("x").workflow("w")).await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("bad", "why").await.unwrap();
    let deliveries = fixture.receive("orders", json!({ "dead_letters": true })).await;
    assert_eq!(deliveries[0]["dead_letter"]["reason"], "bad");
    assert!(fixture.receive("orders", json!({ "dead_letters": true, "max": 9 })).await.is_empty());
    let seen = fixture.get("/v1/queues/orders/dead_letters").await.json();
    assert_eq!(seen["dead_letters"][0]["locked_until"], deliveries[0]["locked_until"]);
    let path = |verb: &str, delivery: &str| format!("/v1/queues/orders/deliveries/{delivery}/{verb}");
    let delivery = deliveries[0]["delivery"].as_str().unwrap();
    let again = fixture.post(&path("dead_letter", delivery), json!({ "reason": "r" })).await;
    assert_eq!((again.status.as_u16(), &again.json()["code"]), (409, &json!("already_dead_lettered")));
    assert_eq!(fixture.post(&path("defer", delivery), json!({})).await.status, 204);
    let asked = json!({ "sequence_numbers": [1], "dead_letters": true });
    let fetched = fixture.post("/v1/queues/orders/receive_deferred", asked).await.json();
    assert_eq!(fetched["deliveries"][0]["dead_letter"]["deferred"], true);
    let delivery = fetched["deliveries"][0]["delivery"].as_str().unwrap();
    assert_eq!(fixture.post(&path("complete", delivery), json!({})).await.status, 204);
    assert_eq!(queue.view().await.unwrap().counts.dead_lettered, 0);
    let both = fixture.post("/v1/queues/orders/receive", json!({ "dead_letters": true, "run": true })).await;
    assert_eq!((both.status.as_u16(), &both.json()["field"]), (422, &json!("run")));
}

/// Messages of so many workflows, each with the largest state there can be.
async fn send_with_large_states(queue: &Queue, workflows: usize) {
    let state = Bytes::from(format!("\"{}\"", "s".repeat(limits::STATE_BYTES_MAX - 2)));
    for workflow in 0..workflows {
        let id = format!("w-{workflow:02}");
        queue.send(Message::new("x").workflow(&id)).await.unwrap();
        queue.workflow(&id).unwrap().set_state(Some(state.clone())).await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_with_states_is_bounded_and_what_had_no_room_comes_later_uncounted() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    send_with_large_states(&queue, 64).await;
    let (mut seen, asked) = (Vec::new(), json!({ "max": 64, "state": true }));
    while seen.len() < 64 {
        let answered = fixture.post("/v1/queues/orders/receive", asked.clone()).await;
        assert!(answered.body.len() < 20 * 1024 * 1024, "{} bytes", answered.body.len());
        let deliveries = answered.json()["deliveries"].as_array().unwrap().clone();
        assert!(!deliveries.is_empty(), "{} of 64 came", seen.len());
        assert!(deliveries.iter().all(|one| one["delivery_count"] == 1 && one["state"].is_string()));
        seen.extend(deliveries.iter().map(|one| one["workflow_id"].as_str().unwrap().to_owned()));
    }
    assert!(seen.is_sorted(), "{seen:?}");
}

#[tokio::test]
async fn what_is_fetched_by_number_with_states_is_all_or_refused() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    send_with_large_states(&queue, 20).await;
    let mut numbers = Vec::new();
    for mut delivery in queue.receive_many(20, Duration::ZERO).await.unwrap() {
        numbers.push(delivery.sequence_number().get());
        delivery.defer().await.unwrap();
    }
    let fetch = async |numbers: &[u64]| {
        let asked = json!({ "sequence_numbers": numbers, "state": true });
        fixture.post("/v1/queues/orders/receive_deferred", asked).await
    };
    assert_eq!(fetch(&numbers).await.json()["field"], "sequence_numbers");
    let fetched = fetch(&numbers[..16]).await.json();
    assert_eq!(fetched["deliveries"].as_array().map(Vec::len), Some(16), "what was refused is not locked");
}

#[tokio::test]
async fn the_state_of_a_run_is_shown_once() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    for _ in 0..3 {
        queue.send(Message::new("x").workflow("a")).await.unwrap();
    }
    queue.workflow("a").unwrap().set_state(Some("7".into())).await.unwrap();
    let asked = json!({ "max": 10, "run": true, "state": true });
    let run = fixture.post("/v1/queues/orders/receive", asked).await.json();
    let states: Vec<_> = run["deliveries"].as_array().unwrap().iter().map(|one| one.get("state")).collect();
    assert_eq!(states, [Some(&json!(7)), None, None]);
}
