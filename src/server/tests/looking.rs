//! Looking: queues, messages, workflows, dead letters, what is blocked.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::clock::Timestamp;
use crate::engine::Queue;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::ExhaustedPolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::server::host::OversizeMessage;
use crate::server::host::WindowStall;
use crate::server::tests::fixture::Fixture;

async fn fail(queue: &Queue, reason: &str) {
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    delivery.abandon_after(Duration::from_secs(240), reason).await.unwrap();
}

async fn send(queue: &Queue, workflow: &str, position: u64) {
    queue.send(Message::new("x").workflow(workflow).position(position)).await.unwrap();
}

fn ids(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_queue_is_created_changed_listed_and_deleted() {
    let fixture = Fixture::open().await;
    let options = json!({ "order": "position", "position": { "first": 5 }, "delivery": { "lock": "1m" } });
    let created = fixture.put("/v1/queues/orders", options.clone()).await;
    assert_eq!(created.status, 201);
    let queue = created.json();
    assert_eq!(
        (&queue["options"]["delivery"]["lock"], &queue["options"]["position"]["first"]),
        (&json!("1m"), &json!(5))
    );
    assert_eq!((&queue["counts"]["stored"], &queue["options"]["retry"]["then"]), (&json!(0), &json!("hold")));
    assert_eq!(fixture.put("/v1/queues/orders", options).await.status, 200, "the same again changes nothing");
    let changed =
        fixture.put("/v1/queues/orders", json!({ "order": "position", "position": { "first": 5 } })).await;
    assert_eq!(
        (changed.status.as_u16(), &changed.json()["options"]["delivery"]["lock"]),
        (200, &json!("30s"))
    );

    let misuse = fixture.put("/v1/queues/q", json!({ "delivery": { "lock": "1ms" } })).await;
    assert_eq!((misuse.status.as_u16(), misuse.json()["field"].as_str()), (422, Some("lock")));
    let unknown = fixture.put("/v1/queues/q", json!({ "delivery": { "locks": "1m" } })).await;
    assert_eq!(unknown.json()["field"], "locks");

    send(&fixture.engine.client().queue("orders").unwrap(), "w", 5).await;
    assert_eq!(fixture.put("/v1/queues/orders", json!({})).await.code(), "order_in_use");
    assert_eq!(fixture.delete("/v1/queues/orders").await.status, 204);
    assert_eq!(fixture.get("/v1/queues/orders").await.code(), "queue_not_found");
    assert_eq!(fixture.delete("/v1/queues/orders").await.code(), "queue_not_found");
}

#[tokio::test]
async fn what_a_file_defines_is_not_changed_behind_its_back() {
    let fixture = Fixture::open().await;
    fixture.create("defined", QueueOptions::default()).await;
    let queue = fixture.get("/v1/queues/defined").await.json();
    assert_eq!((&queue["definition"], &queue["paused"]), (&json!("workflows/defined.toml"), &json!(false)));
    assert_eq!(fixture.put("/v1/queues/defined", json!({})).await.code(), "queue_is_defined");
    assert_eq!(fixture.delete("/v1/queues/defined").await.code(), "queue_is_defined");
}

#[tokio::test]
async fn queues_and_messages_come_in_pages() {
    let fixture = Fixture::open().await;
    for name in ["a", "b", "c"] {
        fixture.create(name, QueueOptions::default()).await;
    }
    let page = fixture.get("/v1/queues?limit=2").await.json();
    assert_eq!(
        (ids(&page["queues"], "name"), &page["after"]),
        (vec!["a".to_owned(), "b".to_owned()], &json!("b"))
    );
    let page = fixture.get("/v1/queues?limit=2&after=b").await.json();
    assert_eq!((ids(&page["queues"], "name"), page.get("after")), (vec!["c".to_owned()], None));
    assert_eq!(fixture.get("/v1/queues?limits=2").await.json()["field"], "limits");
    assert_eq!(fixture.get("/v1/queues?limit=x").await.status, 422);
    for path in
        ["queues", "queues/a/messages", "queues/a/workflows", "queues/a/dead_letters", "blocked", "audit"]
    {
        let none = fixture.get(&format!("/v1/{path}?limit=0")).await;
        assert_eq!((none.status.as_u16(), &none.json()["field"]), (422, &json!("limit")), "{path}");
    }

    let queue = fixture.engine.client().queue("a").unwrap();
    for body in ["{\"n\":1}", "2", "3"] {
        queue.send(Message::new(body).content_type("application/json")).await.unwrap();
    }
    let page = fixture.get("/v1/queues/a/messages?limit=2").await.json();
    assert_eq!(
        (&page["messages"][0]["body"]["n"], page["messages"].as_array().unwrap().len()),
        (&json!(1), 2)
    );
    let from = &page["from"];
    let page = fixture.get(&format!("/v1/queues/a/messages?from={from}")).await.json();
    assert_eq!(page["messages"][0]["body"], 3);
}

#[tokio::test]
async fn workflows_are_found_by_status_and_prefix() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    for id in ["a-1", "a-2", "b-1", "b/2 \u{e9}&x", "c-1"] {
        send(&queue, id, if id == "c-1" { 2 } else { 1 }).await;
    }
    queue.workflow("a-2").unwrap().hold("look at it").await.unwrap();
    let list = async |query: &str| {
        let page = fixture.get(&format!("/v1/queues/orders/workflows{query}")).await.json();
        (ids(&page["workflows"], "workflow_id"), page["after"].as_str().map(str::to_owned))
    };
    let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(list("?limit=2").await, (owned(&["a-1", "a-2"]), Some("a-2".to_owned())));
    assert_eq!(list("?limit=9&after=a-2").await, (owned(&["b-1", "b/2 \u{e9}&x", "c-1"]), None));
    assert_eq!(list("?prefix=b").await, (owned(&["b-1", "b/2 \u{e9}&x"]), None));
    assert_eq!(list("?status=held,waiting_for_predecessor").await, (owned(&["a-2", "c-1"]), None));
    let wrong = fixture.get("/v1/queues/orders/workflows?status=blocked,stuck").await;
    assert_eq!(wrong.json()["field"], "status");

    let one = fixture.get("/v1/queues/orders/workflow?id=b%2F2%20%C3%A9%26x").await.json();
    assert_eq!((&one["status"], &one["next_position"]), (&json!("ready"), &json!(1)));
    let held = fixture.get("/v1/queues/orders/workflow?id=a-2").await.json();
    assert_eq!((&held["hold_cause"], &held["reason"]), (&json!("operator"), &json!("look at it")));
    assert_eq!(fixture.get("/v1/queues/orders/workflow?id=z").await.code(), "workflow_not_found");
    assert_eq!(fixture.get("/v1/queues/orders/workflow").await.json()["field"], "id");
    let line = fixture.get("/v1/queues/orders/workflow/messages?id=c-1").await.json();
    assert_eq!((&line["messages"][0]["position"], &line["from"]), (&json!(2), &json!(3)));
    assert_eq!(line["messages"][0]["status"], "early");
}

#[tokio::test]
async fn a_state_is_put_got_and_cleared() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let path = "/v1/queues/orders/workflow/state?id=w";
    assert_eq!(fixture.get(path).await.code(), "state_not_found");
    assert_eq!(fixture.call("PUT", path, &[], "{\"n\":1}").await.status, 204);
    let state = fixture.get(path).await;
    assert_eq!(
        (state.headers["content-type"].to_str().unwrap(), &state.body[..]),
        ("application/json", &b"{\"n\":1}"[..])
    );
    assert_eq!(fixture.call("PUT", path, &[], vec![0xff; 3]).await.status, 204);
    assert_eq!(fixture.get(path).await.headers["content-type"], "application/octet-stream");
    let large = fixture.call("PUT", path, &[], vec![b'x'; 1024 * 1024 + 1]).await;
    assert_eq!(large.json()["field"], "state");
    assert_eq!(fixture.delete(path).await.status, 204);
    assert_eq!(fixture.get(path).await.code(), "state_not_found");
}

#[tokio::test]
async fn what_a_handler_says_is_not_taken_for_the_cause() {
    let fixture = Fixture::open().await;
    let orders = fixture.create("orders", QueueOptions::by_position()).await;
    send(&orders, "fails", 1).await;
    fail(&orders, "set aside").await;
    let blocked = fixture.get("/v1/blocked").await.json()["blocked"].clone();
    assert_eq!((&blocked[0]["cause"], &blocked[0]["last_error"]), (&json!("retry"), &json!("set aside")));
}

#[tokio::test]
async fn what_is_blocked_says_why_and_what_comes_next() {
    let fixture = Fixture::open().await;
    let orders = fixture.create("orders", QueueOptions::by_position()).await;
    let others = fixture.create("others", QueueOptions::by_position()).await;
    fixture
        .create("calm", QueueOptions::default())
        .await
        .send(Message::new("x").workflow("w"))
        .await
        .unwrap();
    send(&orders, "fails", 1).await;
    send(&orders, "fails", 2).await;
    fail(&orders, "the bank is closed").await;
    send(&orders, "gap", 3).await;
    send(&orders, "locked", 1).await;
    send(&orders, "locked", 2).await;
    let _held = orders.receive(Duration::ZERO).await.unwrap().unwrap();
    send(&others, "held", 1).await;
    others.workflow("held").unwrap().hold("look at it").await.unwrap();

    let blocked = fixture.get("/v1/blocked").await.json()["blocked"].clone();
    assert_eq!(ids(&blocked, "workflow_id"), ["fails", "gap", "held"]);
    let (fails, gap, held) = (&blocked[0], &blocked[1], &blocked[2]);
    assert_eq!(
        (&fails["cause"], &fails["waiting"], &fails["next_action"]),
        (&json!("retry"), &json!(2), &json!("retry"))
    );
    assert_eq!((&fails["last_error"], &fails["position"]), (&json!("the bank is closed"), &json!(1)));
    let next = fails["next"].as_str().unwrap();
    assert!(next.contains("tried again at") && next.contains(fails["next_at"].as_str().unwrap()), "{next}");
    assert_eq!(
        (&gap["cause"], &gap["next_action"], &gap["first_missing"]),
        (&json!("gap"), &json!("hold"), &json!(1))
    );
    assert!(gap["next"].as_str().unwrap().starts_with("if positions 1 to 2 are not there at"), "{gap}");
    assert_eq!(
        (&held["cause"], &held["hold_cause"], &held["next_action"]),
        (&json!("held"), &json!("operator"), &json!("nothing"))
    );
    assert!(blocked.as_array().unwrap().iter().all(|one| one["since"].is_string()), "{blocked}");

    let locked = fixture.get("/v1/blocked?cause=locked").await.json()["blocked"].clone();
    assert_eq!(
        (ids(&locked, "workflow_id"), &locked[0]["next_action"]),
        (vec!["locked".to_owned()], &json!("unlock"))
    );
    let one_queue = fixture.get("/v1/blocked?queue=others").await.json();
    assert_eq!(ids(&one_queue["blocked"], "workflow_id"), ["held"]);
    assert_eq!(fixture.get("/v1/blocked?queue=nowhere").await.code(), "queue_not_found");
}

/// Notes that a receiver takes less than the message it came to has.
fn too_large(fixture: &Fixture, queue: &str, number: u64) {
    let known = OversizeMessage {
        sequence_number: SequenceNumber::new(number),
        bytes: 2_000,
        bytes_max: 1_000,
        since: Timestamp::from_millis(1_000),
    };
    fixture.host.too_large.lock().unwrap().push((QueueName::new(queue).unwrap(), known));
}

#[tokio::test]
async fn a_message_that_is_too_large_for_its_receivers_is_blocked_with_both_sizes() {
    let fixture = Fixture::open().await;
    let orders = fixture.create("orders", QueueOptions::by_position()).await;
    let plain = fixture.create("plain", QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    for workflow in ["a", "b"] {
        send(&orders, workflow, 1).await;
        send(&orders, workflow, 2).await;
    }
    plain.send(Message::new("x")).await.unwrap();
    let number = orders.workflow("b").unwrap().messages(0, 1).await.unwrap()[0].sequence_number.get();
    assert!(fixture.get("/v1/blocked").await.json()["blocked"].as_array().unwrap().is_empty());
    too_large(&fixture, "orders", number);
    // It stands behind another, and keeps nobody waiting.
    too_large(&fixture, "orders", number - 1);
    let alone = plain.peek(SequenceNumber::new(0), 1).await.unwrap()[0].sequence_number.get();
    too_large(&fixture, "plain", alone);
    // One that was settled since.
    too_large(&fixture, "plain", 99);

    for path in ["/v1/blocked", "/v1/blocked?cause=too_large", "/v1/blocked?limit=1"] {
        let mut rows = Vec::new();
        let mut page = fixture.get(path).await.json();
        rows.extend(page["blocked"].as_array().unwrap().clone());
        while let Some(after) = page["after"].as_str() {
            assert!(rows.len() < 3, "it ends: {rows:?}");
            page = fixture.get(&format!("{path}&after={after}")).await.json();
            rows.extend(page["blocked"].as_array().unwrap().clone());
        }
        assert_eq!(rows.len(), 2, "{path}: {rows:?}");
        assert_eq!((&rows[0]["workflow_id"], &rows[0]["waiting"]), (&json!("b"), &json!(2)));
        assert_eq!((&rows[1]["workflow_id"], &rows[1]["sequence_number"]), (&Value::Null, &json!(alone)));
        for row in &rows {
            assert_eq!((&row["cause"], &row["next_action"]), (&json!("too_large"), &json!("nothing")));
            assert_eq!((&row["message_bytes"], &row["receiver_bytes_max"]), (&json!(2_000), &json!(1_000)));
            assert!(row["next"].as_str().unwrap().contains("a limit of at least 2000 bytes"), "{row}");
        }
    }
    assert!(fixture.get("/v1/blocked?cause=retry").await.json()["blocked"].as_array().unwrap().is_empty());
    let filter = json!({ "verb": "hold", "filter": { "cause": ["too_large"] } });
    let refused = fixture.post("/v1/queues/orders/operate", filter).await;
    assert_eq!(refused.json()["field"], "filter", "{refused:?}");
    // Whoever takes larger messages has it now.
    let _first = orders.receive(Duration::ZERO).await.unwrap().unwrap();
    let _second = orders.receive(Duration::ZERO).await.unwrap().unwrap();
    let row = fixture.get("/v1/blocked?queue=orders").await.json();
    assert!(row["blocked"].as_array().unwrap().is_empty(), "{row}");
}

#[tokio::test]
async fn a_queue_whose_receivers_have_a_full_window_is_blocked_while_messages_wait() {
    let fixture = Fixture::open().await;
    let plain = fixture.create("plain", QueueOptions { order: Order::None, ..QueueOptions::default() }).await;
    let window = WindowStall { messages: 3, since: Timestamp::from_millis(1_000) };
    *fixture.host.full_window.lock().unwrap() = Some((QueueName::new("plain").unwrap(), window));
    assert!(
        fixture.get("/v1/blocked").await.json()["blocked"].as_array().unwrap().is_empty(),
        "nothing waits"
    );
    plain.send(Message::new("x")).await.unwrap();
    for path in ["/v1/blocked", "/v1/blocked?cause=prefetch_window"] {
        let rows = fixture.get(path).await.json()["blocked"].clone();
        assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
        assert_eq!((&rows[0]["cause"], &rows[0]["waiting"]), (&json!("prefetch_window"), &json!(1)));
        assert!(rows[0]["next"].as_str().unwrap().contains("at most 3 ahead"), "{rows}");
    }
    assert!(
        fixture.get("/v1/blocked?cause=too_large").await.json()["blocked"].as_array().unwrap().is_empty()
    );
}

#[tokio::test]
async fn a_quarantined_workflow_shows_the_last_error_of_the_message_that_was_exhausted() {
    let fixture = Fixture::open().await;
    let options = QueueOptions {
        delivery_count_max: 1,
        exhausted: Some(ExhaustedPolicy::Quarantine),
        ..QueueOptions::by_position()
    };
    let queue = fixture.create("orders", options).await;
    send(&queue, "w", 1).await;
    send(&queue, "w", 2).await;
    fail(&queue, "unknown currency").await;
    let blocked = fixture.get("/v1/blocked").await.json()["blocked"][0].clone();
    assert_eq!(
        (&blocked["hold_cause"], &blocked["position"]),
        (&json!("quarantine"), &json!(1)),
        "{blocked}"
    );
    assert_eq!(blocked["last_error"], "unknown currency", "{blocked}");
}

#[tokio::test]
async fn counts_have_the_words_of_the_contract() {
    let fixture = Fixture::open().await;
    let options = QueueOptions { delivery_count_max: 1, ..QueueOptions::by_position() };
    let queue = fixture.create("orders", options).await;
    send(&queue, "w", 1).await;
    fail(&queue, "no").await;
    let counts = fixture.get("/v1/queues/orders").await.json()["counts"].clone();
    assert_eq!(
        (&counts["exhausted"], &counts["retry"], &counts["by_consumer"]),
        (&json!(1), &json!(0), &json!(0))
    );
    let blocked = fixture.get("/v1/blocked").await.json()["blocked"][0].clone();
    assert_eq!(blocked["hold_cause"], "exhausted");
}

#[tokio::test]
async fn what_is_blocked_comes_in_pages_over_all_queues() {
    let fixture = Fixture::open().await;
    for name in ["a", "b", "c"] {
        let queue = fixture.create(name, QueueOptions::by_position()).await;
        for id in ["1", "2", "3"] {
            send(&queue, id, 2).await;
        }
    }
    for limit in 1..=10 {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = fixture.get(&format!("/v1/blocked?limit={limit}{after}")).await.json();
            let blocked = page["blocked"].as_array().unwrap();
            assert!(blocked.len() <= limit);
            let name = |one: &Value| {
                format!("{}{}", one["queue"].as_str().unwrap(), one["workflow_id"].as_str().unwrap())
            };
            found.extend(blocked.iter().map(name));
            match page["after"].as_str() {
                Some(text) => after = format!("&after={}", text.replace('/', "%2F")),
                None => break,
            }
        }
        assert_eq!(found, ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"], "limit {limit}");
    }
}

#[tokio::test]
async fn dead_letters_come_by_reason_and_in_pages() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    for (workflow, reason) in [("a", "no address"), ("b", "invalid"), ("c", "no address"), ("d", "x.y")] {
        queue.send(Message::new("x").workflow(workflow)).await.unwrap();
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        delivery.dead_letter(reason, "all of it").await.unwrap();
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = fixture.get(&format!("/v1/queues/orders/dead_letters?limit=1{after}")).await.json();
        found.extend(ids(&page["dead_letters"], "workflow_id"));
        match page["after"].as_str() {
            Some(text) => after = format!("&after={}", text.replace(' ', "%20")),
            None => break,
        }
    }
    assert_eq!(found, ["b", "a", "c", "d"]);
    let page = fixture.get("/v1/queues/orders/dead_letters?reason=no%20address").await.json();
    assert_eq!(
        (ids(&page["dead_letters"], "workflow_id"), page.get("after")),
        (vec!["a".to_owned(), "c".to_owned()], None)
    );
    assert_eq!(page["dead_letters"][0]["description"], "all of it");
    assert_eq!(fixture.get("/v1/queues/orders/dead_letters?after=x").await.json()["field"], "after");
}

#[tokio::test]
async fn what_has_ended_is_looked_at_where_nothing_is_stored_any_more() {
    let fixture = Fixture::open().await;
    let options = QueueOptions { history: Some(Duration::from_secs(3_600)), ..QueueOptions::by_position() };
    let queue = fixture.create("orders", options).await;
    for position in 1..=3 {
        send(&queue, "w", position).await;
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        delivery.complete().await.unwrap();
    }
    let page = fixture.get("/v1/queues/orders/history?workflow=w&limit=2").await.json();
    let numbers = |page: &Value| {
        let entries = page["history"].as_array().unwrap().iter();
        entries.map(|entry| entry["sequence_number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((numbers(&page), &page["before"]), (vec![3, 2], &json!(2)));
    let rest = fixture.get("/v1/queues/orders/history?workflow=w&limit=2&before=2").await.json();
    assert_eq!((numbers(&rest), rest.get("before")), (vec![1], None));
    assert_eq!(numbers(&fixture.get("/v1/queues/orders/history").await.json()), [3, 2, 1]);
    assert!(numbers(&fixture.get("/v1/queues/orders/history?workflow=v").await.json()).is_empty());

    let message = fixture.get("/v1/queues/orders/messages/2").await.json();
    assert_eq!((&message["status"], &message["position"]), (&json!("ended"), &json!(2)));
    assert_eq!((&message["ended"]["ending"], &message["delivery_count"]), (&json!("completed"), &json!(1)));
    assert_eq!(fixture.get("/v1/queues/orders/messages/9").await.code(), "message_not_found");
    let stored = fixture.get("/v1/queues/orders/workflow?id=w").await.json();
    assert_eq!((&stored["status"], &stored["next_position"]), (&json!("idle"), &json!(4)), "its cursor is");
    assert_eq!(fixture.get("/v1/queues/orders").await.json()["history"], 3);

    let options = QueueOptions { history: Some(Duration::from_secs(3_600)), ..QueueOptions::default() };
    let arrival = fixture.create("arrival", options).await;
    arrival.send(Message::new("x").workflow("w")).await.unwrap();
    arrival.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
    let ended = fixture.get("/v1/queues/arrival/workflow?id=w").await.json();
    assert_eq!((&ended["status"], &ended["ended"]["ending"]), (&json!("ended"), &json!("completed")));
    assert_eq!(fixture.get("/v1/queues/arrival/workflow?id=v").await.code(), "workflow_not_found");
}

#[tokio::test]
async fn a_message_without_a_retry_left_is_shown_as_exhausted_and_not_as_waiting_for_one() {
    let fixture = Fixture::open().await;
    let options = QueueOptions {
        delivery_count_max: 1,
        exhausted: Some(ExhaustedPolicy::Hold),
        ..QueueOptions::by_position()
    };
    let queue = fixture.engine.client().create_queue("orders", options).await.unwrap();
    send(&queue, "w", 1).await;
    fail(&queue, "no").await;
    for path in [
        "/v1/queues/orders/messages/1",
        "/v1/queues/orders/messages",
        "/v1/queues/orders/workflow/messages?id=w",
    ] {
        let shown = fixture.get(path).await.json();
        let message = if shown["messages"].is_array() { &shown["messages"][0] } else { &shown };
        assert_eq!(message["status"], "exhausted", "{path}: {shown}");
    }
}

#[tokio::test]
async fn messages_without_a_workflow_that_wait_for_their_retry_are_listed_in_one_row_of_their_queue() {
    let fixture = Fixture::open().await;
    let unordered = QueueOptions { order: Order::None, ..QueueOptions::default() };
    let mails = fixture.engine.client().create_queue("mails", unordered).await.unwrap();
    let orders = fixture.engine.client().create_queue("orders", QueueOptions::by_position()).await.unwrap();
    for queue in [&mails, &mails, &orders] {
        queue.send(Message::new("x")).await.unwrap();
        fail(queue, "no route").await;
    }
    mails.send(Message::new("ready")).await.unwrap();
    let page = fixture.get("/v1/blocked").await.json();
    let rows: Vec<(&Value, &Value, &Value)> = page["blocked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["queue"], &row["cause"], &row["waiting"]))
        .collect();
    let retry = &json!("retry");
    assert_eq!(rows, [(&json!("mails"), retry, &json!(2)), (&json!("orders"), retry, &json!(1))], "{page}");
    let row = &page["blocked"][0];
    assert_eq!((&row["sequence_number"], &row["last_error"]), (&json!(1), &json!("no route")), "{row}");
    assert!(row["next_at"].is_string() && row.get("workflow_id").is_none(), "{row}");
    let none = fixture.get("/v1/blocked?cause=held").await.json();
    assert_eq!(none["blocked"], json!([]));
    let found = fixture.get("/v1/blocked?queue=mails&reason=route").await.json();
    assert_eq!(found["blocked"][0]["waiting"], 2);
    assert_eq!(fixture.get("/v1/blocked?queue=mails&reason=other").await.json()["blocked"], json!([]));
}
