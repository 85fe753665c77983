//! The handlers of the shipped definitions, each run as the daemon runs it.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

use crate::cli::fake::seriatim;

fn run(script: &str, input: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("python3");
    command.arg(script).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows"));
    command
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("python3 is installed");
    child.stdin.take().expect("asked for").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn answers(output: &Output) -> Vec<Value> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn change(version: u64, close: bool) -> String {
    json!({ "order_id": "o-1", "version": version, "customer": "c", "add": { "A": 1 }, "close": close })
        .to_string()
}

#[test]
fn an_order_is_changed_step_by_step_and_then_shipped() {
    let first = answers(&run("orders.py", &change(1, false), &[])).remove(0);
    assert_eq!(
        first,
        json!({ "outcome": "complete", "state": { "version": 1, "items": { "A": 1 }, "closed": false } })
    );
    let state = first["state"].to_string();
    let last = answers(&run("orders.py", &change(2, true), &[("SERIATIM_STATE", &state)])).remove(0);
    assert_eq!(last["state"]["items"]["A"], 2);
    let shipment = &last["send"][0];
    assert_eq!((&shipment["queue"], &shipment["body"]["customer"]), (&json!("shipments"), &json!("c")));
}

#[test]
fn an_order_fails_as_often_as_it_is_asked_to() {
    let code = |count: &str| {
        let variables = [("SERIATIM_PROPERTY_FAIL", "2"), ("SERIATIM_DELIVERY_COUNT", count)];
        run("orders.py", &change(1, false), &variables).status.code()
    };
    assert_eq!([code("1"), code("2"), code("3")], [Some(75), Some(75), Some(0)]);
}

#[test]
fn a_change_out_of_its_place_is_never_applied() {
    let output = run("orders.py", &change(3, false), &[]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(65), 0));
}

#[test]
fn shipments_are_answered_line_by_line() {
    let shipment = json!({ "order_id": "o-1", "customer": "c", "items": { "A": 2 } });
    let input = [
        json!({ "id": 1, "message": { "body": shipment, "state": { "parcels": 4 } } }),
        json!({ "id": 2, "message": { "body": { "items": {} } } }),
        json!({ "id": 3, "message": { "body_text": "nonsense" } }),
    ];
    let input: String = input.iter().map(|line| format!("{line}\n")).collect();
    let answers = answers(&run("shipments.py", &input, &[]));
    let outcomes: Vec<&str> = answers.iter().filter_map(|answer| answer["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["complete", "dead_letter", "dead_letter"]);
    assert_eq!(answers.iter().filter_map(|answer| answer["id"].as_u64()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(answers[0]["state"]["parcels"], 5);
}

#[test]
fn the_nightly_report_is_that_of_its_tick() {
    let tick = [("SERIATIM_PROPERTY_SCHEDULED_FOR", "2027-01-16T01:30:00.000Z")];
    let output = run("nightly.py", r#"{"days":7}"#, &tick);
    assert_eq!(answers(&output)[0]["state"]["reported_to"], "2027-01-16T01:30:00+00:00");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "report from 2027-01-09 to 2027-01-16\n");
}

/// Where `dev` finds its definitions when it is started in a folder.
fn definitions_of_dev(folder: &Path) -> Value {
    let mut command = seriatim(&["dev", "--http", "127.0.0.1:0", "--json"]);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("asked for"))
        .read_line(&mut line)
        .expect("it says when it is ready");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be asked");
    child.wait().expect("it ends");
    let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
    ready["definitions"].clone()
}

#[test]
fn dev_uses_the_workflows_of_the_folder_it_is_started_in() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(definitions_of_dev(folder.path()), 3, "the demonstration");
    let workflows = folder.path().join("workflows");
    std::fs::create_dir(&workflows).expect("a folder");
    std::fs::write(workflows.join("mine.toml"), "").expect("it can be written");
    assert_eq!(definitions_of_dev(folder.path()), 1);
}
