//! `seriatim demo git`: the main job, its controls, and what it refuses.

use std::path::Path;
use std::process::Command;

use crate::cli::scratch::Scratch;
use crate::cli::scratch::demo;
use crate::cli::scratch::demo_json;
use crate::cli::scratch::shuffled;

#[test]
fn a_history_with_failures_and_kills_ends_as_gits_own_tree() {
    let scratch = shuffled(600);
    let (code, report) = demo_json(&scratch.path(), &["--failures", "0.1", "--crashes", "2", "--seed", "7"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!((report["changes"].as_u64(), report["workflows"].as_u64()), (Some(1_200), Some(6)));
    assert_eq!(
        (report["wrong_predecessors"].as_u64(), report["tree_equal"].as_bool()),
        (Some(0), Some(true))
    );
    assert!(report["arrived_early"].as_u64() > Some(100), "{report}");
    assert!(report["failures_injected"].as_u64() > Some(50), "{report}");
    assert_eq!(report["crashes"].as_u64(), Some(2), "{report}");
    for field in ["deferred_max", "seconds", "changes_per_second"] {
        assert!(report[field].is_number(), "{field} of {report}");
    }
}

#[test]
fn an_ordinary_queue_finds_wrong_predecessors() {
    let scratch = shuffled(300);
    for control in ["--no-reorder", "--retry-at-back"] {
        let (code, report) = demo_json(&scratch.path(), &[control, "--failures", "0.1", "--crashes", "1"]);
        assert_eq!(code, Some(1), "{control}: {report}");
        assert!(report["wrong_predecessors"].as_u64() > Some(0), "{control}: {report}");
    }
}

#[test]
fn symlinks_submodules_renames_and_odd_paths_are_replayed() {
    let mut scratch = Scratch::new();
    let long = format!("deep/{}/file", "x".repeat(200));
    let submodule = format!("commit:{}", "12".repeat(20));
    scratch.commit(1_000, &[("a", "1"), ("link", "link:a"), (&long, "1"), ("sub", &submodule)]);
    scratch.commit(1_001, &[("a", ""), ("b", "1"), ("\"caf\\351\"", "latin"), ("new\u{e9}", "utf-8")]);
    scratch.commit(900, &[("link", "no link any more"), (&long, "2"), ("sub", "")]);
    scratch.commit(1_003, &[("a", "again"), ("\"line\\nbreak\"", "1")]);
    scratch.write();
    let (code, report) = demo_json(&scratch.path(), &["--failures", "0.5"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["changes"].as_u64(), Some(13), "{report}");
}

#[test]
fn a_bare_repository_works() {
    let scratch = shuffled(20);
    let bare = scratch.beside("bare.git");
    clone(scratch.path(), &bare, &["--bare"]);
    assert_eq!(demo_json(&bare, &[]).0, Some(0));
}

#[test]
fn the_data_folder_is_kept_and_not_used_twice() {
    let scratch = shuffled(20);
    let data = scratch.beside("data");
    let data = data.to_str().expect("text");
    assert_eq!(demo_json(&scratch.path(), &["--data", data]).0, Some(0));
    assert!(Path::new(data).join("seriatim.redb").exists());
    let again = demo(&scratch.path(), &["--data", data]);
    assert_eq!(again.status.code(), Some(3));
    assert!(complaint(&again.stderr).contains("a replay has used it before"), "{}", complaint(&again.stderr));
}

#[test]
fn what_cannot_be_replayed_is_refused_in_one_line() {
    let scratch = shuffled(20);
    let empty = Scratch::new();
    let shallow = scratch.beside("shallow");
    clone(format!("file://{}", scratch.path().display()), &shallow, &["--depth", "1"]);
    let cases = [
        (scratch.beside("nowhere"), "does not exist"),
        (scratch.beside(""), "git repository"),
        (empty.path(), "commit"),
        (shallow, "--unshallow"),
    ];
    for (path, words) in cases {
        let output = demo(&path, &[]);
        let complaint = complaint(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{complaint}");
        assert!(complaint.starts_with("seriatim: cannot "), "{complaint}");
        assert!(complaint.contains(words), "{complaint}");
        assert_eq!(complaint.trim().lines().count(), 1, "{complaint}");
    }
}

#[test]
fn wrong_arguments_are_refused_with_their_own_code() {
    for arguments in [&["--failures", "2"][..], &["--crashes", "x"], &["--no-reorder", "--retry-at-back"]] {
        assert_eq!(demo(Path::new("."), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

fn clone(from: impl AsRef<std::ffi::OsStr>, to: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["clone", "-q"]).args(arguments).arg(from.as_ref()).arg(to);
    assert!(command.status().expect("git runs").success());
}

fn complaint(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr).into_owned()
}
