//! What holds for an address to which messages are posted.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::definition::WebhookDefinition;
use crate::handlers::outbound::outbound::OutboundOptions;
use crate::handlers::outbound::signature::SigningSecret;
use crate::handlers::outbound::signature::signatures;
use crate::handlers::tests::receiver::Answer;
use crate::handlers::tests::receiver::Receiver;
use crate::handlers::tests::receiver::certificate_file;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::reason;
use crate::handlers::webhook::Webhook;
use crate::handlers::webhook::WebhookOptions;
use crate::message::Message;
use crate::processor::Failure;
use crate::processor::Outcome;

const SECRETS: [&str; 2] =
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];

fn options(url: String) -> WebhookOptions {
    let outbound = OutboundOptions {
        address: WebhookDefinition { url, allow_private: true, ca_file: None },
        timeout: LONG,
    };
    WebhookOptions { outbound, secrets: SECRETS.map(|text| SigningSecret::parse(text).unwrap()).to_vec() }
}

async fn answered(answer: Answer) -> Result<Outcome, Failure> {
    let (stage, receiver) = (Stage::new().await, Receiver::start(answer).await);
    let webhook = Webhook::new(options(receiver.url("/hook")), stage.site.clone()).unwrap();
    stage.handle(&webhook, Message::new("{}").content_type("application/json")).await
}

#[tokio::test]
async fn a_post_carries_the_body_what_is_known_of_it_and_its_signatures() {
    let (stage, mut receiver) = (Stage::new().await, Receiver::start(Some((204, &[], ""))).await);
    let webhook = Webhook::new(options(receiver.url("/hook?a=b")), stage.site.clone()).unwrap();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let message = Message::new("{\"cents\":1}")
        .content_type("application/json; charset=utf-8")
        .workflow("order 17\r\nx: y")
        .message_id("m-1")
        .subject("paid")
        .property("tenant", "blue")
        .property("not a token", "x")
        .property("traceparent", trace);
    let handed = stage.hand(message).await;
    let id = format!("orders_1_{}", handed.context.message().accepted_at.as_millis());
    assert!(matches!(stage.handle_one(&webhook, &handed).await, Ok(Outcome::Complete)));
    handed.complete().await;
    let seen = receiver.seen().await;
    assert_eq!((seen.uri.to_string().as_str(), seen.body.as_ref()), ("/hook?a=b", &b"{\"cents\":1}"[..]));
    for (name, value) in [
        ("content-type", "application/json; charset=utf-8"),
        ("webhook-id", id.as_str()),
        ("seriatim-queue", "orders"),
        ("seriatim-workflow-id", "order%2017%0D%0Ax:%20y"),
        ("seriatim-sequence-number", "1"),
        ("seriatim-message-id", "m-1"),
        ("seriatim-subject", "paid"),
        ("seriatim-delivery-count", "1"),
        ("seriatim-property-tenant", "blue"),
        ("seriatim-properties-left-out", "1"),
        ("traceparent", trace),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
    let document = include_str!("../../../docs/definitions.md");
    for name in seen.headers.keys().map(|name| name.as_str()) {
        let is_fact = name.starts_with("seriatim-") && !name.starts_with("seriatim-property-");
        assert!(!is_fact || document.contains(&format!("`{name}`")), "{name} is not in docs/definitions.md");
    }
    let timestamp: u64 = seen.header("webhook-timestamp").parse().unwrap();
    assert!(timestamp.abs_diff(stage.site.clock.now().as_millis() / 1_000) < 60);
    let secrets = SECRETS.map(|text| SigningSecret::parse(text).unwrap());
    assert_eq!(seen.header("webhook-signature"), signatures(&secrets, &id, timestamp, &seen.body));
}

#[tokio::test]
async fn the_status_says_how_it_ended() {
    assert!(matches!(answered(Some((200, &[], "thanks"))).await, Ok(Outcome::Complete)));
    assert_eq!(reason(answered(Some((500, &[], "\nboom\nmore"))).await), "HTTP 500: boom");
    let kept = answered(Some((500, &[], "\nboom\nmore"))).await.unwrap_err().abandon.output;
    assert_eq!(kept.text, "\nboom\nmore");
    assert_eq!(reason(answered(Some((404, &[], ""))).await), "HTTP 404");
    let Ok(Outcome::DeadLetter { reason, .. }) = answered(Some((410, &[], "moved out"))).await else {
        panic!()
    };
    assert_eq!(reason, "HTTP 410: moved out");
}

#[tokio::test]
async fn a_receiver_can_say_when_it_wants_the_message_again() {
    for status in [429, 503] {
        let failure = answered(Some((status, &[("retry-after", "120")], "busy"))).await.unwrap_err();
        assert!(format!("{failure:?}").contains("After(120s)"), "{failure:?}");
    }
    let failure = answered(Some((500, &[("retry-after", "120")], "busy"))).await.unwrap_err();
    assert!(failure.abandon.is_with_backoff(), "{failure:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (stage, other) = (Stage::new().await, Receiver::start(Some((200, &[], ""))).await);
    let location: &'static str = Box::leak(other.url("/").into_boxed_str());
    let headers: &'static [(&str, &str)] = Box::leak(Box::new([("location", location)]));
    let receiver = Receiver::start(Some((307, headers, ""))).await;
    let webhook = Webhook::new(options(receiver.url("/")), stage.site.clone()).unwrap();
    let failure = stage.handle(&webhook, Message::new("")).await;
    assert_eq!(reason(failure), "HTTP 307: redirects are not followed");
    assert_eq!((other.connections(), other.unseen()), (0, 0));
}

#[tokio::test]
async fn an_answer_of_success_can_say_more() {
    const OURS: &[(&str, &str)] = &[("content-type", "application/vnd.seriatim.outcome+json")];
    const JSON: &[(&str, &str)] = &[("content-type", "application/json; charset=utf-8")];
    let result = answered(Some((200, OURS, r#"{"state":{"paid":true}}"#))).await;
    assert!(matches!(result, Ok(Outcome::CompleteWith(_))), "{result:?}");
    let result = answered(Some((200, JSON, r#"{"outcome":"retry","reason":"later"}"#))).await;
    assert_eq!(reason(result), "later");
    for harmless in [r#"{"status":"ok"}"#, "{", "[]"] {
        assert!(matches!(answered(Some((200, JSON, harmless))).await, Ok(Outcome::Complete)));
    }
    for (headers, wrong) in [(OURS, "{"), (OURS, r#"{"status":"ok"}"#), (JSON, r#"{"outcome":"done"}"#)] {
        let wrong = reason(answered(Some((200, headers, wrong))).await);
        assert!(wrong.starts_with("the handler's answer is wrong"), "{wrong}");
    }
    for (begun, is_failure) in [("{\"outcome\":", true), (" {\"status\"", true), ("", true), ("[1,", false)] {
        let result = broken_off(begun).await;
        assert_eq!(result.is_err(), is_failure, "{begun}: {result:?}");
    }
}

#[tokio::test]
async fn an_answer_with_an_outcome_that_is_no_json_is_no_completion() {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    for broken in [
        r#"{"outcome":"retry",}"#,
        r#"{"outcome":"complete","state":NaN}"#,
        "\u{feff}{\"outcome\":\"complete\",\"state\":1}",
        r#"{"outcome":"complete","outcome":"retry"}"#,
        "{'outcome': 'retry'}",
    ] {
        let wrong = reason(answered(Some((200, JSON, broken))).await);
        assert!(wrong.starts_with("the handler's answer is wrong"), "{broken}: {wrong}");
    }
    for harmless in [r#"[{"outcome":"retry"}]"#, r#""an \"outcome\" of theirs""#, r#"{"a":1,}"#] {
        let result = answered(Some((200, JSON, harmless))).await;
        assert!(matches!(result, Ok(Outcome::Complete)), "{harmless}: {result:?}");
    }
}

/// What becomes of a message whose receiver answers in JSON, announces more than this, and is gone.
async fn broken_off(begun: &str) -> Result<Outcome, Failure> {
    let (stage, listener) = (Stage::new().await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let webhook = Webhook::new(options(url), stage.site.clone()).unwrap();
    let answer =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{begun}");
    let answering = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let (mut asked, mut part) = (Vec::new(), [0; 4096]);
        while !asked.ends_with(b"\r\n\r\n{}") {
            let len = socket.read(&mut part).await.unwrap();
            asked.extend_from_slice(&part[..len]);
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
    };
    tokio::join!(stage.handle(&webhook, Message::new("{}")), answering).0
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_is_not_waited_for() {
    let (stage, receiver) = (Stage::new().await, Receiver::start(None).await);
    let mut options = options(receiver.url("/"));
    options.outbound.timeout = Duration::from_millis(200);
    let webhook = Webhook::new(options, stage.site.clone()).unwrap();
    assert_eq!(reason(stage.handle(&webhook, Message::new("")).await), "timed out after 200ms");
}

#[tokio::test]
async fn a_post_whose_lock_is_lost_is_given_up() {
    let (stage, mut receiver) = (Stage::new().await, Receiver::start(None).await);
    let webhook = Webhook::new(options(receiver.url("/")), stage.site.clone()).unwrap();
    let handed = stage.hand(Message::new("")).await;
    let losing = async {
        receiver.seen().await;
        handed.lock.raise();
    };
    let (result, ()) = tokio::join!(stage.handle_one(&webhook, &handed), losing);
    assert_eq!(reason(result), "its lock was lost");
}

#[tokio::test]
async fn posts_share_a_connection() {
    let (stage, receiver) = (Stage::new().await, Receiver::start(Some((200, &[], "ok"))).await);
    let webhook = Webhook::new(options(receiver.url("/")), stage.site.clone()).unwrap();
    for _ in 0..10 {
        stage.handle(&webhook, Message::new("")).await.unwrap();
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_private_address_is_reached_only_where_it_is_allowed() {
    let stage = Stage::new().await;
    for url in ["http://127.0.0.1:9/", "https://169.254.169.254/latest", "http://2130706433/"] {
        let mut options = options(url.to_owned());
        options.outbound.address.allow_private = false;
        assert!(Webhook::new(options, stage.site.clone()).is_err(), "{url}");
    }
}

#[tokio::test]
async fn nobody_listening_is_told() {
    let stage = Stage::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let webhook = Webhook::new(options(format!("http://{address}/")), stage.site.clone()).unwrap();
    let why = reason(stage.handle(&webhook, Message::new("")).await);
    assert!(why.starts_with(&format!("connect to 127.0.0.1 at {address}: ")), "{why}");
}

#[tokio::test]
async fn a_receiver_with_tls_must_prove_who_it_is() {
    let (stage, receiver) = (Stage::new().await, Receiver::start_tls(Some((200, &[], ""))).await);
    let mut options = options(receiver.url("/"));
    let webhook = Webhook::new(options.clone(), stage.site.clone()).unwrap();
    let why = reason(stage.handle(&webhook, Message::new("")).await);
    assert!(why.contains("certificate"), "{why}");
    options.outbound.address.ca_file = Some(certificate_file());
    let webhook = Webhook::new(options, stage.site.clone()).unwrap();
    stage.handle(&webhook, Message::new("")).await.unwrap();
}

#[tokio::test]
async fn the_id_of_a_post_is_the_same_for_every_attempt() {
    let (stage, mut receiver) = (Stage::new().await, Receiver::start(Some((500, &[], ""))).await);
    let webhook = Webhook::new(options(receiver.url("/")), stage.site.clone()).unwrap();
    let handed = stage.hand(Message::new("")).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        assert_eq!(reason(stage.handle_one(&webhook, &handed).await), "HTTP 500");
        ids.push(receiver.seen().await.header("webhook-id").to_owned());
    }
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn messages_of_one_number_in_two_stores_have_ids_of_their_own() {
    let mut receiver = Receiver::start(Some((200, &[], ""))).await;
    let mut ids = Vec::new();
    for later in [0, 1] {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        clock.advance(Duration::from_millis(later));
        let stage = Stage::on(engine, Arc::new(clock)).await;
        let webhook = Webhook::new(options(receiver.url("/")), stage.site.clone()).unwrap();
        stage.handle(&webhook, Message::new("")).await.unwrap();
        let seen = receiver.seen().await;
        assert_eq!(seen.header("seriatim-sequence-number"), "1");
        ids.push(seen.header("webhook-id").to_owned());
    }
    assert_ne!(ids[0], ids[1]);
}
