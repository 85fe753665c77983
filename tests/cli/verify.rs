//! `seriatim verify`: exit codes for scripts, words for people.

use std::path::Path;
use std::process::Command;
use std::process::Output;

use serde_json::Value;
use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;

use crate::cli::fake::run_unread;

fn verify(file: &Path, arguments: &[&str]) -> Output {
    run("verify", file, arguments)
}

fn run(verb: &str, file: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    command.arg(verb).arg(file).args(arguments).output().expect("the binary runs")
}

async fn engine_with_messages(path: &Path) -> Engine {
    let engine = Engine::open(path).await.expect("a new file");
    let queue = engine.client().create_queue("orders", QueueOptions::default()).await.expect("a new queue");
    let messages = (0..100).map(|n| Message::new(format!("body number {n}")).workflow("w"));
    queue.send_batch(messages).await.expect("accepted");
    engine
}

/// Alters a text wherever it stands in a file.
fn forge(path: &Path, text: &str, forged: &str) {
    let mut bytes = std::fs::read(path).expect("the file is there");
    let places: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter(|(_, found)| *found == text.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "{text} is not in the file");
    places.into_iter().for_each(|at| bytes[at..at + text.len()].copy_from_slice(forged.as_bytes()));
    std::fs::write(path, bytes).expect("it can be written");
}

#[tokio::test]
async fn a_sound_file_is_said_to_be_sound() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.redb");
    engine_with_messages(&path).await.close().await;
    let output = verify(&path, &[]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(": sound; 100 messages, "), "{text}");
    let output = verify(&path, &["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((json["messages"].as_u64(), json["damages_total"].as_u64()), (Some(100), Some(0)), "{json}");
}

#[tokio::test]
async fn a_damaged_file_is_named_damaged_and_where() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.redb");
    engine_with_messages(&path).await.close().await;
    forge(&path, "body number 17", "body number 71");
    let output = verify(&path, &[]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(1), ""));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("journal [commit ") && text.contains("a checksum does not fit"), "{text}");
    assert!(text.lines().last().is_some_and(|verdict| verdict.contains(": DAMAGED in 2 places; ")), "{text}");
    let text = String::from_utf8(verify(&path, &["--limit", "0"]).stdout).expect("text");
    assert!(text.starts_with("... and 2 more"), "{text}");
    let output = verify(&path, &["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((output.status.code(), json["damages_total"].as_u64()), (Some(1), Some(2)), "{json}");
    assert_eq!(json["damages"][0]["table"].as_str(), Some("pages"), "{json}");
}

#[tokio::test]
async fn a_reader_who_has_seen_enough_does_not_change_the_verdict() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.redb");
    engine_with_messages(&path).await.close().await;
    let file = path.to_str().expect("a plain name");
    for verdict in [0, 1] {
        for arguments in [&["verify", file][..], &["verify", file, "--json"]] {
            let ran = run_unread(arguments);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(verdict), ""), "{arguments:?}");
        }
        if verdict == 0 {
            forge(&path, "body number 17", "body number 71");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_compacted_is_said_to_have_been_larger() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.redb");
    engine_with_messages(&path).await.close().await;
    let before = std::fs::metadata(&path).expect("the file is there").len();
    let output = run("compact", &path, &["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    let after = std::fs::metadata(&path).expect("the file is there").len();
    assert_eq!((json["bytes_before"].as_u64(), json["bytes_after"].as_u64()), (Some(before), Some(after)));
    assert!(after < before, "{json}");
    let text = String::from_utf8(run("compact", &path, &[]).stdout).expect("text");
    assert!(text.contains(" KiB before, ") && text.trim().ends_with(" KiB now"), "{text}");
    assert!(verify(&path, &[]).status.success());
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.redb");
    let _engine = engine_with_messages(&path).await;
    let foreign = folder.path().join("b.redb");
    std::fs::write(&foreign, "hello").expect("it can be written");
    let holder = format!("process {} has it open", std::process::id());
    let cases = [
        (path.as_path(), holder.as_str()),
        (&foreign, "it is not a seriatim file"),
        (&folder.path().join("nowhere"), "nowhere"),
        (folder.path(), "it is a folder"),
    ];
    for (verb, (file, words)) in
        ["verify", "compact"].into_iter().flat_map(|verb| cases.map(|case| (verb, case)))
    {
        let output = run(verb, file, &[]);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{complaint}");
        assert!(complaint.starts_with("seriatim: ") && complaint.contains(words), "{complaint}");
        assert_eq!(complaint.trim().lines().count(), 1, "{complaint}");
    }
    assert_eq!(verify(&path, &["--limit", "many"]).status.code(), Some(2));
}
