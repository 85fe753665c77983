//! Settling deliveries.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::message::Message;
use crate::queue::QueueOptions;
use crate::server::tests::fixture::Answered;
use crate::server::tests::fixture::Fixture;

async fn settle(fixture: &Fixture, delivery: &Value, verb: &str, request: Value) -> Answered {
    let (queue, id) = (delivery["queue"].as_str().unwrap(), delivery["delivery"].as_str().unwrap());
    fixture.post(&format!("/v1/queues/{queue}/deliveries/{id}/{verb}"), request).await
}

async fn status_of(fixture: &Fixture, delivery: &Value) -> Value {
    let (queue, number) = (delivery["queue"].as_str().unwrap(), &delivery["sequence_number"]);
    fixture.get(&format!("/v1/queues/{queue}/messages/{number}")).await.json()
}

/// A queue with messages of workflows of their own.
async fn stocked(fixture: &Fixture, name: &str, options: QueueOptions, workflows: &[&str]) -> Vec<Value> {
    let queue = fixture.create(name, options).await;
    for workflow in workflows {
        queue.send(Message::new("x").workflow(*workflow)).await.unwrap();
    }
    fixture.receive(name, json!({ "max": 100 })).await
}

#[tokio::test]
async fn a_delivery_whose_lock_ran_out_cannot_be_settled() {
    let fixture = Fixture::open().await;
    let deliveries = stocked(&fixture, "orders", QueueOptions::default(), &["a"]).await;
    fixture.clock.advance(Duration::from_secs(31));
    for verb in ["complete", "abandon", "defer", "release", "renew"] {
        let lost = settle(&fixture, &deliveries[0], verb, json!({})).await;
        assert_eq!((lost.status.as_u16(), lost.code()), (409, "lock_lost".to_owned()), "{verb}");
    }
}

#[tokio::test]
async fn a_renewed_lock_lasts_longer() {
    let fixture = Fixture::open().await;
    let deliveries = stocked(&fixture, "orders", QueueOptions::default(), &["a"]).await;
    fixture.clock.advance(Duration::from_secs(20));
    let renewed = settle(&fixture, &deliveries[0], "renew", json!({})).await.json();
    assert!(renewed["locked_until"].as_str() > deliveries[0]["locked_until"].as_str());
    assert_eq!((&deliveries[0]["lock_ms"], &renewed["lock_ms"]), (&json!(30_000), &json!(30_000)));
    fixture.clock.advance(Duration::from_secs(20));
    assert_eq!(settle(&fixture, &deliveries[0], "complete", json!({})).await.status, 204);
}

#[tokio::test]
async fn a_failed_delivery_is_tried_again_when_it_says_or_its_queue_does() {
    let fixture = Fixture::open().await;
    let deliveries = stocked(&fixture, "delays", QueueOptions::default(), &["a", "b", "c"]).await;
    let properties = json!({ "hint": "busy" });
    let request = json!({ "retry_after": "5m", "reason": "the bank is closed", "properties": properties });
    assert_eq!(settle(&fixture, &deliveries[0], "abandon", request).await.status, 204);
    let at = json!({ "retry_at": "2099-01-01T00:00:00Z" });
    assert_eq!(settle(&fixture, &deliveries[1], "abandon", at).await.status, 204);
    assert_eq!(settle(&fixture, &deliveries[2], "abandon", json!({})).await.status, 204);

    let first = status_of(&fixture, &deliveries[0]).await;
    assert_eq!(
        (&first["status"], &first["attempts"][0]["reason"]),
        (&json!("retry"), &json!("the bank is closed"))
    );
    assert_eq!(first["properties"]["hint"], "busy");
    assert_eq!(status_of(&fixture, &deliveries[1]).await["until"], "2099-01-01T00:00:00.000Z");
    // The queue's definition says a minute for each hand-out.
    fixture.clock.advance(Duration::from_secs(59));
    assert!(fixture.receive("delays", json!({ "max": 9 })).await.is_empty());
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.receive("delays", json!({ "max": 9 })).await[0]["workflow_id"], "c");

    let both = json!({ "retry_after": "1s", "retry_at": 1 });
    assert_eq!(settle(&fixture, &deliveries[0], "abandon", both).await.json()["field"], "retry_at");
}

#[tokio::test]
async fn a_delivery_set_aside_for_no_said_time_comes_back_when_its_definition_says() {
    let fixture = Fixture::open().await;
    let deliveries = stocked(&fixture, "delays", QueueOptions::default(), &["a"]).await;
    assert_eq!(settle(&fixture, &deliveries[0], "defer", json!({})).await.status, 204);
    // Who did not hear the answer asks again a moment later.
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(settle(&fixture, &deliveries[0], "defer", json!({})).await.status, 204);
    let message = status_of(&fixture, &deliveries[0]).await;
    assert_eq!(message["status"], "by_consumer");
    assert!(message["until"].is_string(), "{message}");
}

#[tokio::test]
async fn a_delivery_is_set_aside_moved_aside_or_given_back() {
    let fixture = Fixture::open().await;
    let deliveries = stocked(&fixture, "orders", QueueOptions::default(), &["a", "b", "c"]).await;
    let until = json!({ "until": "2099-01-01T00:00:00Z" });
    assert_eq!(settle(&fixture, &deliveries[0], "defer", until).await.status, 204);
    assert_eq!(status_of(&fixture, &deliveries[0]).await["status"], "by_consumer");
    assert_eq!(settle(&fixture, &deliveries[1], "dead_letter", json!({})).await.json()["field"], "reason");
    let reason = json!({ "reason": "invalid", "description": "no address" });
    assert_eq!(settle(&fixture, &deliveries[1], "dead_letter", reason).await.status, 204);
    let dead_letter = status_of(&fixture, &deliveries[1]).await;
    assert_eq!(
        (&dead_letter["status"], &dead_letter["dead_letter"]["reason"]),
        (&json!("dead_lettered"), &json!("invalid"))
    );
    assert_eq!(settle(&fixture, &deliveries[2], "release", json!({})).await.status, 204);
    assert_eq!(status_of(&fixture, &deliveries[2]).await["delivery_count"], 0);
    assert_eq!(settle(&fixture, &deliveries[2], "bury", json!({})).await.code(), "route_not_found");
}

#[tokio::test]
async fn a_completion_sets_the_state_and_sends_in_one_transaction() {
    let fixture = Fixture::open().await;
    fixture.create("invoices", QueueOptions { body_bytes_max: 4, ..QueueOptions::default() }).await;
    let deliveries = stocked(&fixture, "orders", QueueOptions::default(), &["a"]).await;
    let send =
        |text: &str| json!({ "state": { "n": 1 }, "send": [{ "queue": "invoices", "body_text": text }] });
    let refused = settle(&fixture, &deliveries[0], "complete", send("too long")).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (413, "body_too_large".to_owned()));
    let nowhere = json!({ "send": [{ "queue": "nowhere" }] });
    assert_eq!(settle(&fixture, &deliveries[0], "complete", nowhere).await.code(), "queue_not_found");
    assert_eq!(
        settle(&fixture, &deliveries[0], "complete", json!({ "send": [{}] })).await.json()["field"],
        "send"
    );

    let done = settle(&fixture, &deliveries[0], "complete", send("ok")).await;
    assert_eq!((done.status.as_u16(), &done.json()["receipts"][0]["status"]), (200, &json!("accepted")));
    assert_eq!(fixture.receive("invoices", json!({})).await[0]["body_text"], "ok");
    assert_eq!(fixture.get("/v1/queues/orders/workflow/state?id=a").await.json()["n"], 1);
}

#[tokio::test]
async fn many_are_completed_each_judged_for_itself() {
    let fixture = Fixture::open().await;
    let deliveries = stocked(&fixture, "orders", QueueOptions::default(), &["a", "b", "c"]).await;
    assert_eq!(settle(&fixture, &deliveries[1], "release", json!({})).await.status, 204);
    let mut ids: Vec<Value> = deliveries.iter().map(|delivery| delivery["delivery"].clone()).collect();
    ids.push(json!("nonsense"));
    let described = fixture.post("/v1/queues/orders/complete", json!({ "deliveries": ids })).await.json();
    assert_eq!(described["completed"], 2);
    let codes: Vec<&str> = described["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["error"]["code"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(codes, ["-", "delivery_settled", "-", "misuse"]);
}

#[tokio::test]
async fn a_run_is_settled_from_its_first_on() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    for body in ["1", "2", "3", "4"] {
        queue.send(Message::new(body).workflow("w")).await.unwrap();
    }
    let run = fixture.post("/v1/queues/orders/receive", json!({ "max": 9, "run": true })).await.json();
    let path = format!("/v1/queues/orders/runs/{}", run["run"].as_str().unwrap());
    assert_eq!(run["deliveries"][3]["lock_ms"], 30_000);
    assert_eq!(fixture.post(&format!("{path}/renew"), json!({})).await.json()["lock_ms"], 30_000);
    let next = json!({ "verb": "dead_letter", "reason": "invalid" });
    let request = json!({ "completed": 2, "state": "half", "next": next });
    assert_eq!(fixture.post(&format!("{path}/settle"), request.clone()).await.status, 204);
    assert_eq!(fixture.post(&format!("{path}/settle"), request).await.status, 204, "the same again");
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.completed, counts.dead_lettered, counts.ready), (2, 1, 1));
    assert_eq!(fixture.get("/v1/queues/orders/workflow/state?id=w").await.body, "\"half\"");
    let again = fixture.post(&format!("{path}/settle"), json!({ "completed": 1 })).await;
    assert_eq!((again.status.as_u16(), again.code()), (409, "delivery_settled".to_owned()));
    assert_eq!(again.json()["detail"], "cannot settle: the delivery is settled already (it was completed)");
    let rest = fixture.receive("orders", json!({})).await;
    assert_eq!(
        (&rest[0]["body_text"], &rest[0]["delivery_count"]),
        (&json!("4"), &json!(1)),
        "given back uncounted"
    );
}

#[tokio::test]
async fn a_failed_message_of_a_run_is_tried_again_after_the_delay_its_definition_says() {
    let fixture = Fixture::open().await;
    for (name, counts) in [("delays", [(Some(1), 1), (Some(2), 2)]), ("delay", [(None, 1), (None, 1)])] {
        fail_runs_of(&fixture, name, counts).await;
    }
}

/// Lets the message of a queue fail as often, with what is said of its count; it comes again after so many minutes.
async fn fail_runs_of(fixture: &Fixture, name: &str, counts: [(Option<u32>, u64); 2]) {
    let queue = fixture.create(name, QueueOptions::default()).await;
    queue.send(Message::new("x").workflow("w")).await.unwrap();
    let receive =
        async || fixture.post(&format!("/v1/queues/{name}/receive"), json!({ "run": true })).await.json();
    for (delivery_count, minutes) in counts {
        let run = receive().await;
        let path = format!("/v1/queues/{name}/runs/{}/settle", run["run"].as_str().unwrap());
        let mut request = json!({ "completed": 0, "next": { "verb": "abandon" } });
        if let Some(delivery_count) = delivery_count {
            assert_eq!(run["deliveries"][0]["delivery_count"], delivery_count);
            request["next_delivery_count"] = json!(delivery_count);
        }
        assert_eq!(fixture.post(&path, request).await.status, 204);
        fixture.clock.advance(Duration::from_secs(60 * minutes - 1));
        assert_eq!(receive().await["deliveries"], json!([]), "{minutes}");
        fixture.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(receive().await["deliveries"][0]["delivery_count"], 3);
}

#[tokio::test]
async fn nothing_is_sent_or_set_along_with_a_run_of_which_nothing_is_completed() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    queue.send(Message::new("x").workflow("w")).await.unwrap();
    let run = fixture.post("/v1/queues/orders/receive", json!({ "run": true })).await.json();
    let path = format!("/v1/queues/orders/runs/{}/settle", run["run"].as_str().unwrap());
    for (field, along) in [
        ("state", json!({ "completed": 0, "state": 1 })),
        ("state", json!({ "completed": 0, "clear_state": true, "next": { "verb": "abandon" } })),
        ("sends", json!({ "completed": 0, "send": [{ "queue": "orders", "workflow_id": "w" }] })),
    ] {
        let refused = fixture.post(&path, along).await;
        assert_eq!(refused.status, 422);
        assert_eq!(refused.json()["field"], field);
    }
    assert_eq!(fixture.post(&path, json!({ "completed": 1, "state": 1 })).await.status, 204);
}
