//! `cancel` and `reschedule`: what each asks of the daemon, and what it says of the answer.

use serde_json::json;

use crate::cli::fake::Answer;
use crate::cli::fake::Fake;
use crate::cli::fake::Ran;

/// A daemon that does what it is asked.
fn willing() -> Fake {
    Fake::new(|_| Answer::empty())
}

fn said(ran: &Ran) -> (Option<i32>, &str, &str) {
    (ran.code, ran.stdout.as_str(), ran.stderr.as_str())
}

#[test]
fn a_cancelled_message_gives_its_place_back_unless_it_is_to_be_void() {
    for (arguments, line, words, void) in [
        (
            &["cancel", "orders#7"][..],
            "DELETE /v1/queues/orders/messages/7",
            "orders#7 is cancelled; a place it had in its workflow is free again\n",
            false,
        ),
        (
            &["cancel", "orders#7", "--void"],
            "DELETE /v1/queues/orders/messages/7?void=true",
            "orders#7 is cancelled; a place it had in its workflow is settled\n",
            true,
        ),
    ] {
        let fake = willing();
        assert_eq!(said(&fake.run(arguments)), (Some(0), words, ""), "{arguments:?}");
        let ran = fake.run(&[arguments, &["--json"]].concat());
        assert_eq!(
            (ran.code, ran.json()),
            (Some(0), vec![json!({ "cancelled": 7, "void": void })]),
            "{ran:?}"
        );
        assert_eq!(fake.asked_lines(), [line, line]);
    }
}

#[test]
fn a_rescheduled_message_comes_at_the_instant_that_is_named() {
    let fake = willing();
    let ran = fake.run(&["reschedule", "orders#7", "--at", "2999-01-31T13:00:00+01:00"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.starts_with("orders#7 comes at 2999-01-31T12:00:00+00:00 (in "), "{ran:?}");
    let ran = fake.run(&["reschedule", "orders#7", "--at", "2020-01-31T12:00:00Z"]);
    assert!(ran.stdout.starts_with("orders#7 is ready: 2020-01-31T12:00:00+00:00 ("), "{ran:?}");
    let ran = fake.run(&["reschedule", "orders#7", "--at", "2999-01-31T12:00:00Z", "--json"]);
    let line = json!({ "rescheduled": 7, "at": "2999-01-31T12:00:00.000Z" });
    assert_eq!((ran.code, ran.json()), (Some(0), vec![line]), "{ran:?}");
    assert_eq!(fake.asked_lines(), ["POST /v1/queues/orders/messages/7/reschedule"; 3]);
    let asked: Vec<_> = fake.asked().iter().map(|asked| asked.json()["at"].clone()).collect();
    assert_eq!(asked, ["2999-01-31T12:00:00.000Z", "2020-01-31T12:00:00.000Z", "2999-01-31T12:00:00.000Z"]);
}

#[test]
fn what_is_not_scheduled_any_more_is_refused_with_the_reason() {
    let why = "message 7 is not scheduled: it never was, its instant has come, or it was cancelled";
    let fake = Fake::new(move |_| Answer::problem(404, "not_scheduled", why));
    for (arguments, what) in [
        (&["cancel", "orders#7"][..], "cancel"),
        (&["cancel", "orders#7", "--void", "--json"], "cancel"),
        (&["reschedule", "orders#7", "--at", "2999-01-31T12:00:00Z", "--json"], "reschedule"),
    ] {
        let complaint = format!("seriatim: cannot {what} orders#7: {why} (not_scheduled)\n");
        assert_eq!(said(&fake.run(arguments)), (Some(1), "", complaint.as_str()), "{arguments:?}");
    }
}

#[test]
fn a_target_or_an_instant_that_is_none_asks_nothing_of_the_daemon() {
    let fake = willing();
    for arguments in [
        &["cancel", "orders"][..],
        &["cancel", "orders/7"],
        &["cancel", "orders#seven"],
        &["reschedule", "orders#7"],
        &["reschedule", "orders#7", "--at", "tomorrow"],
    ] {
        let ran = fake.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    }
    assert!(fake.asked_lines().is_empty());
}
