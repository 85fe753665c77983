//! What operators do.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::Queue;
use crate::message::Message;
use crate::queue::HoldKind;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::server::tests::fixture::Answered;
use crate::server::tests::fixture::Fixture;

pub(super) async fn operate(fixture: &Fixture, id: &str, verb: &str, request: Value) -> Answered {
    fixture.post(&format!("/v1/queues/orders/workflow/{verb}?id={id}"), request).await
}

pub(super) async fn send(queue: &Queue, workflow: &str, position: u64) {
    queue.send(Message::new("x").workflow(workflow).position(position)).await.unwrap();
}

pub(super) async fn fail_all(queue: &Queue) {
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        delivery.abandon_after(Duration::from_secs(600), "no").await.unwrap();
    }
}

#[tokio::test]
async fn a_dry_run_says_what_would_happen_and_does_nothing() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    for position in [1, 2, 5] {
        send(&queue, "w", position).await;
    }
    fail_all(&queue).await;
    let before = fixture.get("/v1/queues/orders/workflow?id=w").await.json();
    for (verb, request, says) in [
        ("hold", json!({}), "3 messages wait"),
        ("retry", json!({}), "message 1 is tried again now"),
        ("skip", json!({}), "message 1 is dead-lettered; 2 wait behind it"),
        ("void", json!({ "from": 3, "to": 4 }), "positions 3 to 4 will never be waited for"),
        ("skip_gap", json!({}), "positions 3 to 4 are given up"),
        ("purge", json!({}), "up to 3 messages"),
    ] {
        let mut request = request;
        request["dry_run"] = json!(true);
        let described = operate(&fixture, "w", verb, request).await;
        assert_eq!(described.status, 200, "{verb}: {described:?}");
        let described = described.json();
        assert!(described["effect"].as_str().unwrap().contains(says), "{verb}: {described}");
        assert_eq!((&described["dry_run"], &described["workflow"]), (&json!(true), &before), "{verb}");
    }
    for (verb, request, code) in [
        ("resume", json!({}), "not_held"),
        ("release_lock", json!({}), "not_locked"),
        ("void", json!({ "from": 0 }), "misuse"),
        ("void", json!({ "from": 1, "to": 9 }), "not_missing"),
        ("void", json!({ "from": 3, "to": 9 }), "not_missing"),
    ] {
        let mut request = request;
        request["dry_run"] = json!(true);
        assert_eq!(operate(&fixture, "w", verb, request).await.code(), code, "{verb}");
    }
    assert!(fixture.get("/v1/audit").await.json()["actions"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_dry_run_of_a_redrive_is_judged_as_the_redrive_is() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    let mut numbers = Vec::new();
    for position in [1, 2] {
        send(&queue, "w", position).await;
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        numbers.push(delivery.sequence_number().get());
        delivery.dead_letter("x", "").await.unwrap();
    }
    let redrive = async |number: u64, request: Value| {
        fixture.post(&format!("/v1/queues/orders/dead_letters/{number}/redrive"), request).await
    };
    let passed = redrive(numbers[0], json!({ "dry_run": true })).await;
    assert_eq!(passed.code(), "place_passed");
    assert!(passed.json()["detail"].as_str().unwrap().contains("--position"), "{passed:?}");
    let many = async |request: Value| fixture.post("/v1/queues/orders/dead_letters/redrive", request).await;
    let would = many(json!({ "all": true, "dry_run": true })).await.json();
    assert_eq!(
        (&would["in_place"], &would["refused"][1]["error"]["code"]),
        (&json!(0), &json!("place_passed"))
    );
    let anew = redrive(numbers[0], json!({ "dry_run": true, "position": 3 })).await.json();
    assert_eq!((&anew["redriven"], &anew["dry_run"]), (&json!("as_new"), &json!(true)));
    assert_eq!(
        redrive(numbers[0], json!({ "dry_run": true, "position": 2 })).await.code(),
        "already_settled"
    );

    let resume = json!({ "dry_run": true, "redrive": true });
    assert_eq!(operate(&fixture, "w", "resume", resume).await.code(), "not_held");
    assert_eq!(fixture.get("/v1/queues/orders").await.json()["counts"]["dead_lettered"], 2);
    let again = redrive(numbers[0], json!({ "position": 3 })).await.json();
    assert_eq!((&again["redriven"], &again["sequence_number"]), (&json!("as_new"), &anew["sequence_number"]));
}

#[tokio::test]
async fn what_cannot_be_skipped_is_told_apart_from_a_gap() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    send(&queue, "fails", 1).await;
    fail_all(&queue).await;
    send(&queue, "waits", 2).await;
    let refused = async |id: &str, verb: &str| {
        let answer = operate(&fixture, id, verb, json!({ "reason": "a test" })).await;
        (answer.code(), answer.json()["detail"].as_str().unwrap().to_owned())
    };
    let (code, why) = refused("fails", "skip_gap").await;
    assert_eq!(
        (code.as_str(), why.as_str()),
        ("no_head", "the workflow has no gap that a message waits behind")
    );
    let (code, why) = refused("waits", "skip").await;
    assert_eq!(code, "no_head");
    assert!(why.contains("`gap skip` (skip_gap)") && why.contains("`gap void` (void)"), "{why}");
    let chained = fixture.create("chained", QueueOptions::default().order(Order::After)).await;
    chained.send(Message::new("x").workflow("waits").message_id("b").after("a")).await.unwrap();
    let path = "/v1/queues/chained/workflow/skip?id=waits";
    let refused = fixture.post(path, json!({ "reason": "a test" })).await.json();
    let why = refused["detail"].as_str().unwrap();
    assert!(why.contains("skip_gap") && !why.contains("void"), "positions are declared void only: {why}");
}

#[tokio::test]
async fn one_message_and_one_position_are_said_as_one() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    send(&queue, "w", 2).await;
    let described = async |verb: &str, request: Value| {
        operate(&fixture, "w", verb, request).await.json()["effect"].as_str().unwrap().to_owned()
    };
    let void = described("void", json!({ "from": 1, "dry_run": true })).await;
    assert!(void.starts_with("position 1 will never be waited for"), "{void}");
    assert!(described("hold", json!({ "dry_run": true })).await.ends_with("; 1 message waits"));
    assert!(described("skip_gap", json!({ "dry_run": true })).await.starts_with("position 1 is given up"));
    let purge = described("purge", json!({ "dry_run": true })).await;
    assert_eq!(purge, "up to 1 message, 0 set aside and 0 dead letters are removed");
}

#[tokio::test]
async fn an_operator_holds_resumes_retries_skips_and_fills_gaps() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    for position in [1, 2, 5] {
        send(&queue, "w", position).await;
    }
    let held = operate(&fixture, "w", "hold", json!({ "reason": "look at it" })).await.json();
    assert_eq!(
        (&held["workflow"]["status"], &held["workflow"]["reason"]),
        (&json!("held"), &json!("look at it"))
    );
    assert_eq!(operate(&fixture, "w", "resume", json!({})).await.json()["workflow"]["status"], "ready");
    assert_eq!(operate(&fixture, "w", "resume", json!({})).await.code(), "not_held");
    fail_all(&queue).await;
    assert_eq!(operate(&fixture, "w", "retry", json!({})).await.json()["workflow"]["status"], "ready");
    assert_eq!(operate(&fixture, "w", "skip", json!({})).await.json()["field"], "reason");
    let skipped = operate(&fixture, "w", "skip", json!({ "reason": "cannot be saved" })).await.json();
    assert_eq!(skipped["workflow"]["next_position"], 2);
    let _delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(operate(&fixture, "w", "skip", json!({ "reason": "no" })).await.code(), "workflow_locked");
    let retried = operate(&fixture, "w", "retry", json!({})).await;
    assert_eq!(
        (retried.code(), retried.json()["detail"].as_str()),
        ("workflow_locked".to_owned(), Some("retry: its message is being handled at this moment"))
    );
    assert_eq!(operate(&fixture, "w", "release_lock", json!({})).await.json()["workflow"]["status"], "ready");
    let voided = operate(&fixture, "w", "void", json!({ "from": 3, "reason": "never sent" })).await.json();
    assert_eq!(voided["workflow"]["gap"]["first_missing"], 4, "{voided}");
    let gone = operate(&fixture, "w", "skip_gap", json!({ "reason": "never sent" })).await.json();
    assert_eq!(gone["workflow"].get("gap"), None);
    let purged = operate(&fixture, "w", "purge", json!({ "reason": "a test" })).await.json();
    assert_eq!(purged["purged"], 3);
    assert_eq!(operate(&fixture, "w", "bury", json!({})).await.code(), "route_not_found");
    assert_eq!(operate(&fixture, "z", "skip", json!({ "reason": "x" })).await.code(), "workflow_not_found");
    assert_eq!(operate(&fixture, "w", "hold", json!({ "from": 1 })).await.json()["field"], "from");
    assert_eq!(operate(&fixture, "w", "hold", json!({ "redrive": true })).await.json()["field"], "redrive");
}

#[tokio::test]
async fn many_are_operated_on_in_resumable_parts() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    for id in 0..10 {
        send(&queue, &format!("fails-{id}"), 1).await;
    }
    fail_all(&queue).await;
    send(&queue, "fine", 1).await;
    let operate = async |request: Value| fixture.post("/v1/queues/orders/operate", request).await;
    let filter = json!({ "status": ["blocked"], "prefix": "fails-", "reason": "n" });
    let would = operate(json!({ "verb": "retry", "filter": filter, "dry_run": true })).await.json();
    assert_eq!((&would["matched"], &would["done"], would.get("after")), (&json!(10), &json!(10), None));
    assert_eq!(would["workflow_ids"][0], "fails-0");

    let mut after = Value::Null;
    let mut done = 0;
    loop {
        let request = json!({ "verb": "retry", "filter": filter, "limit": 4, "after": after });
        let described = operate(request).await.json();
        done += described["done"].as_u64().unwrap();
        assert!(described["matched"].as_u64().unwrap() <= 4);
        match described.get("after") {
            Some(rest) => after = rest.clone(),
            None => break,
        }
    }
    assert_eq!(done, 10);
    let causes = json!({ "cause": ["retry", "gap"] });
    assert_eq!(operate(json!({ "verb": "retry", "filter": causes })).await.json()["matched"], 0);

    let purged =
        operate(json!({ "verb": "purge", "filter": { "all": true }, "reason": "a test" })).await.json();
    assert_eq!((&purged["matched"], &purged["purged"]), (&json!(11), &json!(11)));
    assert_eq!(operate(json!({ "verb": "retry", "filter": {} })).await.json()["field"], "filter");
    assert_eq!(operate(json!({ "verb": "void", "filter": { "all": true } })).await.json()["field"], "verb");
    assert_eq!(
        operate(json!({ "verb": "purge", "filter": { "all": true } })).await.json()["field"],
        "reason"
    );
}

#[tokio::test]
async fn a_cause_that_is_not_known_of_workflows_is_refused_for_many_in_a_sentence() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    send(&queue, "w", 1).await;
    for cause in ["prefetch_window", "too_large", "cannot_start"] {
        let request = json!({ "verb": "hold", "filter": { "cause": ["retry", cause] } });
        let refused = fixture.post("/v1/queues/orders/operate", request).await;
        assert_eq!((refused.code().as_str(), &refused.json()["field"]), ("misuse", &json!("filter")));
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(cause), "{detail}");
        assert!(detail.contains("not of workflows"), "{detail}");
    }
}

#[tokio::test]
async fn a_cause_of_a_hold_that_is_none_is_answered_with_those_that_are_offered() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    send(&queue, "w", 1).await;
    let many = async |request: Value| fixture.post("/v1/queues/orders/operate", request).await;
    for refused in [
        operate(&fixture, "w", "resume", json!({ "cause": "retry" })).await,
        many(json!({ "verb": "resume", "filter": { "all": true }, "cause": "retry" })).await,
        many(json!({ "verb": "resume", "filter": { "hold_cause": ["gap", "retry"] } })).await,
    ] {
        assert_eq!(refused.code(), "misuse", "{refused:?}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(HoldKind::ALL.iter().all(|known| detail.contains(known.as_str())), "{detail}");
        assert!(detail.contains("retry") && !detail.contains("spent"), "{detail}");
    }
    let nothing = many(json!({ "verb": "resume", "filter": { "all": true }, "cause": null })).await;
    assert_eq!(nothing.status, 200, "no cause is given: {nothing:?}");
}

#[tokio::test]
async fn one_that_refuses_is_named_and_stops_no_other() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    send(&queue, "a", 1).await;
    send(&queue, "b", 2).await;
    let request = json!({ "verb": "skip", "filter": { "all": true }, "reason": "a test" });
    let described = fixture.post("/v1/queues/orders/operate", request).await.json();
    assert_eq!((&described["matched"], &described["done"]), (&json!(2), &json!(1)));
    assert_eq!(
        (&described["refused"][0]["workflow_id"], &described["refused"][0]["error"]["code"]),
        (&json!("b"), &json!("no_head"))
    );
}

#[tokio::test]
async fn dead_letters_are_put_back_one_by_one_and_together() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let mut numbers = Vec::new();
    for (workflow, reason) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")] {
        queue.send(Message::new("x").workflow(workflow)).await.unwrap();
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        numbers.push(delivery.sequence_number().get());
        delivery.dead_letter(reason, "").await.unwrap();
    }
    let path = |number: u64| format!("/v1/queues/orders/dead_letters/{number}/redrive");
    let back = fixture.post(&path(numbers[0]), json!({})).await.json();
    assert_eq!(back["redriven"], "as_new");
    assert_eq!(fixture.post(&path(numbers[0]), json!({})).await.code(), "not_dead_lettered");
    let many = async |request: Value| fixture.post("/v1/queues/orders/dead_letters/redrive", request).await;
    let would = many(json!({ "dead_letter_reason": "y", "dry_run": true })).await.json();
    assert_eq!((&would["matched"], &would["as_new"]), (&json!(2), &json!(2)));
    assert_eq!(many(json!({ "workflow_id": "b" })).await.json()["as_new"], 1);
    assert_eq!(many(json!({ "dead_letter_reason": "y" })).await.json()["as_new"], 1);
    assert_eq!(many(json!({})).await.json()["field"], "all");

    let purge = async |request: Value| fixture.post("/v1/queues/orders/dead_letters/purge", request).await;
    assert_eq!(purge(json!({ "dry_run": true })).await.json()["purged"], 1);
    assert_eq!(purge(json!({})).await.json()["field"], "reason");
    assert_eq!(purge(json!({ "reason": "a test" })).await.json()["purged"], 1);
    let purge = async |request: Value| fixture.post("/v1/queues/orders/purge", request).await;
    assert_eq!(purge(json!({ "dry_run": true })).await.json(), json!({ "purged": 3, "dry_run": true }));
    assert_eq!(purge(json!({ "reason": "a test" })).await.json()["purged"], 3);
}

/// What a handler does that refuses everything.
async fn dead_letter_all(queue: &Queue) {
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        delivery.dead_letter("no", "").await.unwrap();
    }
}

#[tokio::test]
async fn who_follows_a_redrive_of_all_comes_to_an_end_while_what_is_put_back_fails_at_once() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    queue.send_batch((0..150).map(|number| Message::new("x").workflow(format!("w-{number}")))).await.unwrap();
    dead_letter_all(&queue).await;
    let (mut request, mut redriven) = (json!({ "all": true, "limit": 100 }), 0);
    for _ in 0..10 {
        let answered = fixture.post("/v1/queues/orders/dead_letters/redrive", request.clone()).await.json();
        redriven += answered["as_new"].as_u64().unwrap();
        fixture.clock.advance(Duration::from_secs(1));
        dead_letter_all(&queue).await;
        request["after"] = answered["after"].clone();
        if request["after"].is_null() {
            break;
        }
    }
    assert_eq!((redriven, &request["after"]), (150, &Value::Null));
    let anew = fixture.post("/v1/queues/orders/dead_letters/redrive", json!({ "all": true })).await.json();
    assert_eq!(anew["as_new"], 100, "who begins anew means what has failed since");
}

#[tokio::test]
async fn a_redrive_of_all_means_what_was_stamped_before_a_clock_was_set_back() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let hour = Duration::from_secs(3_600);
    fixture.clock.advance(hour);
    queue.send_batch((0..150).map(|number| Message::new("x").workflow(format!("w-{number}")))).await.unwrap();
    dead_letter_all(&queue).await;
    fixture.clock.step(Timestamp::from_millis(fixture.clock.now().as_millis() - 3_600_000));
    let mut request = json!({ "all": true, "limit": 100 });
    let first = fixture.post("/v1/queues/orders/dead_letters/redrive", request.clone()).await.json();
    request["after"] = first["after"].clone();
    let second = fixture.post("/v1/queues/orders/dead_letters/redrive", request).await.json();
    assert_eq!((&first["as_new"], &second["as_new"]), (&json!(100), &json!(50)));
}

/// What could change a queue, or a message or workflow of it.
const CHANGES: [(&str, &str, &str); 19] = [
    ("PUT", "", "{}"),
    ("DELETE", "", ""),
    ("POST", "/purge", r#"{"reason":"a test"}"#),
    ("POST", "/pause", ""),
    ("POST", "/messages", r#"{"body":"y","workflow_id":"w"}"#),
    ("DELETE", "/messages/1", ""),
    ("POST", "/messages/1/reschedule", r#"{"at":"2099-01-01T00:00:00Z"}"#),
    ("POST", "/receive", "{}"),
    ("POST", "/receive_deferred", r#"{"sequence_numbers":[1]}"#),
    ("POST", "/complete", r#"{"deliveries":["x"]}"#),
    ("POST", "/deliveries/x/complete", r#"{"state":"x"}"#),
    ("POST", "/runs/x/settle", "{}"),
    ("PUT", "/workflow/state?id=w", "x"),
    ("DELETE", "/workflow/state?id=w", ""),
    ("POST", "/workflow/skip?id=w", r#"{"reason":"a test"}"#),
    ("POST", "/workflow/purge?id=w", r#"{"reason":"a test"}"#),
    ("POST", "/operate", r#"{"verb":"skip","filter":{"all":true},"reason":"a test"}"#),
    ("POST", "/dead_letters/redrive", r#"{"all":true}"#),
    ("POST", "/dead_letters/purge", r#"{"reason":"a test"}"#),
];

#[tokio::test]
async fn what_the_daemon_keeps_for_itself_can_be_looked_at_and_not_touched() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("seriatim.schedules", QueueOptions::default()).await;
    queue.send(Message::new("x").workflow("w")).await.unwrap();
    queue.workflow("w").unwrap().set_state(Some("kept".into())).await.unwrap();
    for (method, path, body) in CHANGES {
        let refused = fixture.call(method, &format!("/v1/queues/seriatim.schedules{path}"), &[], body).await;
        assert_eq!(refused.code(), "queue_is_defined", "{method} {path}");
    }
    for path in ["", "/messages/1", "/workflow/state?id=w"] {
        assert_eq!(fixture.get(&format!("/v1/queues/seriatim.schedules{path}")).await.status, 200, "{path}");
    }
    assert_eq!(queue.view().await.unwrap().counts.ready, 1);
    queue.workflow("w").unwrap().hold("by an older version").await.unwrap();
    let many = json!({ "verb": "resume", "filter": { "status": ["held"] }, "reason": "a test" });
    for (path, request) in [("/workflow/resume?id=w", json!({})), ("/operate", many)] {
        let resumed = fixture.post(&format!("/v1/queues/seriatim.schedules{path}"), request).await;
        assert_eq!(resumed.status, 200, "what was held can go on: {path}");
    }
    let resumed = fixture.post("/v1/queues/seriatim.schedules/resume", json!({})).await;
    assert_eq!(resumed.code(), "no_handlers", "the daemon says itself that nothing can be paused there");
}

#[tokio::test]
async fn each_cause_of_a_hold_is_shown_and_can_be_lifted_alone() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    send(&queue, "w", 2).await;
    fixture.clock.advance(Duration::from_secs(600));
    let described = operate(&fixture, "w", "hold", json!({ "reason": "look first" })).await.json();
    let causes = |described: &Value| {
        let holds = described["workflow"]["holds"].as_array().cloned().unwrap_or_default();
        holds.iter().map(|hold| hold["cause"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(causes(&described), ["gap", "operator"]);
    let would = operate(&fixture, "w", "resume", json!({ "cause": "gap", "dry_run": true })).await.json();
    assert_eq!(would["effect"], "this cause is lifted; the workflow stays held: operator");
    assert_eq!(operate(&fixture, "w", "resume", json!({ "cause": "exhausted" })).await.code(), "not_held");
    let described = operate(&fixture, "w", "resume", json!({ "cause": "gap" })).await.json();
    assert_eq!(causes(&described), ["operator"]);
    let both = json!({ "cause": "operator", "redrive": true });
    assert_eq!(operate(&fixture, "w", "resume", both).await.json()["field"], "cause");
    let described = operate(&fixture, "w", "resume", json!({ "cause": "operator" })).await.json();
    assert_eq!(described["workflow"]["status"], "waiting_for_predecessor");
}

#[tokio::test]
async fn a_resume_with_redrive_says_how_many_came_back_and_how_many_stayed() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    for position in 1..=4 {
        queue.send(Message::new("x").workflow("w").position(position)).await.unwrap();
    }
    for done in [false, true, false] {
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        match done {
            true => delivery.complete().await.unwrap(),
            false => delivery.dead_letter("no", "").await.unwrap(),
        }
    }
    queue.workflow("w").unwrap().hold("look").await.unwrap();
    let described =
        fixture.post("/v1/queues/orders/workflow/resume?id=w", json!({ "redrive": true })).await.json();
    assert_eq!((&described["put_back"], &described["stayed"]), (&json!(1), &json!(1)), "{described}");
    let effect = described["effect"].as_str().unwrap_or_default();
    assert!(
        effect.starts_with("1 dead letter is back in place, and the workflow is resumed; 1 stays"),
        "{effect}"
    );
}

#[tokio::test]
async fn options_that_are_put_take_the_place_of_all_that_the_queue_had() {
    let fixture = Fixture::open().await;
    let first = json!({ "delivery": { "lock": "1m" }, "history": "1d" });
    assert_eq!(fixture.put("/v1/queues/orders", first).await.status, 201);
    let second = fixture.put("/v1/queues/orders", json!({ "retry": { "then": "skip" } })).await;
    assert_eq!(second.status, 200);
    let shown = second.json();
    let options = &shown["options"];
    let (lock, then, history) =
        (&options["delivery"]["lock"], &options["retry"]["then"], options.get("history"));
    assert_eq!((lock, then, history), (&json!("30s"), &json!("skip"), None));
}

#[tokio::test]
async fn what_only_a_file_can_say_is_no_option_that_can_be_put() {
    let fixture = Fixture::open().await;
    for of_a_file in [
        json!({ "key": "/order_id" }),
        json!({ "retry": { "delays": ["1s"] } }),
        json!({ "delivery": { "defer_for": "1m" } }),
        json!({ "delivery": { "concurrency": 8 } }),
    ] {
        let refused = fixture.put("/v1/queues/orders", of_a_file).await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (422, "misuse"));
    }
}
