//! What queues there are, where nodes hear late of what others define.

use std::time::Duration;

use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::has_all;
use crate::cluster::tests::router::nodes;
use crate::cluster::tests::router::workflows;
use crate::engine::Queue;
use crate::message::Message;
use crate::queue::QueueOptions;

/// Sends a message to each workflow, and with them to each partition.
async fn send_to_all(queue: &Queue) {
    for workflow in workflows() {
        queue.send(Message::new("kept").workflow(&workflow)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_heard_late_of_a_queue_made_anew_takes_over_without_deleting_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    let client = nodes[0].client();
    client.create_queue("q", QueueOptions::default()).await.unwrap();
    client.delete_queue("q").await.unwrap();
    nodes[1].read_definitions().await;
    nodes[1].drain();
    tokio::task::block_in_place(|| wait_until("the first node has all", || has_all(&nodes[0])));
    nodes[1].set_deaf(true);
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    send_to_all(&queue).await;
    nodes[1].come_back_without(PARTITIONS);
    nodes.remove(0).abandon();
    tokio::task::block_in_place(|| wait_until("the second node has all", || has_all(&nodes[0])));
    let queue = nodes[0].client().queue("q").unwrap();
    assert_eq!(queue.view().await.unwrap().counts.ready, workflows().len() as u64);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_everywhere_though_a_node_makes_another_before_it_hears_of_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    nodes[1].set_deaf(true);
    let client = nodes[0].client().clone();
    let other = tokio::spawn(async move { client.create_queue("q1", QueueOptions::default()).await });
    let first_knows = || nodes[0].knows_queue("q1");
    tokio::task::block_in_place(|| wait_until("the first node has put it", first_knows));
    nodes[1].client().create_queue("q2", QueueOptions::default()).await.unwrap();
    nodes[1].set_deaf(false);
    nodes[1].read_definitions().await;
    let queue = tokio::time::timeout(Duration::from_secs(30), other).await.unwrap().unwrap().unwrap();
    send_to_all(&queue).await;
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_deleted_queues_and_topics_count_and_can_be_had_again() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let client = nodes[0].client();
    nodes[0].handle().router.definitions.names_allowed.set(2).unwrap();
    for _ in 0..2 {
        client.create_queue("q", QueueOptions::default()).await.unwrap();
        client.delete_queue("q").await.unwrap();
        client.create_topic("t").await.unwrap();
        client.delete_topic("t").await.unwrap();
    }
    let queue = client.create_queue("q2", QueueOptions::default()).await.err().unwrap().to_string();
    let topic = client.create_topic("t2").await.err().unwrap().to_string();
    for why in [queue, topic] {
        assert!(why.contains("no further name can be had"), "{why}");
    }
    client.create_topic("q").await.unwrap();
    close(nodes).await;
}
