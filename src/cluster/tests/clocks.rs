//! What the wall clocks of nodes show, however far from each other, ends nothing early when another node takes over.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::node::ClusterNode;
use crate::cluster::options::NodeClock;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::process::SteppedClock;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::has_all;
use crate::cluster::tests::router::workflow_of;
use crate::engine::Queue;
use crate::id::IdempotencyKey;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::QueueOptions;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A node whose wall clock is ahead of the others by so many hours.
async fn start(servers: &NatsServers, name: &str, hours_ahead: i64) -> ClusterNode {
    let clock = SteppedClock::default();
    clock.step(hours_ahead * 3_600_000);
    let mut options = servers.options("clocks", name).partitions(PARTITIONS);
    options.clock = NodeClock(Arc::new(clock));
    ClusterNode::start(options).await.unwrap()
}

/// Sends a message that lives for an hour to each partition, under a key.
async fn send_once(queue: &Queue) -> Vec<Option<SequenceNumber>> {
    let mut numbers = Vec::new();
    for partition in 0..PARTITIONS {
        let key = IdempotencyKey::new(format!("to {partition}"), 0).unwrap();
        let message = Message::new("once").workflow(workflow_of(partition)).time_to_live(HOUR);
        let receipts = queue.send_batch_once(key, [message]).await.unwrap();
        numbers.push(receipts[0].sequence_number());
    }
    numbers
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    tokio::task::block_in_place(|| wait_until(what, is_so));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_ends_early_when_a_node_takes_over_whose_wall_clock_is_hours_ahead() {
    let Some(servers) = NatsServers::start(1) else { return };
    let first = start(&servers, "first", 0).await;
    wait("the first node has everything", || has_all(&first));
    let queue = first.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let numbers = send_once(&queue).await;
    let positions = |node: &ClusterNode| -> Vec<u64> {
        node.status().into_iter().map(|status| status.position).collect()
    };
    let before = positions(&first);
    let second = start(&servers, "second", 12).await;
    // Some are given to it in good order, the others it takes when the first is gone.
    let has_some = || (0..PARTITIONS).any(|number| second.engine(number).is_some());
    wait("the second node has its share", has_some);
    // Nothing is asked meanwhile: what the owners' clocks show is written down for the node that has come.
    wait("the second node has read everything", || {
        positions(&first)
            .iter()
            .zip(positions(&second))
            .zip(&before)
            .all(|((first, second), before)| *first > *before && *first <= second)
    });
    first.abandon();
    wait("the second node has everything", || has_all(&second));
    let queue = second.client().queue("q").unwrap();
    assert_eq!(send_once(&queue).await, numbers, "what is asked again is answered as the first time");
    let counts = queue.view().await.unwrap().counts;
    let all = u64::from(PARTITIONS);
    assert_eq!((counts.accepted, counts.ready, counts.expired), (all, all, 0));
    second.close().await;
}
