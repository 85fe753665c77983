//! Snapshots: nodes begin with them, and the log is given up only as far as two can do without it.

use std::sync::Mutex;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::Context;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::StreamExt;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::hashing::partition_of;
use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::partition::PartitionState;
use crate::cluster::snapshot_list::SnapshotList;
use crate::cluster::snapshot_pace::SnapshotHook;
use crate::cluster::snapshot_pace::SnapshotPace;
use crate::cluster::snapshot_pace::SnapshotStep;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::process;
use crate::cluster::tests::process::Answer;
use crate::cluster::tests::process::NodeProcess;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::message::Message;
use crate::queue::QueueOptions;

/// Entries after which a snapshot is taken.
pub(crate) const ENTRIES: u64 = 20;

const WORKFLOWS: u64 = 4;

pub(crate) fn options(servers: &NatsServers, node: &str) -> ClusterOptions {
    let mut options = servers.options("s", node).partitions(1).lease(Duration::from_millis(500));
    options.snapshots =
        SnapshotPace { entries: ENTRIES, look: Duration::from_millis(50), ..SnapshotPace::default() };
    options
}

/// The same, but it takes no snapshots.
fn idle_options(servers: &NatsServers, node: &str) -> ClusterOptions {
    let mut options = options(servers, node);
    options.snapshots = SnapshotPace::default();
    options
}

/// What the servers have of the partition, looked at from outside.
pub(crate) struct Observer {
    context: Context,
    options: ClusterOptions,
    partition: u16,
}

impl Observer {
    pub(crate) async fn new(servers: &NatsServers) -> Observer {
        Observer::of(options(servers, "observer"), 0).await
    }

    pub(crate) async fn of(options: ClusterOptions, partition: u16) -> Observer {
        let client = async_nats::connect(&options.servers).await.unwrap();
        Observer { context: jetstream::new(client), options, partition }
    }

    /// The list as who leads the bucket has it: the others may be late.
    async fn list(&self) -> SnapshotList {
        // Servers of which one has just died lose answers.
        for _ in 0..10 {
            let Ok(bucket) = self.context.get_key_value(self.options.bucket()).await else { continue };
            let subject = format!("{}snapshots.{}", bucket.prefix, self.partition);
            match bucket.stream.get_last_raw_message_by_subject(&subject).await {
                Ok(found) => return serde_json::from_slice(&found.payload).unwrap(),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                    return SnapshotList::default();
                }
                Err(_) => {}
            }
        }
        panic!("the servers do not say which snapshots there are");
    }

    /// The first entry of the log.
    async fn first(&self) -> u64 {
        // Servers of which one has just died lose answers.
        for _ in 0..10 {
            if let Ok(stream) = self.context.get_stream(self.options.stream(self.partition)).await {
                return stream.cached_info().state.first_sequence;
            }
        }
        panic!("the servers do not say where the log begins");
    }

    async fn objects(&self) -> jetstream::stream::Stream {
        self.context.get_stream(format!("OBJ_{}", self.options.snapshots_bucket())).await.unwrap()
    }

    /// The objects of the partition that have bytes.
    pub(crate) async fn object_names(&self) -> Vec<String> {
        let prefix = format!("$O.{}.C.", self.options.snapshots_bucket());
        let objects = self.objects().await;
        let mut subjects = objects.info_with_subjects(format!("{prefix}>")).await.unwrap();
        let (mut names, of_partition) = (Vec::new(), format!("{}-", self.partition));
        while let Some(subject) = subjects.next().await {
            names.push(subject.unwrap().0.trim_start_matches(&prefix).to_owned());
        }
        names.retain(|name| name.starts_with(&of_partition));
        names
    }

    /// Flips a bit of a snapshot, as a disk does.
    async fn damage(&self, object: &str) {
        let (objects, subject) =
            (self.objects().await, format!("$O.{}.C.{object}", self.options.snapshots_bucket()));
        let first = objects.get_first_raw_message_by_subject(&subject, 1).await.unwrap();
        let mut bytes = first.payload.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        objects.purge().filter(&subject).await.unwrap();
        self.context.publish(subject, bytes.into()).await.unwrap().await.unwrap();
    }

    /// Removes the bytes of a snapshot.
    async fn lose(&self, object: &str) {
        let subject = format!("$O.{}.C.{object}", self.options.snapshots_bucket());
        self.objects().await.purge().filter(&subject).await.unwrap();
    }
}

/// How many partitions of a cluster have a log that is trimmed; asserts that none is trimmed too far.
pub(crate) fn trimmed_partitions(options: &ClusterOptions, partitions: u16) -> usize {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut trimmed = 0;
        for partition in 0..partitions {
            let observer = Observer::of(options.clone(), partition).await;
            let (first, list) = (observer.first().await, observer.list().await);
            let oldest = list.oldest_kept().map_or(1, |oldest| oldest.place.position);
            assert!(first <= oldest, "the log of partition {partition} begins with {first}: {list:?}");
            trimmed += usize::from(first > 1);
        }
        trimmed
    })
}

/// Messages that are sent one by one, each in an entry of its own.
pub(crate) struct Load {
    pub(crate) sent: u64,
}

impl Load {
    pub(crate) async fn send(&mut self, node: &ClusterNode, messages: u64) {
        let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
        for _ in 0..messages {
            let workflow = format!("w{}", self.sent % WORKFLOWS);
            queue.send(Message::new(self.sent.to_string()).workflow(workflow)).await.unwrap();
            self.sent += 1;
        }
    }

    /// Sends until there are two snapshots beyond a position, and the log is trimmed for them. Returns the list.
    pub(crate) async fn send_until_trimmed(
        &mut self,
        node: &ClusterNode,
        observer: &Observer,
        beyond: u64,
    ) -> SnapshotList {
        for _ in 0..400 {
            self.send(node, 5).await;
            let (first, list) = (observer.first().await, observer.list().await);
            let oldest = list.oldest_kept().map_or(0, |oldest| oldest.place.position);
            assert!(first <= oldest.max(1), "the log begins with {first}: {list:?}");
            if first > beyond && first == oldest {
                return list;
            }
        }
        panic!("the log was not trimmed: {:?}", observer.list().await);
    }

    /// Receives everything that was sent, in order, from a node.
    pub(crate) async fn receive_all(&self, node: &ClusterNode) {
        let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
        let mut received = Vec::new();
        while (received.len() as u64) < self.sent {
            let delivery = queue.receive(Duration::from_secs(10)).await.unwrap();
            let mut delivery = delivery.expect("everything that was sent is there");
            received.push(String::from_utf8(delivery.message().body.to_vec()).unwrap().parse().unwrap());
            delivery.complete().await.unwrap();
        }
        assert!(queue.receive(Duration::ZERO).await.unwrap().is_none(), "something came twice");
        for workflow in 0..WORKFLOWS {
            let of_workflow: Vec<u64> =
                received.iter().copied().filter(|number: &u64| number % WORKFLOWS == workflow).collect();
            let sent: Vec<u64> = (0..self.sent).filter(|number| number % WORKFLOWS == workflow).collect();
            assert_eq!(of_workflow, sent, "w{workflow}");
        }
    }
}

pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    tokio::task::block_in_place(|| wait_until(what, is_so));
}

/// Waits until a node has read what there is.
fn wait_caught_up(node: &ClusterNode, other: &ClusterNode) {
    wait_for("the other node has read everything", || {
        let (of_node, of_other) = (node.status(), other.status());
        of_node[0].lag == 0 && of_node[0].position >= of_other[0].position
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_begins_with_a_snapshot_and_takes_over() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let first = ClusterNode::start(options(&servers, "first")).await.unwrap();
    let list = load.send_until_trimmed(&first, &observer, 1).await;
    wait_for("it is said which snapshots there are", || first.status()[0].snapshots.len() == 2);
    assert!(first.status()[0].snapshots[0].position >= list.newest());
    let second = ClusterNode::start(options(&servers, "second")).await.unwrap();
    wait_caught_up(&second, &first);
    first.abandon();
    wait_for("the new node has the partition", || second.engine(0).is_some());
    load.receive_all(&second).await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_snapshot_needs_is_given_up_and_nothing_more() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let node = ClusterNode::start(options(&servers, "first")).await.unwrap();
    let older = load.send_until_trimmed(&node, &observer, 1).await;
    let newer = load.send_until_trimmed(&node, &observer, older.newest()).await;
    // The log is trimmed before what is not listed is removed, and another snapshot may be due by then.
    let is_done = async || {
        let (first, list) = (observer.first().await, observer.list().await);
        first == list.oldest_kept().unwrap().place.position
            && node.status()[0].position - list.newest() < ENTRIES
            && observer.object_names().await.len() == list.0.len()
    };
    let done = tokio::time::timeout(Duration::from_secs(30), async { while !is_done().await {} });
    done.await.expect("all is done for the last snapshot");
    node.close().await;
    let idle = ClusterNode::start(idle_options(&servers, "first")).await.unwrap();
    let (first, list) = (observer.first().await, observer.list().await);
    assert!(list.newest() >= newer.newest() && first == list.oldest_kept().unwrap().place.position);
    let listed: Vec<&String> = list.0.iter().map(|snapshot| &snapshot.object).collect();
    let mut names = observer.object_names().await;
    names.sort_by_key(|name| listed.iter().position(|listed| *listed == name));
    assert_eq!(names.iter().collect::<Vec<_>>(), listed, "others are removed");
    // A node that was deposed, or hung, does late what it was about to do.
    tokio::task::block_in_place(|| {
        idle.trim(0, &older).unwrap_err();
        let mut wrong = list.clone();
        wrong.0[1] = wrong.0[0].clone();
        wrong.0[1].place.checksum ^= 1;
        idle.trim(0, &wrong).unwrap_err();
        wrong.0[1].place = list.0[0].place;
        wrong.0[1].digest ^= 1;
        idle.trim(0, &wrong).unwrap_err();
        idle.trim(0, &list).unwrap();
    });
    assert_eq!(observer.first().await, first, "nothing more is given up");
    idle.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_files_are_gone_has_everything_from_a_snapshot() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let node = ClusterNode::start(options(&servers, "first")).await.unwrap();
    load.send_until_trimmed(&node, &observer, 1).await;
    load.send(&node, 7).await;
    node.close().await;
    std::fs::remove_dir_all(options(&servers, "first").folder).unwrap();
    let again = ClusterNode::start(options(&servers, "first")).await.unwrap();
    load.receive_all(&again).await;
    again.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_ends_before_its_log_begins_makes_way_for_a_snapshot() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let first = ClusterNode::start(options(&servers, "first")).await.unwrap();
    load.send(&first, 5).await;
    let second = ClusterNode::start(options(&servers, "second")).await.unwrap();
    wait_caught_up(&second, &first);
    let position = second.status()[0].position;
    second.close().await;
    load.send_until_trimmed(&first, &observer, position + 1).await;
    let again = ClusterNode::start(options(&servers, "second")).await.unwrap();
    wait_caught_up(&again, &first);
    first.abandon();
    wait_for("the node that was away has the partition", || again.engine(0).is_some());
    load.receive_all(&again).await;
    again.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_not_read_back_as_it_was_written_is_never_listed_and_gone_before_the_next() {
    /// So many attempts are looked at.
    const ATTEMPTS: usize = 6;
    /// How many objects there were at each attempt, and when it was.
    static DAMAGED: Mutex<Vec<(usize, Duration)>> = Mutex::new(Vec::new());
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let (mut options, outside) = (options(&servers, "first"), options(&servers, "outside"));
    let (look, clock) = (options.snapshots.look, SystemClock::default());
    let damage = move |step: SnapshotStep| {
        if step == SnapshotStep::ReadBack {
            let damage = async {
                let observer = Observer::of(outside.clone(), 0).await;
                let names = observer.object_names().await;
                for object in &names {
                    observer.damage(object).await;
                }
                names.len()
            };
            let there = tokio::runtime::Runtime::new().unwrap().block_on(damage);
            DAMAGED.lock().unwrap().push((there, clock.elapsed()));
        }
    };
    options.snapshots.hook = Some(SnapshotHook(Box::leak(Box::new(damage))));
    let node = ClusterNode::start(options).await.unwrap();
    load.send(&node, ENTRIES).await;
    wait_for("it was tried often", || DAMAGED.lock().unwrap().len() >= ATTEMPTS);
    let damaged = DAMAGED.lock().unwrap().clone();
    assert!(damaged.iter().all(|(there, _)| *there == 1), "no other is left at any time: {damaged:?}");
    let (_, before) = damaged[ATTEMPTS - 2];
    let (_, last) = damaged[ATTEMPTS - 1];
    assert!(last - before >= look * 16, "each pause is twice as long: {damaged:?}");
    assert_eq!((observer.list().await, observer.first().await), (SnapshotList::default(), 1));
    load.receive_all(&node).await;
    node.close().await;
}

/// Takes two snapshots, does something to them, and starts a node without files.
async fn start_with(
    servers: &NatsServers,
    observer: &Observer,
    load: &mut Load,
    damage: impl AsyncFnOnce(&Observer, &SnapshotList),
) -> ClusterNode {
    let node = ClusterNode::start(options(servers, "first")).await.unwrap();
    load.send_until_trimmed(&node, observer, 1).await;
    node.close().await;
    damage(observer, &observer.list().await).await;
    std::fs::remove_dir_all(options(servers, "first").folder).unwrap();
    ClusterNode::start(idle_options(servers, "first")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_begins_with_the_snapshot_before_one_that_is_damaged_or_lost() {
    for is_lost in [false, true] {
        let Some(servers) = NatsServers::start(1) else { return };
        let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
        let damage = async |observer: &Observer, list: &SnapshotList| match is_lost {
            true => observer.lose(&list.0[0].object).await,
            false => observer.damage(&list.0[0].object).await,
        };
        let node = start_with(&servers, &observer, &mut load, damage).await;
        load.receive_all(&node).await;
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_without_a_snapshot_to_begin_from_is_stopped_with_one_sentence() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let damage = async |observer: &Observer, list: &SnapshotList| {
        observer.damage(&list.0[0].object).await;
        observer.lose(&list.0[1].object).await;
    };
    let node = start_with(&servers, &observer, &mut load, damage).await;
    let state = || node.status()[0].state.clone();
    wait_for("it is stopped", || matches!(state(), PartitionState::Stopped(_)));
    let PartitionState::Stopped(why) = state() else { unreachable!("it was waited for") };
    let begins = format!(
        "the log of the partition cannot be used: it begins with entry {}, the file of this node ends with entry 0, and \
         there is no snapshot to begin from; that at entry",
        observer.first().await
    );
    assert!(why.starts_with(&begins) && why.contains("damaged") && why.contains("it is missing"), "{why}");
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_disk_does_not_take_a_snapshot_says_so_and_goes_on_when_it_does() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let owner = ClusterNode::start(options(&servers, "first")).await.unwrap();
    load.send_until_trimmed(&owner, &observer, 1).await;
    let newcomer = idle_options(&servers, "second");
    let in_the_way = newcomer.folder.join("partition-0.redb.new");
    std::fs::create_dir_all(in_the_way.join("something")).unwrap();
    let newcomer = ClusterNode::start(newcomer).await.unwrap();
    let state = || newcomer.status()[0].state.clone();
    wait_for("it is stopped", || matches!(state(), PartitionState::Stopped(_)));
    let PartitionState::Stopped(why) = state() else { unreachable!("it was waited for") };
    assert!(why.contains("a file operation failed"), "{why}");
    std::fs::remove_dir_all(&in_the_way).unwrap();
    wait_caught_up(&newcomer, &owner);
    newcomer.close().await;
    owner.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_before_the_snapshot_stops_the_partition() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (observer, mut load) = (Observer::new(&servers).await, Load { sent: 0 });
    let damage = async |observer: &Observer, _: &SnapshotList| {
        observer.context.delete_stream(observer.options.stream(0)).await.unwrap();
    };
    let node = start_with(&servers, &observer, &mut load, damage).await;
    let state = || node.status()[0].state.clone();
    wait_for("it is stopped", || matches!(state(), PartitionState::Stopped(_)));
    let PartitionState::Stopped(why) = state() else { unreachable!("it was waited for") };
    assert!(why.contains("it ends before entry"), "{why}");
    node.close().await;
}

/// Sends the next message to a node in another process.
fn send_next(node: &mut NodeProcess, sent: &mut u64) {
    let next = *sent + 1;
    tokio::task::block_in_place(|| {
        *sent += u64::from(node.ask(&format!("send w1 {next} 10")) == Some(Answer::Sent));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_step_of_a_snapshot_loses_nothing_and_leaves_nothing() {
    let Some(servers) = NatsServers::start(3) else { return };
    let partition =
        partition_of(&QueueName::new("q").unwrap(), &WorkflowId::new("w1").unwrap(), process::PARTITIONS);
    let observer = Observer::of(servers.options("chaos", "observer"), partition).await;
    let mut sent = 0;
    for step in SnapshotStep::ALL {
        let mut node = NodeProcess::start_dying(&servers, 0, Some(step));
        let before = sent;
        while !node.has_ended() {
            assert!(sent < before + 1_000, "the node does not die before {step:?}");
            send_next(&mut node, &mut sent);
        }
    }
    let mut node = NodeProcess::start(&servers, 0);
    tokio::task::block_in_place(|| node.wait());
    // What was left by each crash goes with the next snapshot.
    let before = sent;
    loop {
        let (first, list) = (observer.first().await, observer.list().await);
        let oldest = list.oldest_kept().map_or(1, |oldest| oldest.place.position);
        assert!(first <= oldest, "the log begins with {first}: {list:?}");
        if sent >= before + 100 && first == oldest && observer.object_names().await.len() == 2 {
            break;
        }
        assert!(sent < before + 1_000, "something is left: {:?}", observer.object_names().await);
        send_next(&mut node, &mut sent);
    }
    node.kill();
    // Whoever comes after them has everything.
    std::fs::remove_dir_all(node.folder()).unwrap();
    let mut node = NodeProcess::start(&servers, 0);
    tokio::task::block_in_place(|| {
        node.wait();
        let mut position = 0;
        while position < sent {
            let Some(Answer::Got { position: next, .. }) = node.ask("receive") else { continue };
            assert!(next == position || next == position + 1, "{next} comes behind {position}");
            if node.ask("complete") == Some(Answer::Done) {
                position = next;
            }
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_answers_has_every_queue() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = ClusterNode::start(idle_options(&servers, "first")).await.unwrap();
    for number in 0..60 {
        node.client().create_queue(format!("q{number}"), QueueOptions::default()).await.unwrap();
    }
    node.close().await;
    // As if all of them were created while nobody had the partition.
    let observer = Observer::new(&servers).await;
    observer.context.delete_stream(observer.options.stream(0)).await.unwrap();
    std::fs::remove_dir_all(options(&servers, "first").folder).unwrap();
    let again = ClusterNode::start(idle_options(&servers, "first")).await.unwrap();
    wait_for("somebody has the partition", || again.engine(0).is_some());
    let engine = again.engine(0).unwrap();
    for number in (0..60).rev() {
        engine.queue(format!("q{number}")).unwrap().send(Message::new("1").workflow("w")).await.unwrap();
    }
    again.close().await;
}
