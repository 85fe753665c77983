//! A node in a process of its own, which can be killed and stopped: this test program again, which does what it reads.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::snapshot_pace::SnapshotHook;
use crate::cluster::snapshot_pace::SnapshotPace;
use crate::cluster::snapshot_pace::SnapshotStep;
use crate::cluster::stop::ClusterStop;
use crate::cluster::tests::nats::NatsServers;
use crate::engine::Delivery;
use crate::engine::Queue;
use crate::message::Message;
use crate::queue::QueueOptions;

/// Where the process finds what it needs to know.
const SERVERS: &str = "SERIATIM_NODE_SERVERS";
const NAME: &str = "SERIATIM_NODE_NAME";
const FOLDER: &str = "SERIATIM_NODE_FOLDER";
const DIES_BEFORE: &str = "SERIATIM_NODE_DIES_BEFORE";

/// What an answer begins with, as the test program writes other lines, too.
const MARK: &str = "@ ";

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(3);

pub(crate) const PARTITIONS: u16 = 3;

/// Entries after which a snapshot is taken.
const ENTRIES: u64 = 30;

/// What a node has answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Sent,
    Got { workflow: u64, position: u64 },
    Done,
    No,
}

/// A node in a process of its own.
pub(crate) struct NodeProcess {
    child: Child,
    folder: PathBuf,
    answers: mpsc::Receiver<String>,
    asked: u64,
}

impl NodeProcess {
    pub(crate) fn start(servers: &NatsServers, number: usize) -> NodeProcess {
        NodeProcess::start_dying(servers, number, None)
    }

    /// Starts one that dies before a step of its first snapshot.
    pub(crate) fn start_dying(
        servers: &NatsServers,
        number: usize,
        dies_before: Option<SnapshotStep>,
    ) -> NodeProcess {
        let options = servers.options("chaos", &format!("node-{number}"));
        std::fs::create_dir_all(&options.folder).unwrap();
        let addresses: Vec<String> = options
            .servers
            .iter()
            .zip(&options.monitors)
            .map(|(server, monitor)| format!("{server}={monitor}"))
            .collect();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "cluster::tests::process::a_node_does_what_it_reads",
                "--ignored",
                "--nocapture",
            ])
            .env(SERVERS, addresses.join(","))
            .env(NAME, &options.node)
            .env(DIES_BEFORE, dies_before.map(|step| format!("{step:?}")).unwrap_or_default())
            .env(FOLDER, &options.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, answers) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        let read = move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(answer) = line.strip_prefix(MARK) {
                    let _ = sender.send(answer.to_owned());
                }
            }
        };
        std::thread::Builder::new().spawn(read).unwrap();
        NodeProcess { child, folder: options.folder, answers, asked: 0 }
    }

    /// Waits until it answers.
    pub(crate) fn wait(&mut self) {
        let has_begun = (0..20).any(|_| self.ask("receive").is_some());
        assert!(has_begun, "a node does not start");
    }

    /// Whether the process is gone.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Asks for something; `None` if no answer comes in time. What is answered later counts for nothing.
    pub(crate) fn ask(&mut self, what: &str) -> Option<Answer> {
        self.asked += 1;
        writeln!(self.child.stdin.as_mut().unwrap(), "{} {what}", self.asked).ok()?;
        loop {
            let answer = self.answers.recv_timeout(ANSWER).ok()?;
            let mut words = answer.split(' ');
            if words.next()?.parse() != Ok(self.asked) {
                continue;
            }
            return Some(match words.next()? {
                "sent" => Answer::Sent,
                "done" => Answer::Done,
                "got" => Answer::Got {
                    workflow: words.next()?.strip_prefix('w')?.parse().ok()?,
                    position: words.next()?.parse().ok()?,
                },
                _ => Answer::No,
            });
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the process is doing.
struct Doing {
    node: ClusterNode,
    held: Option<Delivery>,
}

impl Doing {
    /// The queue, through a client that does not care who has which partition.
    async fn queue(&self) -> Option<Queue> {
        self.node.client().create_queue("q", QueueOptions::by_position()).await.ok()
    }

    async fn send(&self, workflow: &str, position: u64) -> Option<String> {
        let message = Message::new(format!("{workflow}/{position}")).workflow(workflow).position(position);
        self.queue().await?.send(message.message_id(format!("{workflow}/{position}"))).await.ok()?;
        Some("sent".to_owned())
    }

    async fn receive(&mut self) -> Option<String> {
        self.held = None;
        let delivery = self.queue().await?.receive(Duration::ZERO).await.ok()??;
        let workflow = delivery.message().workflow_id.as_ref()?.as_str().to_owned();
        let position = delivery.message().rank;
        self.held = Some(delivery);
        Some(format!("got {workflow} {position}"))
    }

    async fn complete(&mut self) -> Option<String> {
        self.held.take()?.complete().await.ok()?;
        Some("done".to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process of a node, started by other tests"]
async fn a_node_does_what_it_reads() {
    let Ok(servers) = std::env::var(SERVERS) else { return };
    let (name, folder) = (std::env::var(NAME).unwrap(), std::env::var(FOLDER).unwrap());
    let mut options = servers.split(',').filter_map(|server| server.split_once('=')).fold(
        ClusterOptions::new("chaos", name, folder).partitions(PARTITIONS),
        |options, (server, monitor)| options.server(server, monitor),
    );
    let dies_before = std::env::var(DIES_BEFORE).unwrap_or_default();
    let die = move |step: SnapshotStep| {
        if format!("{step:?}") == dies_before {
            std::process::abort();
        }
    };
    options.snapshots = SnapshotPace {
        entries: ENTRIES,
        look: Duration::from_millis(100),
        hook: Some(SnapshotHook(Box::leak(Box::new(die)))),
        ..SnapshotPace::default()
    };
    let node = loop {
        // A server that is down may be back soon.
        let mut options = options.clone();
        options
            .monitors
            .retain(|monitor| std::net::TcpStream::connect(monitor.trim_start_matches("http://")).is_ok());
        if let Ok(node) = ClusterNode::start(options).await {
            break node;
        }
        ClusterStop::default().wait(Duration::from_millis(200));
    };
    let mut doing = Doing { node, held: None };
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let read =
        move || std::io::stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    std::thread::Builder::new().spawn(read).unwrap();
    while let Some(line) = lines.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[1..] {
            ["send", workflow, position] => doing.send(workflow, position.parse().unwrap()).await,
            ["receive"] => doing.receive().await,
            ["complete"] => doing.complete().await,
            _ => None,
        };
        println!("{MARK}{} {}", words[0], answer.as_deref().unwrap_or("no"));
    }
}
