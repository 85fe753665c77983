//! What an administration client says of an entity is said of that one, by whoever may, and as long as it is there.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use http::Method;

use crate::amqp::Value;
use crate::engine::Client;
use crate::id::QueueName;
use crate::inbound::live_value::LiveValue;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::sas::Keys;
use crate::sas::signatures::tests::KEY;
use crate::sas::signatures::tests::token;
use crate::service_bus::description::Description;
use crate::service_bus::description::Descriptions;
use crate::service_bus::description::EntityStatus;
use crate::service_bus::description::RECORDS_QUEUE;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::refusal::condition;
use crate::service_bus::tests::administering::Answered;
use crate::service_bus::tests::administering::ask_with;
use crate::service_bus::tests::administering::entry;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::DETACH;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::map;
use crate::topic::Filter;
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
    let host =
        Host::with(engine, clock, EndpointOptions { keys: LiveValue::new(Some(keys)), ..options() }).await;
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
async fn an_entity_forwards_to_another_in_any_case_and_says_the_name_as_it_was_said() {
    let host = Host::open().await;
    host.queue("Target", QueueOptions::default()).await;
    for field in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
        let document = queue(&format!("<{field}>sb://localhost/tARGET</{field}>"));
        let made = put(&host, &format!("/{field}"), document).await;
        assert_eq!(made.status, 201, "{made:?}");
        assert!(made.one(field).ends_with("/tARGET"), "{made:?}");
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
async fn a_sender_of_an_entity_that_is_made_again_is_detached() {
    let host = Host::open().await;
    assert_eq!(put(&host, "/q", queue("")).await.status, 201);
    let mut client = host.client().await;
    for handle in 0..2 {
        assert_eq!(client.attach_sender(handle, vec![Value::from("q")]).await.code, ATTACH);
    }
    client.transfer(0, 0, &data(b"x")).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
    assert_eq!(ask_with(&host, (Method::DELETE, "/q"), &[], "").await.status, 200);
    host.clock.advance(Duration::from_millis(1));
    assert_eq!(put(&host, "/q", queue("<RequiresSession>true</RequiresSession>")).await.status, 201);
    for (handle, format) in [(0, 0), (1, 0x8001_3700)] {
        let payload = if format == 0 { data(b"x") } else { data(&data(b"x")) };
        client.transfer(handle, format, &payload).await;
        let ended = client.another_answer().await;
        assert_eq!((ended.code, ended.error(2).0.as_str()), (DETACH, condition::DETACH_FORCED));
    }
    let stored = host.engine.client().queue("q").unwrap().view().await.unwrap().counts.stored();
    assert_eq!(stored, 0, "nothing came without a session");
}

/// Waits until nothing is kept of what was said of an entity.
async fn forgotten(client: &Client, name: &str) {
    let kept = client.queue(RECORDS_QUEUE).unwrap().workflow(name).unwrap();
    while kept.state().await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_was_said_of_an_entity_is_forgotten_whoever_deletes_it() {
    let host = Host::open().await;
    let client = host.engine.client().clone();
    assert_eq!(put(&host, "/to", queue("")).await.status, 201);
    assert_eq!(put(&host, "/q", queue("<ForwardTo>to</ForwardTo>")).await.status, 201);
    client.delete_queue("q").await.unwrap();
    forgotten(&client, "q").await;
    assert_eq!(
        put(&host, "/t", entry("TopicDescription", "<UserMetadata>a</UserMetadata>")).await.status,
        201
    );
    let subscription = entry("SubscriptionDescription", "<UserMetadata>b</UserMetadata>");
    assert_eq!(put(&host, "/t/Subscriptions/s", subscription).await.status, 201);
    client.delete_topic("t").await.unwrap();
    forgotten(&client, "t/subscriptions/s").await;
    forgotten(&client, "t").await;
    let idle = queue("<AutoDeleteOnIdle>PT5M</AutoDeleteOnIdle>");
    assert_eq!(put(&host, "/idle", idle).await.status, 201);
    host.clock.advance(Duration::from_secs(600));
    forgotten(&client, "idle").await;
    assert!(client.queue("to").unwrap().view().await.is_ok());
}

#[tokio::test]
async fn what_was_said_of_an_entity_that_was_never_made_is_no_other_ones() {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let descriptions = Descriptions::new(engine.client().clone(), false);
    descriptions.open().await.unwrap();
    let half = Description { status: EntityStatus::Disabled, ..Description::default() };
    descriptions.describe(&QueueName::new("q").unwrap(), &half).await.unwrap();
    let host = Host::with(engine, clock, options()).await;
    host.queue("q", QueueOptions::default()).await;
    let mut client = host.client().await;
    client.attach_sender(0, vec![Value::from("q")]).await;
    client.transfer(0, 0, &data(b"x")).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
}

#[tokio::test]
async fn a_rule_that_is_added_while_another_is_replaced_stays() {
    let host = Host::open().await;
    let topic = host.engine.client().create_topic("t").await.unwrap();
    topic.subscribe("s", QueueOptions::default(), [Rule::new("a", Filter::True)]).await.unwrap();
    let (replaced, added) = tokio::join!(
        topic.replace_rule("s", Rule::new("a", Filter::False)),
        topic.add_rule("s", Rule::new("b", Filter::True)),
    );
    replaced.unwrap();
    added.unwrap();
    let rules = topic.rules("s").await.unwrap();
    assert_eq!(rules, [Rule::new("a", Filter::False), Rule::new("b", Filter::True)]);
    assert!(
        topic.replace_rule("s", Rule::new("c", Filter::True)).await.is_err(),
        "there is none of its name"
    );
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
