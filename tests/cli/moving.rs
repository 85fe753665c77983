//! Messages that are moved from one daemon to another: what `export` wrote, `import` has go on where it stood.

use serde_json::Value;
use serde_json::json;

use crate::cli::fake::Answer;
use crate::cli::fake::Fake;
use crate::cli::night::Daemon;
use crate::cli::night::has;

impl Daemon {
    /// Sends a message to a position of the workflow `w`.
    fn send_at(&self, position: u64) {
        let position = position.to_string();
        self.done(&["send", "orders", &position, "--workflow", "w", "--position", &position]);
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
