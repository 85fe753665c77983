//! The endpoint of Service Bus on a cluster, towards Azure's own SDK.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use serde_json::json;

use crate::cluster::fixture::Cluster;
use crate::fixture::skip::skip_unless_ci;
use crate::sdk::kit::kit;

#[test]
fn what_is_sent_over_service_bus_at_one_node_is_received_and_settled_at_another() {
    let kit = match kit("python") {
        Ok(kit) => kit,
        Err(why) => return skip_unless_ci("Service Bus on a cluster", &why),
    };
    let Some(cluster) = Cluster::start_with(2, &[], &["--amqp", "127.0.0.1:0"]) else { return };
    cluster.json(0, "PUT", "/v1/queues/parcels", &json!({ "retry": { "then": "skip" } }));
    cluster.json(1, "PUT", "/v1/topics/orders", &json!({}));
    for (node, name) in ["billing", "review"].into_iter().enumerate() {
        cluster.json(node, "PUT", &format!("/v1/topics/orders/subscriptions/{name}"), &json!({}));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/service_bus.py");
    let mut command = Command::new(&kit.program);
    command.arg(script).args([cluster.address(0, "amqp"), cluster.address(1, "amqp")]);
    let played = command.output().expect("the script starts");
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
    let view = cluster.json(1, "GET", "/v1/queues/parcels", &Value::Null);
    assert_eq!((&view["counts"]["completed"], &view["counts"]["stored"]), (&json!(19), &json!(0)), "{view}");
    assert_eq!(cluster.stop(), Some(0));
}
