//! Partitions that are given to another node in good order.

use std::time::Duration;

use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::workflow_of;
use crate::cluster::tests::takeover::LEASE;
use crate::cluster::tests::takeover::first_of;
use crate::cluster::tests::takeover::start_both;
use crate::error::SettleRefusal;
use crate::message::Message;
use crate::queue::QueueOptions;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_locked_is_settled_before_its_partition_is_given_away_and_nothing_more_is_handed_out() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let queue = first.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let partition = first_of(&first).unwrap();
    let send = async |workflow: &str, text: &str| {
        queue.send(Message::new(text.to_owned()).workflow(workflow)).await.unwrap();
    };
    send(&workflow_of(partition), "held").await;
    let mut held = queue.receive(Duration::from_secs(10)).await.unwrap().expect("it was sent");
    let waits = tokio::spawn({
        let queue = queue.clone();
        async move { queue.receive(Duration::from_secs(30)).await.unwrap() }
    });
    first.drain();
    pause(LEASE).await;
    send(&workflow_of(partition), "later").await;
    assert!(first.engine(partition).is_some(), "somebody has something to settle");
    held.complete().await.expect("it still has its lock");
    let is_given = || second.engine(partition).is_some();
    tokio::task::block_in_place(|| wait_until("the other node has it", is_given));
    let mut later = waits.await.unwrap().expect("the other node hands it out");
    assert_eq!((&later.message().body[..], later.message().delivery_count), (&b"later"[..], 1));
    // On a machine that is busy for longer than a lease it loses the partition, and is handed the message again.
    while let Err(error) = later.complete().await {
        assert_eq!(error.refusal(), Some(&SettleRefusal::LockLost), "{error}");
        later = queue.receive(Duration::from_secs(30)).await.unwrap().expect("it is handed out again");
        assert_eq!(&later.message().body[..], b"later");
    }
    first.close().await;
    second.close().await;
}
