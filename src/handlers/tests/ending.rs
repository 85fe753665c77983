//! A program ends with its message, and everything it started with it.

use std::time::Duration;

use crate::handlers::exec::Exec;
use crate::handlers::exec::ExecOptions;
use crate::handlers::fence::fence;
use crate::handlers::tests::named_pipe::NamedPipe;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::reason;
use crate::handlers::tests::stage::script;
use crate::message::Message;
use crate::processor::Outcome;

/// Starts a child of its own that holds the pipe open for ever, and says so.
const WITH_CHILD: &str = "exec 3>pipe; sleep 1000 & echo up >&3; ";

fn with_listener(stage: &Stage, text: &str) -> (ExecOptions, NamedPipe) {
    let named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    (script(stage.folder.path(), text), named_pipe)
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_with_its_children() {
    let stage = Stage::new().await;
    let text = format!("{WITH_CHILD} trap 'echo cleaning up >&2; exit 1' TERM; wait");
    let (mut options, mut named_pipe) = with_listener(&stage, &text);
    options.timeout = Duration::from_millis(500);
    let exec = Exec::new(options, stage.site.clone());
    let failure = stage.handle(&exec, Message::new("")).await;
    assert_eq!(reason(failure), "timed out after 500ms: cleaning up");
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    assert_eq!(named_pipe.next_line().await, None);
}

#[tokio::test]
async fn a_program_that_does_not_listen_is_killed() {
    let stage = Stage::new().await;
    let text = format!("trap '' TERM; {WITH_CHILD} while :; do wait; sleep 1; done");
    let (mut options, mut named_pipe) = with_listener(&stage, &text);
    options.timeout = Duration::from_millis(500);
    let exec = Exec::new(options, stage.site.clone());
    assert_eq!(reason(stage.handle(&exec, Message::new("")).await), "timed out after 500ms");
    while named_pipe.next_line().await.is_some() {}
}

#[tokio::test]
async fn a_program_whose_lock_is_lost_is_ended_with_its_children() {
    let stage = Stage::new().await;
    let (options, mut named_pipe) = with_listener(&stage, &format!("{WITH_CHILD} wait"));
    let exec = Exec::new(options, stage.site.clone());
    let handed = stage.hand(Message::new("")).await;
    let losing = async {
        assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
        handed.lock.raise();
        while named_pipe.next_line().await.is_some() {}
    };
    let (result, ()) = tokio::join!(stage.handle_one(&exec, &handed), losing);
    assert_eq!(reason(result), "its lock was lost");
}

#[tokio::test]
async fn a_program_nobody_waits_for_any_more_is_killed_with_its_children() {
    let stage = Stage::new().await;
    let (options, mut named_pipe) = with_listener(&stage, &format!("trap '' TERM; {WITH_CHILD} wait"));
    let exec = Exec::new(options, stage.site.clone());
    let handed = stage.hand(Message::new("")).await;
    tokio::select! {
        result = stage.handle_one(&exec, &handed) => panic!("{result:?}"),
        said_line = named_pipe.next_line() => assert_eq!(said_line.as_deref(), Some("up")),
    }
    assert_eq!(named_pipe.next_line().await, None);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_left_the_group_of_a_program_that_took_too_long_is_ended_with_the_attempt() {
    let stage = Stage::new().await;
    let text = "exec 3>pipe; mkfifo left; \
                setsid sh -c 'echo up >&3; echo now > left; exec sleep 1000' & \
                read now < left; exec sleep 1000";
    let (mut options, mut named_pipe) = with_listener(&stage, text);
    options.timeout = Duration::from_millis(500);
    let exec = Exec::new(options, stage.site.clone());
    assert_eq!(reason(stage.handle(&exec, Message::new("")).await), "timed out after 500ms");
    assert_eq!(fence(&stage.site.store_id).await, Ok(0), "nobody is left when the attempt has ended");
    while named_pipe.next_line().await.is_some() {}
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_killed() {
    let stage = Stage::new().await;
    let (options, mut named_pipe) = with_listener(&stage, &format!("{WITH_CHILD} exit 0"));
    let exec = Exec::new(options, stage.site.clone());
    assert!(matches!(stage.handle(&exec, Message::new("")).await, Ok(Outcome::Complete)));
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    assert_eq!(named_pipe.next_line().await, None);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn somebody_who_left_the_group_and_holds_the_output_open_is_not_waited_for() {
    let stage = Stage::new().await;
    let text = "exec 3>pipe; mkfifo left; \
                setsid sh -c 'echo up >&3; echo now > left; exec sleep 1000' & \
                read now < left; echo '{\"state\":1}'";
    let (options, mut named_pipe) = with_listener(&stage, text);
    let exec = Exec::new(options, stage.site.clone());
    let outcome = stage.handle(&exec, Message::new("")).await;
    assert!(matches!(outcome, Ok(Outcome::CompleteWith(_))), "{outcome:?}");
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    assert_eq!(fence(&stage.site.store_id).await, Ok(1));
    assert_eq!(named_pipe.next_line().await, None);
}
