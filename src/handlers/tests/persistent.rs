//! What holds for programs that run on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rustix::io::Errno;
use tokio::sync::oneshot;

use crate::handlers::group::REFUSED;
use crate::handlers::persistent::Persistent;
use crate::handlers::persistent::PersistentOptions;
use crate::handlers::tests::named_pipe::NamedPipe;
use crate::handlers::tests::stage::Handed;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::has_python;
use crate::handlers::tests::stage::program;
use crate::handlers::tests::stage::reason;
use crate::limits;
use crate::message::Message;
use crate::processor::Assignment;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::processor::Taker;
use crate::queue::QueueOptions;

/// Does what the body of each request says.
const CHILD: &str = r#"
import json, os, signal, subprocess, sys
for line in sys.stdin:
    request = json.loads(line)
    message = request["message"]
    word = message.get("body_text")
    if word == "die":
        sys.stderr.write("Traceback\n  here\ncannot go on\n")
        os._exit(3)
    elif word == "scream":
        sys.stderr.write("x" * 100000)
        sys.stderr.flush()
        os._exit(3)
    elif word == "answer and die":
        os.write(1, json.dumps({"id": request["id"], "state": word}).encode() + b"\n")
        os._exit(4)
    elif word == "garbage":
        print("hello", flush=True)
    elif word == "stranger":
        print('{"id":4711}', flush=True)
    elif word == "nameless":
        print('{}', flush=True)
    elif word == "endless":
        sys.stdout.write("x" * 20000000)
        sys.stdout.flush()
    elif word == "hang":
        pipe = open("pipe", "w")
        print("up", file=pipe, flush=True)
        subprocess.run(["sleep", "1000"], pass_fds=[pipe.fileno()])
    elif word == "finish the next when asked to end":
        other = json.loads(next(sys.stdin))["id"]
        def finish(*_):
            os.write(1, json.dumps({"id": other}).encode() + b"\n")
            os._exit(0)
        signal.signal(signal.SIGTERM, finish)
        print("up", file=open("pipe", "w"), flush=True)
        while True:
            signal.pause()
    elif word == "bad":
        print(json.dumps({"id": request["id"], "outcome": "retry", "state": 1}), flush=True)
    else:
        print(json.dumps({"id": request["id"], "state": message}), flush=True)
"#;

fn python(folder: &Path, text: &str) -> PersistentOptions {
    PersistentOptions {
        program: program(folder, &["python3", "-c", text]),
        processes: 1,
        in_flight_max: limits::IN_FLIGHT_DEFAULT,
        timeout: LONG,
    }
}

/// A stage with children that do what bodies say, if there is a python3.
async fn begin(change: impl FnOnce(&mut PersistentOptions)) -> Option<(Stage, Persistent)> {
    if !has_python() {
        return None;
    }
    let stage = Stage::new().await;
    let mut options = python(stage.folder.path(), CHILD);
    change(&mut options);
    let persistent = Persistent::start(options, stage.site.clone());
    Some((stage, persistent))
}

/// A message that is with the children.
struct Given {
    handed: Handed,
    number: u64,
    ended: oneshot::Receiver<Result<Outcome, Failure>>,
}

impl Given {
    /// How it ended.
    async fn end(self) -> Result<Outcome, String> {
        let ended = tokio::time::timeout(LONG, self.ended).await.expect("it comes to its end");
        self.handed.complete().await;
        ended.unwrap().map_err(|failure| failure.reason().to_owned())
    }
}

/// Gives a message with this body to the children.
async fn give(stage: &Stage, persistent: &Persistent, word: &str) -> Given {
    let handed = stage.hand(Message::new(word.to_owned()).content_type("text/plain")).await;
    let number = handed.context.message().sequence_number.get();
    let (assignment, ended) = assign(number, &handed);
    persistent.take(vec![assignment]);
    Given { handed, number, ended }
}

/// An assignment of what was handed out, and who hears how it ended.
fn assign(number: u64, handed: &Handed) -> (Assignment, oneshot::Receiver<Result<Outcome, Failure>>) {
    let (notify, ended) = oneshot::channel();
    (Assignment::new(number, handed.context.clone(), move |result, _| drop(notify.send(result))), ended)
}

async fn ask(stage: &Stage, persistent: &Persistent, word: &str) -> Result<Outcome, String> {
    give(stage, persistent, word).await.end().await
}

#[tokio::test]
async fn children_that_cannot_be_started_for_lack_of_something_use_up_no_attempt() {
    for errno in [Errno::MFILE, Errno::AGAIN] {
        REFUSED.set(Some(errno.raw_os_error()));
        let Some((stage, persistent)) = begin(|options| options.processes = 2).await else { return };
        for _ in 0..20 {
            let given = give(&stage, &persistent, "hello").await;
            let failure = given.ended.await.expect("it ends").expect_err("no child was started");
            assert!(failure.is_unbegun, "{}", failure.reason());
            assert!(failure.reason().starts_with("start \"python3\": "), "{}", failure.reason());
            given.handed.complete().await;
        }
        let (_, why) = persistent.cannot_start_until().expect("nothing is to be handed out");
        assert!(why.starts_with("start \"python3\": "), "{why}");
        REFUSED.set(None);
        while persistent.cannot_start_until().is_some() {
            tokio::task::yield_now().await;
        }
        assert!(ask(&stage, &persistent, "hello").await.is_ok());
        persistent.close().await;
    }
    REFUSED.set(Some(Errno::NOENT.raw_os_error()));
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    let failure = give(&stage, &persistent, "hello").await.ended.await.expect("it ends").unwrap_err();
    assert!(!failure.is_unbegun, "what is wrong with the program is a failure of the attempt");
    REFUSED.set(None);
}

#[tokio::test]
async fn many_messages_are_with_the_children_at_once() {
    let Some((stage, persistent)) = begin(|options| options.processes = 2).await else { return };
    let asking = (0..500).map(|number| {
        let (stage, persistent) = (&stage, &persistent);
        async move { ask(stage, persistent, &format!("message {number}")).await }
    });
    for outcome in join_all(asking).await {
        assert!(matches!(outcome, Ok(Outcome::CompleteWith(_))), "{outcome:?}");
    }
    persistent.close().await;
}

#[tokio::test]
async fn a_child_that_dies_fails_what_it_held_and_is_started_again() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    for _ in 0..3 {
        let why = ask(&stage, &persistent, "die").await.unwrap_err();
        assert_eq!(why, "python3 ended: exit code 3: cannot go on");
        ask(&stage, &persistent, "hello").await.unwrap();
    }
}

#[tokio::test]
async fn what_a_child_wrote_while_it_held_a_message_is_kept_with_its_failure() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    ask(&stage, &persistent, "hello").await.unwrap();
    let given = give(&stage, &persistent, "die").await;
    let failure = given.ended.await.unwrap().unwrap_err();
    assert_eq!(failure.abandon.output.text, "Traceback\n  here\ncannot go on\n");
    given.handed.complete().await;
}

#[tokio::test]
async fn a_long_line_of_complaint_is_kept_to_its_end_and_what_was_cut_is_counted() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    let given = give(&stage, &persistent, "scream").await;
    let failure = given.ended.await.unwrap().unwrap_err();
    assert!(failure.reason().ends_with('x'), "{}", failure.reason());
    let output = &failure.abandon.output;
    assert!(output.text.ends_with("x\n"), "{output:?}");
    assert!(output.cut_bytes + output.text.len() as u64 > 100_000, "{output:?}");
    given.handed.complete().await;
}

#[tokio::test]
async fn an_answer_before_the_death_counts() {
    for _ in 0..5 {
        let Some((stage, persistent)) = begin(|_| ()).await else { return };
        ask(&stage, &persistent, "answer and die").await.unwrap();
    }
}

#[tokio::test]
async fn a_child_that_answers_garbage_is_started_again() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    for (word, expected) in [
        ("garbage", "python3 answered garbage: expected value at line 1 column 1: hello"),
        ("stranger", "python3 answered request 4711, which it does not hold"),
        ("nameless", "python3 answered without the id of its request"),
        ("endless", "python3 answered a line of more than 16777216 bytes"),
    ] {
        assert_eq!(ask(&stage, &persistent, word).await.unwrap_err(), expected);
        ask(&stage, &persistent, "hello").await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_fails_only_its_message() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    let why = ask(&stage, &persistent, "bad").await.unwrap_err();
    assert_eq!(why, "the handler's answer is wrong: state does not go with this outcome");
    ask(&stage, &persistent, "hello").await.unwrap();
}

#[tokio::test]
async fn a_message_that_takes_too_long_ends_its_child_before_it_fails() {
    let Some((stage, persistent)) = begin(|options| options.timeout = Duration::from_secs(2)).await else {
        return;
    };
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    assert_eq!(ask(&stage, &persistent, "hang").await.unwrap_err(), "timed out after 2s");
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    assert_eq!(named_pipe.next_line().await, None);
    ask(&stage, &persistent, "hello").await.unwrap();
}

#[tokio::test]
async fn a_lost_lock_ends_the_child_and_fails_what_else_it_held() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    ask(&stage, &persistent, "hello").await.unwrap();
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let hanging = give(&stage, &persistent, "hang").await;
    let behind = give(&stage, &persistent, "hello").await;
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    persistent.cancel(hanging.number);
    assert_eq!(named_pipe.next_line().await, None);
    assert_eq!(hanging.end().await.unwrap_err(), "its lock was lost");
    let because = "python3 was ended, because of another message: its lock was lost";
    assert_eq!(behind.end().await.unwrap_err(), because);
    ask(&stage, &persistent, "hello").await.unwrap();
}

#[tokio::test]
async fn what_a_child_finishes_when_it_is_asked_to_end_for_another_message_is_done() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    ask(&stage, &persistent, "hello").await.unwrap();
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let hanging = give(&stage, &persistent, "finish the next when asked to end").await;
    let behind = give(&stage, &persistent, "hello").await;
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    persistent.cancel(hanging.number);
    behind.end().await.unwrap();
    assert_eq!(hanging.end().await.unwrap_err(), "its lock was lost");
    ask(&stage, &persistent, "hello").await.unwrap();
}

#[tokio::test]
async fn a_message_whose_lock_was_lost_before_it_was_taken_is_not_begun() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    let lost = stage.hand(Message::new("die")).await;
    // Nobody knows its number yet.
    lost.lock.raise();
    persistent.cancel(7);
    let (assignment, ended) = assign(7, &lost);
    persistent.take(vec![assignment]);
    assert_eq!(reason(ended.await.unwrap()), "its lock was lost");
    lost.complete().await;
    ask(&stage, &persistent, "hello").await.unwrap();
}

#[tokio::test]
async fn a_child_whose_message_is_given_up_is_killed() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let hanging = give(&stage, &persistent, "hang").await;
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    persistent.give_up(hanging.number);
    assert_eq!(named_pipe.next_line().await, None);
    assert_eq!(hanging.end().await.unwrap_err(), "it was given up");
    ask(&stage, &persistent, "hello").await.unwrap();
}

#[tokio::test]
async fn what_waits_for_a_child_is_known_and_can_be_given_back() {
    let Some((stage, persistent)) = begin(|options| options.in_flight_max = 1).await else { return };
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let hanging = give(&stage, &persistent, "hang").await;
    let waiting = give(&stage, &persistent, "hello").await;
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    let numbers = [hanging.number, waiting.number];
    assert_eq!(numbers.map(|number| persistent.is_waiting(number)), [false, true]);
    numbers.iter().for_each(|number| persistent.give_back(*number));
    let failure = waiting.ended.await.unwrap().unwrap_err();
    assert!(failure.is_unbegun, "{}", failure.reason());
    waiting.handed.complete().await;
    persistent.give_up(hanging.number);
    assert_eq!(hanging.end().await.unwrap_err(), "it was given up", "what is begun is not given back");
}

#[tokio::test]
async fn giving_up_everything_ends_what_children_hold_and_what_waits() {
    let Some((stage, persistent)) = begin(|options| options.in_flight_max = 1).await else { return };
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let hanging = give(&stage, &persistent, "hang").await;
    let waiting = give(&stage, &persistent, "hello").await;
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("up"));
    persistent.give_up_all();
    assert_eq!(named_pipe.next_line().await, None);
    assert_eq!(
        hanging.end().await.unwrap_err(),
        "terminated: the daemon was stopped, and its drain time was over"
    );
    assert_eq!(waiting.end().await.unwrap_err(), "the handler is closed");
}

#[tokio::test]
async fn an_assignment_that_is_let_go_of_has_failed() {
    let stage = Stage::new().await;
    let handed = stage.hand(Message::new("hello")).await;
    let (assignment, ended) = assign(1, &handed);
    drop(assignment);
    assert_eq!(reason(ended.await.unwrap()), "its handler let go of it");
    handed.complete().await;
}

#[tokio::test]
async fn children_that_keep_dying_are_given_a_rest_and_everybody_is_told() {
    let stage = Stage::new().await;
    let mut options = python(stage.folder.path(), "");
    options.program.argv = ["sh", "-c", "echo no database >&2; exit 7"].map(str::to_owned).to_vec();
    let persistent = Persistent::start(options, stage.site.clone());
    let mut why = String::new();
    // The first ones may have met a child before it died.
    for _ in 0..=limits::QUICK_DEATHS_MAX {
        why = ask(&stage, &persistent, "hello").await.unwrap_err();
        if why.contains("in a row") {
            break;
        }
    }
    assert!(why.starts_with("sh ended: exit code 7: no database; it ended 5 times in a row"), "{why}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let stage = Stage::new().await;
    let mut options = python(stage.folder.path(), "");
    options.program.argv = vec!["no-such-program".to_owned()];
    let persistent = Persistent::start(options, stage.site.clone());
    let why = ask(&stage, &persistent, "hello").await.unwrap_err();
    assert!(why.starts_with("start \"no-such-program\": there is no such program in PATH; it"), "{why}");
}

#[tokio::test]
async fn closing_lets_the_children_finish() {
    if !has_python() {
        return;
    }
    let stage = Stage::new().await;
    let text = format!("pipe = open('pipe', 'w')\n{CHILD}\nprint('bye', file=pipe)");
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    let persistent = Persistent::start(python(stage.folder.path(), &text), stage.site.clone());
    ask(&stage, &persistent, "hello").await.unwrap();
    persistent.close().await;
    assert_eq!(named_pipe.next_line().await.as_deref(), Some("bye"));
    assert_eq!(named_pipe.next_line().await, None);
    assert_eq!(ask(&stage, &persistent, "hello").await.unwrap_err(), "the handler is closed");
}

#[tokio::test]
async fn when_its_queue_was_deleted_and_comes_again_it_handles_what_a_processor_then_receives() {
    let Some((stage, persistent)) = begin(|_| ()).await else { return };
    let (persistent, client) = (Arc::new(persistent), stage.queue.client().clone());
    let handler = |_: Context, _: Raw| async { Err::<Outcome, _>(Failure::new("nobody took it")) };
    let processor = Processor::new(stage.queue.clone()).taker(persistent.clone());
    let first = processor.start(handler);
    client.delete_queue("orders").await.unwrap();
    while !first.is_finished() {
        tokio::task::yield_now().await;
    }
    assert!(first.stop().await.is_err());
    client.create_queue("orders", QueueOptions::default()).await.unwrap();
    let second = processor.start(handler);
    stage.queue.send(Message::new("hello").content_type("text/plain").workflow("w")).await.unwrap();
    let completed = async {
        while stage.queue.view().await.unwrap().counts.completed == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, completed).await.expect("it is completed");
    second.stop().await.unwrap();
    persistent.close().await;
}

#[tokio::test]
async fn dropping_kills_the_children() {
    let Some((stage, persistent)) =
        begin(|options| options.program.argv[2].insert_str(0, "pipe = open('pipe', 'w')\n")).await
    else {
        return;
    };
    let mut named_pipe = NamedPipe::new(&stage.folder.path().join("pipe"));
    ask(&stage, &persistent, "hello").await.unwrap();
    drop(persistent);
    assert_eq!(named_pipe.next_line().await, None);
}
