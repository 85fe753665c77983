//! What an administration client says of an entity is said of that one, by whoever may, and as long as it is there.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use http::Method;

use crate::amqp::Value;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::sas::Keys;
use crate::sas::signatures::tests::KEY;
use crate::sas::signatures::tests::token;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::refusal::condition;
use crate::service_bus::tests::administering::Answered;
use crate::service_bus::tests::administering::ask_with;
use crate::service_bus::tests::administering::entry;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::Source;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::map;
use crate::topic::Rule;

const LATER: u64 = 10_000_000_000;

fn options() -> EndpointOptions {
    EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn queue(inside: &str) -> String {
    entry("QueueDescription", inside)
}

async fn put(host: &Host, path: &str, body: String) -> Answered {
    ask_with(host, (Method::PUT, path), &[], body).await
}

async fn change(host: &Host, path: &str, body: String) -> Answered {
    ask_with(host, (Method::PUT, path), &[("if-match", "*")], body).await
}

/// An endpoint with a key that manages the queues `mine` and `new`.
async fn keyed_host() -> Host {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let keys =
        "[[key]]\nname = \"owner\"\nkey_env = \"K\"\nrights = [\"manage\"]\nqueues = [\"mine\", \"new\"]";
    writeln!(file, "{keys}").unwrap();
    let keys = Keys::read(file.path(), |_| Some(KEY.to_owned())).unwrap();
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let host = Host::with(engine, clock, EndpointOptions { keys: Some(keys), ..options() }).await;
    for name in ["mine", "NEW"] {
        host.queue(name, QueueOptions::default()).await;
    }
    host
}

/// A token of that key for an entity, or for all.
fn signed(entity: &str) -> String {
    token(KEY, "owner", &format!("http://localhost/{entity}"), LATER)
}

#[tokio::test]
async fn who_manages_an_entity_manages_none_whose_name_differs_in_case() {
    let host = keyed_host().await;
    let token = signed("");
    let headers = [("authorization", token.as_str())];
    for (method, body) in [(Method::GET, ""), (Method::PUT, &*queue("")), (Method::DELETE, "")] {
        let refused = ask_with(&host, (method.clone(), "/new"), &headers, body.to_owned()).await;
        assert_eq!(refused.status, 401, "{method}: {refused:?}");
    }
    assert!(host.engine.client().queue("NEW").unwrap().view().await.is_ok());
    assert_eq!(ask_with(&host, (Method::GET, "/MINE"), &headers, "").await.status, 200, "it is found by any");
}

#[tokio::test]
async fn an_entity_forwards_only_to_what_a_token_of_the_request_is_for() {
    let host = keyed_host().await;
    host.engine.client().delete_queue("NEW").await.unwrap();
    for (number, (own, supplementary, status)) in [
        ("new", None, 401),
        ("new", Some(("ServiceBusSupplementaryAuthorization", "new")), 401),
        ("new", Some(("ServiceBusSupplementaryAuthorization", "mine")), 201),
        ("new", Some(("ServiceBusDlqSupplementaryAuthorization", "MINE")), 201),
        ("", None, 201),
    ]
    .into_iter()
    .enumerate()
    {
        let field = if number % 2 == 0 { "ForwardTo" } else { "ForwardDeadLetteredMessagesTo" };
        let document = queue(&format!("<{field}>sb://localhost/Mine</{field}>"));
        let (own, other) = (signed(own), supplementary.map(|(name, entity)| (name, signed(entity))));
        let mut headers = vec![("authorization", own.as_str())];
        headers.extend(other.as_ref().map(|(name, token)| (*name, token.as_str())));
        let answered = ask_with(&host, (Method::PUT, "/new"), &headers, document).await;
        assert_eq!(answered.status, status, "{number}: {answered:?}");
        if status == 201 {
            ask_with(&host, (Method::DELETE, "/new"), &headers, "").await;
        }
    }
}

#[tokio::test]
async fn a_change_of_a_subscription_keeps_its_window_for_duplicates() {
    let host = Host::open().await;
    let topic = "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>\
                 <DuplicateDetectionHistoryTimeWindow>PT1H</DuplicateDetectionHistoryTimeWindow>";
    assert_eq!(put(&host, "/t", entry("TopicDescription", topic)).await.status, 201);
    let subscription = |inside: &str| entry("SubscriptionDescription", inside);
    assert_eq!(put(&host, "/t/Subscriptions/s", subscription("")).await.status, 201);
    let changed =
        change(&host, "/t/Subscriptions/s", subscription("<LockDuration>PT10S</LockDuration>")).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let queue = host.engine.client().queue("t/subscriptions/s").unwrap();
    let options = queue.view().await.unwrap().options;
    let hour = Some(Duration::from_secs(3_600));
    assert_eq!((options.duplicate_window, options.lock), (hour, Duration::from_secs(10)));
}

#[tokio::test]
async fn nothing_is_scheduled_for_a_subscription_alone() {
    let host = Host::open().await;
    let topic = host.engine.client().create_topic("t").await.unwrap();
    let queue = topic.subscribe("s", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    let mut client = host.client().await;
    client.manage("t/Subscriptions/s").await;
    let message = map(vec![("message", Value::Binary(data(b"x")))]);
    let refused = client.ask("schedule-message", &map(vec![("messages", Value::List(vec![message]))])).await;
    assert_eq!((refused.status, refused.condition.as_str()), (400, condition::NOT_ALLOWED));
    assert_eq!(queue.view().await.unwrap().counts.accepted, 0);
}

#[tokio::test]
async fn who_waits_for_a_session_gets_none_of_an_entity_that_is_disabled_meanwhile() {
    let host = Host::open().await;
    let fields = "<RequiresSession>true</RequiresSession>";
    assert_eq!(put(&host, "/q", queue(fields)).await.status, 201);
    let mut client = host.client().await;
    let next = Source::of("q").filter("com.microsoft:session-filter", Value::Null);
    client.ask_for_receiver(0, next).await;
    // What is asked later is answered when the link waits.
    assert_eq!(client.attach_sender(1, vec![Value::from("q")]).await.code, ATTACH);
    let disabled = queue(&format!("{fields}<Status>ReceiveDisabled</Status>"));
    assert_eq!(change(&host, "/q", disabled).await.status, 200);
    let queue = host.engine.client().queue("q").unwrap();
    queue.send(Message::new("x").workflow("s")).await.unwrap();
    let attached = client.another_answer().await;
    assert_eq!(client.refusal(&attached).await.0, condition::ENTITY_DISABLED);
}
