//! What becomes of programs that outlast the drain.

use std::time::Duration;

use crate::handlers::exec::Exec;
use crate::handlers::tests::named_pipe::NamedPipe;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::script;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::processor::Processor;

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
    let stored = stage.queue.peek(SequenceNumber::new(0), 1).await.unwrap();
    let reasons: Vec<_> = stored[0].attempts.iter().map(|attempt| attempt.reason.as_str()).collect();
    assert_eq!(reasons, ["terminated: the daemon was stopped, and its drain time was over"]);
}
