//! Nodes that do not hear something that others say: what they know then is old.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::cluster_state::PartitionHolder;
use crate::cluster::hashing::preferred;
use crate::cluster::hearing;
use crate::cluster::leases::Leases;
use crate::cluster::node::ClusterNode;
use crate::cluster::signals::Beat;
use crate::cluster::signals::NodeSignal;
use crate::cluster::signals::NodeSignals;
use crate::cluster::signals::bytes_of;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::has_all;
use crate::cluster::tests::router::workflow_of;
use crate::cluster::tests::takeover::LEASE;
use crate::cluster::tests::takeover::PARTITIONS;
use crate::cluster::tests::takeover::bucket;
use crate::cluster::tests::takeover::first_of;
use crate::cluster::tests::takeover::holder;
use crate::cluster::tests::takeover::start;
use crate::cluster::tests::takeover::start_both;
use crate::engine::Delivery;
use crate::engine::Receipt;
use crate::error::SettleError;
use crate::error::SettleRefusal;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    tokio::task::block_in_place(|| wait_until(what, is_so));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_deposed_and_has_not_heard_of_it_finds_and_refuses_nothing_by_what_it_has() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let partition = first_of(&first).unwrap();
    let workflow = workflow_of(partition);
    let queue = first.client().create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send(Message::new("x").workflow(&workflow)).await.unwrap();
    first.set_deaf_to_leases();
    second.set_deaf_to_others();
    wait_for("the other node has taken over", || second.engine(partition).is_some());
    assert!(first.engine(partition).is_some(), "it has not heard of it");
    let later = second.client().wall_now() + Duration::from_secs(3600);
    let message = Message::new("y").workflow(&workflow).schedule_at(later);
    let sent = second.client().queue("q").unwrap().send(message).await.unwrap();
    queue.cancel(sent.sequence_number().unwrap()).await.expect("the other node has it");
    second.client().queue("q").unwrap().send(Message::new("z").workflow(&workflow)).await.unwrap();
    let seen = queue.workflow(workflow.as_str()).unwrap().view().await.unwrap().unwrap();
    assert_eq!(seen.messages, 2);
    first.close().await;
    second.close().await;
}

/// The leases of a node of which nothing runs.
async fn leases(servers: &NatsServers) -> Leases {
    let options = servers.options("orders", "first").partitions(PARTITIONS).lease(LEASE);
    let client = async_nats::connect(&options.servers).await.unwrap();
    let signals = NodeSignals::new(client.clone(), "orders");
    Leases::open(&async_nats::jetstream::new(client), signals, &options, 7).await.unwrap()
}

fn beat(incarnation: u64) -> Beat {
    Beat { incarnation, drains: false, entry_version: 1 }
}

/// What a process has written that runs as the first node.
async fn entry_of_first(leases: &Leases) -> Option<Bytes> {
    leases.bucket.get("node.first").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leaves_takes_back_what_it_has_written_and_nothing_of_another_process_of_its_name() {
    let Some(servers) = NatsServers::start(1) else { return };
    let leases = Arc::new(leases(&servers).await);
    let write = |incarnation| leases.bucket.put("node.first", bytes_of(&beat(incarnation)));
    write(6).await.unwrap();
    leases.leave().await;
    assert_eq!(entry_of_first(&leases).await, Some(bytes_of(&beat(6))), "it has written nothing");
    write(7).await.unwrap();
    leases.state().enters = true;
    leases.leave().await;
    assert_eq!(entry_of_first(&leases).await, None, "it has written it, and nobody has said so");
    leases.clone().enter(ClusterStop::default()).await;
    write(8).await.unwrap();
    leases.leave().await;
    assert_eq!(entry_of_first(&leases).await, Some(bytes_of(&beat(8))), "its successor is there");
    leases.clone().enter(ClusterStop::default()).await;
    leases.leave().await;
    assert_eq!(entry_of_first(&leases).await, None);
}

fn held_by(node: &str, incarnation: u64) -> PartitionHolder {
    PartitionHolder { node: node.to_owned(), incarnation, released: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hears_itself_first_when_it_is_connected_again_takes_nothing_from_the_others() {
    let Some(servers) = NatsServers::start(1) else { return };
    let leases = leases(&servers).await;
    let says = |node: &str, incarnation| leases.hear(node, beat(incarnation), (Vec::new(), Vec::new()));
    says("first", 7);
    says("second", 8);
    leases.note_holder(0, 1, held_by("second", 8));
    pause(LEASE * 2).await;
    says("first", 7);
    assert_eq!(leases.may_claim(0), None, "it has not heard the others yet");
    let is_free = || {
        says("first", 7);
        leases.may_claim(0) == Some(1)
    };
    let clock = SystemClock::default();
    wait_for("nobody else is heard", is_free);
    assert!(clock.elapsed() > LEASE / 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_taken_from_a_node_that_has_it_and_says_that_it_does_not_go_on_with_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let leases = leases(&servers).await;
    let drains = Beat { drains: true, ..beat(9) };
    leases.note_holder(0, 1, held_by("second", 8));
    leases.note_holder(1, 1, held_by("second", 8));
    leases.note_holder(2, 1, held_by("third", 6));
    let may_claim = |partition| {
        leases.hear("first", beat(7), (Vec::new(), Vec::new()));
        leases.hear("second", beat(8), (vec![0], Vec::new()));
        leases.hear("third", drains, (Vec::new(), Vec::new()));
        leases.may_claim(partition).is_some()
    };
    wait_for("a claim that came late is no obstacle", || may_claim(0));
    wait_for("a process before one that drains is no obstacle", || may_claim(2));
    assert!(!may_claim(1), "whoever goes on keeps it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_not_read_all_of_a_partition_for_a_lease_says_that_it_is_behind() {
    let Some(servers) = NatsServers::start(1) else { return };
    let leases = leases(&servers).await;
    leases.note_read_up(0);
    leases.note_read_up(1);
    assert_eq!(leases.behind(), [0; 0]);
    assert!(leases.claim(1, 0).await);
    wait_for("it was long ago", || leases.behind() == [0]);
    leases.note_read_up(0);
    assert_eq!(leases.behind(), [0; 0]);
    leases.leave_to_others(0);
    assert_eq!(leases.behind(), [0], "it could not let it be used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_was_given_up_and_not_taken_is_kept_for_longer_each_time() {
    let Some(servers) = NatsServers::start(1) else { return };
    let leases = leases(&servers).await;
    let should_have = |number: &u16| preferred(*number, ["first", "second"].into_iter()) == Some("second");
    let number = (0..PARTITIONS).find(should_have).expect("the hash gives it something");
    let should_move = || {
        for (node, incarnation) in [("first", 7), ("second", 8)] {
            leases.hear(node, beat(incarnation), (Vec::new(), Vec::new()));
        }
        leases.should_move(number)
    };
    assert!(leases.claim(number, 0).await);
    wait_for("the other node is known for some time", should_move);
    for waited in [3, 6] {
        leases.release(number).await;
        let revision = leases.state().partitions[&number].0;
        assert!(leases.claim(number, revision).await);
        let clock = SystemClock::default();
        wait_for("the other node may take it meanwhile", should_move);
        assert!(clock.elapsed() > LEASE * waited, "{:?}", clock.elapsed());
    }
    leases.release(number).await;
    let revision = leases.state().partitions[&number].0;
    leases.note_holder(number, revision + 1, held_by("second", 8));
    leases.note_holder(number, revision + 2, held_by("first", 7));
    assert!(should_move(), "it was taken");
}

/// How many times the partitions were taken over, as far as one of the nodes knows.
fn epochs(nodes: &[&ClusterNode]) -> Vec<u32> {
    let of_partition = |number: usize| nodes.iter().map(|node| node.status()[number].epoch).max();
    (0..usize::from(PARTITIONS)).filter_map(of_partition).collect()
}

/// Lets both nodes hear each other no more for so many leases, in which they do something; returns the most times that a partition
/// was taken over.
async fn fight(leases: u32, work: impl AsyncFn(&ClusterNode)) -> Option<u32> {
    let servers = NatsServers::start(1)?;
    let (first, second) = start_both(&servers).await;
    first.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let nodes = [&first, &second];
    let (before, clock) = (epochs(&nodes), SystemClock::default());
    nodes.iter().for_each(|node| node.set_deaf_to_others());
    while clock.elapsed() < leases * LEASE {
        for node in nodes {
            work(node).await;
        }
        pause(LEASE / 16).await;
    }
    let most = epochs(&nodes).iter().zip(&before).map(|(now, before)| now - before).max();
    first.close().await;
    second.close().await;
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_not_heard_but_appends_keeps_its_partitions() {
    let work = async |node: &ClusterNode| {
        for partition in 0..PARTITIONS {
            if let Some(engine) = node.engine(partition) {
                // It may just be losing it.
                let queue = engine.queue("q").unwrap();
                let sending = queue.send(Message::new("").workflow(workflow_of(partition)));
                let _ = tokio::time::timeout(LEASE, sending).await;
            }
        }
    };
    let Some(most) = fight(16, work).await else { return };
    assert!(most <= 2, "a partition was taken over {most} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_do_not_hear_each_other_take_partitions_from_each_other_ever_more_rarely() {
    let Some(most) = fight(16, async |_: &ClusterNode| {}).await else { return };
    assert!(most <= 7, "a partition was taken over {most} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_should_have_a_partition_is_given_time_before_it_is_taken_back() {
    let Some(servers) = NatsServers::start(1) else { return };
    let first = start(&servers, "first").await;
    wait_for("it has all partitions", || has_all(&first));
    let second = start(&servers, "second").await;
    second.set_deaf_to_leases();
    let names = ["first", "second"];
    let number = (0..PARTITIONS).find(|number| preferred(*number, names.into_iter()) == Some("second"));
    let number = number.expect("the hash gives it something");
    wait_for("it is given up", || first.engine(number).is_none());
    let clock = SystemClock::default();
    while clock.elapsed() < LEASE {
        assert!(first.engine(number).is_none(), "it is taken back at once, and given up again");
        pause(LEASE / 16).await;
    }
    wait_for("whoever can have it takes it back", || first.engine(number).is_some());
    first.close().await;
    second.close().await;
}

/// A message that a node has handed out, and its partition.
async fn hand_out(first: &ClusterNode) -> (u16, Delivery) {
    let queue = first.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let partition = first_of(first).unwrap();
    queue.send(Message::new("x").workflow(workflow_of(partition))).await.unwrap();
    let delivery = queue.receive(Duration::from_secs(10)).await.unwrap().unwrap();
    (partition, delivery)
}

/// Lets another node take a partition over, and the one that has it not hear of that.
fn depose(first: &ClusterNode, second: &ClusterNode, partition: u16) {
    first.set_deaf_to_leases();
    second.set_deaf_to_others();
    let is_taken_over = || second.engine(partition).is_some();
    tokio::task::block_in_place(|| wait_until("the other node has taken over", is_taken_over));
    assert!(first.engine(partition).is_some(), "it has not heard of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_deposed_and_has_not_heard_of_it_renews_no_lock() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let (partition, mut delivery) = hand_out(&first).await;
    delivery.renew().await.unwrap();
    depose(&first, &second, partition);
    let refused = delivery.renew().await.unwrap_err();
    assert!(matches!(refused, SettleError::Refused(SettleRefusal::LockLost)), "{refused:?}");
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_deposed_renews_no_lock_though_the_bucket_names_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let (partition, mut delivery) = hand_out(&first).await;
    let bucket = bucket(&servers).await;
    let before = serde_json::to_vec(&holder(&bucket, partition).await).unwrap();
    depose(&first, &second, partition);
    second.set_deaf_to_leases();
    // As a server says that led the bucket before.
    bucket.put(format!("partition.{partition}"), before.into()).await.unwrap();
    let refused = tokio::time::timeout(limits::ROUTE_WAIT * 2, delivery.renew()).await;
    refused.expect("it is answered").expect_err("the other node has it");
    drop(delivery);
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_deposed_and_has_not_heard_of_it_takes_nothing_for_a_duplicate_by_what_it_has() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let partition = first_of(&first).unwrap();
    let window = Some(Duration::from_secs(3_600));
    let options = QueueOptions { duplicate_window: window, ..QueueOptions::default() };
    let queue = first.client().create_queue("q", options).await.unwrap();
    let later = first.client().wall_now() + Duration::from_secs(3_600);
    let message = || Message::new("x").workflow(workflow_of(partition)).message_id("1").schedule_at(later);
    let before = queue.send(message()).await.unwrap().sequence_number().unwrap();
    depose(&first, &second, partition);
    second.client().queue("q").unwrap().cancel(before).await.expect("the other node has it");
    let sent = queue.send(message()).await.unwrap();
    assert!(matches!(sent, Receipt::Accepted(number) if number != before), "{sent:?}");
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_not_refused_by_what_a_node_has_that_was_deposed_and_has_not_heard_of_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let partition = first_of(&first).unwrap();
    let queue = first.client().create_queue("q", QueueOptions::default()).await.unwrap();
    // It has no such queue, as if it had not heard of one; whoever takes over has every queue.
    first.engine(partition).unwrap().delete_queue("q").await.unwrap();
    depose(&first, &second, partition);
    let message = Message::new("x").workflow(workflow_of(partition));
    second.client().queue("q").unwrap().send(message).await.unwrap();
    let received = queue.receive(Duration::from_secs(20)).await.unwrap();
    assert!(received.is_some());
    drop(received);
    first.close().await;
    second.close().await;
}

/// Lets the bucket say no more who has which partition, without a word to who listens, and waits until what it has said is old.
/// Returns what it has said.
async fn forget_holders(servers: &NatsServers) -> Vec<PartitionHolder> {
    let bucket = bucket(servers).await;
    let mut holders = Vec::new();
    for partition in 0..PARTITIONS {
        holders.push(holder(&bucket, partition).await);
        let subject = format!("{}partition.{partition}", bucket.prefix);
        bucket.stream.purge().filter(subject).await.unwrap();
    }
    let clock = SystemClock::default();
    wait_for("what it has said is old", || clock.elapsed() > LEASE * 2);
    holders
}

/// Lets the bucket say again who has which partition.
async fn name_holders(servers: &NatsServers, holders: &[PartitionHolder]) {
    let bucket = bucket(servers).await;
    for (partition, holder) in holders.iter().enumerate() {
        let bytes = serde_json::to_vec(holder).unwrap().into();
        bucket.put(format!("partition.{partition}"), bytes).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_a_workflow_hears_that_there_is_nothing_while_the_bucket_does_not_say_who_has_its_partition()
 {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers, "first").await;
    wait_for("it has all partitions", || has_all(&node));
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let workflow = workflow_of(0);
    queue.send(Message::new("x").workflow(&workflow)).await.unwrap();
    let accepted = queue.accept_workflow(&workflow).await.unwrap();
    accepted.receive(1, Duration::ZERO).await.unwrap().remove(0).complete().await.unwrap();
    let holders = forget_holders(&servers).await;
    let received = accepted.receive(1, Duration::from_secs(1));
    let received = tokio::time::timeout(limits::ROUTE_WAIT, received).await;
    assert!(received.expect("it is answered").unwrap().is_empty());
    name_holders(&servers, &holders).await;
    drop(accepted);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_receivers_that_are_refused_while_the_bucket_does_not_say_who_has_what() {
    const RECEIVERS: usize = 8;
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers, "first").await;
    wait_for("it has all partitions", || has_all(&node));
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for partition in 0..PARTITIONS {
        node.engine(partition).unwrap().delete_queue("q").await.unwrap();
    }
    let holders = forget_holders(&servers).await;
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let receives = (0..RECEIVERS).map(|_| queue.receive(Duration::ZERO));
    let received = futures_util::future::join_all(receives).await;
    assert!(received.iter().all(Result::is_err), "a receive of a queue that is gone is refused");
    wait_for("none of their tasks is left", || tasks.num_alive_tasks() < before + RECEIVERS);
    name_holders(&servers, &holders).await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_not_taken_by_what_piled_up_while_the_node_was_being_started() {
    let Some(servers) = NatsServers::start(1) else { return };
    let options = servers.options("orders", "first");
    let client = async_nats::connect(&options.servers).await.unwrap();
    let signals = NodeSignals::new(client.clone(), "orders");
    let mut heard = signals.listen().await.unwrap();
    let mut marker = client.subscribe("marker").await.unwrap();
    for _ in 0..100 {
        let beat = Beat { incarnation: 7, drains: false, entry_version: 1 };
        let (node, stopped, behind) = ("first".to_owned(), Vec::new(), Vec::new());
        signals.tell(&NodeSignal::Alive { node, beat, stopped, behind }).await;
    }
    // What a client hears comes in the order in which it was told.
    client.publish("marker", "".into()).await.unwrap();
    marker.next().await.expect("it is heard behind the beats");
    hearing::check_name(&mut heard, &options).await.unwrap();
}
