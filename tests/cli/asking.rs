//! A person at a terminal, who is asked and presses Ctrl-C instead of answering.

use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use seriatim::Clock;
use seriatim::SystemClock;

use crate::cli::fake::Answer;
use crate::cli::fake::Asked;
use crate::cli::fake::Fake;
use crate::fixture::pause_between_looks;
use crate::fixture::skip::skip;

/// What a terminal makes of Ctrl-C.
const CTRL_C: [u8; 1] = [3];

const TIMEOUT: Duration = Duration::from_secs(60);

/// The binary in a terminal of its own; nothing where none can be made.
fn in_terminal(arguments: &str, fake: &Fake) -> Option<Child> {
    // A shell that stayed would be told of Ctrl-C too, and its end would be shown in place of ours.
    let line = format!("exec {} {arguments} --url {}", env!("CARGO_BIN_EXE_seriatim"), fake.url);
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("a question at a terminal", "`script` is not installed");
            None
        }
        child => Some(child.expect("it runs")),
    }
}

/// Waits until a person is asked, and presses Ctrl-C; the code with which that ends, and what was shown behind the question.
fn interrupted(mut child: Child) -> (Option<i32>, String) {
    let (mut shown, mut byte) = (Vec::new(), [0]);
    let mut stdout = child.stdout.take().expect("asked for");
    while !shown.ends_with(b"[y/N] ") {
        let read = stdout.read(&mut byte).expect("it shows something");
        assert_eq!(read, 1, "it ended: {}", String::from_utf8_lossy(&shown));
        shown.push(byte[0]);
    }
    let mut stdin = child.stdin.take().expect("asked for");
    stdin.write_all(&CTRL_C).expect("it listens");
    let clock = SystemClock::default();
    let ended = loop {
        if let Some(ended) = child.try_wait().expect("it is a child") {
            break ended;
        }
        if clock.elapsed() > TIMEOUT {
            child.kill().expect("it is a child");
            panic!("it still waits for an answer");
        }
        pause_between_looks();
    };
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("text");
    (ended.code(), rest)
}

/// What a daemon answers to dry runs of a verb for many, and of a redrive.
fn dry_run(asked: &Asked) -> Answer {
    Answer::json(match asked.line.as_str() {
        line if line.starts_with("GET /v1/queues/orders/dead_letters") => {
            json!({ "dead_letters": [{ "sequence_number": 1, "delivery_count": 3, "reason": "r", "at": 1 }] })
        }
        line if line.starts_with("GET") => json!({}),
        line if line.contains("redrive") => {
            json!({ "redriven": "in_place", "sequence_number": 1, "dry_run": true })
        }
        _ => json!({ "matched": 7, "done": 7, "refused": [] }),
    })
}

#[test]
fn ctrl_c_ends_the_question_of_a_verb_for_many_and_nothing_is_done() {
    for arguments in ["retry orders --all", "redrive orders --all"] {
        let fake = Fake::healthy(dry_run);
        let Some(child) = in_terminal(arguments, &fake) else { return };
        let (code, shown) = interrupted(child);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("cannot go on: interrupted; nothing was changed"), "{shown}");
        let mut done = fake.asked().into_iter().filter(|asked| asked.line.starts_with("POST"));
        assert!(done.all(|asked| asked.json()["dry_run"] == true), "it was only counted");
    }
}
