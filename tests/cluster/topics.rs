//! Topics on a cluster of daemons, as definitions have them.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;

use crate::cluster::fixture::Cluster;

const ALL: &str = r#"
order = "arrival"

[subscription]
topic = "orders"

[[handler]]
exec = ["sh", "-c", 'body=$(cat); echo "$body" >> FOLDER/all']
"#;

const LARGE: &str = r#"
order = "arrival"

[subscription]
topic = "orders"
filter = "amount > 100"

[[handler]]
exec = ["sh", "-c", 'body=$(cat); echo "$body" >> FOLDER/large']
"#;

const WORKFLOWS: u64 = 6;

fn message(workflow: u64, number: u64) -> Value {
    let amount = if number.is_multiple_of(2) { 700 } else { 7 };
    json!({
        "workflow_id": format!("o{workflow}"),
        "properties": { "amount": amount },
        "body_text": format!("o{workflow} {number}"),
    })
}

/// The numbers that a subscription has handled of each workflow. An attempt that a kill cut off is made again.
fn handled(cluster: &Cluster, name: &str) -> BTreeMap<String, Vec<u64>> {
    let text = std::fs::read_to_string(cluster.path().join(name)).unwrap_or_default();
    let mut handled: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in text.lines() {
        let (workflow, number) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
        let numbers = handled.entry(workflow.to_owned()).or_default();
        let number = number.parse().unwrap_or_else(|_| panic!("{line}"));
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }
    handled
}

#[test]
fn what_is_sent_to_a_topic_at_any_node_is_handled_in_order_by_every_subscription_though_a_node_dies() {
    let Some(cluster) = Cluster::start(3, &[("all.toml", ALL), ("large.toml", LARGE)]) else { return };
    let queue = |name: &str| format!("/v1/queues/orders%2Fsubscriptions%2F{name}");
    let completed = |count: u64| move |view: &Value| view["counts"]["completed"] == count;
    let publish = |nodes: &[usize], workflow: u64, number: u64| {
        let key = format!("{workflow}-{number}");
        let sent = cluster.publish(nodes, "orders", &key, &message(workflow, number));
        let copies = sent["copies"].as_array().map(Vec::len);
        assert_eq!(copies, Some(if number.is_multiple_of(2) { 2 } else { 1 }), "{sent}");
    };
    for number in 1..=4 {
        (0..WORKFLOWS).for_each(|workflow| publish(&[0], workflow, number));
    }
    cluster.wait_for(1, &queue("all"), completed(WORKFLOWS * 4));
    cluster.wait_for(2, &queue("large"), completed(WORKFLOWS * 2));
    cluster.signal(1, Signal::KILL);
    for number in 5..=8 {
        (0..WORKFLOWS).for_each(|workflow| publish(&[2, 0], workflow, number));
    }
    let all = cluster.wait_for(0, &queue("all"), completed(WORKFLOWS * 8));
    let large = cluster.wait_for(2, &queue("large"), completed(WORKFLOWS * 4));
    assert_eq!(all["counts"]["accepted"], WORKFLOWS * 8, "{all}");
    assert_eq!(large["counts"]["accepted"], WORKFLOWS * 4, "{large}");
    let (all, large) = (handled(&cluster, "all"), handled(&cluster, "large"));
    for workflow in (0..WORKFLOWS).map(|workflow| format!("o{workflow}")) {
        assert_eq!(all[&workflow], (1..=8).collect::<Vec<u64>>(), "{workflow}");
        assert_eq!(large[&workflow], [2, 4, 6, 8], "{workflow}");
    }
    let topics = cluster.json(2, "GET", "/v1/topics", &Value::Null);
    let names: Vec<&Value> = topics["topics"][0]["subscriptions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|shown| &shown["name"])
        .collect();
    assert_eq!(names, ["all", "large"], "{topics}");
}

#[test]
fn topics_are_made_changed_and_deleted_over_http_at_any_node() {
    let Some(cluster) = Cluster::start(2, &[]) else { return };
    cluster.json(0, "PUT", "/v1/topics/news", &json!({}));
    cluster.json(
        1,
        "PUT",
        "/v1/topics/news/subscriptions/some",
        &json!({ "rules": [{ "filter": "a = 1" }] }),
    );
    let rule = "/v1/topics/news/subscriptions/some/rules/two";
    cluster.json(0, "PUT", rule, &json!({ "filter": "a = 2" }));
    let sent = |node: usize, a: u64| {
        let message = json!({ "workflow_id": "w", "properties": { "a": a }, "body_text": "x" });
        cluster.publish(&[node], "news", &format!("{node}-{a}"), &message)["copies"].as_array().map(Vec::len)
    };
    assert_eq!((sent(0, 1), sent(1, 2), sent(0, 3)), (Some(1), Some(1), Some(0)));
    assert_eq!(cluster.ask(1, "DELETE", rule, &Value::Null).map(|(status, _)| status), Some(204));
    assert_eq!((sent(0, 2), sent(1, 1)), (Some(0), Some(1)));
    let view = cluster.json(1, "GET", "/v1/queues/news%2Fsubscriptions%2Fsome", &Value::Null);
    assert_eq!(view["counts"]["ready"], 3, "{view}");
    assert_eq!(
        cluster.ask(0, "DELETE", "/v1/topics/news", &Value::Null).map(|(status, _)| status),
        Some(204)
    );
    let gone = cluster.ask(1, "GET", "/v1/topics/news", &Value::Null);
    assert_eq!(gone.map(|(status, _)| status), Some(404));
    assert_eq!(cluster.stop(), Some(0));
}
