//! Topics over HTTP.

use serde_json::json;

use crate::queue::QueueOptions;
use crate::server::send::LINES;
use crate::server::tests::fixture::Fixture;

#[tokio::test]
async fn a_message_goes_to_the_subscriptions_whose_rules_match() {
    let fixture = Fixture::open().await;
    let put = async |path: &str, body| fixture.put(&format!("/v1/topics/orders{path}"), body).await;
    assert_eq!(put("", json!({})).await.status, 201);
    assert_eq!(put("", json!({})).await.status, 200, "it is there");
    let all = json!({ "options": { "order": "arrival" } });
    assert_eq!(put("/subscriptions/all", all.clone()).await.status, 201);
    assert_eq!(put("/subscriptions/all", all).await.status, 200);
    let correlation = json!({ "subject": "paid", "properties": { "tenant": 17 } });
    let rules = json!({ "rules": [
        { "name": "a", "correlation": correlation, "action": "SET seen = TRUE" },
        { "name": "b", "filter": "tenant = @other", "parameters": { "@other": 18 } },
    ] });
    assert_eq!(put("/subscriptions/some", rules.clone()).await.status, 201);
    let shown = fixture.get("/v1/topics").await.json();
    assert_eq!(shown["topics"][0]["subscriptions"][1]["queue"], "orders/subscriptions/some");
    assert_eq!(shown["topics"][0]["subscriptions"][1]["rules"], rules["rules"]);

    let send = async |content_type, body: &'static str| {
        let headers = [("content-type", content_type), ("seriatim-subject", "paid")];
        let sent = fixture.call("POST", "/v1/topics/orders/messages", &headers, body).await;
        assert_eq!(sent.status, 201, "{sent:?}");
        let copies = sent.json()["copies"].as_array().unwrap().clone();
        copies.iter().map(|copy| copy["queue"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(send("text/plain", "hello").await, ["orders/subscriptions/all"]);
    let line = "{\"subject\": \"paid\", \"properties\": {\"tenant\": 17}, \"body_text\": \"x\"}\n";
    let both = ["orders/subscriptions/all", "orders/subscriptions/some"];
    assert_eq!(send("application/x-ndjson", line).await, both);
    let counts = fixture.get("/v1/queues/orders%2Fsubscriptions%2Fall").await.json()["counts"].clone();
    assert_eq!(counts["ready"], 2, "{counts}");
    assert_eq!(fixture.delete("/v1/topics/orders/subscriptions/some/rules/a").await.status, 204);
    assert_eq!(put("/subscriptions/some/rules/c", json!({ "filter": "TRUE" })).await.status, 201);
    assert_eq!(put("/subscriptions/some/rules/c", json!({})).await.code(), "rule_exists");
    assert_eq!(fixture.delete("/v1/queues/orders%2Fsubscriptions%2Fsome").await.status, 204);
    let left = fixture.get("/v1/topics/orders").await.json()["subscriptions"].as_array().unwrap().len();
    assert_eq!(left, 1, "to delete its queue ends a subscription");
    assert_eq!(fixture.delete("/v1/topics/orders").await.status, 204);
    assert_eq!(fixture.get("/v1/queues/orders%2Fsubscriptions%2Fall").await.code(), "queue_not_found");
}

#[tokio::test]
async fn a_batch_of_a_topic_is_read_as_one_of_a_queue() {
    let fixture = Fixture::open().await;
    assert_eq!(fixture.put("/v1/topics/orders", json!({})).await.status, 201);
    assert_eq!(fixture.put("/v1/queues/bills", json!({})).await.status, 201);
    for (line, code, words) in [
        ("{\"queue\": \"other\"}", "misuse", "line 2: "),
        ("[null, \"w\"]", "misuse", "line 2: the request is an array where an object is meant"),
        ("{\"position\": \"one\"}", "misuse", "line 2: "),
        ("{", "malformed", "line 2: "),
    ] {
        let lines = format!("{{}}\n\n{line}\n");
        let mut refused = Vec::new();
        for path in ["/v1/topics/orders/messages", "/v1/queues/bills/messages?atomic=true"] {
            let headers = [("content-type", LINES[0])];
            let answer = fixture.call("POST", path, &headers, lines.clone()).await;
            assert_eq!(answer.code(), code, "{path}: {answer:?}");
            let detail = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.starts_with(words), "{path}: {detail}");
            refused.push(detail);
        }
        assert!(line.contains("queue") || refused[0] == refused[1], "{refused:?}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_topic_is_told() {
    let fixture = Fixture::open().await;
    fixture.create("taken", QueueOptions::default()).await;
    assert_eq!(fixture.put("/v1/topics/taken", json!({})).await.code(), "name_is_queue");
    assert_eq!(fixture.get("/v1/topics/none").await.code(), "topic_not_found");
    assert_eq!(fixture.call("POST", "/v1/topics/none/messages", &[], "x").await.code(), "topic_not_found");
    let unknown = fixture.put("/v1/topics/t", json!({ "order": "position" })).await;
    assert_eq!((unknown.code().as_str(), &unknown.json()["field"]), ("misuse", &json!("order")));
    assert_eq!(fixture.put("/v1/topics/t", json!({})).await.status, 201);
    assert_eq!(fixture.put("/v1/queues/t", json!({})).await.code(), "name_is_topic");
    let wrong = fixture.put("/v1/topics/t/subscriptions/s", json!({ "rules": [{ "filter": "a >" }] })).await;
    assert_eq!(wrong.code(), "misuse");
    assert!(wrong.json()["detail"].as_str().unwrap().contains("at character 4"), "{wrong:?}");
    let missing = fixture.delete("/v1/topics/t/subscriptions/s/rules/r").await;
    assert_eq!(missing.code(), "subscription_not_found");
    assert_eq!(fixture.put("/v1/queues/t%2Fsubscriptions%2Fs", json!({})).await.code(), "not_subscribed");
}

#[tokio::test]
async fn a_send_to_a_topic_with_an_idempotency_key_is_done_once() {
    let fixture = Fixture::open().await;
    assert_eq!(fixture.put("/v1/topics/t", json!({})).await.status, 201);
    assert_eq!(fixture.put("/v1/topics/t/subscriptions/s", json!({})).await.status, 201);
    let send = async |key: &str, content_type: &str, subject: &str, body: &'static str| {
        let headers =
            [("idempotency-key", key), ("content-type", content_type), ("seriatim-subject", subject)];
        fixture.call("POST", "/v1/topics/t/messages", &headers, body).await
    };
    let lines = "{\"body_text\": \"x\"}\n{\"body_text\": \"y\"}\n";
    for (key, content_type, body, count) in [("a", "text/plain", "x", 1), ("b", LINES[0], lines, 2)] {
        let first = send(key, content_type, "s", body).await;
        assert_eq!(first.status, 201, "{first:?}");
        assert_eq!(first.json()["copies"].as_array().unwrap().len(), count);
        let again = send(key, content_type, "s", body).await;
        assert_eq!(again.status, 201, "{again:?}");
        assert_eq!(again.json(), first.json());
        let other = send(key, content_type, "s", "{\"body_text\": \"other\"}").await;
        assert_eq!(other.status, 422, "{other:?}");
        assert_eq!(other.code(), "key_reused");
    }
    assert_eq!(send("a", "text/plain", "other", "x").await.code(), "key_reused");
    assert_eq!(send("", "text/plain", "s", "x").await.code(), "misuse");
    let counts = fixture.get("/v1/queues/t%2Fsubscriptions%2Fs").await.json()["counts"].clone();
    assert_eq!(counts["accepted"], 3, "{counts}");
}
