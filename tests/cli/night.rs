//! A night with a real daemon, as `docs/cli.md` tells it: what does not get on is found, understood and mended.

use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::cli::fake::Ran;
use crate::cli::fake::run_command;
use crate::cli::fake::seriatim;
use crate::fixture::daemon_process::ANYWHERE;
use crate::fixture::daemon_process::DaemonProcess;
use crate::fixture::daemon_process::daemon_command;

/// Clients receive, and a message that fails once is spent.
const DEFINITION: &str = "order = \"position\"\n[delivery]\ncount_max = 1\n";

/// A daemon in a folder of its own.
pub(crate) struct Daemon {
    _process: DaemonProcess,
    url: String,
    folder: TempDir,
}

impl Daemon {
    pub(crate) fn start() -> Daemon {
        Daemon::with(DEFINITION)
    }

    /// One whose queue `orders` is defined so.
    pub(crate) fn with(definition: &str) -> Daemon {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let definitions = folder.path().join("workflows");
        std::fs::create_dir(&definitions).expect("a folder");
        std::fs::write(definitions.join("orders.toml"), definition).expect("it can be written");
        let process = DaemonProcess::start(daemon_command(folder.path(), ANYWHERE).stderr(Stdio::null()));
        let url = format!("http://{}", process.address("http").expect("an address"));
        Daemon { _process: process, url, folder }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        run_command(seriatim(arguments).env("SERIATIM_URL", &self.url), input)
    }

    /// Runs it, and expects that all is well.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran.stdout
    }

    /// Takes the next message and lets it fail.
    fn fail_next(&self, reason: &str) {
        let taken = self.run(&["receive", "orders", "--keep", "--json"]).json();
        let delivery = taken[0]["delivery"].as_str().expect("it is named");
        self.done(&["settle", "orders", delivery, "abandon", "--reason", reason]);
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("text").to_owned()
    }
}

pub(crate) fn has(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in\n{text}"));
}

#[test]
fn what_does_not_get_on_is_found_understood_and_mended() {
    let daemon = Daemon::start();
    let lines = "{\"workflow_id\":\"4711\",\"position\":1,\"body\":{\"cents\":18446744073709551616}}\n\
                 {\"workflow_id\":\"4711\",\"position\":2,\"body\":{\"cents\":2}}\n\
                 {\"workflow_id\":\"4711\"}\n\
                 {\"workflow_id\":\"4711\",\"position\":4,\"body\":{\"cents\":4}}\n";
    let ran = daemon.run_with(&["send", "orders", "--ndjson"], lines);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "4 lines: 3 accepted, 1 REFUSED\n"), "{ran:?}");
    assert_eq!(ran.stderr, "line 3: the queue needs a position (place_mismatch)\n");
    daemon.fail_next("unknown currency");

    let blocked = daemon.done(&["blocked"]);
    has(
        &blocked,
        &["orders/4711", "held: exhausted (1x)", "unknown currency", "nothing: somebody has to act"],
    );
    let shown = daemon.done(&["show", "orders/4711"]);
    has(&shown, &["1 FAILED 1x, exhausted | 2 waits | 3 MISSING | 4 early", "seriatim retry orders/4711 "]);
    has(&daemon.done(&["show", "orders#1"]), &["\"cents\": 18446744073709551616", "attempt 1: "]);

    has(&daemon.done(&["retry", "orders", "--all", "--dry-run"]), &["1 would be done"]);
    assert_eq!(daemon.done(&["retry", "orders", "--all", "--yes"]), "1 workflow retried\n");
    daemon.fail_next("still unknown");
    daemon.done(&["skip", "orders/4711", "--reason", "the shop sends it anew"]);
    has(&daemon.done(&["dlq"]), &["orders", "SkippedByOperator", "1"]);
    has(
        &daemon.done(&["receive", "orders", "--dead-letters", "--keep"]),
        &["orders#1", "reason: SkippedByOperator", "description: the shop sends it anew"],
    );
    has(&daemon.done(&["receive", "orders", "--complete"]), &["orders#2: taken"]);

    has(&daemon.done(&["blocked"]), &["gap: 3 is missing"]);
    daemon.done(&["gap", "void", "orders/4711", "3", "--reason", "cancelled before it was paid"]);
    has(&daemon.done(&["receive", "orders", "--complete"]), &["orders#3: taken"]);
    assert_eq!(daemon.done(&["blocked"]), "nothing is blocked\n");

    let refused = daemon.run(&["redrive", "orders#1"]);
    assert_eq!(refused.code, Some(1), "its workflow has gone past its place: {refused:?}");
    has(&refused.stderr, &["(place_passed)"]);
    has(&daemon.done(&["redrive", "orders#1", "--position", "5"]), &["as the new message orders#"]);
    let audit = daemon.done(&["audit"]);
    has(
        &audit,
        &["local", "the shop sends it anew", "REFUSED: ", "orders/4711 3..3", "cancelled before it was paid"],
    );
    has(&daemon.done(&["doctor"]), &["ok   reachable: ", "ok   definitions: 1 loaded"]);
}

#[test]
fn what_is_exported_and_what_is_backed_up_comes_back() {
    let daemon = Daemon::start();
    for position in ["2", "1"] {
        daemon.done(&[
            "send",
            "orders",
            position,
            "--workflow",
            "w",
            "--position",
            position,
            "--message-id",
            position,
        ]);
    }
    let once = [
        "send",
        "orders",
        "3",
        "--workflow",
        "w",
        "--position",
        "3",
        "--idempotency-key",
        "k",
        "--message-id",
        "3",
    ];
    assert_eq!(daemon.done(&once), daemon.done(&once), "the first answer is given again");
    let exported = daemon.file("orders.ndjson");
    daemon.done(&["export", "orders", "--output", &exported]);
    assert_eq!(
        daemon.run(&["export", "orders", "--output", &exported]).code,
        Some(3),
        "nothing is overwritten"
    );
    let made = daemon.run(&["backup", "--json"]).json();
    let copy = made[0]["path"].as_str().expect("it says where").to_owned();

    let other = Daemon::start();
    assert_eq!(other.done(&["import", "orders", &exported]), "3 lines: 3 accepted\n");
    assert_eq!(other.done(&["import", "orders", &exported]), "3 lines: 0 accepted, 3 sent before\n");
    has(&other.done(&["receive", "orders", "--complete"]), &["position: 1\n"]);

    let data = daemon.file("data");
    let ran = run_command(&mut seriatim(&["restore", &copy, "--data", &data, "--force"]), "");
    assert_eq!(ran.code, Some(1), "the daemon has it open: {ran:?}");
    let restored = daemon.file("restored");
    let ran = run_command(&mut seriatim(&["restore", &copy, "--data", &restored]), "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(Path::new(&restored).join("seriatim.redb").exists());
}

#[test]
fn a_body_of_json_is_exported_and_imported_byte_for_byte() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    let bodies = ["{\n \"a\": 1.10,\r\n \"a\": 2\n}\n", " [1] "];
    for (position, body) in ["1", "2", "3"].into_iter().zip([bodies[0], bodies[1], "{\"a\":1.10}"]) {
        daemon.done(&["send", "orders", body, "--workflow", "w", "--position", position]);
    }
    let exported = daemon.file("orders.ndjson");
    daemon.done(&["export", "orders", "--output", &exported]);
    assert_eq!(other.done(&["import", "orders", &exported]), "3 lines: 3 accepted\n");
    let back = other.run(&["export", "orders"]);
    let lines = back.json();
    let texts: Vec<_> = lines.iter().filter_map(|line| line["body_text"].as_str()).collect();
    assert_eq!(texts, bodies, "{back:?}");
    has(&back.stdout, &["\"body\":{\"a\":1.10}"]);
}

#[test]
fn what_was_completed_before_an_export_is_waited_for_nowhere() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    let send = |daemon: &Daemon, workflow: &str, position: &str| {
        daemon.done(&["send", "orders", position, "--workflow", workflow, "--position", position]);
    };
    // All of the first workflow is completed, and the head of the second.
    for (workflow, position) in [("idle", "1"), ("idle", "2"), ("w", "1")] {
        send(&daemon, workflow, position);
        has(&daemon.done(&["receive", "orders", "--complete"]), &[&format!("position: {position}\n")]);
    }
    send(&daemon, "w", "2");
    send(&daemon, "w", "4");
    let exported = daemon.file("orders.ndjson");
    daemon.done(&["export", "orders", "--output", &exported]);
    for _ in 0..2 {
        let summary = other.done(&["import", "orders", &exported]);
        has(&summary, &["4 lines: ", ", 2 set ahead"]);
    }
    has(&other.done(&["receive", "orders", "--complete"]), &["position: 2\n"]);
    send(&other, "idle", "3");
    has(&other.done(&["receive", "orders", "--complete"]), &["position: 3\n"]);
    send(&other, "w", "3");
    for position in [3, 4] {
        has(&other.done(&["receive", "orders", "--complete"]), &[&format!("position: {position}\n")]);
    }
}

#[test]
fn a_dead_letter_is_revived_in_its_place_though_its_workflow_has_gone_on() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    for position in ["1", "2", "3"] {
        daemon.done(&["send", "orders", position, "--workflow", "w", "--position", position]);
    }
    daemon.done(&["receive", "orders", "--complete"]);
    daemon.done(&["skip", "orders/w", "--reason", "poison"]);
    let exported = daemon.file("orders.ndjson");
    daemon.done(&["export", "orders", "--output", &exported]);
    let summary = other.done(&["import", "orders", &exported, "--revive-dead-letters"]);
    has(&summary, &["3 lines: 2 accepted, 1 set ahead"]);
    for position in [2, 3] {
        has(&other.done(&["receive", "orders", "--complete"]), &[&format!("position: {position}\n")]);
    }
}

#[test]
fn what_was_set_aside_comes_back_in_its_place_from_an_export() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    for position in ["1", "2", "3"] {
        daemon.done(&["send", "orders", position, "--workflow", "w", "--position", position]);
    }
    daemon.done(&["receive", "orders", "--complete"]);
    let taken = daemon.run(&["receive", "orders", "--keep", "--json"]).json();
    daemon.done(&["settle", "orders", taken[0]["delivery"].as_str().expect("it is named"), "defer"]);
    daemon.done(&["receive", "orders", "--complete"]);
    let exported = daemon.file("orders.ndjson");
    daemon.done(&["export", "orders", "--output", &exported]);
    assert_eq!(other.done(&["import", "orders", &exported]), "2 lines: 1 accepted, 1 set ahead\n");
    has(&other.done(&["receive", "orders", "--complete"]), &["position: 2\n"]);
}

#[test]
fn an_import_that_broke_off_is_finished_by_the_next() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    for position in ["1", "2"] {
        daemon.done(&["send", "orders", position, "--workflow", "w", "--position", position]);
    }
    daemon.done(&["receive", "orders", "--complete"]);
    let exported = daemon.file("orders.ndjson");
    daemon.done(&["export", "orders", "--output", &exported]);
    // The message was sent, and the workflow is held so that its places can be declared void.
    other.done(&["send", "orders", "2", "--workflow", "w", "--position", "2"]);
    let reason = "import: it was settled where the workflow was exported";
    other.done(&["hold", "orders/w", "--reason", reason]);
    let summary = other.done(&["import", "orders", &exported]);
    assert_eq!(summary, "2 lines: 0 accepted, 1 sent before, 1 set ahead\n");
    has(&other.done(&["receive", "orders", "--complete"]), &["position: 2\n"]);
}
