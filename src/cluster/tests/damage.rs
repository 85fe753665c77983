//! One server of three has lost or changed what it had acknowledged: a node that reads it all again has everything in order, or
//! stops with one sentence. It never skips.

use std::path::Path;
use std::time::Duration;

use async_nats::jetstream;

use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::partition::PartitionState;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::engine::Queue;
use crate::engine::tests::log::Random;
use crate::message::Message;
use crate::queue::QueueOptions;

const MESSAGES: u64 = 120;

fn options(servers: &NatsServers, node: &str) -> ClusterOptions {
    servers.options("damage", node).partitions(1).lease(Duration::from_millis(500))
}

/// Starts a node as soon as the servers have found together.
async fn start(servers: &NatsServers, node: &str) -> ClusterNode {
    for _ in 0..10 {
        match ClusterNode::start(options(servers, node)).await {
            Ok(node) => return node,
            Err(error) => println!("not yet: {error}"),
        }
    }
    panic!("the servers do not answer");
}

async fn queue(node: &ClusterNode) -> Queue {
    node.client().create_queue("q", QueueOptions::by_position()).await.unwrap()
}

/// Sends messages of one workflow, each an entry, and leaves.
async fn fill(servers: &NatsServers) {
    let node = start(servers, "first").await;
    let queue = queue(&node).await;
    for position in 1..=MESSAGES {
        let body = vec![u8::try_from(position % 251).unwrap(); 400];
        queue.send(Message::new(body).workflow("w").position(position)).await.unwrap();
    }
    node.close().await;
}

/// Receives everything with a node that has no file: in order, and nothing is missing.
async fn read_all(servers: &NatsServers, seed: u64) {
    let node = start(servers, "second").await;
    let is_decided = || match node.status()[0].state {
        PartitionState::Owner => true,
        PartitionState::Stopped(ref why) => !why.is_empty(),
        PartitionState::Following => false,
    };
    tokio::task::block_in_place(|| wait_until("the partition is read, or stopped", is_decided));
    if let PartitionState::Stopped(why) = node.status()[0].state.clone() {
        println!("SERIATIM_SEED={seed}: stopped: {why}");
    } else {
        let queue = queue(&node).await;
        for position in 1..=MESSAGES {
            let mut delivery = queue.receive(Duration::ZERO).await.unwrap().expect("it was acknowledged");
            assert_eq!(delivery.message().rank, position, "SERIATIM_SEED={seed}");
            delivery.complete().await.unwrap();
        }
        assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
    }
    node.close().await;
}

/// Damages what one of three servers has, which one says the seed, and reads everything.
async fn survives(damage: impl Fn(&Path, &mut Random)) {
    let seed = std::env::var("SERIATIM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (mut random, number) = (Random::new(seed), usize::try_from(seed % 3).unwrap());
    let Some(mut servers) = NatsServers::start(3) else { return };
    fill(&servers).await;
    servers.kill(number);
    let block =
        servers.largest_block(number, "seriatim-damage-0").expect("a server keeps messages in blocks");
    damage(&block, &mut random);
    servers.start_again(number);
    tokio::task::block_in_place(|| servers.wait());
    read_all(&servers, seed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_on_one_server_loses_and_skips_nothing() {
    survives(|block, random| {
        let mut bytes = std::fs::read(block).unwrap();
        let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
        bytes[at] ^= 1 << random.below(8);
        std::fs::write(block, bytes).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_tail_on_one_server_loses_and_skips_nothing() {
    survives(|block, random| {
        let bytes = std::fs::read(block).unwrap();
        let kept = bytes.len() / 2 + usize::try_from(random.below(bytes.len() as u64 / 2)).unwrap();
        std::fs::write(block, &bytes[..kept]).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_goes_on_when_its_log_has_again_what_it_had() {
    let Some(servers) = NatsServers::start(1) else { return };
    fill(&servers).await;
    let options = options(&servers, "first");
    let context = jetstream::new(async_nats::connect(&options.servers).await.unwrap());
    let mut stream = context.get_stream(options.stream(0)).await.unwrap();
    let mut entries = Vec::new();
    for position in 1..=stream.info().await.unwrap().state.last_sequence {
        entries.push(stream.get_raw_message(position).await.unwrap());
    }
    context.delete_stream(options.stream(0)).await.unwrap();
    let node = start(&servers, "first").await;
    let is_stopped = || matches!(node.status()[0].state, PartitionState::Stopped(_));
    tokio::task::block_in_place(|| wait_until("the partition is stopped", is_stopped));
    for entry in entries {
        let sent = context.publish_with_headers(options.subject(0), entry.headers, entry.payload).await;
        sent.unwrap().await.unwrap();
    }
    tokio::task::block_in_place(|| wait_until("it goes on", || node.engine(0).is_some()));
    assert_eq!(queue(&node).await.view().await.unwrap().counts.accepted, MESSAGES);
    node.close().await;
}
