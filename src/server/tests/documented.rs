//! The document says what the server does.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::message::Message;
use crate::queue::QueueOptions;
use crate::server::openapi;
use crate::server::routes::routes;
use crate::server::tests::fixture::Answered;
use crate::server::tests::fixture::Fixture;
use crate::server::tests::fixture::ask;

/// Every documented path and method.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    operations
}

/// Requests that succeed, in an order in which they do: method, path, body.
async fn requests(fixture: &Fixture) -> Vec<(&'static str, String, Value)> {
    let remembers = QueueOptions { history: Some(Duration::from_secs(3_600)), ..QueueOptions::default() };
    let queue = fixture.create("q", remembers).await;
    fixture.create("defined", QueueOptions::default()).await;
    for body in 0..12 {
        queue.send(Message::new("x").workflow(format!("w{body}"))).await.unwrap();
    }
    let at = crate::clock::Timestamp::from_millis(4_000_000_000_000);
    let scheduled = queue.send(Message::new("x").schedule_at(at)).await.unwrap().sequence_number().unwrap();
    let mut dead_letters = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    dead_letters.dead_letter("r", "d").await.unwrap();
    let mut aside = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    aside.defer().await.unwrap();
    let (dead_letters, aside) = (dead_letters.sequence_number(), aside.sequence_number());
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(queue.receive(Duration::ZERO).await.unwrap().unwrap().keep().to_string());
    }
    let run = queue.receive_run(1, Duration::ZERO).await.unwrap().unwrap().keep();
    let delivery = |at: usize, verb: &str| format!("/v1/queues/q/deliveries/{}/{verb}", ids[at]);
    let none = || json!({});
    let q = |rest: &str| format!("/v1/queues/q{rest}");
    vec![
        ("GET", "/healthz".into(), none()),
        ("GET", "/readyz".into(), none()),
        ("GET", "/metrics".into(), none()),
        ("GET", "/openapi.json".into(), none()),
        ("GET", "/v1/status".into(), none()),
        ("GET", "/v1/key".into(), none()),
        ("GET", "/v1/rates".into(), none()),
        ("GET", "/v1/cluster".into(), none()),
        ("POST", "/v1/cluster/drain".into(), json!({ "node": "node-1" })),
        ("POST", "/v1/cluster/move".into(), json!({ "partition": 0, "node": "node-1" })),
        ("GET", "/v1/definitions".into(), none()),
        ("POST", "/v1/definitions/reload".into(), none()),
        ("GET", "/v1/schedules".into(), none()),
        ("GET", "/v1/audit".into(), none()),
        ("POST", "/v1/backup".into(), json!({ "path": "b.redb" })),
        ("GET", "/v1/blocked".into(), none()),
        ("GET", "/v1/queues".into(), none()),
        ("GET", q(""), none()),
        ("PUT", "/v1/queues/new".into(), none()),
        ("DELETE", "/v1/queues/new".into(), none()),
        ("PUT", "/v1/topics/t".into(), none()),
        ("GET", "/v1/topics".into(), none()),
        ("GET", "/v1/topics/t".into(), none()),
        ("PUT", "/v1/topics/t/subscriptions/s".into(), json!({ "rules": [{ "filter": "amount > 1" }] })),
        ("PUT", "/v1/topics/t/subscriptions/s/rules/all".into(), none()),
        ("POST", "/v1/topics/t/messages".into(), none()),
        ("DELETE", "/v1/topics/t/subscriptions/s/rules/all".into(), none()),
        ("DELETE", "/v1/topics/t".into(), none()),
        ("POST", "/v1/queues/defined/pause".into(), none()),
        ("POST", "/v1/queues/defined/resume".into(), none()),
        ("POST", q("/messages"), none()),
        ("GET", q("/messages"), none()),
        ("GET", q(&format!("/messages/{scheduled}")), none()),
        ("POST", q(&format!("/messages/{scheduled}/reschedule")), json!({ "at": "2099-01-01T00:00:00Z" })),
        ("DELETE", q(&format!("/messages/{scheduled}")), none()),
        ("POST", q("/receive"), none()),
        ("POST", q("/receive_deferred"), json!({ "sequence_numbers": [aside] })),
        ("POST", q("/complete"), json!({ "deliveries": [ids[0]] })),
        ("POST", delivery(1, "renew"), none()),
        ("POST", delivery(1, "complete"), none()),
        ("POST", delivery(2, "abandon"), json!({ "retry_after": "1h" })),
        ("POST", delivery(3, "defer"), none()),
        ("POST", delivery(4, "dead_letter"), json!({ "reason": "r" })),
        ("POST", delivery(5, "release"), none()),
        ("POST", q(&format!("/runs/{run}/renew")), none()),
        ("POST", q(&format!("/runs/{run}/settle")), json!({ "completed": 1 })),
        ("GET", q("/workflows"), none()),
        ("GET", q("/workflow?id=w11"), none()),
        ("GET", q("/workflow/messages?id=w11"), none()),
        ("PUT", q("/workflow/state?id=w11"), none()),
        ("GET", q("/workflow/state?id=w11"), none()),
        ("DELETE", q("/workflow/state?id=w11"), none()),
        ("POST", q("/workflow/hold?id=w11"), none()),
        ("POST", q("/operate"), json!({ "verb": "resume", "filter": { "status": ["held"] } })),
        ("GET", q("/dead_letters"), none()),
        ("GET", q("/dead_letters/groups"), none()),
        ("POST", q("/schedules/nightly/run"), none()),
        ("POST", q(&format!("/dead_letters/{dead_letters}/redrive")), none()),
        ("POST", q("/dead_letters/redrive"), json!({ "all": true })),
        ("POST", q("/dead_letters/purge"), json!({ "reason": "r" })),
        ("POST", q("/purge"), json!({ "reason": "r" })),
        ("GET", q("/history"), none()),
        ("GET", q("/workflow/audit?id=w11"), none()),
    ]
}

/// Whether a path of a request is one of the document's.
fn fits(documented: &str, asked: &str) -> bool {
    let asked = asked.split('?').next().unwrap();
    let (documented, asked): (Vec<_>, Vec<_>) = (documented.split('/').collect(), asked.split('/').collect());
    let same = |(known, word): (&&str, &&str)| known.starts_with('{') || known == word;
    documented.len() == asked.len() && documented.iter().zip(&asked).all(same)
}

/// The operation of a request: the one with the fewest parameters, as the router decides.
fn operation<'a>(
    all: &'a [(String, String, Value)],
    method: &str,
    asked: &str,
) -> &'a (String, String, Value) {
    let fitting = all.iter().filter(|(known, path, _)| known == method && fits(path, asked));
    fitting.min_by_key(|(_, path, _)| path.matches('{').count()).unwrap_or_else(|| panic!("{method} {asked}"))
}

#[tokio::test]
async fn every_documented_route_is_there_and_answers_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let fixture = Fixture::open_with(|_, host| host.backups = Some(path)).await;
    let document = fixture.get("/openapi.json").await.json();
    let mut operations = operations(&document);
    let all = operations.clone();
    for (method, path, body) in requests(&fixture).await {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let described = fixture.call(method, &path, &[("content-type", "application/json")], body).await;
        let (_, documented, operation) = operation(&all, method, &path);
        check(&document, operation, &format!("{method} {path}"), &described);
        operations.retain(|(known, path, _)| !(known == method && path == documented));
    }
    let left: Vec<_> = operations.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    assert_eq!(left, ["GET /v1/events"], "a stream has no end that could be checked here");
}

/// Checks status, media type and the form of an answer.
fn check(document: &Value, operation: &Value, asked: &str, described: &Answered) {
    let response = &operation["responses"][described.status.as_str()];
    assert!(response.is_object(), "{asked}: {described:?}");
    let Some(content) = response["content"].as_object() else {
        assert!(described.body.is_empty(), "{asked}: {described:?}");
        return;
    };
    let media_type = described.headers["content-type"].to_str().unwrap();
    let is_state = asked.contains("/state");
    assert!(content.contains_key(media_type) || is_state, "{asked}: {described:?}");
    if media_type == "application/json" && !is_state {
        conform(document, &content[media_type]["schema"], &described.json(), asked);
    }
}

/// Checks a value against the parts of JSON Schema that our types use.
fn conform(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(path) = schema["$ref"].as_str() {
        let extract = document.pointer(path.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("{path}"));
        return conform(document, extract, value, place);
    }
    for kind in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[kind].as_array() {
            let fits = |choice: &&Value| could_be(document, choice, value);
            let choice =
                choices.iter().find(fits).unwrap_or_else(|| panic!("{place}: {value} is none of {schema}"));
            return conform(document, choice, value, place);
        }
    }
    assert!(could_be(document, schema, value), "{place}: {value} is not {schema}");
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().for_each(|value| conform(document, items, value, place));
    }
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for (name, field) in fields {
            let property =
                properties.get(name).unwrap_or_else(|| panic!("{place}: {name} is not documented"));
            conform(document, property, field, &format!("{place}: {name}"));
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(required.as_str().unwrap()), "{place}: {required} is missing");
        }
    }
}

/// Whether a value is of the type a schema names.
fn could_be(document: &Value, schema: &Value, value: &Value) -> bool {
    if let Some(path) = schema["$ref"].as_str() {
        return could_be(document, document.pointer(path.strip_prefix('#').unwrap()).unwrap(), value);
    }
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    };
    let of_type = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is),
        kind @ Value::String(_) => is(kind),
        _ => true,
    };
    let is_word = schema["enum"].as_array().is_none_or(|words| words.contains(value));
    of_type && is_word && schema.get("const").is_none_or(|word| word == value)
}

#[tokio::test]
async fn every_route_needs_what_it_says() {
    let fixture = Fixture::open().await;
    let document = fixture.get("/openapi.json").await.json();
    for (method, path, operation) in operations(&document) {
        let asked = path.replace("{queue}", "q").replace("{number}", "1").replace("{verb}", "hold");
        let asked = asked.replace("{delivery}", "1.1.x").replace("{run}", "x");
        let request = http::Request::builder().method(method.as_str()).uri(format!("{asked}?id=w"));
        let request = request.header("host", "localhost").header("origin", "http://example.com");
        let described = ask(fixture.address, request.body(Default::default()).unwrap()).await;
        let is_open = operation["security"] == json!([]);
        assert_eq!(described.status == 403, !is_open, "{method} {path}: {described:?}");
    }
}

#[test]
fn the_document_names_every_reference_and_every_operation_once() {
    let document = openapi::describe(&routes());
    let text = document.to_string();
    let mut references = 0;
    for part in text.split("\"$ref\":\"#").skip(1) {
        let path = part.split('"').next().unwrap();
        assert!(document.pointer(path).is_some(), "{path}");
        references += 1;
    }
    assert!(references > 100);
    let mut names: Vec<String> = operations(&document)
        .iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap().to_owned())
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
    assert!(!text.contains("\"description\":null"));
}
