//! What is said of a topic holds for its subscriptions.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;

use crate::amqp::Value;
use crate::queue::QueueOptions;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::tests::administering::Answered;
use crate::service_bus::tests::administering::ask_with;
use crate::service_bus::tests::administering::entry;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::data;

const MINUTE: Duration = Duration::from_secs(60);

fn topic(inside: &str) -> String {
    entry("TopicDescription", inside)
}

async fn make(host: &Host, path: &str, body: String) -> Answered {
    let made = ask_with(host, (Method::PUT, path), &[], body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made
}

async fn change(host: &Host, path: &str, body: String) -> Answered {
    let changed = ask_with(host, (Method::PUT, path), &[("if-match", "*")], body).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    changed
}

/// The options of a subscription of the topic `t`.
async fn options(host: &Host, subscription: &str) -> QueueOptions {
    let queue = host.engine.client().queue(format!("t/subscriptions/{subscription}")).unwrap();
    queue.view().await.unwrap().options
}

#[tokio::test]
async fn a_topic_and_its_subscriptions_take_messages_of_the_size_that_its_maker_says() {
    let host = Host::open().await;
    let said = "<MaxMessageSizeInKilobytes>2048</MaxMessageSizeInKilobytes>";
    let made = make(&host, "/t?api-version=2021-05", topic(said)).await;
    assert_eq!(made.one("MaxMessageSizeInKilobytes"), "2048");
    make(&host, "/t/Subscriptions/s", entry("SubscriptionDescription", "")).await;
    assert_eq!(options(&host, "s").await.body_bytes_max, 2048 * 1024);
    let mut client = host.client().await;
    assert_eq!(client.attach_sender(0, vec![Value::from("t")]).await.code, ATTACH);
    client.transfer(0, 0, &data(&vec![7; 1024 * 1024 + 1024 * 512])).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
    let changed = change(&host, "/t?api-version=2021-05", topic(&said.replace("2048", "3072"))).await;
    assert_eq!(changed.one("MaxMessageSizeInKilobytes"), "3072");
    assert_eq!(options(&host, "s").await.body_bytes_max, 3072 * 1024);
}

#[tokio::test]
async fn another_time_to_live_of_a_topic_holds_for_its_subscriptions_unless_theirs_is_shorter() {
    let host = Host::open().await;
    let lasts = |span: &str| format!("<DefaultMessageTimeToLive>{span}</DefaultMessageTimeToLive>");
    make(&host, "/t", topic(&lasts("PT1H"))).await;
    for (name, inside) in [("follows", String::new()), ("own", lasts("PT10M"))] {
        make(&host, &format!("/t/Subscriptions/{name}"), entry("SubscriptionDescription", &inside)).await;
    }
    for (span, follows, own) in [("PT2H", 120, 10), ("PT20M", 20, 10), ("PT5M", 5, 5)] {
        change(&host, "/t", topic(&lasts(span))).await;
        assert_eq!(options(&host, "follows").await.time_to_live, Some(MINUTE * follows), "{span}");
        assert_eq!(options(&host, "own").await.time_to_live, Some(MINUTE * own), "{span}");
    }
    let other = "<UserMetadata>x</UserMetadata>".to_owned() + &lasts("PT5M");
    let shorter = QueueOptions { time_to_live: Some(MINUTE), ..options(&host, "own").await };
    host.engine.client().change_queue("t/subscriptions/own", shorter).await.unwrap();
    change(&host, "/t", topic(&other)).await;
    assert_eq!(options(&host, "own").await.time_to_live, Some(MINUTE), "it was not asked to change");
}

#[tokio::test]
async fn a_subscription_has_its_own_time_to_live_again_when_that_of_its_topic_is_longer_again() {
    let host = Host::open().await;
    let lasts = |span: &str| format!("<DefaultMessageTimeToLive>{span}</DefaultMessageTimeToLive>");
    let of_subscription = |inside: &str| entry("SubscriptionDescription", inside);
    make(&host, "/t", topic("")).await;
    for (name, inside) in [("own", lasts("PT2H")), ("follows", String::new())] {
        make(&host, &format!("/t/Subscriptions/{name}"), of_subscription(&inside)).await;
    }
    change(&host, "/t", topic(&lasts("PT1H"))).await;
    assert_eq!(options(&host, "own").await.time_to_live, Some(MINUTE * 60));
    // A client that changes something else says again what it was told.
    let said = lasts("PT1H") + "<UserMetadata>x</UserMetadata>";
    for name in ["own", "follows"] {
        change(&host, &format!("/t/Subscriptions/{name}"), of_subscription(&said)).await;
    }
    change(&host, "/t", topic("")).await;
    assert_eq!(options(&host, "own").await.time_to_live, Some(MINUTE * 120));
    assert_eq!(options(&host, "follows").await.time_to_live, None);
}

#[tokio::test]
async fn a_time_to_live_that_a_queue_alone_has_counts_as_one_of_the_subscription() {
    let host = Host::open().await;
    let lasts = |span: &str| topic(&format!("<DefaultMessageTimeToLive>{span}</DefaultMessageTimeToLive>"));
    make(&host, "/t", lasts("PT2H")).await;
    make(&host, "/t/Subscriptions/s", entry("SubscriptionDescription", "")).await;
    let shorter = QueueOptions { time_to_live: Some(MINUTE * 10), ..options(&host, "s").await };
    host.engine.client().change_queue("t/subscriptions/s", shorter).await.unwrap();
    for (span, minutes) in [("PT5M", 5), ("PT1H", 10)] {
        change(&host, "/t", lasts(span)).await;
        assert_eq!(options(&host, "s").await.time_to_live, Some(MINUTE * minutes), "{span}");
    }
}

#[tokio::test]
async fn another_window_for_duplicates_of_a_topic_holds_for_its_subscriptions() {
    let host = Host::open().await;
    let window = |span: &str| {
        topic(&format!(
            "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>\
             <DuplicateDetectionHistoryTimeWindow>{span}</DuplicateDetectionHistoryTimeWindow>"
        ))
    };
    make(&host, "/t", window("PT10M")).await;
    make(&host, "/t/Subscriptions/s", entry("SubscriptionDescription", "")).await;
    change(&host, "/t", window("PT1M")).await;
    assert_eq!(options(&host, "s").await.duplicate_window, Some(MINUTE));
}

#[tokio::test]
async fn a_topic_of_a_configuration_says_what_holds_for_its_subscriptions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Config.json");
    let configuration = r#"{"UserConfig": {"Namespaces": [{"Topics": [{"Name": "t", "Properties": {
        "DefaultMessageTimeToLive": "PT1H", "DuplicateDetectionHistoryTimeWindow": "PT20S",
        "RequiresDuplicateDetection": true}, "Subscriptions": [{"Name": "s"}]}]}]}}"#;
    std::fs::write(&path, configuration).unwrap();
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let listens = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let host = Host::with(engine, clock, EndpointOptions { config: Some(path), ..listens }).await;
    let shown = ask_with(&host, (Method::GET, "/t"), &[], "").await;
    assert_eq!(shown.one("DefaultMessageTimeToLive"), "PT1H");
    assert_eq!(shown.one("RequiresDuplicateDetection"), "true");
    assert_eq!(shown.one("DuplicateDetectionHistoryTimeWindow"), "PT20S");
    make(&host, "/t/Subscriptions/later", entry("SubscriptionDescription", "")).await;
    for subscription in ["s", "later"] {
        let QueueOptions { time_to_live, duplicate_window, .. } = options(&host, subscription).await;
        assert_eq!((time_to_live, duplicate_window), (Some(MINUTE * 60), Some(MINUTE / 3)), "{subscription}");
    }
}

#[tokio::test]
async fn a_start_with_the_same_configuration_leaves_what_clients_said_of_its_entities_besides() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Config.json");
    let configuration = r#"{"UserConfig": {"Namespaces": [{"Queues": [{"Name": "q"}], "Topics": [{"Name": "t",
        "Properties": {"DefaultMessageTimeToLive": "PT1H"}, "Subscriptions": [{"Name": "s"}]}]}]}}"#;
    std::fs::write(&path, configuration).unwrap();
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let listens = || EndpointOptions {
        config: Some(path.clone()),
        ..EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))
    };
    let host = Host::with(engine, clock.clone(), listens()).await;
    let said = "<Status>SendDisabled</Status><UserMetadata>x</UserMetadata>";
    let large = "<MaxMessageSizeInKilobytes>2048</MaxMessageSizeInKilobytes>";
    change(&host, "/t?api-version=2021-05", topic(&format!("{said}{large}"))).await;
    change(&host, "/q", entry("QueueDescription", said)).await;
    let host = Host::with(host.stop().await, clock, listens()).await;
    for path in ["/t?api-version=2021-05", "/q"] {
        let shown = ask_with(&host, (Method::GET, path), &[], "").await;
        assert_eq!(
            (shown.one("Status"), shown.one("UserMetadata")),
            ("SendDisabled".into(), "x".into()),
            "{path}"
        );
    }
    let shown = ask_with(&host, (Method::GET, "/t?api-version=2021-05"), &[], "").await;
    assert_eq!(shown.one("MaxMessageSizeInKilobytes"), "2048");
    assert_eq!(shown.one("DefaultMessageTimeToLive"), "PT1H", "what the file says holds again");
    assert_eq!(options(&host, "s").await.body_bytes_max, 2048 * 1024);
}
