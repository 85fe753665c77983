//! `seriatim send` and `import`: what is sent, what is refused, and where to go on.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use serde_json::Value;
use serde_json::json;

use crate::cli::fake::Answer;
use crate::cli::fake::Asked;
use crate::cli::fake::Fake;
use crate::cli::fake::Ran;
use crate::cli::fake::problem;

/// Accepts every line; numbers begin with 1.
fn accept(asked: &Asked) -> Answer {
    answer_lines(asked, |at, _| json!({ "sequence_number": at + 1 }))
}

fn answer_lines(asked: &Asked, answer: impl Fn(usize, &Value) -> Value) -> Answer {
    let lines = asked.lines();
    let answers = lines.iter().enumerate().map(|(at, line)| format!("{}\n", answer(at, line)));
    Answer::text(answers.collect::<String>())
}

/// A queue has no room, and may be asked again at once.
fn full() -> Value {
    let mut full = problem(429, "queue_full", "send: the queue is full with 7 messages");
    full["retry_after_seconds"] = json!(0);
    full
}

/// Accepts every line but those for which there is no room.
fn answer_full(asked: &Asked, has_none: impl Fn(usize, &Value) -> bool) -> Answer {
    answer_lines(asked, |at, line| match has_none(at, line) {
        true => json!({ "error": full() }),
        false => json!({ "sequence_number": 1, "status": "accepted" }),
    })
}

/// Sends three lines from a file, which is read in one batch.
fn send_three(fake: &Fake) -> Ran {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("lines");
    std::fs::write(&path, "{\"body\":1}\n{\"body\":2}\n{\"body\":3}\n").expect("it can be written");
    fake.run(&["send", "q", &format!("@{}", path.display()), "--ndjson"])
}

#[test]
fn a_message_is_sent_with_everything_that_was_said_of_it() {
    let fake = Fake::new(accept);
    let arguments = [
        "send",
        "orders",
        "{\"a\": 1}",
        "--workflow",
        "order 17",
        "--position",
        "3",
        "--message-id",
        "m-1",
        "--subject",
        "paid",
        "--property",
        "cents=1999",
        "--property",
        "by=me",
        "--time-to-live",
        "7d",
        "--schedule-at",
        "2027-01-31T12:00:00Z",
    ];
    let ran = fake.run(&arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "accepted as orders#1\n"), "{ran:?}");
    let asked = fake.asked();
    assert_eq!(asked[0].line, "POST /v1/queues/orders/messages");
    let expected = json!({
        "workflow_id": "order 17", "position": 3, "message_id": "m-1", "subject": "paid",
        "content_type": "application/json", "properties": { "cents": 1999, "by": "me" },
        "time_to_live": "7d", "schedule_at": "2027-01-31T12:00:00.000Z", "body_text": "{\"a\": 1}",
    });
    assert_eq!(asked[0].lines(), [expected]);
}

#[test]
fn a_body_comes_from_an_argument_a_file_or_stdin_and_stays_as_it_is() {
    let fake = Fake::new(accept);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), [0, 255, 10]).expect("it can be written");
    let at_file = format!("@{}", file.path().display());
    for (arguments, input) in [
        (vec!["send", "q", "plain"], ""),
        (vec!["send", "q", &at_file], ""),
        (vec!["send", "q", "-"], "{\"a\":\n 1}\n"),
        (vec!["send", "q"], "from stdin"),
    ] {
        assert_eq!(fake.run_with(&arguments, input).code, Some(0));
    }
    let bodies: Vec<Value> = fake.asked().iter().flat_map(Asked::lines).collect();
    let json = json!({ "body_text": "{\"a\":\n 1}\n", "content_type": "application/json" });
    let expected = [
        json!({ "body_text": "plain" }),
        json!({ "body_base64": "AP8K" }),
        json,
        json!({ "body_text": "from stdin" }),
    ];
    assert_eq!(bodies, expected);
}

#[test]
fn a_message_that_was_there_already_is_no_failure() {
    for (status, words) in [("duplicate", "a duplicate of q#7"), ("already_settled", "nothing was stored")] {
        let fake = Fake::always(json!({ "sequence_number": 7, "status": status }));
        let ran = fake.run(&["send", "q", "a"]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains(words), "{ran:?}");
        let ran = fake.run(&["send", "q", "a", "--json"]);
        assert_eq!(ran.json(), [json!({ "sequence_number": 7, "status": status })]);
    }
}

#[test]
fn a_refused_message_ends_with_one_and_one_line_that_says_why() {
    let taken = problem(409, "place_taken", "send message 0: its place is taken by message 5");
    let fake = Fake::always(json!({ "error": taken }));
    let ran = fake.run(&["send", "orders", "a"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let expected = "seriatim: cannot send to orders: its place is taken by message 5 (place_taken)\n";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn a_line_that_is_no_message_is_named_and_the_others_are_sent() {
    let fake = Fake::new(|asked| {
        answer_lines(asked, |_, line| match line["position"] == 2 {
            true => json!({ "error": problem(422, "misuse", "position is taken") }),
            false => json!({ "sequence_number": 1, "status": "accepted" }),
        })
    });
    let input = "{\"workflow_id\":\"a\",\"position\":1}\n\
                 {\"workflow\":\"a\"}\n\
                 \n\
                 {\"workflow_id\":\"a\",\"position\":2}\n\
                 {\"queue\":\"other\"}\n\
                 {\"queue\":\"q\",\"body\":{\"big\":18446744073709551616}}";
    let ran = fake.run_with(&["send", "q", "--ndjson"], input);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stdout, "6 lines: 2 accepted, 3 REFUSED\n");
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said.len(), 3, "{ran:?}");
    assert!(said[0].starts_with("line 2: there is no field `workflow`; known are `queue`"), "{ran:?}");
    assert!(ran.stderr.contains("line 4: position is taken (misuse)\n"), "{ran:?}");
    assert!(ran.stderr.contains("line 5: it names the queue other (malformed)\n"), "{ran:?}");
    let sent: Vec<u8> = fake.asked().iter().flat_map(|asked| asked.body.to_vec()).collect();
    assert!(String::from_utf8_lossy(&sent).contains("{\"big\":18446744073709551616}"), "numbers stay exact");
    let ran = fake.run_with(&["send", "q", "--ndjson", "--json"], input);
    let last = ran.json().pop().expect("a summary");
    assert_eq!((last["accepted"].as_u64(), last["refused"].as_u64()), (Some(2), Some(3)));
    assert_eq!(ran.json()[0]["line"], 2);
}

#[test]
fn what_the_daemon_has_no_room_for_is_sent_again() {
    let calls = AtomicUsize::new(0);
    let fake = Fake::new(move |asked| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => answer_full(asked, |at, _| at == 1),
        _ => accept(asked),
    });
    let ran = fake.run_with(&["send", "q", "--ndjson"], "{\"body\":1}\n{\"body\":2}\n{\"body\":3}\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "3 lines: 3 accepted\n"), "{ran:?}");
    let bodies = |at: usize| -> Vec<Value> {
        fake.asked()[at].lines().into_iter().map(|line| line["body"].clone()).collect()
    };
    if bodies(0).len() == 3 {
        assert_eq!(bodies(1), [json!(2)], "only what there was no room for");
    }
}

#[test]
fn a_feed_that_finds_no_room_stops_so_that_no_line_overtakes_another() {
    let fake = Fake::new(|asked| answer_full(asked, |_, line| line["body"] == 2));
    let input = format!("{{\"body\":1}}\n{{\"body\":2}}\n{}", "{\"body\":3}\n".repeat(3_000));
    let ran = fake.run_with(&["send", "q", "--ndjson"], &input);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("go on with --from-line 2"), "{ran:?}");
    let asked = fake.asked();
    let sent = asked.iter().filter(|asked| asked.line == "POST /v1/queues/q/messages?in_order=true");
    let lines = sent.flat_map(Asked::lines);
    assert!(lines.filter(|line| line["body"] == 3).count() < 1_024, "no batch follows");
}

#[test]
fn a_feed_stops_at_a_line_of_which_it_is_not_known_whether_it_was_accepted() {
    let unanswered = problem(504, "unanswered", "no answer came");
    let fake = Fake::new(move |asked| {
        answer_lines(asked, |_, line| match line["body"] == 2 {
            true => json!({ "error": unanswered }),
            false => json!({ "sequence_number": 1, "status": "accepted" }),
        })
    });
    let input = format!("{{\"body\":1}}\n{{\"body\":2}}\n{}", "{\"body\":3}\n".repeat(3_000));
    let ran = fake.run_with(&["send", "q", "--ndjson"], &input);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("whether lines 2 to "), "{ran:?}");
    assert!(ran.stderr.contains("accepted is not known; go on with --from-line 2: "), "{ran:?}");
    assert!(ran.stderr.ends_with("seriatim: cannot send: no answer came (unanswered)\n"), "{ran:?}");
    let sent: Vec<Value> = fake.asked().iter().flat_map(Asked::lines).collect();
    assert!(sent.iter().filter(|line| line["body"] == 3).count() < 1_024, "no batch follows");
    assert_eq!(sent.iter().filter(|line| line["body"] == 2).count(), 1, "it is not sent again");
}

#[test]
fn an_input_that_cannot_be_read_further_says_what_became_of_its_lines_and_where_to_go_on() {
    let fake = Fake::new(accept);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("lines");
    std::fs::write(&path, "{\"body\":1}\n").expect("it can be written");
    let file = std::fs::OpenOptions::new().append(true).open(&path).expect("it can be opened");
    // A line that never ends, and takes no room on the disk.
    file.set_len(100 << 20).expect("it can be longer");
    let ran = fake.run(&["send", "q", &format!("@{}", path.display()), "--ndjson"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said[0], "1 line: 1 accepted; go on with --from-line 2");
    assert!(said[1].starts_with("seriatim: cannot read the input: line 2 has more than "), "{ran:?}");
}

/// A file of three lines is sent to a daemon that gives up at the second with a problem, once.
fn assert_sent_again_in_order(problem: Value) {
    let gave_up = AtomicUsize::new(0);
    let fake = Fake::new(move |asked| {
        let mut answers = String::new();
        for (at, line) in asked.lines().iter().enumerate() {
            if line["body"] == 2 && gave_up.fetch_add(1, Ordering::Relaxed) == 0 {
                answers += &format!("{}\n", json!({ "line": at + 1, "error": problem }));
                break;
            }
            answers += "{\"sequence_number\":1}\n";
        }
        Answer::text(answers)
    });
    let ran = send_three(&fake);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "3 lines: 3 accepted\n"), "{ran:?}");
    let sent: Vec<Value> =
        fake.asked().iter().flat_map(Asked::lines).map(|line| line["body"].clone()).collect();
    let again = sent.iter().filter(|body| **body == json!(1)).count();
    assert_eq!(again, 1, "what was taken is not sent again: {sent:?}");
}

#[test]
fn lines_behind_the_one_at_which_the_daemon_gave_up_are_sent_again() {
    let mut busy = problem(503, "busy", "too many bodies are being read at once");
    busy["retry_after_seconds"] = json!(0);
    assert_sent_again_in_order(busy);
}

#[test]
fn lines_behind_the_one_that_came_too_slowly_are_sent_again() {
    assert_sent_again_in_order(problem(408, "too_slow", "it came too slowly"));
}

#[test]
fn what_was_accepted_before_a_retry_broke_is_not_sent_again() {
    let calls = AtomicUsize::new(0);
    let fake = Fake::new(move |asked| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => answer_full(asked, |at, _| at == 2),
        _ => Answer::garbage(502),
    });
    let ran = send_three(&fake);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("go on with --from-line 3"), "{ran:?}");
}

#[test]
fn a_connection_that_breaks_says_from_which_line_to_go_on() {
    let calls = AtomicUsize::new(0);
    let fake = Fake::new(move |asked| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => accept(asked),
        _ => Answer::garbage(502),
    });
    let line = "{\"workflow_id\":\"a\"}\n";
    let ran = fake.run_with(&["send", "q", "--ndjson"], &line.repeat(3_000));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let first = fake.asked()[0].lines().len() + 1;
    assert!(ran.stderr.contains(&format!("go on with --from-line {first}")), "{ran:?}");
    let ran = fake.run_with(&["send", "q", "--ndjson", "--from-line", "2"], line);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1 line: 0 accepted\n"), "{ran:?}");
}

#[test]
fn a_topic_to_which_is_sent_as_to_a_queue_is_named_as_one() {
    let daemon = |is_topic: bool| {
        Fake::new(move |asked| match asked.line.as_str() {
            line if line.starts_with("GET /v1/topics?") => {
                let name = if is_topic { "orders" } else { "others" };
                Answer::json(json!({ "topics": [{ "name": name, "created_at": 1, "subscriptions": [] }] }))
            }
            _ => Answer::problem(404, "queue_not_found", "there is no queue orders"),
        })
    };
    let ran = daemon(true).run(&["send", "orders", "paid"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stderr, "seriatim: cannot send to orders: it is a topic, not a queue; add --topic\n");
    let ran = daemon(false).run(&["send", "orders", "paid"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stderr, "seriatim: cannot send to orders: there is no queue orders (queue_not_found)\n");
}

#[test]
fn a_queue_that_is_not_there_ends_a_feed_at_once() {
    let missing = problem(404, "queue_not_found", "there is no queue q");
    let fake = Fake::new(move |asked| answer_lines(asked, |_, _| json!({ "error": missing })));
    let ran = fake.run_with(&["send", "q", "--ndjson"], &"{}\n".repeat(3_000));
    assert_eq!((ran.code, fake.asked().len()), (Some(1), 1), "{ran:?}");
    assert!(ran.stderr.contains("there is no queue q (queue_not_found)"), "{ran:?}");
}

#[test]
fn an_import_keeps_workflow_position_and_message_id() {
    let fake = Fake::new(|asked| match asked.line.as_str() {
        "GET /v1/queues/new" => Answer::problem(403, "forbidden", "the key does not allow this"),
        _ => accept(asked),
    });
    let lines = "{\"queue\":\"old\",\"sequence_number\":7,\"status\":\"ready\",\"workflow_id\":\"w\",\"position\":2,\
                 \"message_id\":\"m\",\"delivery_count\":3,\"accepted_at\":\"2027-01-31T12:00:00Z\",\"body\":{\"a\":1}}\n\
                 {\"queue\":\"old\",\"sequence_number\":8,\"status\":\"dead_lettered\",\"delivery_count\":3,\"accepted_at\":1,\
                 \"dead_letter\":{\"reason\":\"r\",\"at\":\"2027-01-31T12:00:00Z\"},\"body_text\":\"dead\"}\n";
    let ran = fake.run_with(&["import", "new"], lines);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "2 lines: 1 accepted, 1 left out\n"), "{ran:?}");
    let expected = json!({ "workflow_id": "w", "position": 2, "message_id": "m", "body": { "a": 1 } });
    assert_eq!(fake.asked().pop().expect("it was asked").lines(), [expected]);
    let ran = fake.run_with(&["import", "new", "--revive-dead-letters"], lines);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "2 lines: 2 accepted\n"), "{ran:?}");
}

/// An export of a workflow with so many messages.
fn exported(messages: u64) -> String {
    let message = |position: u64| {
        json!({ "queue": "old", "sequence_number": position, "status": "ready", "workflow_id": "w",
            "position": position, "delivery_count": 0, "accepted_at": 1, "body": 1 })
    };
    (1..=messages).map(|position| format!("{}\n", message(position))).collect()
}

/// Imports these lines from a file, which is read in batches that are full.
fn import(fake: &Fake, lines: &str) -> Ran {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("export");
    std::fs::write(&path, lines).expect("it can be written");
    fake.run(&["import", "new", path.to_str().expect("a plain name")])
}

#[test]
fn where_a_workflow_stands_is_not_said_while_there_is_no_room_for_a_line_before_it() {
    let fake = Fake::new(|asked| {
        if asked.line == "GET /v1/queues/new" {
            return Answer::queue("position");
        }
        if asked.line.contains("/workflow") {
            return Answer::problem(404, "workflow_not_found", "nothing is known of it");
        }
        answer_full(asked, |_, line| line["position"] == 7)
    });
    // As many lines as are sent at once, so that the cursor begins the next batch.
    let ran = import(&fake, &(exported(1_024) + "{\"workflow_id\":\"w\",\"next_position\":2000}\n"));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(1), "1025 lines: 1023 accepted, 2 REFUSED\n"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("where 1 workflow stand is not said"), "{ran:?}");
    assert!(ran.stderr.contains("go on with --from-line 7 once there is"), "{ran:?}");
    assert!(fake.asked_lines().iter().all(|line| !line.contains("/workflow")), "no place is declared void");
}

#[test]
fn an_import_that_ends_behind_a_line_for_which_there_was_no_room_goes_on_from_that_line() {
    let fake = Fake::new(|asked| {
        if asked.line == "GET /v1/queues/new" {
            return Answer::queue("position");
        }
        let unanswered = problem(504, "unanswered", "no answer came");
        answer_lines(asked, |_, line| match line["position"].as_u64() {
            Some(7) => json!({ "error": full() }),
            Some(1_030) => json!({ "error": unanswered }),
            _ => json!({ "sequence_number": 1, "status": "accepted" }),
        })
    });
    let ran = import(&fake, &exported(1_040));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.stderr.contains("whether lines 1030 to 1040 were accepted is not known"), "{ran:?}");
    assert!(ran.stderr.contains("go on with --from-line 7: "), "{ran:?}");
}

#[test]
fn an_import_that_does_not_know_the_order_sends_nothing() {
    let fake = Fake::new(|asked| match asked.line.as_str() {
        "GET /v1/queues/new" => Answer::problem(503, "unavailable", "the partition answers nobody yet"),
        _ => accept(asked),
    });
    let ran = fake.run_with(&["import", "new"], "{\"workflow_id\":\"w\"}\n");
    assert_eq!((ran.code, fake.asked().len()), (Some(3), 1), "{ran:?}");
    assert!(ran.stderr.contains("look at the queue new"), "{ran:?}");
}

#[test]
fn a_message_is_sent_to_a_topic_and_every_copy_is_told() {
    let fake = Fake::new(|asked| {
        assert!(asked.line.contains("/v1/topics/orders/messages"), "{}", asked.line);
        let receipt = json!({ "status": "accepted", "sequence_number": 7 });
        Answer::json(json!({ "copies": [{ "queue": "orders/subscriptions/billing", "receipt": receipt }] }))
    });
    for key in [None, Some("k")] {
        let mut arguments = vec!["send", "orders", "hello", "--topic"];
        arguments.extend(key.into_iter().flat_map(|key| ["--idempotency-key", key]));
        let ran = fake.run(&arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.stdout, "accepted as orders/subscriptions/billing#7\n");
        assert_eq!(fake.asked().pop().expect("it was asked").idempotency_key.as_deref(), key);
    }
}
