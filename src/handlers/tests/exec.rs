//! What holds for a program that is run once a message.

use rustix::io::Errno;

use crate::handlers::exec::Exec;
use crate::handlers::group::REFUSED;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::reason;
use crate::handlers::tests::stage::script;
use crate::message::Message;
use crate::processor::Failure;
use crate::processor::Outcome;

async fn run(text: &str) -> Result<Outcome, Failure> {
    run_with(text, "body\n".into()).await
}

async fn run_with(text: &str, body: String) -> Result<Outcome, Failure> {
    let stage = Stage::new().await;
    let exec = Exec::new(script(stage.folder.path(), text), stage.site.clone());
    stage.handle(&exec, Message::new(body)).await
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
async fn a_program_that_wants_its_message_again_has_used_up_an_attempt() {
    for text in ["exit 75", "echo busy >&2; exit 75", "exit 1", "kill -9 $$"] {
        let failure = run(text).await.expect_err("it did not complete its message");
        assert!(!failure.is_unbegun, "{text}: it would be tried again for ever");
    }
}

#[tokio::test]
async fn everything_a_failed_program_wrote_is_kept_and_not_only_its_last_line() {
    let text = "echo loading; printf 'Traceback\\n  File x.py, line 7\\nValueError: 5\\n' >&2; exit 1";
    let failure = run(text).await.unwrap_err();
    assert_eq!(failure.reason(), "exit code 1: ValueError: 5");
    let kept = failure.abandon.output.text;
    assert_eq!(kept, "Traceback\n  File x.py, line 7\nValueError: 5\n--- standard output:\nloading\n");
    let failure = run("echo busy >&2; echo no luck >&2; exit 75").await.unwrap_err();
    assert_eq!(failure.abandon.output.text, "busy\nno luck\n");
    let Ok(Outcome::DeadLetter { description, .. }) = run("echo one >&2; echo two >&2; exit 65").await else {
        panic!()
    };
    assert_eq!(description, "one\ntwo\n");
    let failure = run("yes | head -c 20000 >&2; exit 1").await.unwrap_err();
    let kept = failure.abandon.output;
    assert_eq!((kept.text.len(), kept.cut_bytes), (4_096, 20_000 - 4_096));
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
async fn a_body_that_is_echoed_is_no_answer() {
    assert!(matches!(run(r#"echo '{"order_id":"o-1","version":2}'"#).await, Ok(Outcome::Complete)));
}

#[tokio::test]
async fn an_answer_that_is_wrong_is_no_completion() {
    let wrong = reason(run(r#"echo '{"outcome":"done"}'"#).await);
    assert!(wrong.starts_with("the handler's answer is wrong: `done` is not one of `complete`"), "{wrong}");
    let wrong = reason(run("echo \"{'state': 7}\"").await);
    assert!(wrong.starts_with("the handler's answer is wrong: "), "{wrong}");
    let wrong = reason(run(r#"printf '{"reason":"'; head -c 200000 /dev/zero | tr '\0' x; echo '"}'"#).await);
    assert_eq!(wrong, "the handler's answer is wrong: it has more than 65536 bytes");
}

#[tokio::test]
async fn the_body_comes_on_its_input_byte_for_byte() {
    let body = "line one\nline two \u{e9}\n".repeat(20_000);
    let outcome = run_with("cat > got; echo '{}'", body.clone()).await;
    assert!(matches!(outcome, Ok(Outcome::CompleteWith(_))), "{outcome:?}");
    let stage = Stage::new().await;
    let exec = Exec::new(script(stage.folder.path(), "cat > got"), stage.site.clone());
    stage.handle(&exec, Message::new(body.clone())).await.unwrap();
    assert_eq!(std::fs::read_to_string(stage.folder.path().join("got")).unwrap(), body);
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let body = "x".repeat(1_000_000);
    assert!(matches!(run_with("exit 0", body.clone()).await, Ok(Outcome::Complete)));
    assert!(matches!(run_with("exec <&-; echo done", body).await, Ok(Outcome::Complete)));
}

#[tokio::test]
async fn output_of_any_length_neither_blocks_it_nor_is_kept() {
    let flood = "yes 0123456789 | head -c 100000000; yes complaint | head -c 10000000 >&2; echo; echo '{\"state\":1}'";
    assert!(matches!(run(flood).await, Ok(Outcome::CompleteWith(_))));
}

#[tokio::test]
async fn what_cannot_be_started_is_a_failure_that_says_why() {
    let stage = Stage::new().await;
    let folder = stage.folder.path();
    std::fs::write(folder.join("plain"), "text").unwrap();
    let mut cases = Vec::new();
    for (program, cwd) in
        [("no-such-program", folder), ("./missing", folder), ("./plain", folder), ("", folder)]
    {
        cases.push((program, cwd.to_owned()));
    }
    cases.push(("sh", folder.join("gone")));
    let mut reasons = Vec::new();
    for (program, cwd) in cases {
        let mut options = script(&cwd, "exit 0");
        options.program.argv[0] = program.to_owned();
        let exec = Exec::new(options, stage.site.clone());
        reasons.push(reason(stage.handle(&exec, Message::new("")).await));
    }
    assert_eq!(reasons[0], "start \"no-such-program\": there is no such program in PATH");
    assert_eq!(reasons[1], "start \"./missing\": No such file or directory (os error 2)");
    assert_eq!(reasons[2], "start \"./plain\": it is not an executable file");
    assert_eq!(reasons[3], "start \"\": it has no name");
    assert!(reasons[4].starts_with("start \"sh\": its folder /"), "{}", reasons[4]);
}

#[tokio::test]
async fn a_start_that_fails_for_lack_of_something_uses_up_no_attempt_and_pauses_its_handler() {
    let stage = Stage::new().await;
    let exec = Exec::new(script(stage.folder.path(), "exit 0"), stage.site.clone());
    for errno in [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM] {
        REFUSED.set(Some(errno.raw_os_error()));
        let failure = stage.handle(&exec, Message::new("body")).await.expect_err("it was not started");
        assert!(failure.is_unbegun && failure.reason().starts_with("start \"sh\": "), "{}", failure.reason());
        assert!(exec.shortage().pauses_until(stage.site.clock.elapsed()).is_some());
    }
    for errno in [Errno::NOENT, Errno::ACCESS] {
        REFUSED.set(Some(errno.raw_os_error()));
        let failure = stage.handle(&exec, Message::new("body")).await.expect_err("it was not started");
        assert!(!failure.is_unbegun, "what is wrong with the program is a failure of the attempt");
    }
    REFUSED.set(None);
    assert!(stage.handle(&exec, Message::new("body")).await.is_ok());
}
