//! A cluster of daemons on this machine, any of which can be killed.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use rustix::process::test_kill_process;
use serde_json::Value;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::cluster::nats_program::nats_program;
use crate::fixture::daemon_process::DaemonProcess;
use crate::fixture::http;
use crate::fixture::pause_between_looks;

/// How long anything may take before a test gives up; nothing waits for it to pass.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster of daemons; dropped, all of it is killed.
pub(crate) struct Cluster {
    process: DaemonProcess,
    /// Nodes that were started again.
    again: Vec<DaemonProcess>,
    folder: tempfile::TempDir,
    /// Its place: see [`PLACES`].
    _place: MutexGuard<'static, ()>,
}

/// Partitions of each: fewer than by default, as each has a stream that takes three servers some time to make.
pub(crate) const PARTITIONS: usize = 6;

/// Two clusters at a time: most of what a test does is to wait for servers, and more of them would wait for each other.
static PLACES: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];

/// Counts the clusters, so that they take turns in the places.
static STARTED: AtomicUsize = AtomicUsize::new(0);

impl Cluster {
    /// Starts so many nodes with these definitions; `None` where there is no NATS server.
    pub(crate) fn start(nodes: usize, definitions: &[(&str, &str)]) -> Option<Cluster> {
        Cluster::start_with(nodes, definitions, &[])
    }

    /// As [`Cluster::start`], with further arguments. `FOLDER` in a definition is the cluster's folder.
    pub(crate) fn start_with(
        nodes: usize,
        definitions: &[(&str, &str)],
        arguments: &[&str],
    ) -> Option<Cluster> {
        let program = nats_program()?;
        let place = &PLACES[STARTED.fetch_add(1, Ordering::Relaxed) % PLACES.len()];
        let place = place.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let workflows = folder.path().join("workflows");
        std::fs::create_dir(&workflows).expect("a folder for definitions");
        for (name, text) in definitions {
            let text = text.replace("FOLDER", &folder.path().display().to_string());
            std::fs::write(workflows.join(name), text).expect("the folder can be written");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
        command.arg("dev").arg(&workflows).args(["--nodes", &nodes.to_string(), "--json"]);
        command.args(["--http", "127.0.0.1:0"]).args(arguments).env("NATS_SERVER", program);
        command.env("SERIATIM_PARTITIONS", PARTITIONS.to_string());
        command.env("TMPDIR", folder.path()).env("SERIATIM_LOG", "warn").current_dir(folder.path());
        let process = DaemonProcess::start(&mut command);
        Some(Cluster { process, again: Vec::new(), folder, _place: place })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What was said of a node when it was ready.
    fn node(&self, node: usize) -> &Value {
        &self.process.ready["nodes"][node]
    }

    /// An address of a node, `127.0.0.1:7700`, by the name of the server.
    pub(crate) fn address(&self, node: usize, server: &str) -> String {
        let url = self.node(node)[server].as_str().expect("it is served");
        url.split_once("://").map_or(url, |(_, address)| address).to_owned()
    }

    pub(crate) fn pid(&self, node: usize) -> i64 {
        self.node(node)["pid"].as_i64().expect("a process")
    }

    /// Sends a signal to a node.
    pub(crate) fn signal(&self, node: usize, which: Signal) {
        kill_process(process(self.pid(node)), which).expect("it is there");
    }

    /// What stands behind a flag in the command of a node.
    fn word_behind(&self, node: usize, flag: &str) -> &str {
        let command = self.node(node)["command"].as_array().expect("it was started by a command");
        let at = command.iter().position(|word| word == flag).expect("it is given");
        command[at + 1].as_str().expect("a word")
    }

    /// The data folder of a node.
    pub(crate) fn data(&self, node: usize) -> PathBuf {
        PathBuf::from(self.word_behind(node, "--data"))
    }

    /// The address of a NATS server.
    pub(crate) fn nats(&self) -> &str {
        let servers = self.word_behind(0, "--nats").trim_start_matches("nats://");
        servers.split('=').next().expect("an address")
    }

    /// Starts a node again that has ended, at the same address.
    pub(crate) fn start_again(&mut self, node: usize) {
        let command = self.node(node)["command"].as_array().expect("it was started by a command");
        let mut words: Vec<String> =
            command.iter().map(|word| word.as_str().expect("a word").to_owned()).collect();
        let http = words.iter().position(|word| word == "--http").expect("it serves HTTP");
        words[http + 1] = self.address(node, "http");
        let mut started = Command::new(&words[0]);
        started.args(&words[1..]).env("SERIATIM_LOG", "warn");
        started.env("SERIATIM_PARTITIONS", PARTITIONS.to_string());
        self.again.push(DaemonProcess::start(&mut started));
    }

    /// A request to a node; the status and the body, or nothing if the node was not reached.
    pub(crate) fn ask(&self, node: usize, method: &str, path: &str, body: &Value) -> Option<(u16, String)> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.ask_at((node, "http"), (method, path), &[("content-type", "application/json")], &text)
    }

    /// A request to a server of a node, with these headers.
    pub(crate) fn ask_at(
        &self,
        (node, server): (usize, &str),
        request: (&str, &str),
        headers: &[(&str, &str)],
        text: &str,
    ) -> Option<(u16, String)> {
        let answer = http::ask(&self.address(node, server), TIMEOUT, request, headers, text.as_bytes())?;
        Some((answer.status, answer.text()))
    }

    /// A request that is answered with JSON.
    pub(crate) fn json(&self, node: usize, method: &str, path: &str, body: &Value) -> Value {
        let (status, text) = self.ask(node, method, path, body).expect("the node answers");
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Sends a message until it is acknowledged, by whichever of these nodes answers.
    pub(crate) fn send(&self, nodes: &[usize], queue: &str, message: &Value) {
        let path = format!("/v1/queues/{queue}/messages");
        let clock = SystemClock::default();
        loop {
            for node in nodes {
                // The place is taken by the same message when the answer to it was lost.
                if let Some((200..300 | 409, _)) = self.ask(*node, "POST", &path, message) {
                    return;
                }
            }
            assert!(clock.elapsed() < TIMEOUT, "nobody accepts {message}");
            pause_between_looks();
        }
    }

    /// Sends a message to a topic under a key until it is acknowledged, by whichever of these nodes answers.
    pub(crate) fn publish(&self, nodes: &[usize], topic: &str, key: &str, message: &Value) -> Value {
        let path = format!("/v1/topics/{topic}/messages");
        let headers = [("content-type", "application/x-ndjson"), ("idempotency-key", key)];
        let clock = SystemClock::default();
        loop {
            for node in nodes {
                match self.ask_at((*node, "http"), ("POST", &path), &headers, &message.to_string()) {
                    Some((200..300, answer)) => return serde_json::from_str(&answer).expect("it is JSON"),
                    Some((400..500, answer)) => panic!("{message}: {answer}"),
                    _ => {}
                }
            }
            assert!(clock.elapsed() < TIMEOUT, "nobody accepts {message}");
            pause_between_looks();
        }
    }

    /// Asks again and again until one is what is waited for.
    pub(crate) fn wait_for(&self, node: usize, path: &str, what: impl Fn(&Value) -> bool) -> Value {
        let clock = SystemClock::default();
        loop {
            let answer = self.ask(node, "GET", path, &Value::Null);
            let answer = answer.and_then(|(_, text)| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
            if what(&answer) {
                return answer;
            }
            assert!(clock.elapsed() < TIMEOUT, "{path} is still {answer}");
            pause_between_looks();
        }
    }

    /// Appends to the log of a partition what no node reads.
    pub(crate) fn spoil_log(&self, partition: u16) {
        let mut stream = TcpStream::connect(self.nats()).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("it can be set");
        let subject = format!("seriatim.{}.log.{partition}", self.word_behind(0, "--cluster"));
        write!(stream, "CONNECT {{\"verbose\":false}}\r\nPUB {subject} 5\r\nother\r\nPING\r\n")
            .expect("it is sent");
        let lines = BufReader::new(stream).lines().map(|line| line.expect("it answers"));
        assert!(lines.into_iter().any(|line| line.starts_with("PONG")), "the server has taken it");
    }

    /// Kills the process that has started all of it.
    pub(crate) fn kill(&mut self) {
        self.process.child.kill().expect("it is there");
        self.process.child.wait().expect("it is a child");
    }

    /// The processes that were started, by their numbers.
    fn pids(&self) -> Vec<i64> {
        let kinds = ["nodes", "nats"].into_iter();
        let shown = kinds.flat_map(|kind| self.process.ready[kind].as_array().into_iter().flatten());
        shown.filter_map(|process| process["pid"].as_i64()).collect()
    }

    /// Waits until none of the processes is there any more.
    pub(crate) fn wait_until_all_is_gone(&self) {
        let clock = SystemClock::default();
        let all = self.pids();
        assert!(all.len() >= 2);
        while let Some(pid) = all.iter().find(|pid| test_kill_process(process(**pid)).is_ok()) {
            assert!(clock.elapsed() < TIMEOUT, "process {pid} is still there");
            pause_between_looks();
        }
    }

    /// Asks all of it to stop, and says with which code it did.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let end = |process: &mut DaemonProcess| {
            kill_process(Pid::from_child(&process.child), Signal::TERM).expect("it can be asked");
            process.child.wait().expect("it is a child").code()
        };
        self.again.iter_mut().for_each(|node| assert_eq!(end(node), Some(0)));
        end(&mut self.process)
    }
}

fn process(pid: i64) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("a process")).expect("a process")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
        for pid in self.pids() {
            let _ = kill_process(process(pid), Signal::KILL);
        }
    }
}
