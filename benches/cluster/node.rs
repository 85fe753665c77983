//! A node in a process of its own: the benchmark again, until its input ends.

use std::io::Read;
use std::time::Duration;

use seriatim::cluster::ClusterNode;
use seriatim::cluster::ClusterOptions;

/// Runs a node until its input ends. `partitions` says how many there are and how long the lease is, in milliseconds.
pub(crate) fn run(name: &str, folder: &str, partitions: &str, servers: &str) {
    let (partitions, lease_ms) = partitions.split_once('/').expect("partitions and lease");
    let options = ClusterOptions::new("bench", name, folder)
        .partitions(partitions.parse().expect("a number"))
        .lease(Duration::from_millis(lease_ms.parse().expect("a number")));
    let addresses = servers.split(',').filter_map(|server| server.split_once('='));
    let options = addresses.fold(options, |options, (server, monitor)| options.server(server, monitor));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let node = runtime.block_on(ClusterNode::start(options)).expect("the servers are as they have to be");
    println!("started");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    runtime.block_on(node.close());
}
