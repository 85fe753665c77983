//! What nodes ask each other while partitions move, and processes hang or are gone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use futures_util::StreamExt;
use futures_util::stream;

use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::nodes;
use crate::message::Message;
use crate::queue::QueueOptions;

/// How many are under way at once.
const AT_ONCE: usize = 8;

/// How often the partitions move.
const MOVES: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_without_waiting_is_stored_in_its_order_while_its_partition_moves() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (names, is_over) = (["first", "second"], Arc::new(AtomicBool::new(false)));
    let nodes = nodes(&servers, &names).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let sending = tokio::spawn({
        let is_over = is_over.clone();
        async move {
            let numbers = stream::iter((0_u64..).take_while(|_| !is_over.load(Ordering::Relaxed)));
            let sends = numbers.map(|number| queue.send(Message::new(number.to_string()).workflow("w")));
            // What was not acknowledged has no place to keep.
            let sent = sends.buffered(AT_ONCE).filter_map(async |sent| sent.ok());
            sent.map(|receipt| receipt.sequence_number()).collect::<Vec<_>>().await
        }
    });
    for turn in 0..MOVES {
        let (from, to) = (turn % 2, (turn + 1) % 2);
        nodes[to].handle().drain_node(names[to], false).await.unwrap();
        nodes[from].drain();
        let has_all = || (0..PARTITIONS).all(|number| nodes[to].engine(number).is_some());
        tokio::task::block_in_place(|| wait_until("the other node has all partitions", has_all));
    }
    is_over.store(true, Ordering::Relaxed);
    let numbers = sending.await.unwrap();
    assert!(numbers.len() > MOVES * AT_ONCE, "{}", numbers.len());
    let overtaken: Vec<_> = numbers.windows(2).filter(|pair| pair[0] >= pair[1]).collect();
    assert!(overtaken.is_empty(), "of {}: {overtaken:?}", numbers.len());
    close(nodes).await;
}
