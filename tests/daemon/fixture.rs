//! A daemon in a process of its own, on a temporary folder.

use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::fixture::daemon_process::ANYWHERE;
use crate::fixture::daemon_process::DaemonProcess;
use crate::fixture::daemon_process::daemon_command;
use crate::fixture::http;
use crate::fixture::pause_between_looks;

/// How long anything may take before a test gives up; nothing waits for it to pass.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A folder with definitions and a store.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
}

/// A daemon that runs.
pub(crate) struct Daemon {
    process: DaemonProcess,
    pub(crate) address: String,
    /// Where storage queues are served, if they are.
    pub(crate) storage_queue: Option<String>,
    /// Where AMQP is served, if it is.
    pub(crate) amqp: Option<String>,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("workflows")).expect("a folder for definitions");
        Fixture { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file of the folder of definitions.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join("workflows").join(name);
        // Renamed into place, so that a daemon that watches never reads half a file.
        let half = self.folder.path().join("half");
        std::fs::write(&half, text).expect("the folder can be written");
        std::fs::rename(&half, path).expect("the folder can be written");
    }

    /// Takes a file of the folder of definitions away.
    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join("workflows").join(name)).expect("it is there");
    }

    /// Makes a pipe in the folder of definitions: who opens it waits until its other end is opened.
    pub(crate) fn pipe(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join("workflows").join(name);
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo is everywhere");
        assert!(made.success());
        path
    }

    /// Starts a daemon, and waits until it is ready.
    pub(crate) fn start(&self) -> Daemon {
        self.start_with(&[])
    }

    /// Starts a daemon with further arguments, and waits until it is ready.
    pub(crate) fn start_with(&self, arguments: &[&str]) -> Daemon {
        self.start_as(self.command().args(arguments))
    }

    /// Starts a daemon whose log, as much as there is by default, goes into this file, and waits until it is ready.
    pub(crate) fn start_logging(&self, log: &Path) -> Daemon {
        let log = std::fs::File::create(log).expect("the folder can be written");
        self.start_as(self.command().env_remove("SERIATIM_LOG").stderr(log))
    }

    /// Starts a daemon by this command, and waits until it is ready.
    pub(crate) fn start_as(&self, command: &mut Command) -> Daemon {
        let process = DaemonProcess::start(command);
        let address = process.address("http").expect("an address");
        let (storage_queue, amqp) = (process.address("storage_queue"), process.address("amqp"));
        Daemon { process, address, storage_queue, amqp }
    }

    /// Sends lines of so many messages to a daemon, kills it so often until all of them are completed, and stops it.
    pub(crate) fn complete_and_kill(&self, lines: &str, total: u64, kills: u64) {
        let mut daemon = self.start();
        daemon.send("orders", lines);
        for round in 1..=kills {
            let wanted = total * round / (kills + 1);
            daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"].as_u64() >= Some(wanted));
            daemon.kill();
            daemon = self.start();
        }
        daemon.wait_for("/v1/queues/orders", |view| view["counts"]["completed"].as_u64() == Some(total));
        assert_eq!(daemon.stop(), Some(0));
    }

    /// The command that starts a daemon.
    pub(crate) fn command(&self) -> Command {
        daemon_command(self.folder.path(), ANYWHERE)
    }
}

/// A whole request or answer from a connection that stays open: its head, and as much body as that says.
pub(crate) fn read_whole(stream: &mut impl Read) -> Vec<u8> {
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).expect("somebody speaks");
        assert!(read > 0, "it broke off: {}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&piece[..read]);
        let Some(end) = heard.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&heard[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if heard.len() >= end + 4 + length.unwrap_or(0) {
            return heard;
        }
    }
}

impl Daemon {
    /// A request; the status and the body.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, String) {
        let answer = http::ask(&self.address, TIMEOUT, (method, path), headers, body);
        let answer = answer.unwrap_or_else(|| panic!("{method} {path} is not answered"));
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// A request that is answered with JSON.
    pub(crate) fn json(&self, method: &str, path: &str, body: &Value) -> Value {
        let headers = [("content-type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.ask(method, path, &headers, body.as_bytes());
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Sends lines of messages; every one must be accepted, or be there already.
    pub(crate) fn send(&self, queue: &str, lines: &str) {
        let headers = [("content-type", "application/x-ndjson")];
        let (status, text) =
            self.ask("POST", &format!("/v1/queues/{queue}/messages"), &headers, lines.as_bytes());
        assert_eq!(status, 200, "{text}");
        assert!(!text.contains("\"error\""), "{text}");
        assert_eq!(text.lines().count(), lines.lines().count());
    }

    /// Asks again and again until one is what is waited for.
    pub(crate) fn wait_for(&self, path: &str, what: impl Fn(&Value) -> bool) -> Value {
        let clock = SystemClock::default();
        loop {
            let answer = self.json("GET", path, &Value::Null);
            if what(&answer) {
                return answer;
            }
            assert!(clock.elapsed() < TIMEOUT, "{path} is still {answer}");
            pause_between_looks();
        }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(self) {
        drop(self.process);
    }

    /// Asks it to stop, and says with which code it did.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.process.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be asked");
        self.process.child.wait().expect("it is a child").code()
    }

    /// Asks it to stop again and again until it has, and says with which code it did.
    pub(crate) fn stop_at_once(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.process.child);
        loop {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be asked");
            if let Some(ended) = self.process.child.try_wait().expect("it is a child") {
                return ended.code();
            }
            pause_between_looks();
        }
    }

    /// Waits until it ends by itself, and says with which code it did.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.process.child.wait().expect("it is a child").code()
    }

    /// Tells it to read its definitions again.
    pub(crate) fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.process.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("it can be told");
    }
}
