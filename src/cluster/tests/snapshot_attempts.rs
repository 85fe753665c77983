//! Attempts to take a snapshot of which the servers do not take everything.

use std::sync::Mutex;

use async_nats::jetstream;
use async_nats::jetstream::stream::Config;

use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::snapshot_pace::SnapshotHook;
use crate::cluster::snapshot_pace::SnapshotStep;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::snapshots::ENTRIES;
use crate::cluster::tests::snapshots::Load;
use crate::cluster::tests::snapshots::Observer;
use crate::cluster::tests::snapshots::options;
use crate::cluster::tests::snapshots::wait_for;

/// Lets the bucket of a cluster take no value of more bytes; -1 lets it take any.
async fn limit_bucket(options: &ClusterOptions, bytes: i32) {
    let context = jetstream::new(async_nats::connect(&options.servers).await.unwrap());
    let bucket = context.get_stream(format!("KV_{}", options.bucket())).await.unwrap();
    let config = Config { max_message_size: bytes, ..bucket.cached_info().config.clone() };
    context.update_stream(config).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_could_not_be_listed_is_listed_before_another_is_taken() {
    /// So many attempts are looked at.
    const ATTEMPTS: usize = 4;
    /// How many objects there were at each attempt to list one.
    static LISTED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let (mut options, outside) = (options(&servers, "first"), options(&servers, "outside"));
    let operator = outside.clone();
    let refuse = move |step: SnapshotStep| {
        if step == SnapshotStep::List && LISTED.lock().unwrap().len() < ATTEMPTS {
            let refuse = async {
                let observer = Observer::of(outside.clone(), 0).await;
                limit_bucket(&outside, 1).await;
                observer.object_names().await.len()
            };
            let there = tokio::runtime::Runtime::new().unwrap().block_on(refuse);
            LISTED.lock().unwrap().push(there);
        }
    };
    options.snapshots.hook = Some(SnapshotHook(Box::leak(Box::new(refuse))));
    let node = ClusterNode::start(options).await.unwrap();
    load.send(&node, ENTRIES).await;
    wait_for("it was tried often", || LISTED.lock().unwrap().len() >= ATTEMPTS);
    let objects = LISTED.lock().unwrap().clone();
    assert!(objects.iter().all(|there| *there == 1), "no other is taken: {objects:?}");
    limit_bucket(&operator, -1).await;
    load.send_until_trimmed(&node, &observer, 0).await;
    load.receive_all(&node).await;
    node.close().await;
}
