//! What a cluster of daemons promises, towards those who speak HTTP with it and the programs that handle messages.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;

use crate::cluster::fixture::Cluster;
use crate::cluster::fixture::PARTITIONS;

/// Handlers that write down what they got, and in which node's process.
const ORDERS: &str = r#"
order = "position"
key = "/order"
position = "/number"

[[handler]]
exec = ["sh", "-c", 'body=$(cat); echo "$body $PPID" >> FOLDER/handled']
"#;

const WORKFLOWS: u64 = 6;

fn message(workflow: u64, number: u64) -> Value {
    json!({ "order": format!("o{workflow}"), "number": number })
}

/// What was handled, in the order in which it was: workflow, number, and the process of the node.
fn handled(cluster: &Cluster) -> Vec<(String, u64, String)> {
    let text = std::fs::read_to_string(cluster.path().join("handled")).unwrap_or_default();
    let read = |line: &str| {
        let (body, node) = line.rsplit_once(' ')?;
        let body: Value = serde_json::from_str(body).ok()?;
        Some((body["order"].as_str()?.to_owned(), body["number"].as_u64()?, node.to_owned()))
    };
    text.lines().map(|line| read(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

const COMPLETED: &str = "seriatim_messages_completed_total{queue=\"orders\"}";

/// A number on a node's page of metrics.
fn metric(cluster: &Cluster, node: usize, name: &str) -> u64 {
    let (_, page) = cluster.ask(node, "GET", "/metrics", &Value::Null).expect("the node answers");
    assert!(page.contains("seriatim_cluster_partitions_owned"), "{page}");
    // A node that owns nothing has no queues to count.
    page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn what_one_node_accepts_any_node_handles_and_a_killed_one_loses_and_overtakes_nothing() {
    let Some(mut cluster) = Cluster::start(3, &[("orders.toml", ORDERS)]) else { return };
    let counts =
        |count: u64| move |view: &Value| view["counts"]["completed"] == count && view["counts"]["ready"] == 0;
    for number in 1..=3 {
        for workflow in 0..WORKFLOWS {
            cluster.send(&[0], "orders", &message(workflow, number));
        }
    }
    cluster.wait_for(1, "/v1/queues/orders", counts(WORKFLOWS * 3));
    let nodes: BTreeSet<String> = handled(&cluster).into_iter().map(|(_, _, node)| node).collect();
    assert!(nodes.len() > 1, "only {nodes:?} has handled anything");
    let completed: Vec<u64> = (0..3).map(|node| metric(&cluster, node, COMPLETED)).collect();
    assert_eq!(completed.iter().sum::<u64>(), WORKFLOWS * 3, "each node counts its own: {completed:?}");
    let owned: Vec<u64> =
        (0..3).map(|node| metric(&cluster, node, "seriatim_cluster_partitions_owned")).collect();
    assert_eq!(owned.iter().sum::<u64>(), PARTITIONS as u64, "{owned:?}");
    let sum = |name: &str| (0..3).map(|node| metric(&cluster, node, name)).sum::<u64>();
    assert!(sum("seriatim_cluster_takeovers_total") >= PARTITIONS as u64);
    assert!(sum("seriatim_cluster_append_duration_seconds_count") > WORKFLOWS * 3);
    assert_eq!(metric(&cluster, 0, "seriatim_cluster_nodes"), 3);
    cluster.signal(1, Signal::KILL);
    for number in 4..=6 {
        for workflow in 0..WORKFLOWS {
            cluster.send(&[2, 0], "orders", &message(workflow, number));
        }
    }
    cluster.start_again(1);
    for number in 7..=8 {
        for workflow in 0..WORKFLOWS {
            cluster.send(&[1], "orders", &message(workflow, number));
        }
    }
    let view = cluster.wait_for(0, "/v1/queues/orders", counts(WORKFLOWS * 8));
    assert_eq!(view["counts"]["accepted"], WORKFLOWS * 8, "{view}");
    let mut by_workflow: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (workflow, number, _) in handled(&cluster) {
        let numbers = by_workflow.entry(workflow).or_default();
        // An attempt that a kill cut off is made again, and nothing else is handled twice.
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }
    for (workflow, numbers) in &by_workflow {
        assert_eq!(*numbers, (1..=8).collect::<Vec<u64>>(), "{workflow}");
    }
    assert_eq!(by_workflow.len() as u64, WORKFLOWS);
    assert_eq!(cluster.stop(), Some(0));
}

/// A schedule that ticks every second, into a workflow of its own.
const TICKS: &str = r#"
[[schedule]]
name = "second"
cron = "* * * * * *"
missed = "all"
workflow_id = "seconds"
"#;

#[test]
fn a_schedule_ticks_once_in_the_cluster_whichever_node_dies() {
    let Some(mut cluster) = Cluster::start(3, &[("ticks.toml", TICKS)]) else { return };
    let accepted = |count: u64| move |view: &Value| view["counts"]["accepted"].as_u64() >= Some(count);
    cluster.wait_for(0, "/v1/queues/ticks", accepted(3));
    // Whoever has the partition of the schedule is one of them.
    for node in [2, 1] {
        let before = cluster.json(0, "GET", "/v1/queues/ticks", &Value::Null)["counts"]["accepted"].clone();
        cluster.signal(node, Signal::KILL);
        cluster.wait_for(0, "/v1/queues/ticks", accepted(before.as_u64().unwrap() + 3));
        cluster.start_again(node);
    }
    let page = cluster.json(0, "GET", "/v1/queues/ticks/messages?limit=1000", &Value::Null);
    let mut ticks = Vec::new();
    for message in page["messages"].as_array().unwrap() {
        let instant = message["message_id"].as_str().unwrap().trim_start_matches("second/");
        ticks.push(instant.parse::<seriatim::api::WireTime>().unwrap().0.as_millis() / 1000);
    }
    let seconds: Vec<u64> = (ticks[0]..).take(ticks.len()).collect();
    assert_eq!(ticks, seconds, "each second once, and none is left out");
    assert_eq!(cluster.stop(), Some(0));
}

#[test]
fn nothing_is_left_of_a_cluster_whose_process_was_killed() {
    let Some(mut cluster) = Cluster::start(2, &[("orders.toml", ORDERS)]) else { return };
    cluster.send(&[0], "orders", &message(1, 1));
    cluster.kill();
    cluster.wait_until_all_is_gone();
}

#[test]
fn whoever_looks_at_the_cluster_drains_a_node_and_moves_a_partition_through_any_node() {
    let Some(cluster) = Cluster::start(2, &[("orders.toml", ORDERS)]) else { return };
    let owners = |view: &Value| -> Vec<String> {
        let owner = |partition: &Value| partition["owner"].as_str().unwrap_or("nobody").to_owned();
        view["partitions"].as_array().into_iter().flatten().map(owner).collect()
    };
    let all_of = |node: &'static str| move |view: &Value| owners(view) == vec![node; PARTITIONS];
    let both = |view: &Value| {
        let owners = owners(view);
        owners.contains(&"node-1".to_owned()) && owners.contains(&"node-2".to_owned())
    };
    let view = cluster.wait_for(0, "/v1/cluster", both);
    assert_eq!((view["cluster"].as_str(), view["node"].as_str()), (Some("dev"), Some("node-1")));
    cluster.json(0, "POST", "/v1/cluster/drain", &json!({ "node": "node-2" }));
    let view = cluster.wait_for(1, "/v1/cluster", all_of("node-1"));
    assert_eq!((&view["nodes"][1]["drains"], &view["nodes"][1]["owned"]), (&json!(true), &json!(0)));
    cluster.send(&[1], "orders", &message(1, 1));
    cluster.json(1, "POST", "/v1/cluster/drain", &json!({ "node": "node-2", "undo": true }));
    cluster.wait_for(0, "/v1/cluster", both);
    // The hash gives this one to `node-1`.
    let position = 2;
    cluster.json(1, "POST", "/v1/cluster/move", &json!({ "partition": position, "node": "node-2" }));
    let is_moved = |view: &Value| view["partitions"][position]["owner"] == "node-2";
    let view = cluster.wait_for(0, "/v1/cluster", is_moved);
    assert_eq!(view["partitions"][position]["moved_to"], "node-2");
    cluster.json(0, "POST", "/v1/cluster/move", &json!({ "partition": position }));
    cluster.wait_for(0, "/v1/cluster", |view| view["partitions"][position]["owner"] == "node-1");
    let has_no_lag =
        |view: &Value| view["partitions"][position]["lags"] == json!([{ "node": "node-2", "entries": 0 }]);
    cluster.wait_for(0, "/v1/cluster", has_no_lag);
    for (path, body, code) in [
        ("/v1/cluster/drain", json!({ "node": "node-9" }), "node_not_found"),
        ("/v1/cluster/move", json!({ "partition": PARTITIONS, "node": "node-1" }), "partition_not_found"),
    ] {
        let (status, text) = cluster.ask(0, "POST", path, &body).unwrap();
        assert!(status == 404 && text.contains(code), "{text}");
    }
    assert_eq!(cluster.stop(), Some(0));
}

/// The partition that is stopped on all nodes.
const STOPPED: u16 = 2;

/// Topics of which each partition has what is said of some.
fn many_topics() -> String {
    let topics: Vec<Value> =
        (0..3 * PARTITIONS).map(|number| json!({ "Name": format!("topic-{number}") })).collect();
    json!({ "UserConfig": { "Namespaces": [{ "Topics": topics }] } }).to_string()
}

#[test]
fn a_daemon_starts_while_a_partition_is_stopped_on_every_node() {
    let files = [("orders.toml", ORDERS), ("ticks.toml", TICKS)];
    let folder = tempfile::tempdir().unwrap();
    let topics = folder.path().join("Config.json");
    std::fs::write(&topics, many_topics()).unwrap();
    let endpoints = ["--amqp", "127.0.0.1:0", "--config-json", topics.to_str().unwrap()];
    let Some(mut cluster) = Cluster::start_with(3, &files, &endpoints) else { return };
    let is_without = |view: &Value| view["missing_partitions"] == json!([STOPPED]);
    cluster.spoil_log(STOPPED);
    // Its owner finds out when it appends.
    for workflow in 0..8 * PARTITIONS as u64 {
        let _ = cluster.ask(0, "POST", "/v1/queues/orders/messages", &message(workflow, 1));
    }
    cluster.wait_for(0, "/v1/queues/orders", is_without);
    cluster.signal(1, Signal::KILL);
    cluster.start_again(1);
    cluster.wait_for(1, "/v1/queues/orders", is_without);
    let (status, why) =
        cluster.ask(1, "GET", "/v1/queues/orders/workflows", &Value::Null).expect("it answers");
    assert!(
        status == 503 && why.contains("partition 2 of the cluster is stopped on every node"),
        "{status} {why}"
    );
    let is_handled =
        |view: &Value| view["counts"]["completed"].as_u64() > Some(0) && view["counts"]["ready"] == 0;
    cluster.wait_for(1, "/v1/queues/orders", is_handled);
    let (status, why) = cluster.ask(1, "GET", "/v1/audit", &Value::Null).expect("it answers");
    assert!(status == 501 && why.contains("unsupported"), "{status} {why}");
    let copy = json!({ "path": "copy.redb" });
    let (status, why) = cluster.ask(1, "POST", "/v1/backup", &copy).expect("it answers");
    assert!(status == 501 && why.contains("unsupported"), "{status} {why}");
}

/// What an administration client of Service Bus says of an entity.
fn described(element: &str, inside: &str) -> String {
    format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><{element} \
         xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\">{inside}</{element}>\
         </content></entry>"
    )
}

/// The headers of a document that says something of an entity.
const DOCUMENT: &[(&str, &str)] = &[("content-type", "application/atom+xml")];

/// The headers of one that changes it.
const CHANGE: &[(&str, &str)] = &[("content-type", "application/atom+xml"), ("if-match", "*")];

/// Stops partition 0 on the first node, which finds out when it appends.
fn stop_first_partition(cluster: &Cluster) {
    cluster.spoil_log(0);
    for workflow in 0..8 * PARTITIONS as u64 {
        let _ = cluster.ask(0, "POST", "/v1/queues/orders/messages", &message(workflow, 1));
    }
    cluster.wait_for(0, "/v1/queues/orders", |view| view["missing_partitions"] == json!([0]));
}

#[test]
fn an_entity_of_service_bus_keeps_its_description_while_the_partition_that_made_it_first_is_stopped() {
    let endpoints = ["--amqp", "127.0.0.1:0"];
    let Some(cluster) = Cluster::start_with(2, &[("orders.toml", ORDERS)], &endpoints) else { return };
    let administer = |method: &str, headers: &[(&str, &str)], text: &str| {
        cluster.ask_at((0, "amqp"), (method, "/parcels"), headers, text).expect("it answers")
    };
    let status_is = |status: &str| described("QueueDescription", &format!("<Status>{status}</Status>"));
    let (status, why) = administer("PUT", DOCUMENT, &status_is("Disabled"));
    assert_eq!(status, 201, "{why}");
    // It says whether a queue can be made, so it has made it first.
    stop_first_partition(&cluster);
    let (status, shown) = administer("GET", DOCUMENT, "");
    assert!(status == 200 && shown.contains("<Status>Disabled</Status>"), "{status} {shown}");
    let (status, why) = administer("PUT", CHANGE, &status_is("SendDisabled"));
    assert!(status == 503 && why.contains("is not changed while partition 0"), "{status} {why}");
    let (_, shown) = administer("GET", DOCUMENT, "");
    assert!(shown.contains("<Status>Disabled</Status>"), "{shown}");
}

#[test]
fn a_topic_of_service_bus_is_changed_with_its_subscriptions_or_not_at_all_while_a_partition_is_stopped() {
    let endpoints = ["--amqp", "127.0.0.1:0"];
    let Some(cluster) = Cluster::start_with(2, &[("orders.toml", ORDERS)], &endpoints) else { return };
    let administer = |method: &str, path: &str, headers: &[(&str, &str)], text: &str| {
        cluster.ask_at((0, "amqp"), (method, path), headers, text).expect("it answers")
    };
    let topic_lasts = |span: &str| {
        let inside = format!("<DefaultMessageTimeToLive>{span}</DefaultMessageTimeToLive>");
        described("TopicDescription", &inside)
    };
    let (topic, subscription) = ("/news", "/news/Subscriptions/s");
    let (status, why) = administer("PUT", topic, DOCUMENT, &topic_lasts("PT2H"));
    assert_eq!(status, 201, "{why}");
    let (status, why) = administer("PUT", subscription, DOCUMENT, &described("SubscriptionDescription", ""));
    assert_eq!(status, 201, "{why}");
    stop_first_partition(&cluster);
    let (status, why) = administer("PUT", topic, CHANGE, &topic_lasts("PT1H"));
    assert!(status == 503 && why.contains("is not changed while partition 0"), "{status} {why}");
    for path in [topic, subscription] {
        let (status, shown) = administer("GET", path, DOCUMENT, "");
        let lasts = "<DefaultMessageTimeToLive>PT2H<";
        assert!(status == 200 && shown.contains(lasts), "{path}: {status} {shown}");
    }
}

#[test]
fn a_node_that_was_down_while_a_key_changed_starts_though_messages_are_placed_by_it() {
    let Some(mut cluster) = Cluster::start(2, &[("orders.toml", "key = \"/order\"\n")]) else { return };
    let write = |cluster: &Cluster, key: &str| {
        let path = cluster.path().join("workflows/orders.toml");
        std::fs::write(path, format!("key = \"/{key}\"\n")).unwrap();
    };
    cluster.signal(1, Signal::KILL);
    write(&cluster, "customer");
    cluster.json(0, "POST", "/v1/definitions/reload", &Value::Null);
    let sent = json!({ "order": "a", "customer": "b", "other": "c" });
    cluster.send(&[0], "orders", &sent);
    cluster.start_again(1);
    cluster.send(&[1], "orders", &sent);
    // One whose acknowledgement is lost may be there twice.
    cluster.wait_for(1, "/v1/queues/orders/messages", |page| {
        let messages = page["messages"].as_array().map_or(&[][..], Vec::as_slice);
        messages.len() >= 2 && messages.iter().all(|message| message["workflow_id"] == "b")
    });
    // What no node has in force is refused as on one machine.
    write(&cluster, "other");
    for node in [0, 1] {
        let answer = cluster.ask(node, "POST", "/v1/definitions/reload", &Value::Null);
        let (status, why) = answer.expect("it answers");
        assert!(status >= 400 && why.contains("its key or position cannot change"), "{status} {why}");
    }
    assert_eq!(cluster.stop(), Some(0));
}

#[test]
fn a_node_that_was_down_starts_though_messages_are_placed_by_the_key_of_a_node_with_a_new_folder() {
    let Some(mut cluster) = Cluster::start(2, &[("orders.toml", "key = \"/order\"\n")]) else { return };
    cluster.signal(0, Signal::KILL);
    std::fs::remove_file(cluster.data(0).join("seriatim.json")).unwrap();
    std::fs::write(cluster.path().join("workflows/orders.toml"), "key = \"/customer\"\n").unwrap();
    cluster.start_again(0);
    cluster.signal(1, Signal::KILL);
    cluster.send(&[0], "orders", &json!({ "order": "a", "customer": "b" }));
    cluster.start_again(1);
    cluster.wait_for(1, "/v1/queues/orders/messages", |page| {
        let messages = page["messages"].as_array().map_or(&[][..], Vec::as_slice);
        !messages.is_empty() && messages.iter().all(|message| message["workflow_id"] == "b")
    });
    assert_eq!(cluster.stop(), Some(0));
}
