//! What cannot be replayed, and what its owner is told.

use std::fs;
use std::path::Path;

use crate::demo::git::error::GitError;
use crate::demo::git::history::Repository;
use crate::demo::git::scratch::NewCommit;
use crate::demo::git::scratch::Scratch;

#[test]
fn a_shallow_clone_is_refused_with_the_way_out() {
    let scratch = Scratch::with(&[NewCommit::at(1).file("a", "1"), NewCommit::at(2).file("a", "2")]);
    let clone = Scratch::new();
    let source = format!("file://{}", scratch.path().display());
    clone.git(&["fetch", "--quiet", "--depth=1", &source, "main:copy"]);
    let error = Repository::open(clone.path()).unwrap_err().to_string();
    assert!(error.contains("git -C") && error.contains("fetch --unshallow"), "{error}");
}

#[test]
fn a_clone_without_contents_is_read_and_one_without_folders_is_refused() {
    let scratch = Scratch::with(&[NewCommit::at(1).file("d/a", "1"), NewCommit::at(2).file("d/a", "2")]);
    scratch.git(&["config", "uploadpack.allowFilter", "true"]);
    let source = format!("file://{}", scratch.path().display());
    for filter in ["blob:none", "tree:0"] {
        let clone = Scratch::init(&["--bare"]);
        let option = format!("--filter={filter}");
        clone.git(&["clone", "--quiet", "--bare", &option, &source, "copy"]);
        let repository = Repository::open(&clone.path().join("copy")).unwrap();
        match repository.changes() {
            // A git older than 2.44 cannot be kept from fetching the folders, and then has them.
            Ok(changes) => assert_eq!(changes.len(), 2),
            Err(error) => {
                assert_eq!(filter, "tree:0");
                assert!(error.to_string().contains("partial clone"), "{error}");
            }
        }
    }
}

#[test]
fn a_repository_without_commits_is_refused() {
    for options in [&[][..], &["--bare"]] {
        let error = Repository::open(Scratch::init(options).path()).unwrap_err();
        assert!(matches!(error, GitError::NoCommits { .. }), "{error}");
    }
}

#[test]
fn what_is_no_repository_is_refused_by_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let missing = folder.path().join("missing");
    for (path, text) in [
        (folder.path(), "neither it nor a folder above it is a git repository"),
        (&file, "it is not a folder"),
        (&missing, "it does not exist"),
        (Path::new(""), "it does not exist"),
    ] {
        let error = Repository::open(path).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_damaged_repository_is_refused_with_the_words_of_git() {
    let scratch = Scratch::with(&[NewCommit::at(1).file("d/a", "1")]);
    let repository = Repository::open(scratch.path()).unwrap();
    let head = repository.head().to_owned();
    let objects = scratch.path().join(".git/objects");
    fs::remove_dir_all(&objects).unwrap();
    fs::create_dir(&objects).unwrap();
    let error = repository.changes().unwrap_err().to_string();
    assert!(error.contains("git says") && error.contains(&head), "{error}");
}
