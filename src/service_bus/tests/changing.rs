//! What an administration client takes away from an entity by leaving it out of a change.

use std::time::Duration;

use crate::service_bus::tests::administering::change;
use crate::service_bus::tests::administering::entry;
use crate::service_bus::tests::administering::put;
use crate::service_bus::tests::administering::queue;
use crate::service_bus::tests::wire::Host;

/// How clients say that there is no limit, when they say it.
const FOREVER: &str = "P10675199DT2H48M5.4775807S";

const LIMITED: &str = "<DefaultMessageTimeToLive>PT30M</DefaultMessageTimeToLive>\
                       <AutoDeleteOnIdle>PT10M</AutoDeleteOnIdle>";

/// As .NET says that there is no limit any more: it writes only the others.
const UNLIMITED: &str = "<LockDuration>PT45S</LockDuration>";

#[tokio::test]
async fn a_time_to_live_and_a_deletion_that_a_change_leaves_out_are_gone() {
    let host = Host::open().await;
    assert_eq!(put(&host, "/q", &queue(LIMITED)).await.status, 201);
    let options = async || host.engine.client().queue("q").unwrap().view().await.unwrap().options;
    let before = options().await;
    assert_eq!(before.time_to_live, Some(Duration::from_secs(1_800)));
    assert_eq!(
        (before.delete_when_idle, before.delete_with_messages),
        (Some(Duration::from_secs(600)), true)
    );
    let changed = change(&host, "/q", &queue(UNLIMITED)).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.one("DefaultMessageTimeToLive"), FOREVER);
    assert_eq!(changed.one("AutoDeleteOnIdle"), FOREVER);
    assert_eq!(changed.one("LockDuration"), "PT45S");
    let after = options().await;
    assert_eq!((after.time_to_live, after.delete_when_idle, after.delete_with_messages), (None, None, false));
}

#[tokio::test]
async fn a_topic_has_no_time_to_live_and_no_deletion_that_a_change_leaves_out() {
    let host = Host::open().await;
    assert_eq!(put(&host, "/t", &entry("TopicDescription", LIMITED)).await.status, 201);
    let changed = change(&host, "/t", &entry("TopicDescription", "")).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.one("DefaultMessageTimeToLive"), FOREVER);
    assert_eq!(changed.one("AutoDeleteOnIdle"), FOREVER);
}

#[tokio::test]
async fn a_subscription_whose_time_to_live_a_change_leaves_out_has_that_of_its_topic() {
    let host = Host::open().await;
    let lives = |span: &str| format!("<DefaultMessageTimeToLive>{span}</DefaultMessageTimeToLive>");
    assert_eq!(put(&host, "/t", &entry("TopicDescription", &lives("PT1H"))).await.status, 201);
    let subscription = |inside: &str| entry("SubscriptionDescription", inside);
    assert_eq!(put(&host, "/t/Subscriptions/s", &subscription(LIMITED)).await.status, 201);
    for (inside, lasts) in [(UNLIMITED, "PT1H"), (&lives("PT2H"), "PT1H"), (&lives("PT5M"), "PT5M")] {
        let changed = change(&host, "/t/Subscriptions/s", &subscription(inside)).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        assert_eq!(changed.one("DefaultMessageTimeToLive"), lasts);
        assert_eq!(changed.one("AutoDeleteOnIdle"), FOREVER);
    }
}
