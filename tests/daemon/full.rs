//! A disk that fills up under the daemon: what is new is refused before it is full, what is stored is drained out of the
//! head room, and with room everything is accepted again, all without a restart and also after one.

use std::io::Write;
use std::path::Path;

use serde_json::Value;
use serde_json::json;

use crate::daemon::disk::Disk;
use crate::daemon::fixture::Daemon;
use crate::daemon::fixture::Fixture;
use crate::daemon::reliability::Measured;

/// Size of the disk, and larger ones.
const KILOBYTES: u64 = 24 * 1024;
const KILOBYTES_MORE: u64 = 32 * 1024;
const KILOBYTES_MAX: u64 = 64 * 1024;

const HEAD_ROOM: [&str; 2] = ["--head-room", "4MiB"];

/// More messages than any of these disks has room for.
const MESSAGES_MAX: usize = 10_000;

/// What the definition is while the disk is full.
const CHANGED: &str = "[retry]\nbackoff = { first = \"2s\", max = \"5m\" }\n\
    [[schedule]]\nname = \"nightly\"\ncron = \"30 2 * * *\"\n";

/// A definition whose queue is not there while the disk is full.
const NEW: &str = "order = \"position\"\n";

fn send(daemon: &Daemon, bytes: usize) -> (u16, String) {
    daemon.ask("POST", "/v1/queues/orders/messages", &[], &vec![b'a'; bytes])
}

/// Sends until nothing is accepted any more, not even what is small; says how much was.
fn fill(daemon: &Daemon) -> usize {
    let mut bytes = 16 * 1024;
    let mut count = 0;
    while count < MESSAGES_MAX {
        match send(daemon, bytes) {
            (201, _) => count += 1,
            (507, text) => {
                let problem: Value = serde_json::from_str(&text).expect("a problem");
                assert_eq!(problem["code"], "storage_full", "{text}");
                if bytes == 0 {
                    return count;
                }
                bytes = 0;
            }
            (status, text) => panic!("{status} {text} after {count}"),
        }
    }
    panic!("the disk is larger than it was made");
}

/// Receives and completes everything; says how much that was.
fn drain(daemon: &Daemon) -> usize {
    let mut count = 0;
    loop {
        let received = daemon.json("POST", "/v1/queues/orders/receive", &json!({ "max": 32 }));
        let deliveries = received["deliveries"].as_array().expect("deliveries").clone();
        if deliveries.is_empty() {
            return count;
        }
        for delivery in &deliveries {
            let path = format!(
                "/v1/queues/orders/deliveries/{}/complete",
                delivery["delivery"].as_str().expect("an ID")
            );
            daemon.json("POST", &path, &Value::Null);
        }
        count += deliveries.len();
    }
}

/// Takes what room there is, as another program on the disk may.
fn take_all_room(path: &Path) {
    let mut file = std::fs::File::create(path).expect("a file without content");
    let piece = [b'a'; 4096];
    while file.write_all(&piece).is_ok() {}
}

fn wait_until_accepted(daemon: &Daemon) {
    while send(daemon, 16).0 != 201 {}
}

/// A fixture on a small disk; nothing where none can be made.
fn fixture_on_disk(measured: &Measured) -> Option<(Fixture, Disk)> {
    let fixture = Fixture::new();
    fixture.write("orders.toml", "");
    match Disk::in_memory(&fixture.path().join("data"), KILOBYTES) {
        Ok(disk) => Some((fixture, disk)),
        Err(reason) => {
            measured.skip(&reason);
            None
        }
    }
}

#[test]
fn a_full_disk_refuses_what_is_new_is_drained_and_accepts_again_without_a_restart() {
    let measured = Measured::begin("daemon-head-room");
    let Some((fixture, disk)) = fixture_on_disk(&measured) else { return };
    fixture.write("mail.toml", "[subscription]\ntopic = \"paid\"\n");
    let daemon = fixture.start_with(&HEAD_ROOM);
    let mut accepted = fill(&daemon);
    assert!(accepted > 100, "{accepted}");
    let (status, _) = daemon.ask("PUT", "/v1/queues/others", &[("content-type", "application/json")], b"{}");
    assert_eq!(status, 507, "a queue is new too");
    let reloaded = daemon.ask("POST", "/v1/definitions/reload", &[], b"");
    assert_eq!(reloaded.0, 200, "what is defined is there: {}", reloaded.1);
    let (status, text) =
        daemon.ask("POST", "/v1/backup", &[("content-type", "application/json")], b"{\"path\":\"copy\"}");
    assert!(status == 507 && text.contains("storage_full"), "{status} {text}");
    let shown = daemon.json("GET", "/v1/status", &Value::Null);
    assert_eq!((&shown["state"], &shown["fault"]), (&json!("full"), &Value::Null), "{shown}");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(daemon.ask("GET", path, &[], b"").0, 200, "what is stored can be worked off: {path}");
    }
    disk.resize(KILOBYTES_MORE);
    wait_until_accepted(&daemon);
    accepted += 1 + fill(&daemon);
    take_all_room(&fixture.path().join("data").join("taken"));
    assert_eq!(drain(&daemon), accepted, "out of the head room");
    assert_eq!(send(&daemon, 16).0, 507);
    std::fs::remove_file(fixture.path().join("data").join("taken")).expect("it is there");
    disk.resize(KILOBYTES_MAX);
    wait_until_accepted(&daemon);
    assert_eq!(drain(&daemon), 1);
    assert!(fill(&daemon) > 100);
    assert_eq!(daemon.stop(), Some(0));
    measured.end(1, 0);
}

#[test]
fn a_daemon_that_starts_while_the_disk_is_full_drains_its_backlog() {
    let measured = Measured::begin("daemon-head-room-restart");
    let Some((fixture, disk)) = fixture_on_disk(&measured) else { return };
    let daemon = fixture.start_with(&HEAD_ROOM);
    let accepted = fill(&daemon);
    daemon.kill();
    let taken = fixture.path().join("data").join("taken");
    take_all_room(&taken);
    let daemon = fixture.start_with(&HEAD_ROOM);
    assert_eq!(send(&daemon, 16).0, 507);
    daemon.kill();
    // Nor is it kept from that by what is new in its definition, or by new definitions.
    fixture.write("orders.toml", CHANGED);
    let daemon = fixture.start_with(&HEAD_ROOM);
    let shown = daemon.json("GET", "/v1/status", &Value::Null);
    assert!(shown["reload_problem"].as_str().is_some_and(|why| why.contains("orders")), "{shown}");
    daemon.kill();
    fixture.write("invoices.toml", NEW);
    let daemon = fixture.start_with(&HEAD_ROOM);
    let shown = daemon.json("GET", "/v1/status", &Value::Null);
    let problem = shown["reload_problem"].as_str().unwrap_or_default();
    assert!(problem.contains("invoices") && problem.contains("orders"), "{shown}");
    assert_eq!(daemon.ask("GET", "/v1/queues/invoices", &[], b"").0, 404);
    assert_eq!(drain(&daemon), accepted);
    assert_eq!(daemon.stop(), Some(0));
    std::fs::remove_file(taken).expect("it is there");
    disk.resize(KILOBYTES_MAX);
    let daemon = fixture.start_with(&HEAD_ROOM);
    wait_until_accepted(&daemon);
    assert!(daemon.json("GET", "/v1/status", &Value::Null)["reload_problem"].is_null());
    assert_eq!(daemon.ask("GET", "/v1/queues/invoices", &[], b"").0, 200);
    assert!(fixture.path().join("data").join("seriatim.redb.ballast").exists(), "it is set aside again");
    assert_eq!(daemon.stop(), Some(0));
    measured.end(1, 0);
}
