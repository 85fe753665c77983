//! `seriatim check` and `seriatim schema`: mistakes for people and scripts.

use std::path::Path;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use serde_json::Value;

fn seriatim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("the binary runs")
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn rows(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn the_shipped_definitions_have_no_mistakes() {
    let output = seriatim(&["check"]);
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains(
        "orders (workflows/orders.toml)\n  order     position from /version, workflow from /order_id\n"
    ));
    assert!(shown.contains("  handler   every subject: exec python3 orders.py\n"), "{shown}");
    assert!(shown.contains("  schedule  report: 30 2 * * * Europe/Berlin\n            20"), "{shown}");
    assert!(shown.ends_with("\n3 definitions, no mistakes\n"), "{shown}");
}

#[test]
fn five_ticks_are_shown_of_each_schedule() {
    let rows = rows(&seriatim(&["check", "--json"]));
    let nightly = rows.iter().find(|row| row["queue"] == "nightly").expect("it is shipped");
    let ticks: Vec<&str> =
        nightly["schedules"][0]["next"].as_array().expect("ticks").iter().filter_map(Value::as_str).collect();
    assert_eq!(ticks.len(), 5);
    assert!(ticks.is_sorted());
}

#[test]
fn every_mistake_is_shown_at_its_place() {
    let folder = folder(&[
        ("a.toml", "lokc = 1\n[retry]\nthen = \"holt\"\n"),
        ("b.toml", "[[handler]]\nforward = \"c\"\n"),
    ]);
    let output = seriatim(&["check", text(folder.path())]);
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("error: `then` must be \"hold\", \"skip\" or \"quarantine\"\n"), "{shown}");
    assert!(shown.contains("a.toml:3:8\n  |\n3 | then = \"holt\"\n  |        ^^^^^^\n"), "{shown}");
    assert!(shown.contains("  = help: did you mean \"hold\"?\n"), "{shown}");
    assert!(shown.ends_with("\n3 mistakes\n"), "{shown}");
    let rows = rows(&seriatim(&["check", "--json", text(folder.path())]));
    assert_eq!(rows.len(), 3);
    assert_eq!((rows[1]["line"].as_u64(), rows[1]["column"].as_u64()), (Some(3), Some(8)));
    assert!(rows[2]["file"].as_str().is_some_and(|file| file.ends_with("b.toml")));
}

#[test]
fn a_folder_that_cannot_be_read_is_no_mistake() {
    let output = seriatim(&["check", "/no/such/folder"]);
    assert_eq!(output.status.code(), Some(3));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.starts_with("seriatim: cannot read the folder of definitions /no/such/folder: "));
    assert_eq!(complaint.lines().count(), 1);
}

#[test]
fn the_schema_that_is_printed_is_the_committed_one() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("seriatim.schema.json");
    let committed = std::fs::read_to_string(committed).expect("it is committed");
    assert!(stdout(&seriatim(&["schema"])) == committed);
}

#[test]
fn mistakes_are_told_by_the_exit_code_although_nobody_reads_them() {
    let folder = folder(&[("orders.toml", "ordr = 1\n")]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    let status = command.arg("check").arg(folder.path()).stdout(writer).stderr(Stdio::null()).status();
    assert_eq!(status.expect("the binary runs").code(), Some(1));
}
