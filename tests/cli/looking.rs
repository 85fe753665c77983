//! The verbs that look: what they ask, what a person reads, what a program gets.

use serde_json::Value;
use serde_json::json;

use crate::cli::fake::Answer;
use crate::cli::fake::Fake;

fn blocked_row(workflow_id: &str) -> Value {
    json!({
        "queue": "orders", "workflow_id": workflow_id, "cause": "held", "hold_cause": "exhausted", "waiting": 3,
        "delivery_count": 8, "last_error": "no route", "next": "nothing, until somebody resumes it",
        "next_action": "nothing",
    })
}

#[test]
fn what_is_blocked_is_a_table_for_people_and_a_line_each_for_programs() {
    let fake = Fake::new(|asked| match asked.line.contains("after=") {
        false => Answer::json(json!({ "blocked": [blocked_row("1")], "after": "orders/1" })),
        true => Answer::json(json!({ "blocked": [blocked_row("2\u{1b}[31m")] })),
    });
    let ran = fake.run(&["blocked", "--queue", "orders"]);
    let expected = "workflow          cause             since  waiting  last error  next\n\
                    orders/1          held: exhausted (8x)              3  no route    nothing: somebody has to act\n\
                    orders/2 [31m     held: exhausted (8x)              3  no route    nothing: somebody has to act\n";
    let squeezed = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!((ran.code, squeezed(&ran.stdout)), (Some(0), squeezed(expected)), "{ran:?}");
    let lines = fake.asked_lines();
    assert_eq!(lines[0], "GET /v1/blocked?limit=100&queue=orders");
    assert_eq!(lines[1], "GET /v1/blocked?after=orders%2F1&limit=99&queue=orders");
    let _ = fake.run(&["blocked", "--cause", "locked"]);
    assert_eq!(fake.asked_lines()[2], "GET /v1/blocked?cause=locked&limit=100");
    let rows = fake.run(&["blocked", "--json"]).json();
    assert_eq!((rows.len(), &rows[0]), (2, &blocked_row("1")));
}

#[test]
fn top_prints_one_snapshot_where_there_is_no_terminal() {
    let fake = Fake::new(|asked| {
        let is = |word: &str| asked.line.contains(word);
        Answer::json(match () {
            () if is("/v1/status") => {
                json!({ "version": "1.2.3", "state": "ready", "started_at": 0, "definitions": 0,
                "handlers_running": 0, "blocked": [{ "queue": "orders", "cause": "held", "workflows": 1 }] })
            }
            () if is("/v1/rates") => json!({ "queues": [], "commit_ms_mean": 1.5 }),
            () if is("/v1/queues") => json!({ "queues": [] }),
            () => json!({ "blocked": [blocked_row("1")] }),
        })
    });
    let ran = fake.run(&["top"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for word in ["seriatim 1.2.3, ready", "blocked: 1 held; commit 1.5 ms; 0 handlers at work", "orders/1"] {
        assert!(ran.stdout.contains(word), "{word}: {ran:?}");
    }
    let shown = fake.run(&["top", "--json"]).json();
    assert_eq!((shown.len(), &shown[0]["blocked"][0]["workflow_id"]), (1, &json!("1")), "{shown:?}");
    assert_eq!(shown[0]["status"]["state"], "ready");
}

#[test]
fn definitions_show_why_the_files_are_not_in_use() {
    let fake =
        Fake::always(json!({ "definitions": [], "problem": "orders.toml:3:8: there is no program `x`" }));
    let ran = fake.run(&["definitions"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("not in use:\norders.toml:3:8: there is no program `x`"), "{ran:?}");
    assert_eq!(fake.run_unread(&["definitions"]), Some(1), "although nobody reads it");
}

#[test]
fn nothing_blocked_is_said_and_is_no_failure() {
    let fake = Fake::always(json!({ "blocked": [] }));
    assert_eq!(fake.run(&["blocked"]).stdout, "nothing is blocked\n");
    assert_eq!(fake.run(&["blocked", "--json"]).stdout, "");
    assert_eq!(fake.run(&["blocked"]).code, Some(0));
}

#[test]
fn nothing_is_blocked_only_when_no_page_has_anything() {
    let fake = Fake::new(|asked| match asked.line.split('?').next().unwrap_or_default() {
        "GET /v1/blocked" => Answer::json(match asked.line.contains("after=") {
            false => json!({ "blocked": [], "after": "q/x" }),
            true => json!({ "blocked": [blocked_row("1")] }),
        }),
        "GET /v1/status" => Answer::json(json!({
            "version": "0.0.1", "state": "ready", "started_at": 0, "definitions": 0, "handlers_running": 0,
        })),
        "GET /v1/definitions" => Answer::json(json!({ "definitions": [] })),
        "GET /v1/queues" => Answer::json(json!({ "queues": [] })),
        "GET /v1/queues/orders" => queue(),
        "GET /readyz" => Answer::text("ready\n"),
        _ => Answer::text("ok\n"),
    });
    let doctor = fake.run(&["doctor"]);
    assert!(doctor.stdout.contains("WARN workflows: 1 does not get on -> seriatim blocked"), "{doctor:?}");
    let shown = fake.run(&["show", "orders"]);
    assert!(shown.stdout.contains("orders/1") && !shown.stdout.contains("nothing of it"), "{shown:?}");
    let shown = fake.run(&["show", "orders", "--json"]).json();
    assert_eq!(shown[0]["blocked"][0]["workflow_id"], "1", "{shown:?}");
    assert_eq!(shown[0]["counts"]["ready"], 3, "{shown:?}");
}

#[test]
fn json_says_of_a_gap_how_many_messages_wait() {
    let fake = Fake::always(json!({
        "workflow_id": "w", "status": "idle", "messages": 3, "early": 3, "set_aside": 0, "dead_letters": 0,
        "has_state": false,
    }));
    let shown = fake.run(&["gap", "show", "orders/w", "--json"]).json();
    assert_eq!((&shown[0]["waiting"], &shown[0]["queue"]), (&json!(3), &json!("orders")), "{shown:?}");
}

fn held_workflow(asked: &str) -> Answer {
    let workflow = json!({
        "workflow_id": "4711", "status": "held", "hold_cause": "exhausted", "held_since": 0, "held_for": 40,
        "reason": "no route", "next_position": 16, "messages": 3, "early": 1, "set_aside": 0, "dead_letters": 0,
        "has_state": true, "state_set_at": 0,
    });
    let attempt = json!({ "delivery_count": 1, "at": 0, "lasted": "1s 200ms", "reason": "connection refused",
            "output": "Traceback:\n  no route\u{1b}[2J", "output_cut_bytes": 9 });
    let message = |number: u64, position: u64, status: &str, attempts: Value| {
        json!({
            "sequence_number": number, "position": position, "status": status, "delivery_count": 8,
            "accepted_at": 0, "attempts": attempts, "subject": "paid",
        })
    };
    let messages = json!({ "messages": [
        message(40, 16, "retry", json!([attempt])), message(41, 17, "ready", json!([])),
        message(42, 19, "early", json!([])),
    ]});
    match asked {
        line if line.contains("/workflow/messages?") => Answer::json(messages),
        line if line.contains("/history?") => Answer::json(json!({ "history": [
            { "number": 7, "at": 0, "ending": "completed", "sequence_number": 39, "workflow_id": "4711",
              "positions": [15, 15], "delivery_count": 4, "reason": "timed out" },
        ]})),
        line if line.contains("/workflow/state?") => Answer::text("{\"total\":18446744073709551616}"),
        _ => Answer::json(workflow),
    }
}

#[test]
fn a_timeline_shows_where_it_stands_why_and_what_helps() {
    let fake = Fake::new(|asked| held_workflow(&asked.line));
    let ran = fake.run(&["show", "orders/4711"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "orders/4711: HELD since 1970-01-01T00:00:00+00:00 (",
        " (exhausted): no route\n",
        "  ..15 done | 16 FAILED 8x, exhausted | 17 waits | 18 MISSING | 19 early\n",
        "  next: nothing, until somebody acts\n",
        "seriatim retry orders/4711 ",
        "seriatim skip orders/4711 --reason ..",
        "  state, set at 1970-01-01T00:00:00+00:00 (",
        "): {\"total\":18446744073709551616}\n",
        "took 1s 200ms  connection refused\n",
        "\nattempt 1 of #40 wrote:\n    [9 bytes of output not kept]\n    Traceback:\n      no route [2J\n",
        "\nended:\nplace  number  ended      handed out  when",
        " timed out\n",
    ] {
        assert!(ran.stdout.contains(words), "{words:?} is not in\n{}", ran.stdout);
    }
    let lines = fake.asked_lines();
    assert_eq!(lines[0], "GET /v1/queues/orders/workflow?id=4711");
    assert!(lines[1].starts_with("GET /v1/queues/orders/workflow/messages?from=0&id=4711&"), "{lines:?}");
    let shown = fake.run(&["show", "orders/4711", "--json"]);
    assert!(shown.stdout.contains("\"state\":{\"total\":18446744073709551616}"), "byte for byte: {shown:?}");
    let shown = shown.json();
    assert_eq!(
        (&shown[0]["workflow"]["status"], &shown[0]["messages"][2]["position"]),
        (&json!("held"), &json!(19))
    );
    assert_eq!(shown[0]["history"][0]["ending"], "completed");
}

#[test]
fn what_has_ended_is_told_with_its_instant_and_its_attempt() {
    let entry = json!({
        "number": 7, "at": 0, "ending": "completed", "sequence_number": 39, "workflow_id": "4711",
        "delivery_count": 4, "reason": "timed out",
    });
    let fake = Fake::new(move |asked| match &asked.line {
        line if line.contains("/history?") => Answer::json(json!({ "history": [entry] })),
        line if line.contains("/workflow/messages?") => Answer::json(json!({ "messages": [] })),
        line if line.contains("/workflow?") => Answer::json(json!({
            "workflow_id": "4711", "status": "ended", "messages": 0, "early": 0, "set_aside": 0,
            "dead_letters": 0, "has_state": false, "ended": entry,
        })),
        _ => Answer::json(json!({
            "sequence_number": 39, "status": "ended", "accepted_at": 0, "delivery_count": 4, "ended": entry,
        })),
    });
    let told = "completed at 1970-01-01T00:00:00+00:00 (";
    let ran = fake.run(&["show", "orders/4711"]);
    assert!(ran.stdout.starts_with(&format!("orders/4711: {told}")), "{ran:?}");
    assert!(ran.stdout.contains("ago), attempt 4\n") && ran.stdout.contains("timed out"), "{ran:?}");
    let ran = fake.run(&["show", "orders#39"]);
    assert!(ran.stdout.starts_with(&format!("orders#39: {told}")), "{ran:?}");
    assert!(ran.stdout.contains("  last error: timed out\n"), "{ran:?}");
}

#[test]
fn a_message_shows_its_body_exactly_and_cannot_command_the_terminal() {
    let body = "{\"id\":18446744073709551616,\"price\":1.10}";
    let json = format!(
        "{{\"sequence_number\":7,\"status\":\"dead_lettered\",\"accepted_at\":0,\"delivery_count\":1,\
          \"dead_letter\":{{\"reason\":\"bad\\u001b[2J\",\"at\":0}},\"body\":{body}}}"
    );
    let fake = Fake::new(move |_| Answer::text(json.clone()));
    let ran = fake.run(&["show", "orders#7"]);
    assert!(ran.stdout.starts_with("orders#7: dead letter\n  reason: bad [2J\n"), "{ran:?}");
    assert!(ran.stdout.contains("      \"id\": 18446744073709551616,\n      \"price\": 1.10\n"), "{ran:?}");
    assert_eq!(fake.asked_lines(), ["GET /v1/queues/orders/messages/7"]);
    assert!(fake.run(&["show", "orders#7", "--json"]).stdout.contains(body));
}

#[test]
fn what_is_not_there_is_refused_in_one_line() {
    for (target, code) in [("orders/4711", "workflow_not_found"), ("orders#7", "message_not_found")] {
        let fake = Fake::new(move |_| Answer::problem(404, code, "no"));
        let ran = fake.run(&["show", target]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.starts_with(&format!("seriatim: cannot show {target}: ")), "{ran:?}");
    }
}

#[test]
fn events_are_printed_as_they_come() {
    let stream = ": alive\n\nevent: held\ndata: {\"event\":\"held\",\"at\":0,\"queue\":\"orders\",\
                  \"workflow_id\":\"4711\",\"hold_cause\":\"gap\",\"reason\":\"late\"}\n\n\
                  event: missed\ndata: {\"missed\":7}\n\n";
    let fake = Fake::new(move |_| Answer::text(stream));
    let ran = fake.run(&["tail", "--queue", "orders"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stdout, "1970-01-01T00:00:00+00:00 HELD orders/4711 cause=gap reason=late\n");
    assert!(ran.stderr.contains("missed 7 events"), "{ran:?}");
    assert_eq!(fake.asked_lines(), ["GET /v1/events?queue=orders"]);
    assert_eq!(fake.run(&["tail", "--json"]).json().len(), 2);
}

#[test]
fn dead_letters_are_counted_by_reason() {
    let letter = |number: u64, reason: &str| json!({ "sequence_number": number, "delivery_count": 1, "reason": reason, "at": 0 });
    let page =
        json!({ "dead_letters": [letter(1, "bad"), letter(4, "bad"), letter(2, "TTLExpiredException")] });
    let fake = Fake::always(page);
    let reasons = fake.run(&["dlq", "orders", "--json"]).json();
    let counts: Vec<_> =
        reasons.iter().map(|reason| (reason["reason"].as_str(), reason["count"].as_u64())).collect();
    assert_eq!(counts, [(Some("TTLExpiredException"), Some(1)), (Some("bad"), Some(2))]);
    let each = fake.run(&["dlq", "orders", "--each", "--error", "bad", "--json"]).json();
    assert_eq!((each.len(), &each[1]["queue"]), (2, &json!("orders")), "{each:?}");
    assert!(fake.run(&["dlq", "orders"]).stdout.starts_with("queue "));
}

/// A queue in order of arrival.
fn queue() -> Answer {
    Answer::queue("arrival")
}

#[test]
fn an_export_is_what_an_import_reads() {
    let message = |number: u64| {
        json!({
            "sequence_number": number, "status": "ready", "accepted_at": 0, "delivery_count": 0, "workflow_id": "w",
            "position": number, "message_id": format!("m{number}"), "body": { "n": number },
        })
    };
    let fake = Fake::new(move |asked| match asked.line.contains("from=3&") {
        _ if asked.line == "GET /v1/queues/orders" => queue(),
        _ if asked.line.contains("/workflows") => Answer::json(json!({ "workflows": [] })),
        false => Answer::json(json!({ "messages": [message(1), message(2)], "from": 3 })),
        true => Answer::json(json!({ "messages": [message(3)] })),
    });
    let exported = fake.run(&["export", "orders"]);
    assert_eq!((exported.code, exported.json().len()), (Some(0), 3), "{exported:?}");
    let target = Fake::new(|asked| {
        if asked.line == "GET /v1/queues/copy" {
            return queue();
        }
        let answer = "{\"sequence_number\":1,\"status\":\"accepted\"}\n";
        Answer::text(answer.repeat(asked.lines().len()))
    });
    let ran = target.run_with(&["import", "copy"], &exported.stdout);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "3 lines: 3 accepted\n"), "{ran:?}");
    let sent: Vec<Value> = target.asked().iter().flat_map(|asked| asked.lines()).collect();
    let expected = json!({ "workflow_id": "w", "position": 2, "message_id": "m2", "body": { "n": 2 } });
    assert_eq!(sent[1], expected);
}

#[test]
fn an_export_that_goes_on_says_where_each_workflow_stands() {
    let workflow = |id: &str, set_aside: u64| {
        json!({ "workflow_id": id, "status": "idle", "next_position": 4, "messages": 0, "early": 0,
            "set_aside": set_aside, "dead_letters": 0, "has_state": false })
    };
    let fake = Fake::new(move |asked| match asked.line.split('?').next().unwrap_or_default() {
        "GET /v1/queues/orders" => Answer::queue("position"),
        "GET /v1/queues/orders/workflows" => {
            Answer::json(json!({ "workflows": [workflow("around", 1), workflow("plain", 0)] }))
        }
        _ => Answer::json(json!({ "messages": [] })),
    });
    // One that had messages set aside in the run that goes on here may have none any more.
    for from in ["1", "3"] {
        let exported = fake.run(&["export", "orders", "--from", from]).json();
        let ids: Vec<&Value> = exported.iter().map(|line| &line["workflow_id"]).collect();
        assert_eq!(ids, ["plain", "around"], "--from {from}");
    }
}

#[test]
fn an_export_is_for_nobody_else_and_one_of_a_name_that_was_mistyped_leaves_no_file() {
    let fake = Fake::new(|asked| match asked.line.contains("/orders") {
        _ if asked.line == "GET /v1/queues/orders" => queue(),
        _ if asked.line.contains("/workflows") => Answer::json(json!({ "workflows": [] })),
        true => Answer::json(json!({ "messages": [] })),
        false => Answer::problem(404, "queue_not_found", "there is no queue oders"),
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("orders.ndjson");
    let output = path.to_str().expect("a plain name");
    assert_eq!(fake.run(&["export", "oders", "--output", output]).code, Some(1));
    assert!(!path.exists());
    assert_eq!(fake.run(&["export", "orders", "--output", output]).code, Some(0));
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().expect("it is there").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_export_that_cannot_see_where_workflows_stand_fails_and_leaves_no_file() {
    let fake = Fake::new(|asked| match asked.line.as_str() {
        "GET /v1/queues/orders" => Answer::problem(503, "busy", "the server has no room for this now"),
        _ => Answer::json(json!({ "messages": [] })),
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("orders.ndjson");
    let ran = fake.run(&["export", "orders", "--output", path.to_str().expect("a plain name")]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("cannot export orders: ") && ran.stderr.contains("(busy)"), "{ran:?}");
    assert!(!path.exists());
}

#[test]
fn a_backup_is_named_by_us_and_placed_by_the_daemon() {
    let fake = Fake::always(json!({ "path": "/data/backups/copy.redb", "records": 7 }));
    let ran = fake.run(&["backup", "copy.redb"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("7 records in /data/backups/copy.redb"), "{ran:?}");
    assert_eq!(fake.asked()[0].json(), json!({ "path": "copy.redb" }));
    fake.run(&["backup"]);
    assert!(fake.asked()[1].json()["path"].as_str().is_some_and(|name| name.starts_with("seriatim-2")));
}

fn action(number: u64, actor: &str) -> Value {
    json!({ "number": number, "at": 0, "actor": actor, "verb": "skip_head", "queue": "orders", "count": 1 })
}

#[test]
fn what_operators_did_is_listed_page_by_page() {
    let fake = Fake::new(|asked| match asked.line.contains("after=") {
        false => Answer::json(json!({ "actions": [action(1, "anna")], "after": "1" })),
        true => Answer::json(json!({ "actions": [action(2, "bert")] })),
    });
    let actions = fake.run(&["audit", "--json"]).json();
    assert_eq!((actions.len(), &actions[1]["actor"]), (2, &json!("bert")));
    assert_eq!(fake.asked_lines()[1], "GET /v1/audit?after=1&limit=99");
}

#[test]
fn a_doctor_says_what_is_wrong_and_what_to_do() {
    let fake = Fake::new(|asked| match asked.line.split('?').next().unwrap_or_default() {
        "GET /v1/status" => Answer::json(json!({
            "version": "0.0.1", "state": "ready", "started_at": 0, "definitions": 1, "handlers_running": 0,
            "file_bytes": 1_056_768,
        })),
        "GET /v1/definitions" => Answer::json(json!({ "definitions": [{
            "queue": "orders", "file": "orders.toml", "handlers": [], "paused": false, "schedules": 0,
            "loaded_at": 0, "problem": "line 3: unknown field",
        }]})),
        "GET /v1/blocked" => Answer::json(json!({ "blocked": [blocked_row("1")] })),
        "GET /v1/queues" => Answer::json(json!({ "queues": [] })),
        "GET /readyz" => Answer::text("ready\n"),
        _ => Answer::text("ok\n"),
    });
    let ran = fake.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for words in [
        "ok   reachable: ",
        "WARN version: ",
        "ok   ready: ",
        "ok   clock: ",
        "ok   store: its file has 1.0 MiB",
        "ok   dead letters: none",
        "FAIL definitions: orders.toml: line 3: unknown field -> ",
        "WARN workflows: 1 does not get on -> seriatim blocked",
    ] {
        assert!(ran.stdout.contains(words), "{words:?} is not in\n{}", ran.stdout);
    }
    let findings = fake.run(&["doctor", "--json"]).json();
    assert!(findings.iter().all(|finding| finding["check"].is_string() && finding["verdict"].is_string()));
}
