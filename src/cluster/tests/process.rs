//! A node in a process of its own, which can be killed and stopped: this test program again, which does what it reads.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::Pid;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::Signal;
use rustix::process::getrlimit;
use rustix::process::kill_process;
use rustix::process::setrlimit;
use tokio::signal::unix::SignalKind;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::clock::Timestamp;
use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::options::NodeClock;
use crate::cluster::partition::PartitionState;
use crate::cluster::snapshot_pace::SnapshotHook;
use crate::cluster::snapshot_pace::SnapshotPace;
use crate::cluster::snapshot_pace::SnapshotStep;
use crate::cluster::stop::ClusterStop;
use crate::cluster::tests::nats::NatsServers;
use crate::engine::Completion;
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
    Got {
        workflow: u64,
        position: u64,
    },
    Done,
    /// Why partitions are stopped, and what else is wrong if that was asked; empty when nothing is.
    Stopped(String),
    No,
}

/// A node in a process of its own.
pub(crate) struct NodeProcess {
    child: Child,
    folder: PathBuf,
    answers: mpsc::Receiver<String>,
    asked: u64,
    /// Whether the last that was asked is not answered yet.
    is_behind: bool,
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
        NodeProcess::start_with(&servers.options("chaos", &format!("node-{number}")), dies_before)
    }

    pub(crate) fn start_with(options: &ClusterOptions, dies_before: Option<SnapshotStep>) -> NodeProcess {
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
        NodeProcess { child, folder: options.folder.clone(), answers, asked: 0, is_behind: false }
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
        self.ask_within(what, ANSWER)
    }

    /// Asks for something, unless what was asked before is not answered within that time; it is tried then.
    pub(crate) fn ask_within(&mut self, what: &str, time: Duration) -> Option<Answer> {
        if self.is_behind {
            self.answer(time)?;
        }
        self.asked += 1;
        writeln!(self.child.stdin.as_mut().unwrap(), "{} {what}", self.asked).ok()?;
        self.is_behind = true;
        self.answer(time)
    }

    /// Waits for the answer to what was asked last.
    fn answer(&mut self, time: Duration) -> Option<Answer> {
        loop {
            let answer = self.answers.recv_timeout(time).ok()?;
            let Some(said) = answer.strip_prefix(&format!("{} ", self.asked)) else { continue };
            self.is_behind = false;
            let (verb, said) = said.split_once(' ').unwrap_or((said, ""));
            return Some(match verb {
                "sent" => Answer::Sent,
                "done" => Answer::Done,
                "got" => {
                    let (workflow, position) = said.split_once(' ')?;
                    let workflow = workflow.strip_prefix('w')?.parse().ok()?;
                    Answer::Got { workflow, position: position.parse().ok()? }
                }
                "stopped" => Answer::Stopped(said.to_owned()),
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
        let options = QueueOptions { delivery_count_max: u32::MAX, ..QueueOptions::by_position() };
        self.node.client().create_queue("q", options).await.ok()
    }

    /// The queue to which completions send.
    async fn out(&self) -> Option<Queue> {
        // Takeovers count, and an answer that was lost.
        let options = QueueOptions { delivery_count_max: u32::MAX, ..QueueOptions::default() };
        self.node.client().create_queue("out", options).await.ok()
    }

    /// Sends a message of so many bytes.
    async fn send(&self, workflow: &str, position: u64, bytes: usize) -> Option<String> {
        let message = Message::new(vec![b'x'; bytes]).workflow(workflow).position(position);
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

    async fn receive_out(&mut self) -> Option<String> {
        self.held = None;
        let delivery = self.out().await?.receive(Duration::ZERO).await.ok()??;
        let text = String::from_utf8(delivery.message().body.to_vec()).ok()?;
        self.held = Some(delivery);
        Some(format!("got {text}"))
    }

    /// Completes what is held, and sends a message for it to another workflow.
    async fn pass_on(&mut self) -> Option<String> {
        self.out().await?;
        let mut delivery = self.held.take()?;
        let workflow = delivery.message().workflow_id.as_ref()?.as_str().to_owned();
        let message = Message::new(format!("{workflow} {}", delivery.message().rank));
        let completion = Completion::new().send("out", message.workflow(format!("of-{workflow}")));
        delivery.complete_with(completion).await.ok()?;
        Some("done".to_owned())
    }

    /// Why partitions are stopped on this node.
    fn stopped(&self) -> String {
        let status = self.node.status().into_iter();
        let stopped = status.filter_map(|status| match status.state {
            PartitionState::Stopped(why) => Some(format!("partition {}: {why}", status.partition)),
            PartitionState::Owner | PartitionState::Following => None,
        });
        format!("stopped {}", stopped.collect::<Vec<_>>().join("; ").replace('\n', " "))
    }

    /// The same, why the node has ended, and which workflows are held.
    async fn trouble(&self) -> String {
        let (client, mut said) = (self.node.client(), self.stopped());
        if let Some(fault) = client.fault() {
            said += &format!("; {fault}");
        }
        for name in ["q", "out"] {
            let Ok(queue) = client.queue(name) else { continue };
            let listed = tokio::time::timeout(Duration::from_millis(500), queue.workflows(None, 100)).await;
            let Ok(Ok(views)) = listed else {
                said += &format!("; {name} is not listed");
                continue;
            };
            for view in views.iter().filter(|view| !view.holds.is_empty()) {
                said += &format!("; {:?} of {name} is held: {:?}", view.workflow_id, view.holds);
            }
        }
        said.replace('\n', " ")
    }

    async fn complete(&mut self) -> Option<String> {
        self.held.take()?.complete().await.ok()?;
        Some("done".to_owned())
    }
}

/// A clock that can be set, as an operator sets that of a machine.
#[derive(Default)]
pub(crate) struct SteppedClock {
    system: SystemClock,
    ahead_millis: AtomicI64,
}

impl SteppedClock {
    /// Sets it forward or back.
    pub(crate) fn step(&self, millis: i64) -> String {
        self.ahead_millis.fetch_add(millis, Ordering::Relaxed);
        "done".to_owned()
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        let ahead = self.ahead_millis.load(Ordering::Relaxed);
        Timestamp::from_millis(self.system.now().as_millis().saturating_add_signed(ahead))
    }

    fn elapsed(&self) -> Duration {
        self.system.elapsed()
    }
}

/// Writes what the node logs to a file in the folder that `SERIATIM_CHAOS_LOGS` names, if it does.
fn log(node: &str) {
    if let Ok(folder) = std::env::var("SERIATIM_CHAOS_LOGS") {
        let mut options = std::fs::OpenOptions::new();
        let file = options.create(true).append(true).open(Path::new(&folder).join(node)).unwrap();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).log_internal_errors(false);
        let subscriber = subscriber.with_max_level(tracing::Level::DEBUG);
        subscriber.with_writer(std::sync::Mutex::new(file)).init();
    }
}

/// Lets files grow to so many bytes at most, as on a disk that is full; or as they want.
fn leave_room(bytes: Option<u64>) -> String {
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: limit.maximum }).unwrap();
    "done".to_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process of a node, started by other tests"]
async fn a_node_does_what_it_reads() {
    let Ok(servers) = std::env::var(SERVERS) else { return };
    let (name, folder) = (std::env::var(NAME).unwrap(), std::env::var(FOLDER).unwrap());
    log(&name);
    let mut options = servers.split(',').filter_map(|server| server.split_once('=')).fold(
        ClusterOptions::new("chaos", name, folder).partitions(PARTITIONS),
        |options, (server, monitor)| options.server(server, monitor),
    );
    options.replicas = options.servers.len().min(3);
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
    let clock = Arc::new(SteppedClock::default());
    options.clock = NodeClock(clock.clone());
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
    // What is written past the limit is to be refused, not to end the process.
    let past_limit = SignalKind::from_raw(Signal::XFSZ.as_raw());
    let _refused = tokio::signal::unix::signal(past_limit).unwrap();
    let mut doing = Doing { node, held: None };
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let read =
        move || std::io::stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    std::thread::Builder::new().spawn(read).unwrap();
    while let Some(line) = lines.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[1..] {
            ["send", workflow, position, bytes] => {
                doing.send(workflow, position.parse().unwrap(), bytes.parse().unwrap()).await
            }
            ["receive"] => doing.receive().await,
            ["complete"] => doing.complete().await,
            ["receive-out"] => doing.receive_out().await,
            ["pass-on"] => doing.pass_on().await,
            ["clock", millis] => Some(clock.step(millis.parse().unwrap())),
            ["room", bytes] => Some(leave_room(bytes.parse().ok())),
            ["status"] => {
                tracing::info!(nodes = ?doing.node.nodes(), status = ?doing.node.status(), "asked");
                None
            }
            ["stopped"] => Some(doing.stopped()),
            ["trouble"] => Some(doing.trouble().await),
            _ => None,
        };
        println!("{MARK}{} {}", words[0], answer.as_deref().unwrap_or("no"));
    }
}
