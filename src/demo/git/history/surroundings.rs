//! What surrounds a history and must not change how it is read: kinds of repositories, folders, settings, sizes.

use std::fs;

use crate::demo::git::history::Repository;
use crate::demo::git::history::tests::SUBMODULE;
use crate::demo::git::history::tests::replay;
use crate::demo::git::scratch::NewCommit;
use crate::demo::git::scratch::Scratch;

#[test]
fn a_repository_with_sha256_works() {
    let scratch = Scratch::init(&["--object-format=sha256"]);
    scratch.import(&[NewCommit::at(1).file("a", "1"), NewCommit::at(2).file("a", "2")]);
    let changes = replay(&scratch);
    assert_eq!(changes[1].new.as_ref().unwrap().id.len(), 64);
}

#[test]
fn a_folder_of_the_work_tree_stands_for_the_whole_repository() {
    let scratch = Scratch::with(&[NewCommit::at(1).file("a", "1").file("d/b", "1")]);
    let folder = scratch.path().join("d");
    fs::create_dir(&folder).unwrap();
    let repository = Repository::open(&folder).unwrap();
    assert_eq!(repository.changes().unwrap().len(), 2);
    assert_eq!(repository.head_tree().unwrap().len(), 2);
}

#[test]
fn what_is_committed_meanwhile_is_not_seen() {
    let scratch = Scratch::with(&[NewCommit::at(1).file("a", "1")]);
    let repository = Repository::open(scratch.path()).unwrap();
    scratch.import(&[NewCommit::at(2).from("main").file("b", "1")]);
    assert_eq!(repository.changes().unwrap().len(), 1);
    assert_eq!(repository.head_tree().unwrap().len(), 1);
    assert_ne!(repository.head(), scratch.git(&["rev-parse", "HEAD"]));
}

#[test]
fn no_setting_changes_what_is_read() {
    let commits = [
        NewCommit::at(1).file("d/old", "same\nsame\n").submodule("m", SUBMODULE).file("z", "1"),
        NewCommit::at(2).on("side").from("main").file("s", "1"),
        NewCommit::at(3).delete("d/old").file("d/new", "same\nsame\n"),
        NewCommit::at(4).submodule("m", &SUBMODULE.replace('1', "2")),
        NewCommit::at(5).merging("side").file("s", "1"),
    ];
    let scratch = Scratch::with(&commits);
    let expected = replay(&scratch);
    fs::create_dir(scratch.path().join("d")).unwrap();
    fs::write(scratch.path().join("order"), "z\n").unwrap();
    for (name, value) in [
        ("color.ui", "always"),
        ("color.diff", "always"),
        ("core.pager", "false"),
        ("core.quotePath", "true"),
        ("diff.external", "false"),
        ("diff.ignoreSubmodules", "all"),
        ("diff.orderFile", "order"),
        ("diff.relative", "true"),
        ("diff.renames", "copies"),
        ("diff.submodule", "log"),
        ("format.pretty", "fuller"),
        ("log.abbrevCommit", "true"),
        ("log.decorate", "full"),
        ("log.diffMerges", "combined"),
        ("log.follow", "true"),
        ("log.showRoot", "false"),
        ("log.showSignature", "true"),
        ("notes.displayRef", "*"),
    ] {
        scratch.git(&["config", name, value]);
    }
    let repository = Repository::open(&scratch.path().join("d")).unwrap();
    assert_eq!(repository.changes().unwrap(), expected);
    assert_eq!(replay(&scratch), expected);
}

#[test]
fn replaced_and_grafted_commits_are_read_as_they_were_made() {
    let scratch = Scratch::with(&[
        NewCommit::at(1).file("a", "1"),
        NewCommit::at(2).file("a", "2"),
        NewCommit::at(3).file("b", "1"),
    ]);
    let expected = replay(&scratch);
    scratch.git(&["replace", "--graft", "main~1"]);
    assert_eq!(replay(&scratch), expected);
    let head = scratch.git(&["rev-parse", "main"]);
    fs::write(scratch.path().join(".git/info/grafts"), format!("{head}\n")).unwrap();
    assert_eq!(replay(&scratch), expected);
}

#[test]
fn sixty_thousand_changes_are_read() {
    let commits: Vec<NewCommit> = (0..600)
        .map(|time| {
            (0..100)
                .fold(NewCommit::at(time), |commit, path| commit.file(format!("f{path}"), &time.to_string()))
        })
        .collect();
    let changes = replay(&Scratch::with(&commits));
    assert_eq!(changes.len(), 60_000);
    assert_eq!(changes.last().unwrap().position, 600);
}
