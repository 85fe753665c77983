//! Plays a scenario: a script that uses an SDK, and prints one line of JSON for each promise.
//!
//! A line is `{"promise": name, "outcome": "kept" | "broken", "detail": text}`, or `{"ask": "kill"}`, which kills the
//! daemon and starts it again; then a line is written to the script.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

use serde_json::Value;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::fixture::skip::skip;
use crate::fixture::skip::skip_unless_ci;
use crate::sdk::early::play_early;
use crate::sdk::fixture::Fixture;
use crate::sdk::fixture::SECRETS;
use crate::sdk::fixture::certificate;
use crate::sdk::kit::Kit;
use crate::sdk::kit::examples;
use crate::sdk::kit::kit;

/// How long a script may take; most take seconds, the longest wait for ten locks to run out.
const SCRIPT_MAX: Duration = Duration::from_secs(120);

/// Plays a script against a daemon of its own; panics with every promise that was broken.
pub(crate) fn play(script: &str) {
    play_early(script, play_now);
}

fn play_now(script: &str) {
    with_kit(script, |kit, name| run(kit, name, Fixture::open(None, None, None)));
}

/// Plays a script against a daemon that demands keys.
pub(crate) fn play_signed(script: &str, keys: &str) {
    with_kit(script, |kit, name| run(kit, name, Fixture::open(None, Some(keys), None)));
}

/// Plays a script against a daemon that was given an emulator's file of queues and topics.
pub(crate) fn play_configured(script: &str, config: &str) {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(config);
    with_kit(script, |kit, name| run(kit, name, Fixture::open(None, None, Some(&config))));
}

/// Plays a script against a daemon with a certificate and an emulator's file of queues.
pub(crate) fn play_encrypted(script: &str, config: &str) {
    play_in_tls(script, config, None);
}

/// Plays a script against such a daemon that demands keys.
pub(crate) fn play_encrypted_and_signed(script: &str, config: &str, keys: &str) {
    play_in_tls(script, config, Some(keys));
}

fn play_in_tls(script: &str, config: &str, keys: Option<&str>) {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(config);
    with_kit(script, |kit, name| run(kit, name, Fixture::open_encrypted(&config, keys)));
}

/// Runs an example for users, with the definitions beside it; it ends badly when it was not as it says.
pub(crate) fn show(script: &str) {
    with_kit(script, |kit, name| {
        let fixture = Fixture::open(Some(&examples().join("workflows")), None, None);
        let file = fixture.file("complaints");
        let mut script = start(kit, name, &fixture, &file);
        let lines: Vec<String> = lines(script.0.stdout.take().expect("stdout is piped")).iter().collect();
        let ended = script.0.wait().expect("it is a child");
        println!("{name}:\n  {}", lines.join("\n  "));
        let complaints = std::fs::read_to_string(file).unwrap_or_default();
        assert!(ended.success(), "{name} ended with {ended}:\n{complaints}");
    });
}

fn with_kit(script: &str, run: impl FnOnce(&Kit, &str)) {
    let (folder, name) = script.split_once('/').expect("a script is in a folder");
    match kit(folder) {
        Ok(kit) => run(&kit, name),
        Err(why) => skip_unless_ci(script, &why),
    }
}

fn run(kit: &Kit, name: &str, mut fixture: Fixture) {
    let complaints = fixture.file("complaints");
    let mut script = start(kit, name, &fixture, &complaints);
    let lines = lines(script.0.stdout.take().expect("stdout is piped"));
    let clock = SystemClock::default();
    let mut broken = Vec::new();
    let mut kept = 0;
    loop {
        let line = match lines.recv_timeout(SCRIPT_MAX.saturating_sub(clock.elapsed())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                broken.push(format!("it is not done after {SCRIPT_MAX:?}"));
                break;
            }
        };
        let told: Value = serde_json::from_str(&line).unwrap_or_default();
        match (told["ask"].as_str(), told["outcome"].as_str()) {
            (Some("kill"), _) => {
                fixture.kill_and_start();
                script.answer();
            }
            (_, Some("kept")) => kept += 1,
            (_, Some("broken")) => {
                broken.push(format!("{}: {}", told["promise"], told["detail"].as_str().unwrap_or_default()))
            }
            _ => broken.push(format!("it says {line}")),
        }
    }
    drop(script);
    println!("{name}: {kept} promises kept, {} broken", broken.len());
    let complaints = std::fs::read_to_string(complaints).unwrap_or_default();
    complaints.lines().filter_map(|line| line.strip_prefix("skipped: ")).for_each(|why| skip(name, why));
    assert!(broken.is_empty() && kept > 0, "{name}:\n{}\n{complaints}", broken.join("\n"));
}

/// A script that runs; it is ended with this.
struct Script(Child);

impl Script {
    /// Tells it that what it asked for is done.
    fn answer(&mut self) {
        let stdin = self.0.stdin.as_mut().expect("stdin is piped");
        // A script that is gone is noticed by its silence.
        let _ = stdin.write_all(b"done\n").and_then(|()| stdin.flush());
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(kit: &Kit, name: &str, fixture: &Fixture, complaints: &Path) -> Script {
    let stderr = File::create(complaints).expect("the folder can be written");
    let mut command = Command::new(&kit.program);
    command.arg(kit.script(name)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
    command.env("SERIATIM_HTTP", &fixture.addresses.http);
    command.env("SERIATIM_AMQP", &fixture.addresses.amqp);
    command.env("SERIATIM_STORAGE_QUEUE", &fixture.addresses.storage_queue);
    command.env("SERIATIM_CERTIFICATE", certificate()).env("NODE_EXTRA_CA_CERTS", certificate());
    command.env("SERIATIM_PROGRAM", env!("CARGO_BIN_EXE_seriatim"));
    command.envs(SECRETS).env("PYTHONDONTWRITEBYTECODE", "1");
    Script(command.spawn().expect("the script starts"))
}

/// What the script prints, line by line.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    let read = move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    Builder::new().name("script".to_owned()).spawn(read).expect("a thread starts");
    lines
}
