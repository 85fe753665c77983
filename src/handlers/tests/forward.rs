//! What holds for queues that messages are sent on to.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::definition::WebhookDefinition;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::engine::WorkflowStatus;
use crate::handlers::dispatch::AnyHandler;
use crate::handlers::dispatch::Dispatch;
use crate::handlers::exec::Exec;
use crate::handlers::forward::Forward;
use crate::handlers::forward::ForwardOptions;
use crate::handlers::forward::ForwardTo;
use crate::handlers::forward::RemoteQueue;
use crate::handlers::notice::Notifier;
use crate::handlers::outbound::outbound::OutboundOptions;
use crate::handlers::tests::receiver::Answer;
use crate::handlers::tests::receiver::Receiver;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::reason;
use crate::handlers::tests::stage::script;
use crate::handlers::webhook::Webhook;
use crate::handlers::webhook::WebhookOptions;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::queue::QueueOptions;
use crate::testing::ManualClock;

fn outbound(url: String) -> OutboundOptions {
    OutboundOptions { address: WebhookDefinition { url, allow_private: true, ca_file: None }, timeout: LONG }
}

#[tokio::test]
async fn a_message_goes_to_another_queue_with_its_completion() {
    let mut stage = Stage::new().await;
    let target = stage.queue.client().create_queue("invoices", QueueOptions::by_position()).await.unwrap();
    stage.site.place = Arc::new(|queue, message| {
        assert_eq!(queue, "invoices");
        Ok(message.position(1))
    });
    let to = ForwardTo::Local(QueueName::new("invoices").unwrap());
    let forward = Forward::new(ForwardOptions { to, keep_position: false }, stage.site.clone()).unwrap();
    let message = Message::new("body").workflow("w").message_id("m").subject("s").property("p", 7_i64);
    stage.queue.send(message.time_to_live(Duration::from_secs(3_600))).await.unwrap();
    let running = Processor::new(stage.queue.clone()).start(forward);
    let sent = target.receive(LONG).await.unwrap().unwrap();
    running.stop().await.unwrap();
    let got = sent.message();
    assert_eq!((got.body.as_ref(), got.rank), (&b"body"[..], 1));
    assert_eq!(got.workflow_id.as_ref().map(ToString::to_string).as_deref(), Some("w"));
    assert_eq!(got.message_id.as_ref().map(ToString::to_string).as_deref(), Some("m"));
    assert_eq!(got.headers.subject.as_deref(), Some("s"));
    assert!(got.expires_at.is_some() && got.headers.properties.contains_key("p"));
}

#[tokio::test]
async fn a_step_of_the_wall_clock_takes_nothing_from_the_time_of_what_is_sent_on() {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let target = engine.client().create_queue("invoices", QueueOptions::default()).await.unwrap();
    let stage = Stage::on(engine, Arc::new(clock.clone())).await;
    let to = ForwardTo::Local(QueueName::new("invoices").unwrap());
    let forward = Forward::new(ForwardOptions { to, keep_position: false }, stage.site.clone()).unwrap();
    let lives = Duration::from_secs(3_600);
    let expires_at = clock.now() + lives;
    let handed = stage.hand(Message::new("1").time_to_live(lives)).await;
    clock.step(clock.now() + lives * 24);
    let outcome = stage.handle_one(&forward, &handed).await.unwrap();
    handed.end(outcome).await;
    let sent = target.receive(Duration::ZERO).await.unwrap().expect("it lives on");
    assert_eq!(sent.message().expires_at, Some(expires_at));
}

async fn sent_on(answer: Answer) -> (Result<Outcome, Failure>, Receiver) {
    let (stage, receiver) = (Stage::new().await, Receiver::start(answer).await);
    let remote =
        RemoteQueue { outbound: outbound(receiver.url("/invoices")), key: Some("secret".to_owned()) };
    let options = ForwardOptions { to: ForwardTo::Remote(remote), keep_position: true };
    let forward = Forward::new(options, stage.site.clone()).unwrap();
    let message = Message::new("{\"a\": 1}").content_type("application/json").workflow("w").message_id("m");
    (stage.handle(&forward, message).await, receiver)
}

#[tokio::test]
async fn a_message_goes_to_another_daemon_under_a_key_that_tells_repetitions() {
    let (result, mut receiver) =
        sent_on(Some((200, &[], "{\"sequence_number\":1,\"status\":\"accepted\"}\n"))).await;
    assert!(matches!(result, Ok(Outcome::Complete)), "{result:?}");
    let seen = receiver.seen().await;
    assert_eq!(seen.uri.path(), "/v1/queues/invoices/messages");
    assert_eq!(seen.header("authorization"), "Bearer secret");
    assert_eq!(seen.header("content-type"), "application/x-ndjson");
    assert!(seen.header("idempotency-key").starts_with("sender_orders_1_"));
    let line: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!((line["workflow_id"].as_str(), line["message_id"].as_str()), (Some("w"), Some("m")));
    assert!(seen.body.ends_with(b"\"body\":{\"a\": 1}}\n"), "{:?}", seen.body);
}

#[tokio::test]
async fn a_queue_of_any_name_has_keys_that_another_daemon_takes() {
    let (mut stage, mut receiver) =
        (Stage::new().await, Receiver::start(Some((200, &[], "{\"status\":\"accepted\"}"))).await);
    stage.site.sender_id = "0".repeat(32);
    let name = "q".repeat(limits::QUEUE_NAME_BYTES_MAX);
    stage.queue = stage.queue.client().create_queue(&name, QueueOptions::default()).await.unwrap();
    let remote = RemoteQueue { outbound: outbound(receiver.url("/invoices")), key: None };
    let options = ForwardOptions { to: ForwardTo::Remote(remote), keep_position: false };
    let forward = Forward::new(options, stage.site.clone()).unwrap();
    let handed = stage.hand(Message::new("1")).await;
    let mut keys = Vec::new();
    for _ in 0..2 {
        stage.handle_one(&forward, &handed).await.unwrap();
        keys.push(receiver.seen().await.header("idempotency-key").to_owned());
    }
    assert_eq!(keys[0], keys[1]);
    assert!(keys[0].len() <= limits::IDEMPOTENCY_KEY_BYTES_MAX, "{keys:?}");
}

/// As after a backup was restored, in which a number is not taken yet that another message has had.
#[tokio::test]
async fn what_gets_a_number_again_is_not_taken_for_what_had_it() {
    let (mut keys, clock) = (Vec::new(), ManualClock::default());
    for _ in 0..2 {
        clock.advance(Duration::from_millis(1));
        let engine = Engine::in_memory().clock(clock.clone()).open().await.unwrap();
        let stage = Stage::on(engine, Arc::new(clock.clone())).await;
        let mut receiver = Receiver::start(Some((200, &[], "{\"status\":\"accepted\"}"))).await;
        let remote = RemoteQueue { outbound: outbound(receiver.url("/invoices")), key: None };
        let options = ForwardOptions { to: ForwardTo::Remote(remote), keep_position: false };
        let forward = Forward::new(options, stage.site.clone()).unwrap();
        stage.handle(&forward, Message::new("")).await.unwrap();
        keys.push(receiver.seen().await.header("idempotency-key").to_owned());
    }
    assert!(keys.iter().all(|key| key.starts_with("sender_orders_1_")), "{keys:?}");
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn nothing_but_a_receipt_completes_what_went_to_another_daemon() {
    let (result, _) =
        sent_on(Some((200, &[], "{\"error\":{\"title\":\"no\",\"detail\":\"queue is full\"}}"))).await;
    assert_eq!(reason(result), "HTTP 200: queue is full");
    let (result, _) = sent_on(Some((200, &[], "<html>"))).await;
    assert_eq!(reason(result), "HTTP 200 without a receipt: <html>");
    let (result, _) = sent_on(Some((403, &[], "may not send"))).await;
    assert_eq!(reason(result), "HTTP 403: may not send");
}

/// Until when workflow `w` waits, and why, once it does.
async fn waits(queue: &Queue) -> (Timestamp, String) {
    let waiting = async {
        loop {
            let view = queue.workflow("w").unwrap().view().await.unwrap();
            match view.map(|view| view.status) {
                Some(WorkflowStatus::Blocked { until: Some(until), reason, .. }) => return (until, reason),
                _ => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("it waits")
}

#[tokio::test]
async fn a_daemon_that_is_full_or_not_ready_uses_up_no_attempt() {
    for status in [429, 503, 507] {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let stage = Stage::on(engine, Arc::new(clock.clone())).await;
        let problem = r#"{"type":"urn:seriatim:problem:busy","title":"t","status":503,"detail":"no room","code":"busy"}"#;
        let mut receiver = Receiver::start(Some((status, &[("retry-after", "1")], problem))).await;
        let remote = RemoteQueue { outbound: outbound(receiver.url("/invoices")), key: None };
        let options = ForwardOptions { to: ForwardTo::Remote(remote), keep_position: false };
        let forward = Forward::new(options, stage.site.clone()).unwrap();
        stage.queue.send(Message::new("1").workflow("w")).await.unwrap();
        let running = Processor::new(stage.queue.clone()).start(forward);
        let mut longest = Duration::ZERO;
        for _ in 0..=QueueOptions::default().delivery_count_max {
            receiver.seen().await;
            let (until, why) = waits(&stage.queue).await;
            assert!(why.contains(&format!("is not counted: HTTP {status}: ")), "{why}");
            let message = stage.queue.peek(SequenceNumber::new(0), 1).await.unwrap().remove(0);
            assert_eq!(message.delivery_count, 0);
            longest = longest.max(until.since(clock.now()));
            clock.advance(until.since(clock.now()));
        }
        assert!(longest > Duration::from_secs(2), "it is asked more and more seldom: {longest:?}");
        running.stop().await.unwrap();
    }
}

#[tokio::test]
async fn the_subject_chooses_the_handler() {
    let stage = Stage::new().await;
    let exec =
        |text: &str| AnyHandler::Exec(Exec::new(script(stage.folder.path(), text), stage.site.clone()));
    let some = Dispatch::default().with(Some("paid".to_owned()), exec("echo one >&2; exit 75"));
    assert_eq!(reason(stage.handle(&some, Message::new("").subject("paid")).await), "one");
    let none = stage.handle(&some, Message::new("").subject("Paid")).await;
    assert_eq!(reason(none), "no handler for subject \"Paid\"");
    assert_eq!(
        reason(stage.handle(&some, Message::new("")).await),
        "no handler for a message without a subject"
    );
    let all = some.with(None, exec("echo two >&2; exit 75"));
    assert_eq!(reason(stage.handle(&all, Message::new("").subject("paid")).await), "one");
    assert_eq!(reason(stage.handle(&all, Message::new("").subject("Paid")).await), "two");
    assert_eq!(reason(stage.handle(&all, Message::new("")).await), "two");
    all.close().await;
}

#[tokio::test]
async fn a_notice_goes_to_a_program_or_an_address() {
    let stage = Stage::new().await;
    let document = serde_json::json!({"workflow_id": "w", "cause": "held"});
    let exec = |text: &str| Notifier::Exec(Exec::new(script(stage.folder.path(), text), stage.site.clone()));
    exec("cat > notice").send("n-1", &document).await.unwrap();
    let got = std::fs::read(stage.folder.path().join("notice")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&got).unwrap(), document);
    let failure = exec("echo no pager >&2; exit 75").send("n-1", &document).await.unwrap_err();
    assert_eq!(failure.reason(), "exit code 75: no pager");

    let mut receiver = Receiver::start(Some((500, &[], "down"))).await;
    let options = WebhookOptions { outbound: outbound(receiver.url("/page")), secrets: Vec::new() };
    let webhook = Notifier::Webhook(Webhook::new(options, stage.site.clone()).unwrap());
    let failure = webhook.send("n-1", &document).await.unwrap_err();
    assert_eq!(failure.reason(), "HTTP 500: down");
    let seen = receiver.seen().await;
    assert_eq!((seen.header("webhook-id"), seen.header("webhook-signature")), ("n-1", ""));
    assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), document);
}
