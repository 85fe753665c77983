//! What the daemon says and does when its store fails: everybody hears of it, nothing is acknowledged, and it exits.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::daemon::disk::Disk;
use crate::daemon::fixture::Daemon;
use crate::daemon::fixture::Fixture;
use crate::daemon::packed;
use crate::daemon::reliability::Measured;

/// The exit code of a daemon that a fault has stopped.
const FAILED: Option<i32> = Some(4);

/// The exit code of one that could not start.
const CANNOT_RUN: i32 = 3;

/// Words that are for those who write the program, and say nothing to those who run it.
const INSIDE: [&str; 5] = ["internal error", "panicked", "unreachable", "RUST_BACKTRACE", "unwrap"];

fn store(fixture: &Fixture) -> PathBuf {
    fixture.path().join("data").join("seriatim.redb")
}

fn send(daemon: &Daemon) -> (u16, String) {
    daemon.ask("POST", "/v1/queues/orders/messages", &[], &[b'a'; 1024])
}

fn doctor(daemon: &Daemon) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    let output = command.arg("doctor").arg("--url").arg(format!("http://{}", daemon.address)).output();
    let output = output.expect("the binary starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Everybody who asks hears of the fault, then the daemon exits, and its log says once why.
fn everybody_hears(daemon: Daemon, words: &str, log: &Path) {
    for path in ["/healthz", "/readyz"] {
        let (status, text) = daemon.ask("GET", path, &[], b"");
        assert!(status == 503 && text.contains(words), "{path}: {status} {text}");
    }
    let shown = daemon.json("GET", "/v1/status", &Value::Null);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert!(shown["fault"].as_str().is_some_and(|fault| fault.contains(words)), "{shown}");
    let (code, said) = doctor(&daemon);
    assert!(code == Some(1) && said.contains("FAIL") && said.contains(words), "{code:?}: {said}");
    assert_eq!(daemon.end(), FAILED);
    let log = std::fs::read_to_string(log).expect("there is a log");
    let told: Vec<_> = log.lines().filter(|line| line.contains(" ERROR ")).collect();
    assert!(
        told.len() == 1 && told[0].contains("the engine stops for good") && told[0].contains(words),
        "{log}"
    );
    assert!(INSIDE.iter().all(|word| !log.contains(word)), "{log}");
}

#[test]
fn a_store_file_that_is_deleted_is_a_fault_that_everybody_hears_of() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "");
    let log = fixture.path().join("log");
    let daemon = fixture.start_logging(&log);
    assert_eq!(send(&daemon).0, 201);
    std::fs::remove_file(store(&fixture)).expect("it is there");
    // Nobody has to send anything.
    while daemon.ask("GET", "/healthz", &[], b"").0 == 200 {}
    everybody_hears(daemon, "it was deleted or moved", &log);
}

#[test]
fn nothing_is_acknowledged_that_would_go_to_a_file_that_was_replaced() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "[[handler]]\nexec = [\"sleep\", \"60\"]\n");
    let log = fixture.path().join("log");
    let daemon = fixture.start_logging(&log);
    assert_eq!(send(&daemon).0, 201);
    let (file, copy) = (store(&fixture), fixture.path().join("copy"));
    std::fs::copy(&file, &copy).expect("there is room");
    std::fs::rename(&copy, &file).expect("the folder can be written");
    let (status, text) = send(&daemon);
    assert!(status == 503 && text.contains("another file was put in its place"), "{status} {text}");
    everybody_hears(daemon, "another file was put in its place", &log);
    let daemon = fixture.start();
    assert_eq!(send(&daemon).0, 201, "what is there now is a store");
    daemon.kill();
}

#[test]
fn after_a_fault_the_service_manager_is_told_and_its_watchdog_is_not_fed() {
    let fixture = Fixture::new();
    let path = fixture.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    let daemon = fixture.start_as(fixture.command().env("NOTIFY_SOCKET", &path));
    let mut heard = [0; 512];
    let mut next = || {
        let bytes = manager.recv(&mut heard).expect("the daemon speaks");
        String::from_utf8_lossy(&heard[..bytes]).into_owned()
    };
    while !next().contains("WATCHDOG=1") {}
    std::fs::remove_file(store(&fixture)).expect("it is there");
    while !next().contains("STATUS=failed") {}
    assert_eq!(daemon.end(), FAILED);
    manager.set_nonblocking(true).expect("it is a socket");
    let mut heard = [0; 512];
    while let Ok(bytes) = manager.recv(&mut heard) {
        let said = String::from_utf8_lossy(&heard[..bytes]);
        assert!(!said.contains("WATCHDOG=1"), "{said}");
    }
}

#[test]
fn a_store_of_an_older_version_is_upgraded_with_a_word_before_and_in_all_the_time_that_it_takes() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("data")).expect("a new folder");
    packed::place("format-4-closed", &store(&fixture));
    let (path, log) = (fixture.path().join("notify"), fixture.path().join("log"));
    let manager = UnixDatagram::bind(&path).expect("a socket");
    let file = std::fs::File::create(&log).expect("the folder can be written");
    let mut command = fixture.command();
    let daemon =
        fixture.start_as(command.env("NOTIFY_SOCKET", &path).env_remove("SERIATIM_LOG").stderr(file));
    let mut heard = [0; 512];
    let bytes = manager.recv(&mut heard).expect("the daemon speaks");
    let first = String::from_utf8_lossy(&heard[..bytes]).into_owned();
    assert!(first.contains("EXTEND_TIMEOUT_USEC=60000000") && !first.contains("READY=1"), "{first}");
    assert_eq!(daemon.stop(), Some(0));
    let said = std::fs::read_to_string(&log).expect("there is a log");
    let is_said = |line: &str| line.contains(" WARN ") && line.contains("format 4 and is upgraded to");
    assert!(said.lines().any(is_said) && said.contains("no older version opens it"), "{said}");
    assert_eq!(fixture.start_logging(&log).stop(), Some(0));
    let said = std::fs::read_to_string(&log).expect("there is a log");
    assert!(!said.contains("is upgraded"), "only once: {said}");
}

/// Starts a daemon, or says how it refused.
fn refusal(fixture: &Fixture) -> Result<(), String> {
    let path = fixture.path().join("stderr");
    let stderr = std::fs::File::create(&path).expect("the folder can be written");
    let mut child = fixture.command().stderr(stderr).spawn().expect("the binary starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("it can be read");
    if !line.is_empty() {
        child.kill().expect("it runs");
        child.wait().expect("it is a child");
        return Ok(());
    }
    let code = child.wait().expect("it is a child").code();
    let said = std::fs::read_to_string(path).expect("it is there");
    assert_eq!(code, Some(CANNOT_RUN), "{said}");
    assert!(INSIDE.iter().all(|word| !said.contains(word)), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("cannot ")).count(), 1, "{said}");
    Err(said)
}

#[test]
fn a_store_that_is_no_file_is_refused_at_once() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("data")).expect("a folder");
    let path = store(&fixture);
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo is everywhere").success());
    assert!(refusal(&fixture).is_err_and(|said| said.contains("it is a pipe")));
    std::fs::remove_file(&path).expect("it is there");
    std::fs::create_dir(&path).expect("a folder");
    assert!(refusal(&fixture).is_err_and(|said| said.contains("it is a folder")));
    std::fs::remove_dir(&path).expect("it is there");
    std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
    assert!(refusal(&fixture).is_err_and(|said| said.contains("a device")));
}

#[test]
fn a_store_that_is_damaged_or_cut_off_is_said_to_be_with_the_place() {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "");
    let daemon = fixture.start();
    daemon.send("orders", &"{\"body\":1}\n".repeat(500));
    assert_eq!(daemon.stop(), Some(0));
    let path = store(&fixture);
    let whole = std::fs::read(&path).expect("it is there");
    for len in [100, 320, 4_096, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).expect("it can be written");
        let said = refusal(&fixture).expect_err("a part of it is missing");
        assert!(said.contains(&format!("it is damaged: it ends after {len} bytes")), "{said}");
        assert!(std::fs::read(&path).expect("it is there") == whole[..len], "it was left untouched");
    }
    let mut refused = 0;
    // Behind the first pages, to which short commits are appended.
    let pages = 4_096 + 2 * 1_024 * 1_024;
    for at in (12..320).step_by(28).chain((pages..whole.len()).step_by((whole.len() - pages) / 12)) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        std::fs::write(&path, &flipped).expect("it can be written");
        if let Err(said) = refusal(&fixture) {
            refused += 1;
            let place = ["byte ", "bytes ", "table ", "tables ", "page"];
            let is_told = said.contains("it is damaged: ") && place.iter().any(|place| said.contains(place));
            assert!(is_told, "byte {at}: {said}");
            assert!(
                std::fs::read(&path).expect("it is there") == flipped,
                "byte {at}: it was left untouched"
            );
        }
    }
    assert!(refused >= 3, "{refused} of the flips were noticed");
}

#[test]
fn without_head_room_a_full_disk_is_a_fault_that_everybody_hears_of() {
    let measured = Measured::begin("daemon-full-disk");
    let fixture = Fixture::new();
    fixture.write("orders.toml", "");
    let _disk = match Disk::in_memory(&fixture.path().join("data"), 6 * 1024) {
        Ok(disk) => disk,
        Err(reason) => return measured.skip(&reason),
    };
    let log = fixture.path().join("log");
    let file = std::fs::File::create(&log).expect("the folder can be written");
    let mut command = fixture.command();
    let daemon = fixture.start_as(command.args(["--head-room", "0"]).env_remove("SERIATIM_LOG").stderr(file));
    let body = vec![b'a'; 256 * 1024];
    let send = || daemon.ask("POST", "/v1/queues/orders/messages", &[], &body);
    let (status, text) = std::iter::repeat_with(send).find(|(status, _)| *status != 201).expect("it is full");
    assert!(status == 503 && text.contains("No space left"), "{status} {text}");
    everybody_hears(daemon, "No space left", &log);
    measured.end(1, 0);
}
