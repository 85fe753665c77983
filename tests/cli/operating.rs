//! The operator's verbs: what each asks of the daemon, one by one and many at once.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use serde_json::Value;
use serde_json::json;

use crate::cli::fake::Answer;
use crate::cli::fake::Fake;
use crate::cli::fake::problem;
use crate::cli::fake::seriatim;

#[test]
fn every_verb_asks_for_itself_with_its_reason() {
    let workflow = |verb: &str| format!("POST /v1/queues/orders/workflow/{verb}?id=order%2017%2Fa");
    let target = "orders/order 17/a";
    let cases: [(&[&str], String, Value); 11] = [
        (&["retry", target], workflow("retry"), json!({})),
        (&["skip", target, "--reason", "bad"], workflow("skip"), json!({ "reason": "bad" })),
        (&["hold", target, "--reason", "look"], workflow("hold"), json!({ "reason": "look" })),
        (&["resume", target], workflow("resume"), json!({})),
        (&["resume", target, "--redrive"], workflow("resume"), json!({ "redrive": true })),
        (&["resume", target, "--cause", "gap"], workflow("resume"), json!({ "cause": "gap" })),
        (&["unlock", target, "--dry-run"], workflow("release_lock"), json!({ "dry_run": true })),
        (
            &["gap", "void", target, "19..22", "--reason", "lost"],
            workflow("void"),
            json!({ "reason": "lost", "from": 19, "to": 22 }),
        ),
        (&["gap", "skip", target, "--reason", "late"], workflow("skip_gap"), json!({ "reason": "late" })),
        (
            &["redrive", "orders#7", "--position", "9", "--reason", "mended"],
            "POST /v1/queues/orders/dead_letters/7/redrive".to_owned(),
            json!({ "position": 9, "reason": "mended" }),
        ),
        (
            &["purge", target, "--reason", "test data", "--dry-run"],
            workflow("purge"),
            json!({ "reason": "test data", "dry_run": true }),
        ),
    ];
    for (arguments, line, body) in cases {
        let answer =
            json!({ "effect": "it is so", "dry_run": false, "redriven": "in_place", "sequence_number": 7 });
        let fake = Fake::always(answer);
        let ran = fake.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        assert!(ran.stdout.contains("it is so") || ran.stdout.contains("back in its own place"), "{ran:?}");
        assert_eq!(fake.asked_lines(), [line]);
        assert_eq!(fake.asked()[0].json(), body, "{arguments:?}");
    }
}

#[test]
fn a_refusal_names_the_verb_as_it_was_typed() {
    let fake = Fake::new(|_| Answer::problem(409, "no_such_thing", "there is nothing to do"));
    for (arguments, typed) in [
        (&["unlock", "orders/a"][..], "unlock"),
        (&["gap", "void", "orders/a", "2", "--reason", "lost"], "gap void"),
        (&["gap", "skip", "orders/a", "--reason", "lost"], "gap skip"),
    ] {
        let ran = fake.run(arguments);
        let complaint =
            format!("seriatim: cannot {typed} orders/a: there is nothing to do (no_such_thing)\n");
        assert_eq!((ran.code, ran.stderr), (Some(1), complaint));
    }
}

#[test]
fn what_cannot_be_undone_is_not_done_unasked() {
    for arguments in [
        &["purge", "orders/1", "--reason", "r"][..],
        &["purge", "orders", "--all", "--reason", "r"],
        &["dlq", "purge", "orders", "--reason", "r"],
        &["retry", "orders", "--all"],
    ] {
        let answer = json!({ "effect": "7 messages are removed", "purged": 7, "matched": 7, "done": 7, "refused": [] });
        let fake = Fake::always(answer);
        let ran = fake.run(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains('7') && ran.stderr.contains("say --yes"), "{ran:?}");
        assert!(fake.asked().iter().all(|asked| asked.json()["dry_run"] == true), "it was only counted");
    }
    let fake = Fake::always(json!({ "purged": 7 }));
    for (arguments, line, words) in [
        (
            &["dlq", "purge", "orders"][..],
            "dead_letters/purge",
            "7 dead letters of orders removed for good\n",
        ),
        (&["purge", "orders", "--all"], "purge", "7 messages of orders removed for good\n"),
    ] {
        let ran = fake.run(&[arguments, &["--reason", "r", "--yes"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), words), "{ran:?}");
        let asked = fake.asked().pop().expect("it was asked");
        assert_eq!(asked.json(), json!({ "reason": "r" }));
        assert_eq!(asked.line, format!("POST /v1/queues/orders/{line}"));
    }
}

/// A daemon with three pages of two workflows each, of which the fourth is refused.
fn three_pages() -> Fake {
    Fake::new(|asked| {
        let body = asked.json();
        let is_dry = body["dry_run"] == true;
        let (after, refused) = match body["after"].as_str() {
            None => (Some("b"), json!([])),
            Some("b") => {
                let error = problem(409, "workflow_locked", "the workflow is locked by a holder");
                (Some("d"), if is_dry { json!([]) } else { json!([{ "workflow_id": "d", "error": error }]) })
            }
            Some(_) => (None, json!([])),
        };
        let done = if is_dry { 0 } else { 2 - refused.as_array().map_or(0, Vec::len) };
        Answer::json(json!({ "matched": 2, "done": done, "refused": refused, "after": after }))
    })
}

#[test]
fn many_at_once_are_done_page_by_page_and_those_refused_are_named() {
    let fake = three_pages();
    let arguments = [
        "retry",
        "orders",
        "--all",
        "--status",
        "blocked,held",
        "--prefix",
        "eu-",
        "--hold-cause",
        "spent",
        "--error",
        "timeout",
        "--reason",
        "deployed",
        "--yes",
    ];
    let ran = fake.run(&arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "5 workflows retried, 1 refused\n"), "{ran:?}");
    assert_eq!(ran.stderr, "orders/d: the workflow is locked by a holder (workflow_locked)\n");
    assert_eq!(fake.asked_lines(), vec!["POST /v1/queues/orders/operate"; 3]);
    let first = fake.asked()[0].json();
    let filter = json!({ "status": ["blocked", "held"], "prefix": "eu-", "hold_cause": ["exhausted"], "reason": "timeout" });
    assert_eq!((&first["verb"], &first["filter"]), (&json!("retry"), &filter));
    assert_eq!((&first["reason"], first.get("dry_run")), (&json!("deployed"), None));
    assert_eq!(fake.asked()[2].json()["after"], "d");
    let ran = fake.run(&["retry", "orders", "--all", "--dry-run", "--json"]);
    let counters =
        json!({ "verb": "retry", "dry_run": true, "matched": 6, "done": 0, "idle": 0, "refused": 0 });
    assert_eq!((ran.code, ran.json()), (Some(0), vec![counters]), "{ran:?}");
}

#[test]
fn work_goes_on_when_nobody_reads_what_is_printed_of_it() {
    let fake = three_pages();
    assert_eq!(fake.run_unread(&["retry", "orders", "--all", "--yes", "--json"]), Some(1), "one is refused");
    assert_eq!(fake.asked().len(), 3);

    let fake = Fake::healthy(|asked| match asked.line.as_str() {
        line if line.starts_with("GET") => {
            let dead_letter = |number: u64| json!({ "sequence_number": number, "delivery_count": 3, "reason": "r", "at": 1 });
            Answer::json(json!({ "dead_letters": [dead_letter(1), dead_letter(2)] }))
        }
        line if line.contains("/1/") => Answer::problem(409, "place_passed", "its place is passed"),
        _ => Answer::json(json!({ "redriven": "in_place", "sequence_number": 2 })),
    });
    assert_eq!(fake.run_unread(&["redrive", "orders", "--all", "--yes", "--json"]), Some(1));
    assert_eq!(fake.asked_lines().last().unwrap(), "POST /v1/queues/orders/dead_letters/2/redrive");
}

#[test]
fn what_is_only_counted_is_not_said_to_be_done_when_the_daemon_fails() {
    let fake = Fake::new(|_| Answer::problem(503, "unavailable", "the partition answers nobody yet"));
    let ran = fake.run(&["retry", "orders", "--all", "--dry-run"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(!ran.stderr.contains("were done"), "{ran:?}");
}

#[test]
fn what_is_received_and_read_by_nobody_is_given_back_and_not_completed() {
    let answer = |run: Option<&str>| {
        let taken = |number: u64| json!({ "queue": "orders", "sequence_number": number, "delivery_count": 1, "delivery": format!("d-{number}"), "body_text": "x" });
        let received = json!({ "run": run, "deliveries": [taken(1), taken(2)] });
        Fake::new(move |asked| match asked.line.ends_with("/receive") {
            true => Answer::json(received.clone()),
            false => Answer::empty(),
        })
    };
    for how in ["--complete", "--keep"] {
        let fake = answer(None);
        assert_eq!(fake.run_unread(&["receive", "orders", how]), Some(1));
        let released = [2, 1].map(|number| format!("POST /v1/queues/orders/deliveries/d-{number}/release"));
        assert_eq!(fake.asked_lines()[1..], released, "{how}");
    }
    let fake = answer(Some("r"));
    assert_eq!(fake.run_unread(&["receive", "orders", "--complete", "--run"]), Some(1));
    assert_eq!(fake.asked()[1].json(), json!({ "completed": 0 }));
}

#[test]
fn who_keeps_a_run_is_told_in_each_line_with_what_it_is_settled() {
    let fake = Fake::new(|_| {
        let taken = "{\"queue\":\"orders\",\"sequence_number\":1,\"delivery_count\":1,\"body\":1.10}";
        Answer::text(format!("{{\"run\":\"r-1\",\"deliveries\":[{taken}]}}"))
    });
    let ran = fake.run(&["receive", "orders", "--keep", "--run", "--json"]);
    assert_eq!((ran.code, &ran.json()[0]["run"]), (Some(0), &json!("r-1")), "{ran:?}");
    assert!(ran.stdout.contains("\"body\":1.10"), "as it was sent: {ran:?}");
    let way = "POST /v1/queues/orders/runs/r-1/settle with {\"completed\":1}";
    assert!(ran.stderr.contains(way), "{ran:?}");
    let one = Fake::always(
        json!({ "deliveries": [{ "queue": "orders", "sequence_number": 1, "delivery_count": 1 }] }),
    );
    let ran = one.run(&["receive", "orders", "--keep", "--json"]);
    assert_eq!(ran.json()[0].get("run"), None, "{ran:?}");
}

#[test]
fn workflows_that_need_nothing_are_no_refusal() {
    let fake = Fake::new(|_| {
        let error = problem(409, "nothing_waits", "no message waits for a retry at the head");
        let refused = json!([{ "workflow_id": "a", "error": error }]);
        Answer::json(json!({ "matched": 2, "done": 1, "refused": refused }))
    });
    let ran = fake.run(&["retry", "orders", "--all", "--prefix", "a", "--yes"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "1 workflow retried, 1 needed nothing\n"),
        "{ran:?}"
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn what_all_refuse_is_a_failure_and_each_is_named() {
    let fake = Fake::healthy(|asked| match asked.line.as_str() {
        line if line.starts_with("GET /v1/queues/orders/dead_letters") => {
            let dead_letter = json!({ "sequence_number": 7, "delivery_count": 3, "reason": "r", "at": 1 });
            Answer::json(json!({ "dead_letters": [dead_letter] }))
        }
        line if line.starts_with("GET") => Answer::json(json!({})),
        line if line.contains("/redrive") => Answer::problem(409, "place_passed", "its place is passed"),
        _ => {
            let error = problem(409, "workflow_locked", "the workflow is locked by a holder");
            let refused = json!([{ "workflow_id": "d", "error": error }]);
            Answer::json(json!({ "matched": 1, "done": 0, "refused": refused }))
        }
    });
    for (verb, complaint) in [
        ("skip", "orders/d: the workflow is locked by a holder (workflow_locked)\n"),
        ("redrive", "orders#7: its place is passed (place_passed)\n"),
    ] {
        let ran = fake.run(&[verb, "orders", "--all", "--reason", "r"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), complaint), "{ran:?}");
        assert!(ran.stdout.contains("1 refused"), "{ran:?}");
    }
    let mut acted = fake.asked().into_iter().filter(|asked| asked.line.starts_with("POST"));
    assert!(acted.all(|asked| asked.json()["dry_run"] == true), "it was only counted");
}

#[test]
fn filters_of_many_are_refused_where_one_dead_letter_is_named() {
    let fake = Fake::always(json!({}));
    for flags in [
        &["--all"][..],
        &["--all", "--prefix", "a"],
        &["--error", "timeout"],
        &["--dead-letter-reason", "MaxDelivery"],
        &["--after", "7"],
    ] {
        let ran = fake.run(&[&["redrive", "orders#7"], flags].concat());
        assert_eq!(ran.code, Some(2), "{flags:?}: {ran:?}");
        assert!(ran.stderr.contains("redrive orders#7: --all and filters go with QUEUE"), "{ran:?}");
    }
    assert!(fake.asked().is_empty());
}

#[test]
fn many_means_those_that_the_verb_can_help() {
    let stuck = json!({ "status": ["blocked", "held"] });
    for (arguments, filter) in [
        (&["retry"][..], stuck.clone()),
        (&["skip", "--reason", "r"], stuck),
        (&["resume"], json!({ "status": ["held"] })),
        (&["hold"], json!({ "all": true })),
        (&["retry", "--cause", "retry"], json!({ "cause": ["retry"] })),
        (
            &["skip", "--reason", "r", "--prefix", "a"],
            json!({ "status": ["blocked", "held"], "prefix": "a" }),
        ),
    ] {
        let fake = three_pages();
        fake.run(&[arguments, &["orders", "--all", "--dry-run"]].concat());
        assert_eq!(fake.asked()[0].json()["filter"], filter, "{arguments:?}");
    }
}

#[test]
fn an_interrupted_run_says_where_to_go_on() {
    let calls = AtomicUsize::new(0);
    let fake = Fake::new(move |_| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::json(json!({ "matched": 2, "done": 2, "refused": [], "after": "order 17" })),
        _ => Answer::problem(503, "stopped", "reach the engine: it stopped"),
    });
    let ran = fake.run(&["hold", "orders", "--all", "--yes"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("go on with --after='order 17'"), "{ran:?}");
    let fake = three_pages();
    let ran = fake.run(&["hold", "orders", "--all", "--yes", "--after", "d"]);
    assert_eq!((ran.code, fake.asked().len()), (Some(0), 1), "{ran:?}");
}

#[test]
fn dead_letters_are_redriven_one_after_the_other_and_refusals_do_not_stop_them() {
    let fake = Fake::healthy(|asked| match asked.line.as_str() {
        line if line.starts_with("GET /v1/queues/orders/dead_letters") => {
            Answer::json(json!({ "dead_letters": [
                { "sequence_number": 1, "workflow_id": "a", "delivery_count": 3, "reason": "MaxDelivery", "at": 1 },
                { "sequence_number": 2, "workflow_id": "b", "delivery_count": 3, "reason": "MaxDelivery", "at": 1 },
                { "sequence_number": 3, "workflow_id": "a", "delivery_count": 3, "reason": "TTL", "at": 1 },
                { "sequence_number": 4, "workflow_id": "a", "delivery_count": 3, "reason": "MaxDelivery",
                  "at": "2999-01-01T00:00:00Z" },
            ]}))
        }
        "POST /v1/queues/orders/dead_letters/2/redrive" => {
            Answer::problem(409, "place_passed", "redrive message 2: its workflow has gone past its place")
        }
        _ => Answer::json(json!({ "redriven": "in_place", "sequence_number": 1 })),
    });
    let ran = fake.run(&["redrive", "orders", "--all", "--error", "Max", "--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "1 redriven, 1 refused\n"), "{ran:?}");
    assert!(ran.stderr.starts_with("orders#2: redrive message 2: "), "{ran:?}");
    let ran = fake.run(&["redrive", "orders/a", "--dry-run", "--json"]);
    assert_eq!(ran.json()[0]["matched"], 2, "what became a dead letter later is not meant: {ran:?}");
}

/// A daemon whose dead letters never end, and which interrupts whoever lists the third page of them.
fn endless_dead_letters(asker: Arc<OnceLock<Pid>>) -> Fake {
    let pages = AtomicUsize::new(0);
    Fake::healthy(move |asked| {
        if !asked.line.starts_with("GET /v1/queues/orders/dead_letters") {
            return Answer::json(json!({ "redriven": "in_place", "sequence_number": 1, "dry_run": true }));
        }
        let page = pages.fetch_add(1, Ordering::Relaxed);
        if page == 2 {
            kill_process(*asker.wait(), Signal::INT).expect("it waits for the answer");
        }
        let dead_letter = json!({ "sequence_number": page + 1, "delivery_count": 3, "reason": "r", "at": 1 });
        Answer::json(json!({ "dead_letters": [dead_letter], "after": page.to_string() }))
    })
}

#[test]
fn an_interrupted_count_redrives_nothing() {
    for (how, complaint) in [
        (&[][..], "interrupted while counting; nothing was changed"),
        (&["--dry-run"], "interrupted; go on with --after="),
    ] {
        let asker = Arc::new(OnceLock::new());
        let fake = endless_dead_letters(asker.clone());
        let mut command = seriatim(&[&["redrive", "orders", "--all"], how].concat());
        let command = command.env("SERIATIM_URL", &fake.url).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
        asker.set(Pid::from_child(&child)).expect("it is the only one");
        let ended = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8(ended.stderr).expect("text");
        assert_eq!(ended.status.code(), Some(1), "{how:?}: {stderr}");
        assert!(stderr.contains(complaint), "{how:?}: {stderr}");
        let mut redriven = fake.asked().into_iter().filter(|asked| asked.line.starts_with("POST"));
        assert!(redriven.all(|asked| asked.json()["dry_run"] == true), "it was only counted");
    }
}

#[test]
fn trouble_of_the_daemon_is_no_refusal_of_a_dead_letter() {
    let fake = Fake::healthy(|asked| match asked.line.as_str() {
        line if line.starts_with("GET /v1/queues/orders/dead_letters") => {
            let dead_letter = |number: u64| json!({ "sequence_number": number, "delivery_count": 3, "reason": "r", "at": 1 });
            Answer::json(json!({ "dead_letters": [dead_letter(1), dead_letter(2)] }))
        }
        line if line.starts_with("GET") => Answer::json(json!({})),
        _ => Answer::problem(503, "stopped", "reach the engine: it stopped"),
    });
    let ran = fake.run(&["redrive", "orders", "--all", "--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("0 redriven, 0 refused; "), "{ran:?}");
    assert!(ran.stderr.contains("seriatim: cannot redrive orders#1: "), "{ran:?}");
    let counted = fake.run(&["redrive", "orders", "--all"]);
    assert!(
        counted.stderr.contains("nothing was changed\nseriatim: cannot redrive orders#1: "),
        "{counted:?}"
    );
    assert!(fake.asked_lines().iter().all(|line| !line.contains("/dead_letters/2/")), "it stops there");
}

#[test]
fn handlers_are_paused_and_definitions_loaded_again() {
    let fake = Fake::new(|asked| match asked.line.ends_with("/reload") {
        true => Answer::json(json!({ "definitions": [] })),
        false => Answer::empty(),
    });
    for (arguments, line) in [
        (["definitions", "pause", "orders"], "POST /v1/queues/orders/pause"),
        (["definitions", "resume", "orders"], "POST /v1/queues/orders/resume"),
        (["definitions", "reload", "--json"], "POST /v1/definitions/reload"),
    ] {
        let ran = fake.run(&arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(fake.asked_lines().iter().any(|asked| asked == line), "{line}");
    }
}

#[test]
fn a_delivery_that_was_kept_is_settled_by_its_name() {
    let taken = json!({ "deliveries": [{
        "delivery": "17.3.ab", "locked_until": "2027-01-31T12:00:00Z", "queue": "orders", "sequence_number": 3,
        "workflow_id": "w", "delivery_count": 1, "body_text": "hello",
    }]});
    let fake = Fake::new(move |asked| match asked.line.rsplit('/').next().unwrap_or_default() {
        "receive" => Answer::json(taken.clone()),
        "complete" => Answer::json(json!({ "completed": 1, "results": [{ "delivery": "17.3.ab" }] })),
        "renew" => Answer::json(json!({ "locked_until": "2027-01-31T12:00:00Z", "lock_ms": 60_000 })),
        _ => Answer::empty(),
    });
    let ran = fake.run(&["receive", "orders", "--keep", "--wait", "20s", "--max", "5"]);
    assert_eq!(fake.asked()[0].json(), json!({ "max": 5, "wait": "20s" }));
    assert!(ran.stdout.contains("orders#3: taken\n  delivery: 17.3.ab\n"), "{ran:?}");
    let ran = fake.run(&["receive", "orders", "--complete", "--json"]);
    assert_eq!((ran.code, &ran.json()[0]["body_text"]), (Some(0), &json!("hello")));
    let asked = fake.asked().pop().unwrap();
    assert_eq!(asked.line, "POST /v1/queues/orders/complete");
    assert_eq!(asked.json(), json!({ "deliveries": ["17.3.ab"] }));
    let settle = ["settle", "orders", "17.3.ab"];
    for (how, line, body) in [
        (
            vec!["abandon", "--retry-after", "5m", "--reason", "busy"],
            "abandon",
            json!({ "retry_after": "5m", "reason": "busy" }),
        ),
        (vec!["defer"], "defer", json!({})),
        (vec!["dead-letter", "--reason", "bad"], "dead_letter", json!({ "reason": "bad" })),
        (vec!["release"], "release", json!({})),
        (vec!["renew"], "renew", json!({})),
    ] {
        let ran = fake.run(&[&settle[..], &how].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let asked = fake.asked().pop().unwrap();
        assert_eq!(asked.line, format!("POST /v1/queues/orders/deliveries/17.3.ab/{line}"));
        assert_eq!(asked.json(), body);
    }
}
