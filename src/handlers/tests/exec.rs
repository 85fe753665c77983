//! What holds for a program that is run once a message.

use std::time::Duration;

use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;
use tokio::net::UnixListener;

use crate::handlers::exec::Exec;
use crate::handlers::exec::ExecOptions;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::reason;
use crate::handlers::tests::stage::script;
use crate::message::Message;
use crate::processor::Failure;
use crate::processor::Outcome;

async fn run(text: &str) -> Result<Outcome, Failure> {
    let stage = Stage::new().await;
    let exec = Exec::new(script(stage.folder.path(), text), stage.site.clone());
    stage.handle(&exec, Message::new("body\n").workflow("w").subject("paid")).await
}

#[tokio::test]
async fn the_exit_code_says_how_it_ended() {
    assert!(matches!(run("exit 0").await, Ok(Outcome::Complete)));
    assert_eq!(reason(run("echo busy >&2; exit 75").await), "busy");
    assert_eq!(reason(run("echo one >&2; echo two >&2; echo >&2; exit 3").await), "exit code 3: two");
    assert_eq!(reason(run("kill -9 $$").await), "killed by signal 9");
    let Ok(Outcome::DeadLetter { reason, .. }) = run("echo bad data >&2; exit 65").await else { panic!() };
    assert_eq!(reason, "bad data");
}

#[tokio::test]
async fn the_last_line_of_its_output_is_its_answer_if_it_is_an_object() {
    let answer = run(r#"echo working; echo '{"state":7}'; echo"#).await;
    assert!(matches!(answer, Ok(Outcome::CompleteWith(_))));
    assert!(matches!(run("echo '{}'; echo done").await, Ok(Outcome::Complete)));
    let failure = run(r#"echo '{"outcome":"retry","retry_after":"5m","reason":"later"}'"#).await;
    assert_eq!(reason(failure), "later");
}

#[tokio::test]
async fn an_answer_that_is_wrong_is_no_completion() {
    let wrong = reason(run(r#"echo '{"outcome":"done"}'"#).await);
    assert!(wrong.starts_with("the handler's answer is wrong: unknown variant `done`"), "{wrong}");
    let wrong = reason(run("echo \"{'state': 7}\"").await);
    assert!(wrong.starts_with("the handler's answer is wrong: "), "{wrong}");
    let wrong = reason(run(r#"printf '{"reason":"'; head -c 100000 /dev/zero | tr '\0' x; echo '"}'"#).await);
    assert_eq!(wrong, "the handler's answer is wrong: it has more than 65536 bytes");
}
