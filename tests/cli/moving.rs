//! Messages that are moved from one daemon to another: what `export` wrote, `import` has go on where it stood.

use std::io::BufRead;
use std::io::BufReader;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

use crate::cli::fake::Answer;
use crate::cli::fake::Fake;
use crate::cli::fake::seriatim;
use crate::cli::night::Daemon;
use crate::cli::night::has;

/// Each message names its predecessor.
const AFTER: &str = "order = \"after\"\n[delivery]\ncount_max = 1\n";

impl Daemon {
    /// Sends a message to a position of the workflow `w`.
    fn send_at(&self, position: u64) {
        let position = position.to_string();
        self.done(&["send", "orders", &position, "--workflow", "w", "--position", &position]);
    }

    /// Sends a message of the workflow `w` behind another, or as its first.
    fn send_after(&self, id: &str, predecessor: Option<&str>) {
        let place = predecessor.map_or(vec!["--first"], |predecessor| vec!["--after", predecessor]);
        self.done(&[&["send", "orders", id, "--workflow", "w", "--message-id", id][..], &place].concat());
    }

    /// Takes the next message and completes it; null if there is none.
    fn complete_next(&self) -> Value {
        let taken = self.run(&["receive", "orders", "--complete", "--json"]).json();
        taken.into_iter().next().unwrap_or_default()
    }

    /// Takes these positions, each the next.
    fn complete_positions(&self, positions: impl IntoIterator<Item = u64>) {
        for position in positions {
            assert_eq!(self.complete_next()["position"], position);
        }
    }

    /// Takes messages with these IDs, each the next, and finds nothing behind them.
    fn complete_all(&self, ids: &[&str]) {
        for id in ids {
            assert_eq!(self.complete_next()["message_id"], *id);
        }
        assert_eq!(self.complete_next(), Value::Null);
    }

    /// Sets the next message aside.
    fn set_next_aside(&self) {
        let taken = self.run(&["receive", "orders", "--keep", "--json"]).json();
        self.done(&["settle", "orders", taken[0]["delivery"].as_str().expect("it is named"), "defer"]);
    }

    /// Exports the queue to a file.
    fn export(&self) -> String {
        let file = self.file("exported.ndjson");
        self.done(&["export", "orders", "--output", &file]);
        file
    }
}

#[test]
fn a_workflow_goes_on_where_it_stood_in_a_queue_whose_first_position_is_another() {
    let definition = "order = \"position\"\nposition = { first = 1000 }\n";
    let (daemon, other) = (Daemon::with(definition), Daemon::with(definition));
    for position in 1000..=1005 {
        daemon.send_at(position);
    }
    daemon.complete_positions(1000..=1004);
    assert_eq!(other.done(&["import", "orders", &daemon.export()]), "2 lines: 1 accepted, 1 set ahead\n");
    other.complete_positions([1005]);
}

#[test]
fn a_workflow_goes_on_where_it_stood_though_the_target_has_forgotten_it_at_another_place() {
    let (daemon, other) =
        (Daemon::start(), Daemon::with("order = \"position\"\n[idle]\nforget_after = \"1ms\"\n"));
    for position in 1..=5 {
        daemon.send_at(position);
    }
    daemon.complete_positions(1..=4);
    for position in 1..=2 {
        other.send_at(position);
    }
    other.complete_positions(1..=2);
    while other.run(&["show", "orders/w"]).code == Some(0) {}
    assert_eq!(other.done(&["import", "orders", &daemon.export()]), "2 lines: 1 accepted, 1 set ahead\n");
    other.complete_positions([5]);
}

#[test]
fn what_cannot_be_declared_void_is_not_counted_as_set() {
    let workflow = json!({ "workflow_id": "w", "status": "idle", "next_position": 1, "messages": 0, "early": 0,
        "set_aside": 0, "dead_letters": 0, "has_state": false });
    let fake = Fake::new(move |asked| match asked.line.split('?').next().unwrap_or_default() {
        "GET /v1/queues/orders" => Answer::queue("position"),
        line if line.ends_with("/void") => Answer::problem(409, "not_missing", "position 1 is not missing"),
        line if line.ends_with("/messages") => Answer::json(json!({ "messages": [] })),
        _ => Answer::json(workflow.clone()),
    });
    let ran = fake.run_with(&["import", "orders"], "{\"workflow_id\":\"w\",\"next_position\":3}\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "1 line: 0 accepted, 1 REFUSED\n"), "{ran:?}");
    assert!(ran.stderr.contains("line 1: position 1 is not missing (not_missing)"), "{ran:?}");
}

#[test]
fn positions_that_were_given_up_ahead_of_their_turn_are_waited_for_nowhere() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    for position in [1, 2, 8] {
        daemon.send_at(position);
    }
    daemon.complete_positions([1, 2]);
    daemon.done(&["gap", "void", "orders/w", "5..7", "--reason", "cancelled"]);
    let exported = daemon.export();
    for _ in 0..2 {
        has(&other.done(&["import", "orders", &exported]), &["2 lines: ", ", 1 set ahead"]);
    }
    for position in [3, 4] {
        other.send_at(position);
    }
    other.complete_positions([3, 4, 8]);
}

#[test]
fn a_chain_goes_on_where_it_stood() {
    let (daemon, other) = (Daemon::with(AFTER), Daemon::with(AFTER));
    daemon.send_after("m1", None);
    daemon.send_after("m3", Some("m2"));
    daemon.send_after("m2", Some("m1"));
    assert_eq!(daemon.complete_next()["message_id"], "m1");
    let exported = daemon.export();
    assert_eq!(other.done(&["import", "orders", &exported]), "2 lines: 2 accepted\n");
    assert_eq!(other.done(&["import", "orders", &exported]), "2 lines: 0 accepted, 2 sent before\n");
    other.complete_all(&["m2", "m3"]);
}

#[test]
fn a_chain_goes_on_past_dead_letters_that_are_left_out_and_with_those_that_are_revived() {
    let daemon = Daemon::with(AFTER);
    for (id, predecessor) in [("m1", None), ("m2", Some("m1")), ("m3", Some("m2")), ("m4", Some("m3"))] {
        daemon.send_after(id, predecessor);
    }
    assert_eq!(daemon.complete_next()["message_id"], "m1");
    for _ in 0..2 {
        daemon.done(&["skip", "orders/w", "--reason", "poison"]);
    }
    let exported = daemon.export();
    let other = Daemon::with(AFTER);
    assert_eq!(other.done(&["import", "orders", &exported]), "3 lines: 1 accepted, 2 left out\n");
    other.complete_all(&["m4"]);
    let other = Daemon::with(AFTER);
    let summary = other.done(&["import", "orders", &exported, "--revive-dead-letters"]);
    assert_eq!(summary, "3 lines: 3 accepted\n");
    other.complete_all(&["m2", "m3", "m4"]);
    // What is not in the export is followed by nothing, however it is imported.
    let without = daemon.file("without.ndjson");
    daemon.done(&["export", "orders", "--no-dead-letters", "--output", &without]);
    let other = Daemon::with(AFTER);
    other.done(&["import", "orders", &without, "--revive-dead-letters"]);
    other.complete_all(&["m4"]);
}

#[test]
fn what_was_set_aside_of_a_chain_comes_back_before_what_goes_on_without_it() {
    let daemon = Daemon::with(AFTER);
    for (id, predecessor) in [("m1", None), ("m2", Some("m1")), ("m3", Some("m2")), ("m4", Some("m3"))] {
        daemon.send_after(id, predecessor);
    }
    daemon.set_next_aside();
    daemon.done(&["skip", "orders/w", "--reason", "poison"]);
    assert_eq!(daemon.complete_next()["message_id"], "m3");
    let exported = daemon.export();
    let other = Daemon::with(AFTER);
    assert_eq!(other.done(&["import", "orders", &exported]), "3 lines: 2 accepted, 1 left out\n");
    other.complete_all(&["m1", "m4"]);
    let other = Daemon::with(AFTER);
    other.done(&["import", "orders", &exported, "--revive-dead-letters"]);
    other.complete_all(&["m1", "m2", "m4"]);
}

#[test]
fn a_message_whose_predecessor_never_came_waits_for_it_where_it_is_imported() {
    let (daemon, other) = (Daemon::with(AFTER), Daemon::with(AFTER));
    daemon.send_after("m2", Some("m1"));
    assert_eq!(other.done(&["import", "orders", &daemon.export()]), "1 line: 1 accepted\n");
    other.complete_all(&[]);
    other.send_after("m1", None);
    other.complete_all(&["m1", "m2"]);
}

#[test]
fn a_message_whose_predecessor_was_exported_follows_it_though_that_is_settled_by_then() {
    let message = |number: u64, after: Value, chain_place: Value| {
        json!({ "sequence_number": number, "status": "ready", "accepted_at": 0, "delivery_count": 0, "workflow_id": "w",
            "message_id": format!("m{number}"), "after": after, "chain_place": chain_place, "body": 1 })
    };
    let fake = Fake::new(move |asked| match asked.line.contains("from=2&") {
        _ if asked.line == "GET /v1/queues/orders" => Answer::queue("after"),
        _ if asked.line.contains("/workflows") => Answer::json(json!({ "workflows": [] })),
        false => Answer::json(json!({ "messages": [message(1, Value::Null, json!({}))], "from": 2 })),
        true => Answer::json(json!({ "messages": [message(2, json!("m1"), json!({}))] })),
    });
    let exported = fake.run(&["export", "orders"]).json();
    assert_eq!((&exported[0]["chain_place"], &exported[1]["chain_place"]), (&json!({}), &Value::Null));
}

#[test]
fn an_export_says_what_of_its_workflows_is_not_in_it() {
    let daemon = Daemon::start();
    daemon.send_at(1);
    daemon.done(&["hold", "orders/w", "--reason", "it is looked into"]);
    let ran = daemon.run(&["export", "orders"]);
    assert_eq!((ran.code, ran.json().len()), (Some(0), 1), "{ran:?}");
    has(&ran.stderr, &["1 workflow is held by an operator"]);
    let workflow = |id: &str, held: bool| {
        let holds = json!([{ "cause": "operator", "since": 0, "reason": "r" }]);
        json!({ "workflow_id": id, "status": "idle", "messages": 0, "early": 0, "set_aside": 0, "dead_letters": 0,
            "has_state": true, "holds": if held { holds } else { json!([]) } })
    };
    let fake = Fake::new(move |asked| match asked.line.split('?').next().unwrap_or_default() {
        "GET /v1/queues/orders" => Answer::queue("arrival"),
        "GET /v1/queues/orders/workflows" => {
            Answer::json(json!({ "workflows": [workflow("a", true), workflow("b", false)] }))
        }
        _ => Answer::json(json!({ "messages": [] })),
    });
    let ran = fake.run(&["export", "orders"]);
    has(&ran.stderr, &["1 workflow is held by an operator", "2 workflows keep a state"]);
}

#[test]
fn an_export_that_is_not_read_to_its_end_is_no_failure() {
    let fake = Fake::new(|asked| match asked.line.split('?').next().unwrap_or_default() {
        "GET /v1/queues/orders" => Answer::queue("arrival"),
        "GET /v1/queues/orders/workflows" => Answer::json(json!({ "workflows": [] })),
        _ => {
            let message = |number: u64| {
                json!({ "sequence_number": number, "status": "ready", "accepted_at": 0, "delivery_count": 0,
                    "body_text": "x".repeat(4_096) })
            };
            Answer::json(json!({ "messages": (1..=100).map(message).collect::<Vec<_>>() }))
        }
    });
    let mut command = seriatim(&["export", "orders"]);
    let command = command.env("SERIATIM_URL", &fake.url).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("asked for")).read_line(&mut line).expect("a line");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
fn a_text_that_is_shorter_as_base64_is_exported_so_and_comes_back_byte_for_byte() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    let body = "\u{1}\u{2}\u{1b}[2J\n";
    daemon.done(&["send", "orders", body, "--workflow", "w", "--position", "1"]);
    assert_eq!(other.done(&["import", "orders", &daemon.export()]), "1 line: 1 accepted\n");
    let back = other.run(&["export", "orders"]).json();
    assert_eq!((&back[0]["body_base64"], &back[0]["body_text"]), (&json!("AQIbWzJKCg=="), &Value::Null));
}

#[test]
fn an_import_stops_at_a_workflow_of_which_it_is_not_known_whether_it_was_set() {
    let fake = Fake::new(|asked| match asked.line.split('?').next().unwrap_or_default() {
        "GET /v1/queues/new" => Answer::queue("position"),
        "GET /v1/queues/new/workflow" => Answer::problem(404, "workflow_not_found", "nothing is known of it"),
        "POST /v1/queues/new/workflow/void" => Answer::problem(504, "unanswered", "no answer came"),
        line if line.starts_with("POST /v1/queues/new/workflow/") => {
            Answer::json(json!({ "effect": "held" }))
        }
        _ => Answer::json(json!({ "messages": [] })),
    });
    let lines = "{\"workflow_id\":\"w\",\"next_position\":3}\n";
    let message = json!({ "queue": "old", "sequence_number": 7, "status": "ready", "workflow_id": "w", "position": 3,
        "delivery_count": 0, "accepted_at": 1, "body": 1 });
    let ran = fake.run_with(&["import", "new"], &format!("{lines}{message}\n"));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("go on with --from-line 1"), "{ran:?}");
    let sent = "POST /v1/queues/new/messages";
    assert!(fake.asked().iter().all(|asked| !asked.line.starts_with(sent)), "nothing is sent behind it");
}
