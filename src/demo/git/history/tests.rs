//! What may happen to paths in a history, each in a real repository.

use std::collections::BTreeMap;

use crate::demo::git::ChangeBody;
use crate::demo::git::arrival::EarlyArrivals;
use crate::demo::git::arrival::arrival_order;
use crate::demo::git::arrival::count_early;
use crate::demo::git::change::PathChange;
use crate::demo::git::entry::TreeEntry;
use crate::demo::git::history::Repository;
use crate::demo::git::key::check_workflow_ids;
use crate::demo::git::key::workflow_id;
use crate::demo::git::scratch::NewCommit;
use crate::demo::git::scratch::Scratch;

/// The commit of a submodule; it is in no repository.
pub(crate) const SUBMODULE: &str = "1234567890123456789012345678901234567890";

/// Opens the repository, reads all changes, and checks that applying them one after the other ends with the tree.
pub(crate) fn replay(scratch: &Scratch) -> Vec<PathChange> {
    let repository = Repository::open(scratch.path()).unwrap();
    let changes = repository.changes().unwrap();
    let mut state = BTreeMap::new();
    for change in changes.clone() {
        assert_eq!(state.remove(&change.path), change.old);
        if let Some(entry) = change.new {
            state.insert(change.path, entry);
        }
    }
    assert_eq!(state, repository.head_tree().unwrap());
    check_workflow_ids(changes.iter().map(|change| &change.path[..])).unwrap();
    changes
}

/// The changes as `path@position old-mode new-mode`, where mode 0 is an absent path.
fn summary(changes: &[PathChange]) -> Vec<String> {
    let line = |change: &PathChange| {
        let mode = |entry: &Option<TreeEntry>| entry.as_ref().map_or(0, |entry| entry.mode);
        let (path, position) = (String::from_utf8_lossy(&change.path), change.position);
        format!("{path}@{position} {:o} {:o}", mode(&change.old), mode(&change.new))
    };
    changes.iter().map(line).collect()
}

#[test]
fn a_linear_history_is_read_from_its_root() {
    let scratch =
        Scratch::with(&[NewCommit::at(10).file("a", "1").file("d/b", "1"), NewCommit::at(20).file("a", "2")]);
    let changes = replay(&scratch);
    assert_eq!(summary(&changes), ["a@1 0 100644", "d/b@1 0 100644", "a@2 100644 100644"]);
    let stamps: Vec<_> = changes.iter().map(|change| (change.author_time, change.mainline)).collect();
    assert_eq!(stamps, [(10, 0), (10, 0), (20, 1)]);
    assert_eq!(changes[1].new, changes[0].new);
}

#[test]
fn a_merge_is_what_it_brought_to_the_mainline() {
    let scratch = Scratch::with(&[
        NewCommit::at(1).file("a", "1"),
        NewCommit::at(2).on("side").from("main").file("s", "1"),
        NewCommit::at(3).on("side").file("s", "2"),
        NewCommit::at(4).file("a", "2"),
        NewCommit::at(5).merging("side").file("s", "2"),
    ]);
    let changes = replay(&scratch);
    assert_eq!(summary(&changes), ["a@1 0 100644", "a@2 100644 100644", "s@1 0 100644"]);
    assert_eq!(changes[2].mainline, 2);
}

#[test]
fn older_work_that_lands_later_arrives_early() {
    let scratch = Scratch::with(&[
        NewCommit::at(10).file("a", "1").file("b", "1"),
        NewCommit::at(30).file("a", "2"),
        NewCommit::at(20).file("a", "3").file("b", "2"),
    ]);
    let changes = replay(&scratch);
    let order = arrival_order(&changes);
    assert_eq!(order, [0, 1, 3, 4, 2]);
    let expected = EarlyArrivals { messages: 1, workflows: 1, waiting_max: 1 };
    assert_eq!(count_early(&changes, &order), expected);
}

#[test]
fn a_rename_is_a_deletion_and_an_addition() {
    let scratch = Scratch::with(&[
        NewCommit::at(1).file("old", "same"),
        NewCommit::at(2).delete("old").file("new", "same"),
    ]);
    let changes = replay(&scratch);
    assert_eq!(summary(&changes), ["old@1 0 100644", "new@1 0 100644", "old@2 100644 0"]);
}

#[test]
fn a_path_that_comes_back_goes_on_counting() {
    let scratch = Scratch::with(&[
        NewCommit::at(1).file("a", "1"),
        NewCommit::at(2).delete("a"),
        NewCommit::at(3).file("a", "1"),
    ]);
    assert_eq!(summary(&replay(&scratch)), ["a@1 0 100644", "a@2 100644 0", "a@3 0 100644"]);
}

#[test]
fn a_file_may_become_a_folder() {
    let scratch =
        Scratch::with(&[NewCommit::at(1).file("a", "1"), NewCommit::at(2).delete("a").file("a/b", "1")]);
    assert_eq!(summary(&replay(&scratch)), ["a@1 0 100644", "a@2 100644 0", "a/b@1 0 100644"]);
}

#[test]
fn modes_links_and_submodules_are_changes() {
    let scratch = Scratch::with(&[
        NewCommit::at(1).file("a", "1").submodule("m", SUBMODULE),
        NewCommit::at(2).node("100755", "a", "1"),
        NewCommit::at(3).node("120000", "a", "m"),
        NewCommit::at(4).submodule("a", SUBMODULE).delete("m"),
    ]);
    let changes = replay(&scratch);
    assert_eq!(
        summary(&changes),
        [
            "a@1 0 100644",
            "m@1 0 160000",
            "a@2 100644 100755",
            "a@3 100755 120000",
            "a@4 120000 160000",
            "m@2 160000 0",
        ]
    );
    assert_eq!(changes[1].new.as_ref().unwrap().id, SUBMODULE);
}

#[test]
fn any_path_is_carried_in_its_bytes() {
    let long = format!("{}end", "deep/".repeat(60));
    let paths =
        [&b"caf\xe9"[..], b"a\nb", b"tab\there", b"\"quoted\"", long.as_bytes(), "gr\u{fc}n".as_bytes()];
    let commit = paths.iter().fold(NewCommit::at(1), |commit, path| commit.file(path, "1"));
    let changes = replay(&Scratch::with(&[commit]));
    for path in paths {
        let change = changes.iter().find(|change| change.path == path).unwrap();
        let json = serde_json::to_string(&change.body()).unwrap();
        assert_eq!(serde_json::from_str::<ChangeBody>(&json).unwrap(), change.body());
        assert!(seriatim::WorkflowId::new(workflow_id(path)).is_ok());
    }
    assert_eq!(changes.len(), paths.len());
}

#[test]
fn a_commit_without_changes_has_a_place_and_no_message() {
    let scratch = Scratch::with(&[
        NewCommit::at(1),
        NewCommit::at(2),
        NewCommit::at(3).file("a", "1"),
        NewCommit::at(4),
    ]);
    let changes = replay(&scratch);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].mainline, 2);
    assert!(replay(&Scratch::with(&[NewCommit::at(1)])).is_empty());
}

#[test]
fn an_author_time_may_lie_in_the_future() {
    let scratch =
        Scratch::with(&[NewCommit::at(4_102_444_800).file("a", "1"), NewCommit::at(1).file("a", "2")]);
    assert_eq!(arrival_order(&replay(&scratch)), [1, 0]);
}
