//! Nodes in processes of their own: killed, and idle.

use std::io::BufRead;
use std::io::BufReader;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use seriatim::Clock;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::SystemClock;
use seriatim::cluster::ClusterNode;

use crate::servers::NatsServers;
use crate::servers::pause;

const PARTITIONS: u16 = 8;
const KILLS: usize = 15;
const IDLE: Duration = Duration::from_secs(20);

/// A node that can be killed.
struct NodeProcess(Child);

impl NodeProcess {
    fn start(servers: &NatsServers, name: &str, partitions: u16, lease: Duration) -> NodeProcess {
        let folder = servers.options("bench", name).folder;
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args(["node", name]).arg(folder).arg(format!("{partitions}/{}", lease.as_millis()));
        let child = command.arg(servers.as_argument()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("this program can be started");
        let mut said = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut said).expect("it says when it has started");
        NodeProcess(child)
    }

    /// Seconds of processor time so far.
    fn processor_time(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("Linux tells it");
        let after_name = stat.rsplit(')').next().expect("the name is in brackets");
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / 100.0
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills one of two nodes again and again. For each partition that it had, how long it took until a send to it was answered.
pub(crate) fn after_kills(lease: Duration) -> Vec<Duration> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let servers = runtime.block_on(NatsServers::start(3));
    let options = servers.options("bench", "stays").partitions(PARTITIONS).lease(lease);
    let node = runtime.block_on(ClusterNode::start(options)).expect("the servers are as they have to be");
    let created = node.client().create_queue("bench", QueueOptions::default());
    runtime.block_on(created).expect("it is new");
    let mut taken = Vec::new();
    for kill in 1..=KILLS {
        let victim = NodeProcess::start(&servers, "dies", PARTITIONS, lease);
        let lost = wait_for_share(&node);
        drop(victim);
        let killed = SystemClock::default();
        let waits: Vec<_> =
            lost.iter().map(|partition| runtime.spawn(until_answered(&node, *partition, killed))).collect();
        for wait in waits {
            taken.push(runtime.block_on(wait).expect("it ends"));
        }
        eprintln!("kill {kill} of {KILLS}: {} partitions", lost.len());
    }
    runtime.block_on(node.close());
    taken
}

/// Waits until another node has its share and keeps it; which partitions that are.
fn wait_for_share(node: &ClusterNode) -> Vec<u16> {
    let lost = || -> Vec<u16> { (0..PARTITIONS).filter(|number| node.engine(*number).is_none()).collect() };
    let (mut before, mut same) = (lost(), 0);
    while before.is_empty() || same < 30 {
        pause(Duration::from_millis(100));
        let now = lost();
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
    before
}

/// Sends to a workflow of a partition until one send is answered.
fn until_answered(
    node: &ClusterNode,
    partition: u16,
    killed: SystemClock,
) -> impl Future<Output = Duration> + Send + 'static + use<> {
    let queue = node.client().queue("bench").expect("it is a name");
    let workflow = workflow_of(node, partition);
    async move {
        while queue.send(Message::new("x").workflow(&workflow)).await.is_err() {}
        killed.elapsed()
    }
}

/// A workflow of a partition that another node has.
fn workflow_of(node: &ClusterNode, partition: u16) -> String {
    let queue = seriatim::QueueName::new("bench").expect("it is a name");
    let is_there = |name: &String| {
        let workflow = seriatim::WorkflowId::new(name).expect("it is an ID");
        matches!(
            node.route(&queue, &workflow),
            seriatim::cluster::NodeRoute::Elsewhere { partition: of, .. } if of == partition
        )
    };
    (0..).map(|number| format!("w{number}")).find(is_there).expect("some workflow is there")
}

/// How many cores three nodes need while nothing is asked.
pub(crate) fn idle_cores(servers: &NatsServers, partitions: u16) -> f64 {
    let lease = Duration::from_secs(1);
    let start = |name: &&str| NodeProcess::start(servers, name, partitions, lease);
    let nodes: Vec<NodeProcess> = ["a", "b", "c"].iter().map(start).collect();
    // Until partitions are shared out.
    pause(IDLE);
    let used = || nodes.iter().map(NodeProcess::processor_time).sum::<f64>();
    let before = used();
    pause(IDLE);
    (used() - before) / IDLE.as_secs_f64()
}
