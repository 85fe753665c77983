//! `seriatim bench`: every workload runs, checks itself, and says what it measured.

use std::process::Command;
use std::process::Output;

use serde_json::Value;

use crate::cli::fake::run_unread;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    command.arg("bench").args(arguments).output().expect("the binary runs")
}

fn outcomes(arguments: &[&str]) -> Vec<Value> {
    let output = bench(arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{complaint}");
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn a_workload_says_what_it_measured_in_one_line_of_json() {
    let outcomes = outcomes(&["live", "--messages", "2000", "--json"]);
    let [live] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((live["workload"].as_str(), live["contender"].as_str()), (Some("live"), Some("seriatim")));
    assert_eq!((live["messages"].as_u64(), live["workflows"].as_u64()), (Some(2_000), Some(1_000)));
    for field in ["seconds", "messages_per_second", "raw_messages_per_second", "ratio_to_raw"] {
        assert!(live[field].as_f64() > Some(0.0), "{field} of {live}");
    }
    if cfg!(target_os = "linux") {
        for field in ["cpu_us_per_message", "memory_bytes_peak", "written_bytes_per_body_byte"] {
            assert!(live[field].is_number(), "{field} of {live}");
        }
    }
}

#[test]
fn every_workload_keeps_its_promises() {
    let outcomes = outcomes(&["--messages", "300", "--json"]);
    let names: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome["workload"].as_str()).collect();
    let all = [
        "live",
        "wide",
        "backlog",
        "growth",
        "hot",
        "strict",
        "latency",
        "retry",
        "shuffled",
        "stuck",
        "stored",
        "idle",
        "purge",
        "history",
        "processor",
    ];
    assert_eq!(names, all);
    let particulars = [
        ("backlog", "sent_per_second"),
        ("backlog", "drained_per_second"),
        ("growth", "last_tenth_to_first"),
        ("latency", "latency"),
        ("retry", "retry_late"),
        ("stuck", "loss_percent"),
        ("stored", "stored_messages"),
        ("idle", "loss_percent"),
        ("history", "loss_percent"),
        ("purge", "purged_per_second"),
        ("purge", "latency"),
    ];
    for (name, field) in particulars {
        let outcome = outcomes.iter().find(|outcome| outcome["workload"] == name).expect("it is there");
        assert!(!outcome[field].is_null(), "{field} of {outcome}");
    }
}

#[test]
fn a_person_gets_a_table_and_the_folder_is_left_empty() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = bench(&["strict", "--messages", "50", "--dir", folder.path().to_str().expect("text")]);
    let table = String::from_utf8(output.stdout).expect("text");
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.lines().nth(1).is_some_and(|row| row.starts_with("strict ")), "{table}");
    assert_eq!(folder.path().read_dir().expect("it is there").count(), 0);
}

#[test]
fn it_ends_when_nobody_reads_it_any_more() {
    for arguments in [&["bench"][..], &["bench", "strict", "--messages", "50", "--json"]] {
        let ran = run_unread(arguments);
        assert_eq!((ran.code, ran.stderr.contains("panicked")), (Some(0), false), "{ran:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    assert_eq!(bench(&["fast"]).status.code(), Some(2));
    assert_eq!(bench(&["live", "--messages", "0"]).status.code(), Some(2));
    let output = bench(&["live", "--dir", "/dev/null/nowhere"]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{complaint}");
    assert!(complaint.contains("make a folder in /dev/null/nowhere"), "{complaint}");
}
