//! What an earlier daemon left behind is ended, and nothing else.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use futures_util::poll;
use tempfile::TempDir;

use crate::handlers::fence::fence;
use crate::handlers::program::Program;
use crate::handlers::tests::named_pipe::NamedPipe;
use crate::handlers::variables::STORE;

/// A shell in a group of its own, as an earlier daemon would have started it.
fn orphan(folder: &Path, store_id: &str, text: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", text]).current_dir(folder).env(STORE, store_id).process_group(0);
    command.stdin(Stdio::piped());
    command.spawn().unwrap()
}

fn unique(word: &str, folder: &TempDir) -> String {
    format!("{word}-{}-{}", std::process::id(), folder.path().display())
}

#[tokio::test]
async fn an_orphan_is_ended_with_its_children_even_those_that_forgot_the_store() {
    let folder = TempDir::new().unwrap();
    let id = unique("store", &folder);
    let mut named_pipe = NamedPipe::new(&folder.path().join("pipe"));
    let text = "trap '' TERM; exec 3>pipe; env -i sleep 1000 & setsid sleep 1000 & echo up >&3; wait";
    let mut child = orphan(folder.path(), &id, text);
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    assert!(fence(&id).await.unwrap() >= 2);
    assert_eq!(named_pipe.next_line().await, None);
    assert!(!child.wait().unwrap().success());
    assert_eq!(fence(&id).await, Ok(0));
}

#[tokio::test]
async fn an_orphan_that_keeps_starting_others_leaves_none_behind() {
    let folder = TempDir::new().unwrap();
    let id = unique("store", &folder);
    let mut named_pipe = NamedPipe::new(&folder.path().join("pipe"));
    let text = "exec 3>pipe; echo up >&3; i=0; \
                while [ $i -lt 300 ]; do env -i sleep 1000 & i=$((i+1)); done; wait";
    let mut child = orphan(folder.path(), &id, text);
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    assert!(fence(&id).await.is_ok());
    assert_eq!(named_pipe.next_line().await, None);
    child.wait().unwrap();
}

#[tokio::test]
async fn the_child_of_another_store_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let (id, other) = (unique("store", &folder), unique("other", &folder));
    let mut named_pipe = NamedPipe::new(&folder.path().join("pipe"));
    let mut child = orphan(folder.path(), &other, "exec 3>pipe; echo up >&3; read line; exit 7");
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    assert_eq!(fence(&id).await, Ok(0));
    assert_eq!(child.try_wait().unwrap(), None);
    assert_eq!(fence(&other).await, Ok(1));
    child.wait().unwrap();
}

#[tokio::test]
async fn what_left_the_group_of_a_child_is_ended_also_when_nobody_waits_for_that_any_more() {
    let folder = TempDir::new().unwrap();
    let mut named_pipe = NamedPipe::new(&folder.path().join("pipe"));
    let text = "exec 3>pipe; setsid sh -c 'echo up >&3; exec sleep 1000' & wait";
    let argv = ["sh", "-c", text].map(str::to_owned).to_vec();
    let variables = std::env::var_os("PATH").map(|path| ("PATH".into(), path));
    let program = Program { argv, cwd: folder.path().to_owned() };
    let mut group = program.start(variables.into_iter().collect()).unwrap();
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    group.end().await.unwrap();
    assert!(poll!(Box::pin(group.sweep())).is_pending());
    assert_eq!(named_pipe.next_line().await, None);
}

/// Run by the test below in a process that carries the store's ID itself.
#[tokio::test]
#[ignore = "it is a part of another test"]
async fn fences_its_own_store() {
    let Ok(id) = std::env::var(STORE) else { return };
    assert_eq!(fence(&id).await, Ok(0));
}

#[tokio::test]
async fn a_daemon_does_not_end_itself() {
    let folder = TempDir::new().unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "handlers::tests::fence::fences_its_own_store", "--ignored"]);
    let again = again.env(STORE, unique("store", &folder)).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
    assert!(String::from_utf8_lossy(&again.stdout).contains("1 passed"));
}
