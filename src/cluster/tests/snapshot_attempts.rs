//! Attempts to take a snapshot of which the servers do not take everything.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use async_nats::jetstream;
use async_nats::jetstream::stream::Config;

use crate::cluster::hashing::partition_of;
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
use crate::id::WorkflowId;
use crate::message::Message;
use crate::queue::QueueOptions;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_whose_stream_is_gone_keeps_no_other_from_its_snapshots() {
    static IS_GONE: AtomicBool = AtomicBool::new(false);
    let Some(servers) = NatsServers::start(1) else { return };
    let of_two = |node: &str| options(&servers, node).partitions(2);
    let (mut options, outside) = (of_two("first"), of_two("outside"));
    let lose = move |step: SnapshotStep| {
        if step == SnapshotStep::ReadBack && !IS_GONE.swap(true, Ordering::Relaxed) {
            let lose = async {
                let context = jetstream::new(async_nats::connect(&outside.servers).await.unwrap());
                context.delete_stream(outside.stream(0)).await.unwrap();
            };
            tokio::runtime::Runtime::new().unwrap().block_on(lose);
        }
    };
    options.snapshots.hook = Some(SnapshotHook(Box::leak(Box::new(lose))));
    let node = ClusterNode::start(options).await.unwrap();
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let send_to = async |partition: u16| {
        let is_of = |id: &WorkflowId| partition_of(queue.name(), id, 2) == partition;
        let mut ids = (0..).map(|number: u32| WorkflowId::new(format!("w{number}")).unwrap());
        let workflow = ids.find(is_of).unwrap();
        for _ in 0..ENTRIES {
            queue.send(Message::new("x").workflow(workflow.as_str())).await.unwrap();
        }
    };
    send_to(0).await;
    wait_for("a snapshot of the first is taken", || IS_GONE.load(Ordering::Relaxed));
    send_to(1).await;
    wait_for("the other has a snapshot", || !node.status()[1].snapshots.is_empty());
    assert!(node.status()[0].snapshots.is_empty());
    node.close().await;
}
