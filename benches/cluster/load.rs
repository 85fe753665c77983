//! Messages that are sent, handed out and completed in batches, by a single engine or by a cluster.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use seriatim::Client;
use seriatim::Clock;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::SystemClock;
use seriatim::cluster::ClusterNode;
use seriatim::cluster::NodeRoute;

use crate::log_alone;
use crate::servers::NatsServers;
use crate::servers::pause;

/// Messages of one send and of one receive.
pub(crate) const BATCH: usize = 128;

/// Messages of one round.
const MESSAGES: usize = 128 * 1_200;

/// Tasks that send to a partition, and as many that receive: more partitions are given more to do.
const TASKS: usize = 16;

const BODY: usize = 256;

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// One engine on a file.
    Local,
    /// One partition on one node, used there.
    OnePartition,
    /// What the servers alone take: entries as many and as large as one partition has written, one after the other.
    LogAlone,
    /// One partition on three nodes, two of which follow it, used where it is.
    FollowedPartition,
    /// Four partitions on three nodes, each used where it is.
    FourPartitions,
    /// The same through a client of one node, which asks the others.
    ThroughOneNode,
}

impl Contender {
    pub(crate) const ALL: [Contender; 6] = [
        Contender::Local,
        Contender::OnePartition,
        Contender::LogAlone,
        Contender::FollowedPartition,
        Contender::FourPartitions,
        Contender::ThroughOneNode,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Contender::Local => "one engine, its own file",
            Contender::OnePartition => "one partition on one node",
            Contender::LogAlone => "its log alone, without a node",
            Contender::FollowedPartition => "one partition on three nodes",
            Contender::FourPartitions => "four partitions on three nodes",
            Contender::ThroughOneNode => "the same through the client of one node",
        }
    }

    /// Whom it is measured against.
    pub(crate) fn base(self) -> Option<Contender> {
        match self {
            Contender::Local => None,
            Contender::OnePartition | Contender::LogAlone => Some(Contender::Local),
            Contender::FollowedPartition => Some(Contender::OnePartition),
            Contender::FourPartitions | Contender::ThroughOneNode => Some(Contender::FollowedPartition),
        }
    }
}

/// Messages a second.
pub(crate) async fn round(contender: Contender) -> f64 {
    if contender == Contender::Local {
        let folder = tempfile::tempdir_in(".").expect("a folder on the disk");
        let engine = Engine::open(folder.path().join("bench.redb")).await.expect("the folder can be written");
        let queue = engine.client().create_queue("bench", options()).await.expect("it is new");
        let rate = life(vec![(queue, workflows(|_| true))], 1).await;
        engine.close().await;
        return rate;
    }
    let servers = NatsServers::start(3).await;
    let (partitions, names): (u16, &[&str]) = match contender {
        Contender::OnePartition | Contender::LogAlone => (1, &["a"]),
        Contender::FollowedPartition => (1, &["a", "b", "c"]),
        _ => (4, &["a", "b", "c"]),
    };
    let mut nodes = Vec::new();
    for name in names {
        let options = servers.options("bench", name).partitions(partitions);
        nodes.push(ClusterNode::start(options).await.expect("the servers are as they have to be"));
    }
    settle(&nodes, partitions);
    let through_one = nodes[0].client().create_queue("bench", options()).await.expect("it is new");
    let queues = match contender {
        Contender::ThroughOneNode => vec![(through_one, workflows(|_| true))],
        _ => {
            let name = through_one.name().clone();
            // By the client of the node that has the partition: should it move, it is found where it has gone.
            let by_partition = (0..partitions).map(|partition| {
                let has_it = |node: &&ClusterNode| node.engine(partition).is_some();
                let owner = nodes.iter().find(has_it).expect("every partition is owned");
                let is_there = |workflow: &str| {
                    let workflow = seriatim::WorkflowId::new(workflow).expect("it is an ID");
                    partitions == 1
                        || nodes.iter().any(|node| match node.route(&name, &workflow) {
                            NodeRoute::Elsewhere { partition: of, .. } => of == partition,
                            _ => false,
                        })
                };
                (queue_of(owner.client()), workflows(is_there))
            });
            by_partition.collect()
        }
    };
    let rate = life(queues, usize::from(partitions)).await;
    for node in nodes {
        node.close().await;
    }
    match contender {
        Contender::LogAlone => MESSAGES as f64 / log_alone::time(&servers.addresses()).await.as_secs_f64(),
        _ => rate,
    }
}

fn options() -> QueueOptions {
    QueueOptions::by_position().lock(Duration::from_secs(3600))
}

fn queue_of(client: &Client) -> Queue {
    client.queue("bench").expect("it is a name")
}

/// The workflows that somebody has.
fn workflows(is_there: impl Fn(&str) -> bool) -> Vec<String> {
    (0..1_000).map(|number| format!("order-{number}")).filter(|workflow| is_there(workflow)).collect()
}

/// Waits until no partition is about to move: each node has had its share for longer than a node is looked at before it is given one.
fn settle(nodes: &[ClusterNode], partitions: u16) {
    let shares = || -> Vec<usize> {
        let owned =
            |node: &ClusterNode| (0..partitions).filter(|number| node.engine(*number).is_some()).count();
        nodes.iter().map(owned).collect()
    };
    let (mut before, mut same) = (shares(), 0);
    while same < 50 || before.iter().sum::<usize>() < usize::from(partitions) {
        pause(Duration::from_millis(100));
        let now = shares();
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
}

/// Sends, receives and completes everything, as many tasks as there are shared out over the queues. Messages a second.
async fn life(queues: Vec<(Queue, Vec<String>)>, partitions: usize) -> f64 {
    let clock = SystemClock::default();
    let done = Arc::new(AtomicUsize::new(0));
    let each = TASKS * partitions / queues.len();
    let all = MESSAGES / BATCH * BATCH;
    let senders = each * queues.len();
    let mut tasks = Vec::new();
    for (number, (queue, workflows)) in queues.iter().enumerate() {
        for task in 0..each {
            let share: Vec<String> = workflows.iter().skip(task).step_by(each).cloned().collect();
            let batches = all / BATCH / senders + usize::from(number * each + task < all / BATCH % senders);
            tasks.push(tokio::spawn(send(queue.clone(), share, batches)));
            tasks.push(tokio::spawn(receive(queue.clone(), done.clone(), all)));
        }
    }
    for task in tasks {
        task.await.expect("it ends");
    }
    all as f64 / clock.elapsed().as_secs_f64()
}

async fn send(queue: Queue, workflows: Vec<String>, batches: usize) {
    let mut sent = 0;
    for _ in 0..batches {
        let messages = (0..BATCH).map(|_| {
            let (workflow, position) =
                (&workflows[sent % workflows.len()], (sent / workflows.len() + 1) as u64);
            sent += 1;
            Message::new(vec![7; BODY]).workflow(workflow).position(position)
        });
        let messages: Vec<Message> = messages.collect();
        // One by one where they are of several partitions, together where that is the same.
        for receipt in queue.send_each(messages).await.expect("it is taken") {
            receipt.expect("it is taken");
        }
    }
}

async fn receive(queue: Queue, done: Arc<AtomicUsize>, all: usize) {
    while done.load(Ordering::Relaxed) < all {
        let received = queue.receive_many(BATCH, Duration::from_millis(50)).await;
        let mut deliveries = received.expect("it is answered");
        if deliveries.is_empty() {
            continue;
        }
        let completed = queue.complete_all(&mut deliveries).await.expect("it is answered");
        // Should a partition be taken over, what was out is handed out again.
        done.fetch_add(completed.iter().filter(|completed| completed.is_ok()).count(), Ordering::Relaxed);
    }
}
