//! Many messages in one request.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::queue::QueueOptions;
use crate::server::tests::fixture::Answered;
use crate::server::tests::fixture::Fixture;
use crate::server::tests::wire::Wire;

const MESSAGES: &str = "/v1/queues/orders/messages";

async fn send(fixture: &Fixture, query: &str, lines: &str) -> Answered {
    let headers = [("content-type", "application/x-ndjson")];
    fixture.call("POST", &format!("{MESSAGES}{query}"), &headers, lines.to_owned()).await
}

fn lines(described: &Answered) -> Vec<Value> {
    let text = String::from_utf8(described.body.to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn bodies(queue: &Queue) -> Vec<String> {
    let stored = queue.peek(SequenceNumber::new(0), 1_000).await.unwrap();
    stored.iter().map(|view| String::from_utf8(view.body.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn lines_are_accepted_and_answered_in_order() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let sent: String = (0..5_000).map(|n| format!("{{\"workflow_id\":\"w\",\"body\":{n}}}\n")).collect();
    let described = send(&fixture, "", &sent).await;
    assert_eq!(
        (described.status.as_u16(), &described.headers["content-type"]),
        (200, &"application/x-ndjson".parse().unwrap())
    );
    let answers = lines(&described);
    assert_eq!(answers.len(), 5_000);
    let numbers: Vec<u64> = answers.iter().map(|line| line["sequence_number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted());
    assert!(answers.iter().all(|line| line["status"] == "accepted"));
    let first: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    assert_eq!(bodies(&queue).await, first);
    assert_eq!(queue.view().await.unwrap().counts.ready, 5_000);
}

#[tokio::test]
async fn a_bad_line_is_answered_at_its_place_and_the_rest_goes_on() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    let at = |position: u64, body: &str| {
        format!("{{\"workflow_id\":\"w\",\"position\":{position},\"body_text\":\"{body}\"}}\n")
    };
    let sent = [
        &at(1, "1"),
        "{\"workflow_id\":\n",
        "\n",
        "{\"workflow\":\"w\"}\n",
        &at(2, "2"),
        &at(2, "another"),
        &at(0, "0"),
        "{\"body_text\":\"a\",\"body_base64\":\"AA==\"}\r\n",
        "{\"queue\":\"others\"}\n",
        &at(3, "3"),
        &at(2, "2"),
    ];
    let described = send(&fixture, "", &sent.concat()).await;
    let answers = lines(&described);
    let codes: Vec<&str> = answers.iter().map(|line| line["error"]["code"].as_str().unwrap_or("-")).collect();
    let expected = ["-", "malformed", "misuse", "-", "place_taken", "misuse", "misuse", "misuse", "-", "-"];
    assert_eq!(codes, expected);
    assert_eq!((&answers[1]["line"], &answers[4]["line"]), (&json!(2), &json!(5)));
    assert_eq!(answers[2]["error"]["field"], "workflow");
    assert_eq!(answers[5]["error"]["field"], "position");
    assert_eq!(answers[9]["status"], "duplicate");
    assert_eq!(bodies(&queue).await, ["1", "2", "3"]);
}

#[tokio::test]
async fn an_atomic_batch_is_accepted_whole_or_not_at_all() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::by_position()).await;
    let at = |position: u64| format!("{{\"workflow_id\":\"w\",\"position\":{position}}}\n");
    let described = send(&fixture, "?atomic=true", &[at(1), at(2)].concat()).await;
    assert_eq!((described.status.as_u16(), lines(&described).len()), (201, 2));

    let described = send(&fixture, "?atomic=true", &[at(3), at(0)].concat()).await;
    assert_eq!((described.status.as_u16(), described.code()), (422, "misuse".to_owned()));
    let described = send(&fixture, "?atomic=true", &[&at(3), "{\"x\":1}"].concat()).await;
    assert!(described.json()["detail"].as_str().unwrap().starts_with("line 2: "), "{described:?}");
    let too_many = (3..1_100).map(at).collect::<String>();
    assert_eq!(send(&fixture, "?atomic=true", &too_many).await.json()["field"], "batch");
    assert_eq!(queue.view().await.unwrap().counts.accepted, 2);
    assert_eq!(
        fixture.call("POST", &format!("{MESSAGES}?atomic=true"), &[], "x").await.json()["field"],
        "atomic"
    );
}

#[tokio::test]
async fn a_batch_for_no_queue_is_refused_as_a_whole() {
    let fixture = Fixture::open().await;
    assert_eq!(send(&fixture, "", "{}\n{}\n").await.code(), "queue_not_found");
}

#[tokio::test]
async fn an_empty_batch_has_an_empty_answer() {
    let fixture = Fixture::open().await;
    fixture.create("orders", QueueOptions::default()).await;
    let described = send(&fixture, "", "\n \n").await;
    assert_eq!((described.status.as_u16(), described.body.len()), (200, 0));
}

#[tokio::test]
async fn lines_that_come_slowly_are_on_disk_before_the_last_has_come() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let mut wire = Wire::open(fixture.address).await;
    let head = "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
    wire.say(head).await;
    wire.say("7\r\n{}\n{\"bo\r\n").await;
    let delivery = queue.receive(Duration::from_secs(10)).await.unwrap();
    assert!(delivery.is_some(), "the first line did not wait for the second");
    wire.say("d\r\ndy_text\":\"2\"}\r\n0\r\n\r\n").await;
    wire.read_until("\r\n\r\n").await;
    wire.read_until(
        "{\"sequence_number\":1,\"status\":\"accepted\"}\n{\"sequence_number\":2,\"status\":\"accepted\"}\n",
    )
    .await;
}

#[tokio::test]
async fn a_batch_that_breaks_off_keeps_what_was_accepted() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let mut wire = Wire::open(fixture.address).await;
    let head = "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
    wire.say(head).await;
    wire.say("9\r\n{}\n{}\n{}\n\r\n").await;
    assert!(queue.receive(Duration::from_secs(10)).await.unwrap().is_some());
    wire.say("this is no chunk\r\n").await;
    let answered = wire.end().await;
    let last = answered.lines().rfind(|line| line.starts_with('{')).unwrap();
    assert!(last.contains("\"line\":4") && last.contains("malformed"), "{answered}");
    assert_eq!(queue.view().await.unwrap().counts.accepted, 3);
}

/// Sends two lines where there is room for one, makes room, and sends a third in the same request.
async fn accepted_around_a_full_queue(query: &str) -> (Vec<String>, u64) {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions { messages_max: 1, ..QueueOptions::default() }).await;
    let mut wire = Wire::open(fixture.address).await;
    let head = format!(
        "POST {MESSAGES}{query} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    wire.say(&head).await;
    wire.say("6\r\n{}\n{}\n\r\n").await;
    let mut first = queue.receive(Duration::from_secs(10)).await.unwrap().unwrap();
    first.complete().await.unwrap();
    wire.say("3\r\n{}\n\r\n0\r\n\r\n").await;
    let answered = wire.end().await;
    let lines = answered.lines().filter(|line| line.starts_with('{'));
    let word = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["status"].as_str().or(line["error"]["code"].as_str()).unwrap().to_owned()
    };
    (lines.map(word).collect(), queue.view().await.unwrap().counts.accepted)
}

#[tokio::test]
async fn in_order_nothing_is_accepted_behind_what_there_was_no_room_for() {
    let (answers, accepted) = accepted_around_a_full_queue("").await;
    assert_eq!(
        (answers.as_slice(), accepted),
        (&["accepted", "queue_full", "accepted"].map(String::from)[..], 2)
    );
    let (answers, accepted) = accepted_around_a_full_queue("?in_order=true").await;
    assert_eq!(
        (answers.as_slice(), accepted),
        (&["accepted", "queue_full", "queue_full"].map(String::from)[..], 1)
    );
}

#[tokio::test]
async fn a_batch_in_order_is_accepted_in_as_many_parts_as_it_needs() {
    let fixture = Fixture::open().await;
    let queue = fixture.create("orders", QueueOptions::default()).await;
    let sent: String = (0..5_000).map(|n| format!("{{\"workflow_id\":\"w\",\"body\":{n}}}\n")).collect();
    let described = send(&fixture, "?in_order=true", &sent).await;
    assert!(lines(&described).iter().all(|line| line["status"] == "accepted"));
    assert_eq!(queue.view().await.unwrap().counts.accepted, 5_000);
    assert_eq!(
        fixture.call("POST", &format!("{MESSAGES}?in_order=true"), &[], "x").await.json()["field"],
        "in_order"
    );
}

#[tokio::test]
async fn messages_with_places_need_no_order_of_lines() {
    let fixture = Fixture::open().await;
    let options = QueueOptions { early_max: 1, ..QueueOptions::by_position() };
    let queue = fixture.create("orders", options).await;
    let at = |position: u64| format!("{{\"workflow_id\":\"w\",\"position\":{position}}}\n");
    let described = send(&fixture, "?in_order=true", &[at(3), at(4), at(1)].concat()).await;
    let codes: Vec<Value> = lines(&described).iter().map(|line| line["error"]["code"].clone()).collect();
    assert_eq!(
        codes,
        [Value::Null, json!("workflow_full"), Value::Null],
        "the first is not refused for the fourth"
    );
    assert_eq!(queue.view().await.unwrap().counts.accepted, 2);
}
