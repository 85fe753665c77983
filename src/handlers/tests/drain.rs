//! What becomes of programs that outlast the drain.

use std::sync::Arc;
use std::time::Duration;

use crate::definition::WebhookDefinition;
use crate::handlers::dispatch::AnyHandler;
use crate::handlers::dispatch::Dispatch;
use crate::handlers::exec::Exec;
use crate::handlers::forward::Forward;
use crate::handlers::forward::ForwardOptions;
use crate::handlers::forward::ForwardTo;
use crate::handlers::forward::RemoteQueue;
use crate::handlers::outbound::outbound::OutboundOptions;
use crate::handlers::persistent::Persistent;
use crate::handlers::persistent::PersistentOptions;
use crate::handlers::tests::named_pipe::NamedPipe;
use crate::handlers::tests::receiver::Receiver;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::program;
use crate::handlers::tests::stage::script;
use crate::handlers::webhook::Webhook;
use crate::handlers::webhook::WebhookOptions;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Handler;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;

#[tokio::test]
async fn a_program_that_outlasts_the_drain_is_asked_to_end_and_its_attempt_says_why() {
    let stage = Stage::new().await;
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let text = "exec 3> pipe; trap 'echo asked >&3; exit 0' TERM; echo up >&3; sleep 1000 & wait";
    let exec = Exec::new(script(stage.folder.path(), text), stage.site.clone());
    stage.queue.send(Message::new("1").workflow("w")).await.unwrap();
    let pool = Processor::new(stage.queue.clone()).drain(Duration::ZERO).start(exec);
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    pool.stop().await.unwrap();
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("asked"));
    was_given_up(&stage).await;
}

/// Checks that the one attempt says so, and that the next may begin.
async fn was_given_up(stage: &Stage) {
    let stored = stage.queue.peek(SequenceNumber::new(0), 1).await.unwrap();
    let reasons: Vec<_> = stored[0].attempts.iter().map(|attempt| attempt.reason.as_str()).collect();
    assert_eq!(reasons, ["terminated: the daemon was stopped, and its drain time was over"]);
    assert!(stage.queue.receive(Duration::ZERO).await.unwrap().is_some(), "it is tried again at once");
}

/// A receiver that does not answer, and where posts go to reach it.
async fn silent() -> (Receiver, OutboundOptions) {
    let receiver = Receiver::start(None).await;
    let address = WebhookDefinition { url: receiver.url("/q"), allow_private: true, ca_file: None };
    (receiver, OutboundOptions { address, timeout: LONG })
}

async fn outlasts_the_drain(stage: &Stage, mut receiver: Receiver, handler: impl Handler<Raw>) {
    stage.queue.send(Message::new("1").workflow("w")).await.unwrap();
    let pool = Processor::new(stage.queue.clone()).drain(Duration::ZERO).start(handler);
    receiver.seen().await;
    pool.stop().await.unwrap();
    was_given_up(stage).await;
}

#[tokio::test]
async fn a_post_that_outlasts_the_drain_says_why_and_is_tried_again_at_once() {
    let (stage, (receiver, outbound)) = (Stage::new().await, silent().await);
    let options = WebhookOptions { outbound, secrets: Vec::new() };
    let webhook = Webhook::new(options, stage.site.clone()).unwrap();
    outlasts_the_drain(&stage, receiver, webhook).await;
}

#[tokio::test]
async fn what_goes_to_another_daemon_and_outlasts_the_drain_says_why_and_is_tried_again_at_once() {
    let (stage, (receiver, outbound)) = (Stage::new().await, silent().await);
    let to = ForwardTo::Remote(RemoteQueue { outbound, key: None });
    let forward = Forward::new(ForwardOptions { to, keep_position: false }, stage.site.clone()).unwrap();
    outlasts_the_drain(&stage, receiver, forward).await;
}

/// Notes each start, and says that it has been given something.
const LONG_LIVED: &str = "echo up >> starts; read line; exec 3> pipe; echo up >&3; sleep 1000";

/// A program that runs on, whose message has outlasted the drain.
async fn outlasted(stage: &Stage) -> Arc<Persistent> {
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let program = program(stage.folder.path(), &["sh", "-c", LONG_LIVED]);
    let options = PersistentOptions { program, processes: 1, in_flight_max: 1, timeout: LONG };
    let persistent = Arc::new(Persistent::start(options, stage.site.clone()));
    stage.queue.send(Message::new("1").workflow("w")).await.unwrap();
    let handler = |_: Context, _: Raw| async { Err::<Outcome, _>(Failure::new("nobody took it")) };
    let processor = Processor::new(stage.queue.clone()).drain(Duration::ZERO).taker(persistent.clone());
    let pool = processor.start(handler);
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    pool.stop().await.unwrap();
    persistent
}

#[tokio::test]
async fn what_a_program_that_runs_on_still_has_when_the_drain_is_over_is_tried_again_at_once() {
    let stage = Stage::new().await;
    let _persistent = outlasted(&stage).await;
    was_given_up(&stage).await;
}

#[tokio::test]
async fn a_program_that_runs_on_is_not_started_again_when_the_drain_is_over() {
    let stage = Stage::new().await;
    outlasted(&stage).await.close().await;
    let starts = std::fs::read_to_string(stage.folder.path().join("starts")).unwrap();
    assert_eq!(starts, "up\n");
}

/// Does not end before it is killed.
const STUBBORN: &str = "exec 3> pipe; trap '' TERM; echo up >&3; while :; do sleep 1000; done";

#[tokio::test]
async fn all_programs_that_run_on_have_one_grace_together_to_end() {
    let stage = Stage::new().await;
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let mut dispatch = Dispatch::default();
    for subject in ["a", "b", "c"] {
        let program = program(stage.folder.path(), &["sh", "-c", STUBBORN]);
        let options = PersistentOptions { program, processes: 1, in_flight_max: 1, timeout: LONG };
        let persistent = Persistent::start(options, stage.site.clone());
        dispatch = dispatch.with(Some(subject.to_owned()), AnyHandler::Persistent(persistent));
        assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    }
    assert!(moved_until(dispatch.close()).await < limits::CHILD_GRACE * 3);
}

/// By how much tokio's clock, which then moves only when nothing else is to be done, has moved when something has ended.
#[expect(clippy::disallowed_methods, reason = "graces run on the clock of tokio, which stands still here")]
async fn moved_until(ended: impl Future<Output = ()>) -> Duration {
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    ended.await;
    begun.elapsed()
}
