//! What an administration client says of an entity is said of that one, by whoever may, and as long as it is there.

use std::time::Duration;

use http::Method;

use crate::service_bus::tests::administering::Answered;
use crate::service_bus::tests::administering::ask_with;
use crate::service_bus::tests::administering::entry;
use crate::service_bus::tests::wire::Host;

async fn put(host: &Host, path: &str, body: String) -> Answered {
    ask_with(host, (Method::PUT, path), &[], body).await
}

async fn change(host: &Host, path: &str, body: String) -> Answered {
    ask_with(host, (Method::PUT, path), &[("if-match", "*")], body).await
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
