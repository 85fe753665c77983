//! Nodes of a cluster: one owns each partition, and another goes on where it ends.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::clock::Timestamp;
use crate::cluster::cluster_state::PartitionHolder;
use crate::cluster::error::ClusterError;
use crate::cluster::hashing::preferred;
use crate::cluster::node::ClusterNode;
use crate::cluster::node::NodeRoute;
use crate::cluster::options::ClusterOptions;
use crate::cluster::options::NodeClock;
use crate::cluster::partition::PartitionState;
use crate::cluster::signals::Beat;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::has_all;
use crate::engine::Client;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;

pub(crate) const PARTITIONS: u16 = 4;
pub(crate) const LEASE: Duration = Duration::from_millis(500);

fn options(servers: &NatsServers, node: &str) -> ClusterOptions {
    servers.options("orders", node).partitions(PARTITIONS).lease(LEASE)
}

pub(crate) async fn start(servers: &NatsServers, node: &str) -> ClusterNode {
    ClusterNode::start(options(servers, node)).await.unwrap()
}

/// The first partition that a node has.
pub(crate) fn first_of(node: &ClusterNode) -> Option<u16> {
    (0..PARTITIONS).find(|number| node.engine(*number).is_some())
}

/// Two nodes, each with its share of the partitions.
pub(crate) async fn start_both(servers: &NatsServers) -> (ClusterNode, ClusterNode) {
    let (first, second) = (start(servers, "first").await, start(servers, "second").await);
    let are_shared = || first_of(&first).is_some() && first_of(&second).is_some();
    tokio::task::block_in_place(|| wait_until("both nodes have partitions", are_shared));
    settle(&[&first, &second]).await;
    (first, second)
}

/// Waits until each partition has one owner among these nodes.
async fn settle(nodes: &[&ClusterNode]) {
    let are_owned = || {
        (0..PARTITIONS).all(|number| {
            let owners = nodes.iter().filter(|node| node.engine(number).is_some());
            owners.count() == 1
        })
    };
    tokio::task::block_in_place(|| wait_until("each partition has an owner", are_owned));
}

/// Waits until a partition is stopped on a node, and says why.
fn why_stopped(node: &ClusterNode, partition: usize) -> String {
    let why = || match node.status()[partition].state.clone() {
        PartitionState::Stopped(why) => Some(why),
        PartitionState::Owner | PartitionState::Following => None,
    };
    tokio::task::block_in_place(|| wait_until("it is stopped", || why().is_some()));
    why().unwrap()
}

fn owner(nodes: &[&ClusterNode], workflow: &str) -> Client {
    let (queue, workflow) = (QueueName::new("q").unwrap(), WorkflowId::new(workflow).unwrap());
    let routes = nodes.iter().filter_map(|node| match node.route(&queue, &workflow) {
        NodeRoute::Here(client) => Some(client),
        NodeRoute::Elsewhere { .. } => None,
    });
    let owners: Vec<Client> = routes.collect();
    owners.into_iter().next().unwrap()
}

async fn send(client: &Client, workflow: &str, number: u64) {
    let queue = client.create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send(Message::new(number.to_string()).workflow(workflow)).await.unwrap();
}

async fn receive_all(client: &Client) -> Vec<(String, String)> {
    let queue = client.create_queue("q", QueueOptions::default()).await.unwrap();
    let mut received = Vec::new();
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        let workflow =
            delivery.message().workflow_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default();
        received.push((workflow, String::from_utf8(delivery.message().body.to_vec()).unwrap()));
        delivery.complete().await.unwrap();
    }
    received
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_by_a_node_that_is_gone_is_handed_out_by_another() {
    let Some(servers) = NatsServers::start(1) else { return };
    let first = start(&servers, "first").await;
    settle(&[&first]).await;
    let workflows: Vec<String> = (0..8).map(|number| format!("w{number}")).collect();
    for number in 0..3 {
        for workflow in &workflows {
            send(&owner(&[&first], workflow), workflow, number).await;
        }
    }
    let second = start(&servers, "second").await;
    // Without a word, as a process that is killed: its threads go on, and are deposed.
    first.abandon();
    settle(&[&second]).await;
    let mut received = Vec::new();
    for partition in 0..PARTITIONS {
        received.extend(receive_all(&second.engine(partition).unwrap()).await);
    }
    for workflow in &workflows {
        let of_workflow = received.iter().filter(|(of, _)| of == workflow).map(|(_, body)| body.as_str());
        assert_eq!(of_workflow.collect::<Vec<_>>(), ["0", "1", "2"], "{workflow}");
    }
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_shared_out_and_a_drained_node_gives_its_own_away() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    send(&owner(&[&first, &second], "w"), "w", 1).await;
    first.drain();
    let are_given = || first_of(&first).is_none() && has_all(&second);
    tokio::task::block_in_place(|| wait_until("the other node has all partitions", are_given));
    let states = first.status().into_iter().map(|status| (status.state, status.owner));
    let following = (PartitionState::Following, Some("second".to_owned()));
    assert!(states.into_iter().all(|state| state == following), "{:?}", first.status());
    let of_follower = serde_json::to_value(first.status()).unwrap();
    assert_eq!((&of_follower[1]["state"], &of_follower[1]["owner"]), (&"following".into(), &"second".into()));
    let is_caught_up = || {
        let (of_first, of_second) = (first.status(), second.status());
        let mut both = of_first.iter().zip(&of_second);
        both.all(|(one, other)| {
            let is_same = one.position == other.position && one.epoch == other.epoch;
            is_same && one.position > 0 && one.epoch > 0 && one.lag == 0
        })
    };
    tokio::task::block_in_place(|| {
        wait_until("the other node has read what its follower wrote", is_caught_up)
    });
    assert_eq!(receive_all(&owner(&[&second], "w")).await, [("w".to_owned(), "1".to_owned())]);
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_not_given_back_to_a_node_that_cannot_have_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let of_first = first_of(&first).unwrap();
    first.drain();
    tokio::task::block_in_place(|| wait_until("the other node has all partitions", || has_all(&second)));
    first.come_back_without(of_first);
    let clock = SystemClock::default();
    while clock.elapsed() < 8 * LEASE {
        assert!(second.engine(of_first).is_some(), "whom it is given to cannot take it");
        tokio::task::yield_now().await;
    }
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_begun_anew_takes_no_partition_from_its_owner() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    first.drain();
    let are_given = || has_all(&second) && second.status().iter().all(|status| status.lag == 0);
    tokio::task::block_in_place(|| wait_until("the other node has all partitions", are_given));
    let epochs = || second.status().into_iter().map(|status| status.epoch).collect::<Vec<_>>();
    let (before, clock) = (epochs(), SystemClock::default());
    while clock.elapsed() < 8 * LEASE {
        second.watch_anew().await;
        assert!(has_all(&second), "a node that drains takes none");
    }
    assert_eq!(epochs(), before);
    first.fall_silent();
    let is_alone = || second.nodes() == ["second"];
    tokio::task::block_in_place(|| wait_until("a node that says nothing is dead", is_alone));
    second.watch_anew().await;
    assert!(is_alone(), "what was written before is no sign of life");
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_being_written_keeps_the_partition_from_nobody() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let of_first = first_of(&first).unwrap();
    let is_given = || second.engine(of_first).is_some();
    tokio::task::block_in_place(|| {
        first.with_held_file(of_first, || {
            first.drain();
            wait_until("the other node has the partition", is_given);
        });
    });
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_name_another_has_is_refused_in_one_sentence() {
    let Some(servers) = NatsServers::start(1) else { return };
    // A lease that lasts so long that no machine is busy for half of it.
    let named = || options(&servers, "first").lease(Duration::from_secs(4));
    let first = ClusterNode::start(named()).await.unwrap();
    settle(&[&first]).await;
    let mut namesake = named();
    namesake.folder = namesake.folder.with_extension("other");
    let refused = ClusterNode::start(namesake).await.expect_err("the name is taken").to_string();
    let expected =
        "a process that runs as node first of the cluster orders is alive: each node needs a name of its own";
    assert!(refused.contains(expected), "{refused}");
    settle(&[&first]).await;
    first.close().await;
    ClusterNode::start(named()).await.unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hung_stops_in_one_sentence_when_another_has_begun_with_its_name() {
    let Some(servers) = NatsServers::start(1) else { return };
    let first = start(&servers, "first").await;
    settle(&[&first]).await;
    first.fall_silent();
    let mut namesake = options(&servers, "first");
    namesake.folder = namesake.folder.with_extension("other");
    let second = ClusterNode::start(namesake).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), first.client().ended()).await;
    let why = ended.expect("the one that was there before ends").to_string();
    assert!(why.contains("another process has begun to run as node first of the cluster"), "{why}");
    first.close().await;
    settle(&[&second]).await;
    send(&owner(&[&second], "w"), "w", 1).await;
    let is_alone = || second.nodes() == ["first"];
    tokio::task::block_in_place(|| wait_until("it is heard that one is there", is_alone));
    assert!(second.client().fault().is_none(), "the one that has begun later goes on");
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_appends_is_alive_though_its_beat_is_not_heard() {
    let Some(servers) = NatsServers::start(1) else { return };
    let first = start(&servers, "first").await;
    settle(&[&first]).await;
    let second = start(&servers, "second").await;
    tokio::task::block_in_place(|| wait_until("they hear each other", || second.nodes().len() == 2));
    first.fall_silent();
    let own: Vec<u16> = (0..PARTITIONS).filter(|number| first.engine(*number).is_some()).collect();
    let engine = first.engine(own[0]).unwrap();
    let clock = SystemClock::default();
    while clock.elapsed() < 4 * LEASE {
        send(&engine, "w", 1).await;
    }
    let is_second = || second.engine(own[0]).is_some();
    assert!(!is_second(), "whoever appends is not dead");
    tokio::task::block_in_place(|| wait_until("who does nothing any more is dead", is_second));
    first.close().await;
    second.close().await;
}

pub(crate) async fn bucket(servers: &NatsServers) -> kv::Store {
    let client = async_nats::connect(&options(servers, "first").servers).await.unwrap();
    let context = async_nats::jetstream::new(client);
    context.get_key_value(options(servers, "first").bucket()).await.unwrap()
}

/// What the bucket says of who has a partition.
pub(crate) async fn holder(bucket: &kv::Store, partition: u16) -> PartitionHolder {
    let holder = bucket.get(format!("partition.{partition}")).await.unwrap().unwrap();
    serde_json::from_slice(&holder).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_know_that_it_has_a_partition_does_not_keep_it_from_others() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (first, second) = start_both(&servers).await;
    let bucket = bucket(&servers).await;
    let (of_first, of_second) = (first_of(&first).unwrap(), first_of(&second).unwrap());
    let position = || first.status()[usize::from(of_first)].position;
    let before = position();
    // As if its claim was written, and the answer lost.
    let claimed = serde_json::to_vec(&holder(&bucket, of_second).await).unwrap();
    bucket.put(format!("partition.{of_first}"), claimed.into()).await.unwrap();
    tokio::task::block_in_place(|| wait_until("it has a new epoch", || position() > before));
    settle(&[&first, &second]).await;
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_made_anew_stops_the_partition_with_one_sentence() {
    let Some(servers) = NatsServers::start(1) else { return };
    let first = start(&servers, "first").await;
    settle(&[&first]).await;
    first.close().await;
    let client = async_nats::connect(&options(&servers, "first").servers).await.unwrap();
    let context = async_nats::jetstream::new(client);
    context.delete_stream(options(&servers, "first").stream(1)).await.unwrap();
    let again = start(&servers, "first").await;
    let why = why_stopped(&again, 1);
    assert!(why.contains("the log of the partition cannot be used: it ends before entry"), "{why}");
    assert!(again.engine(1).is_none());
    again.close().await;
}

/// A clock that panics in the thread of a partition.
struct DefectiveClock(SystemClock);

impl DefectiveClock {
    fn check(&self) {
        assert!(std::thread::current().name() != Some("seriatim-p1"), "the clock is broken");
    }
}

impl Clock for DefectiveClock {
    fn now(&self) -> Timestamp {
        self.check();
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.check();
        self.0.elapsed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_whose_thread_has_panicked_is_stopped_with_one_sentence_and_left_to_others() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut defective = options(&servers, "first");
    defective.clock = NodeClock(Arc::new(DefectiveClock(SystemClock::default())));
    let first = ClusterNode::start(defective).await.unwrap();
    let why = why_stopped(&first, 1);
    assert!(why.contains("a defect of seriatim: the clock is broken"), "{why}");
    let second = start(&servers, "second").await;
    tokio::task::block_in_place(|| wait_until("another has it", || second.engine(1).is_some()));
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_of_a_later_version_stops_the_partition_with_one_sentence() {
    let Some(servers) = NatsServers::start(1) else { return };
    let first = start(&servers, "first").await;
    settle(&[&first]).await;
    first.close().await;
    servers.append_of_later_version(&options(&servers, "first"), 1).await;
    let again = start(&servers, "first").await;
    let why = why_stopped(&again, 1);
    assert!(
        why.contains("is of version 2, and this node reads version 1: it needs a newer seriatim"),
        "{why}"
    );
    again.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_sync_are_refused_with_the_line_that_is_missing() {
    let Some(servers) = NatsServers::configured(1, "sync_interval: 2m") else { return };
    let refused = ClusterNode::start(options(&servers, "first")).await.err().unwrap();
    assert!(matches!(refused, ClusterError::Unsuitable { .. }));
    let text = refused.to_string();
    assert!(
        text.contains("the NATS server n0 cannot keep a log") && text.contains("`sync_interval: always`"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_partitions_is_fixed() {
    let Some(servers) = NatsServers::start(1) else { return };
    start(&servers, "first").await.close().await;
    let refused =
        ClusterNode::start(options(&servers, "first").partitions(5)).await.err().unwrap().to_string();
    assert!(refused.contains("it has 4 partitions, and 5 are asked for; their number is fixed"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_written_in_a_newer_version_once_every_node_reads_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let of_version = |name: &str, version: u32| ClusterOptions {
        entry_version: version,
        ..options(&servers, name).lease(limits::LEASE_MIN).partitions(1)
    };
    let older = ClusterNode::start(of_version("older", 1)).await.unwrap();
    let newer = ClusterNode::start(of_version("newer", 2)).await.unwrap();
    older.drain();
    let is_moved = || newer.engine(0).is_some();
    tokio::task::block_in_place(|| wait_until("the newer node has the partition", is_moved));
    let queue = newer.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let is_known_for_long = Duration::from_secs(1) + limits::LEASE_MIN * limits::ENTRY_VERSION_LEASES;
    let (clock, mut sent) = (SystemClock::default(), 0);
    while clock.elapsed() < is_known_for_long {
        queue.send(Message::new("for all").workflow("w")).await.unwrap();
        sent += 1;
    }
    let written = servers.versions(&of_version("older", 1), 0).await;
    assert!(written.iter().all(Option::is_none), "the older node has to read them: {written:?}");
    older.close().await;
    let upgraded = ClusterNode::start(of_version("older", 2)).await.unwrap();
    let is_written = async || servers.versions(&of_version("older", 1), 0).await.contains(&Some(2));
    let end = clock.elapsed() + Duration::from_secs(30);
    while !is_written().await {
        assert!(clock.elapsed() < end, "no node is left that does not read it");
        queue.send(Message::new("for those who read it").workflow("w")).await.unwrap();
        sent += 1;
    }
    newer.drain();
    let is_back = || upgraded.engine(0).is_some();
    tokio::task::block_in_place(|| wait_until("the upgraded node has the partition", is_back));
    let counts = upgraded.client().queue("q").unwrap().view().await.unwrap().counts;
    assert_eq!(counts.accepted, sent);
    newer.close().await;
    upgraded.close().await;
    let left_behind = ClusterNode::start(of_version("late", 1)).await.unwrap();
    let why = why_stopped(&left_behind, 0);
    assert!(why.contains("is of version 2, and this node reads version 1"), "{why}");
    left_behind.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_not_given_to_a_node_that_says_it_could_not_take_it_yet() {
    let Some(servers) = NatsServers::start(1) else { return };
    let owner = start(&servers, "first").await;
    tokio::task::block_in_place(|| wait_until("it has all partitions", || has_all(&owner)));
    let router = owner.handle().router;
    let leases = &router.leases;
    let should_have = |name: &&str| preferred(0, ["first", name].into_iter()) == Some(name);
    let name = ["a", "b", "c", "d", "e", "f", "g"].into_iter().find(should_have).expect("one of them");
    let (beat, begun) = (Beat { incarnation: 7, drains: false, entry_version: 1 }, leases.clock.elapsed());
    let says = |behind: Vec<u16>| leases.hear(name, beat, (Vec::new(), behind));
    let is_heard = || {
        says((0..PARTITIONS).collect());
        leases.newest_settled() >= Some(begun)
    };
    tokio::task::block_in_place(|| wait_until("it is heard for long enough to be given it", is_heard));
    assert!(!leases.should_move(0), "it could not take it");
    says(Vec::new());
    assert!(leases.should_move(0), "it can take it now");
    owner.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_leaves_to_others_after_losses_it_tells_them_not_to_give_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers, "first").await;
    tokio::task::block_in_place(|| wait_until("it has all partitions", || has_all(&node)));
    let router = node.handle().router;
    let leases = &router.leases;
    let held_by = |node: &str, incarnation: u64| PartitionHolder {
        node: node.to_owned(),
        incarnation,
        released: false,
    };
    assert_eq!(leases.behind(), [0; 0]);
    // Behind everything that the bucket has: it was taken away three times while it was alive.
    for turn in 0..3_u64 {
        leases.note_holder(0, 1_000_000 + 2 * turn, held_by("other", 7));
        if turn < 2 {
            leases.note_holder(0, 1_000_001 + 2 * turn, held_by("first", leases.incarnation));
        }
    }
    assert_eq!(leases.behind(), [0]);
    leases.note_holder(0, 1_000_009, held_by("first", leases.incarnation));
    assert_eq!(leases.behind(), [0; 0], "what it has it could take");
    node.close().await;
}
