//! Nodes whose connection to NATS is gone, or takes nothing.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::cluster::node::ClusterNode;
use crate::cluster::nodes::NodeAnswer;
use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::proxy::Link;
use crate::cluster::tests::proxy::LinkState;
use crate::cluster::tests::proxy::Network;
use crate::cluster::tests::takeover::LEASE;
use crate::cluster::wire::Ask;
use crate::cluster::wire::What;

/// More than the client of NATS keeps for when it is connected.
const ASKED: usize = 3_000;

/// A node that reaches a server by so many ways.
async fn linked(servers: &NatsServers, network: &Network, ways: usize) -> (ClusterNode, Vec<Link>) {
    let port = servers.ports()[0];
    let links: Vec<Link> = tokio::task::block_in_place(|| (0..ways).map(|_| network.link(port)).collect());
    let mut options = servers.options("linked", "first").partitions(2).lease(LEASE);
    options.servers = links.iter().map(|link| format!("nats://127.0.0.1:{}", link.port)).collect();
    (ClusterNode::start(options).await.unwrap(), links)
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    tokio::task::block_in_place(|| wait_until(what, is_so));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_connection_asks_nobody_and_ends_in_time() {
    let Some(servers) = NatsServers::start(1) else { return };
    let network = Network::begin();
    let (node, links) = linked(&servers, &network, 1).await;
    wait_for("it has a partition", || node.engine(0).is_some());
    let nodes = node.handle().router.nodes.clone();
    links[0].set(LinkState::Cut);
    wait_for("it is not connected", || !nodes.is_connected());
    let mut asked = JoinSet::new();
    for _ in 0..ASKED {
        let nodes = nodes.clone();
        asked.spawn(
            async move { nodes.ask(("second", 7), &Ask::of_node(What::Overview), Duration::ZERO).await },
        );
    }
    let answers = tokio::time::timeout(Duration::from_secs(30), asked.join_all()).await;
    let answers = answers.expect("nobody waits for the connection");
    assert!(answers.iter().all(|answer| matches!(answer, NodeAnswer::Nobody)));
    tokio::time::timeout(Duration::from_secs(30), node.close()).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_server_says_nothing_any_more_looks_for_another_within_seconds() {
    let Some(servers) = NatsServers::start(1) else { return };
    let network = Network::begin();
    let (node, links) = linked(&servers, &network, 2).await;
    for link in &links {
        // One of both is the one by which it is connected.
        link.set(LinkState::Hanging);
        pause(LEASE * 2).await;
        wait_for("it hears itself", || node.nodes() == ["first"]);
        link.set(LinkState::Open);
    }
    node.close().await;
}
