//! Everything that can be done: what it would come to is shown first, only our own forms do it, and it is written down.

use serde_json::Value;
use serde_json::json;

use crate::page::fixture::Fixture;
use crate::page::fixture::encoded;
use crate::page::fixture::hidden;
use crate::page::stock::DEFINED;

async fn fixture() -> Fixture {
    let fixture = Fixture::open(&[DEFINED]).await;
    fixture.create("orders").await;
    fixture
}

#[tokio::test]
async fn an_action_is_reviewed_without_being_done_and_then_done_and_written_down() {
    let fixture = fixture().await;
    fixture.stall("orders", "order-1").await;
    let mut browser = fixture.browser();
    let plan = "do=skip&queue=orders&id=order-1&back=blocked";
    let review = browser.screen(&format!("review?{plan}")).await;
    let number = fixture.workflow("orders", "order-1").await["sequence_number"].clone();
    assert!(review.contains(&format!("Message {number} is dead-lettered; 3 wait behind it")), "{review}");
    assert_eq!(fixture.workflow("orders", "order-1").await["dead_letters"], 0);
    let unexplained = browser.act(plan, None).await;
    assert_eq!(unexplained.status, 422, "{}", unexplained.text());
    let done = browser.act(plan, Some("the customer is gone")).await;
    assert_eq!((done.status, done.header("location")), (303, Some("blocked")));
    assert_eq!(fixture.workflow("orders", "order-1").await["dead_letters"], 1);
    let entry = fixture.audited().await;
    assert_eq!((&entry["verb"], &entry["reason"]), (&json!("skip_head"), &json!("the customer is gone")));
    assert_eq!(entry["actor"], "local");
    let told = browser.screen("blocked").await;
    assert!(told.contains("Skip, workflow order-1 of orders"), "what was done is told once: {told}");
    assert!(!browser.screen("blocked").await.contains("Skip, workflow order-1 of orders"));
    assert!(browser.screen("audit").await.contains("the customer is gone"));
}

#[tokio::test]
async fn a_workflow_is_held_resumed_retried_released_and_purged() {
    let fixture = fixture().await;
    fixture.fail("orders", "w", "busy").await;
    let mut browser = fixture.browser();
    let status = async |expected: &str| {
        assert_eq!(fixture.workflow("orders", "w").await["status"], expected);
    };
    browser.act("do=hold&queue=orders&id=w", Some("wait")).await;
    status("held").await;
    browser.act("do=resume&queue=orders&id=w", None).await;
    status("blocked").await;
    browser.act("do=retry&queue=orders&id=w", None).await;
    status("ready").await;
    fixture.receive("orders").await;
    status("locked").await;
    browser.act("do=release_lock&queue=orders&id=w", None).await;
    assert_ne!(fixture.workflow("orders", "w").await["status"], "locked");
    let purged =
        browser.act("do=purge&queue=orders&id=w&back=workflow?queue=orders", Some("a test order")).await;
    assert_eq!(purged.header("location"), Some("./"), "its screen is gone");
    assert_eq!(fixture.count("orders", "stored").await, 0);
}

#[tokio::test]
async fn a_gap_is_given_up_or_declared_void() {
    let fixture = fixture().await;
    let mut browser = fixture.browser();
    for id in ["a", "b"] {
        fixture.send("orders", id, 4, "{}").await;
    }
    browser.act("do=skip_gap&queue=orders&id=a", Some("never sent")).await;
    assert_eq!(fixture.workflow("orders", "a").await["status"], "ready");
    let asked = browser.screen("review?do=void&queue=orders&id=b").await;
    assert!(asked.contains("name=\"from\"") && asked.contains("See what would be done"));
    let blocked = browser.screen("blocked").await;
    assert!(blocked.contains("do=void&amp;queue=orders&amp;id=b&amp;from=1&amp;to=3"), "{blocked}");
    browser.act("do=void&queue=orders&id=b&from=1&to=3", Some("never sent")).await;
    assert_eq!(fixture.workflow("orders", "b").await["status"], "ready");
}

#[tokio::test]
async fn dead_letters_are_put_back_one_by_one_and_together_and_discarded() {
    let fixture = fixture().await;
    let mut browser = fixture.browser();
    for (id, reason) in [("a", "one"), ("b", "two"), ("c", "two"), ("d", "three")] {
        fixture.bury("orders", id, reason, "").await;
    }
    let dead = || fixture.count("orders", "dead_lettered");
    let plan = format!("do=redrive&queue=orders&number={}", fixture.first("orders").await);
    // Its workflow has gone past its place, which the review says: it comes back at a new one.
    let refused = browser.screen(&format!("review?{plan}")).await;
    assert!(refused.contains("Nothing can be done"), "{refused}");
    browser.act(&format!("{plan}&position=2"), None).await;
    assert_eq!(dead().await, 3);
    let review = browser.screen("review?do=redrive_many&queue=orders&dead_letter_reason=two").await;
    assert!(review.contains("2 refusals"), "{review}");
    // While it is held, what is put back returns to its own place.
    fixture.create("held").await;
    fixture.fail("held", "h", "busy").await;
    let skip = r#"{"reason":"to be put back"}"#;
    fixture.api("POST", "/queues/held/workflow/hold?id=h", "{}").await;
    fixture.api("POST", "/queues/held/workflow/skip?id=h", skip).await;
    let review = browser.screen("review?do=resume_and_redrive&queue=held&id=h").await;
    assert!(review.contains("put back in place"), "{review}");
    let discarded = browser.act("do=purge_letters&queue=orders&back=dead-letters", Some("a test")).await;
    assert_eq!((discarded.header("location"), dead().await), (Some("dead-letters"), 0));
}

#[tokio::test]
async fn what_is_meant_may_have_several_lines() {
    let fixture = fixture().await;
    fixture.create("held").await;
    fixture.bury("held", "a\nb", "first\nsecond", "").await;
    fixture.fail("orders", "c\nd", "busy").await;
    let mut browser = fixture.browser();
    let hold = format!("do=hold&queue=orders&id={}", encoded("c\nd"));
    browser.act(&hold, Some("wait")).await;
    assert_eq!(fixture.workflow("orders", "c\nd").await["status"], "held");
    let picked = browser.screen("blocked").await;
    assert!(picked.contains("value=\"orders/c%0Ad\""), "{picked}");
    let token = browser.token("blocked").await;
    let fields = [("form_token", token.as_str()), ("do", "resume"), ("pick", "orders/c%0Ad")];
    let review = browser.post("review", &fields).await.text();
    assert!(review.contains("What would be done"), "{review}");
    let plan = format!("do=redrive_many&queue=held&dead_letter_reason={}", encoded("first\nsecond"));
    fixture.api("POST", &format!("/queues/held/workflow/hold?id={}", encoded("a\nb")), "{}").await;
    let done = browser.act(&plan, Some("mended")).await;
    assert!(done.status < 400, "{}", done.text());
    assert_eq!(fixture.count("held", "dead_lettered").await, 0, "{}", done.text());
}

#[tokio::test]
async fn a_dead_letter_is_edited_and_goes_back_and_its_original_is_kept() {
    let fixture = fixture().await;
    let body = "{\n  \"iban\": \"DE\",\n  \"cents\": 18446744073709551616\n}";
    fixture.send("orders", "w", 1, body).await;
    fixture.settle("orders", "dead_letter", json!({ "reason": "invalid", "description": "no IBAN" })).await;
    fixture.api("POST", "/queues/orders/workflow/hold?id=w", "{}").await;
    let number = fixture.first("orders").await;
    let mut browser = fixture.browser();
    let message = format!("message?queue=orders&number={number}");
    assert!(browser.screen(&message).await.contains(&format!("edit?queue=orders&amp;number={number}")));
    let form = browser.screen(&format!("edit?queue=orders&number={number}")).await;
    assert!(form.contains("18446744073709551616") && form.contains("textarea"), "{form}");
    let token = browser.token(&format!("edit?queue=orders&number={number}")).await;
    let edited = body.replace("DE", "DE02");
    let text = number.to_string();
    let fields = [("form_token", token.as_str()), ("do", "edit"), ("queue", "orders"), ("number", &text)];
    let review = browser.post("review", &[&fields[..], &[("body", &edited)]].concat()).await.text();
    assert!(review.contains("DE02") && review.contains("It returns to its own place"), "{review}");
    assert!(!review.contains("cents</pre>"), "only what differs is shown: {review}");
    assert_eq!(fixture.count("orders", "dead_lettered").await, 1);
    assert_eq!(browser.post("review", &[&fields[1..], &[("body", "x")]].concat()).await.status, 403);
    let confirmed = hidden(&review);
    let mut confirmed: Vec<(&str, &str)> =
        confirmed.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    confirmed.push(("reason", "the IBAN was cut"));
    assert_eq!(browser.post("act", &confirmed).await.status, 303);
    let entry = fixture.audited().await;
    assert_eq!((&entry["verb"], &entry["reason"]), (&json!("edit_and_redrive"), &json!("the IBAN was cut")));
    let letters = fixture.api("GET", "/queues/orders/dead_letters", "").await["dead_letters"].clone();
    assert_eq!((letters.as_array().map(Vec::len), &letters[0]["reason"]), (Some(1), &json!("edited")));
    let original =
        browser.screen(&format!("message?queue=orders&number={}", letters[0]["sequence_number"])).await;
    assert!(original.contains("this is how it was") && !original.contains("do=redrive"), "{original}");
    fixture.api("POST", "/queues/orders/workflow/resume?id=w", "{}").await;
    fixture.receive("orders").await;
    let sent = browser.get(&format!("body?queue=orders&number={number}")).await.text();
    assert_eq!(
        sent.split_whitespace().collect::<String>(),
        r#"{"iban":"DE02","cents":18446744073709551616}"#
    );
    let all = r#"{"all":true}"#;
    let left = fixture.api("POST", "/queues/orders/dead_letters/redrive", all).await;
    assert_eq!(left["matched"], 0, "an original is not put back with all others: {left}");
}

#[tokio::test]
async fn a_scheduled_message_is_cancelled_and_a_schedule_is_run() {
    let fixture = fixture().await;
    let mut browser = fixture.browser();
    let headers = [
        ("seriatim-workflow-id", "w"),
        ("seriatim-position", "1"),
        ("seriatim-schedule-at", "2099-01-01T00:00:00Z"),
    ];
    fixture.api_as("POST", "/queues/orders/messages", "{}", &headers).await;
    assert_eq!(fixture.count("orders", "scheduled").await, 1);
    let number = fixture.first("orders").await;
    browser.act(&format!("do=cancel&queue=orders&number={number}&back=overview"), None).await;
    assert_eq!(fixture.count("orders", "scheduled").await, 0);
    browser.act("do=pause&queue=defined&back=overview", None).await;
    assert!(browser.screen("overview").await.contains("handlers paused"));
    assert!(browser.screen("schedules").await.contains("do=run_now"));
    browser.act("do=run_now&queue=defined&schedule=nightly", Some("it was missed")).await;
    let sent = fixture.api("GET", "/queues/defined/messages", "").await["messages"][0].clone();
    assert_eq!(sent["properties"]["seriatim-run-by"], "local", "{sent}");
    let entry = fixture.audited().await;
    assert_eq!((&entry["verb"], &entry["workflow_id"]), (&json!("run_schedule"), &json!("tick")), "{entry}");
    assert_eq!(entry["reason"], "schedule nightly: it was missed");
    browser.act("do=unpause&queue=defined&back=overview", None).await;
    assert!(!browser.screen("overview").await.contains("handlers paused"));
    let reloaded = browser.act("do=reload&back=definitions", None).await;
    assert_eq!(reloaded.header("location"), Some("definitions"));
}

/// A form that holds the workflow `w`.
fn hold_form(token: &str) -> [(&'static str, &str); 4] {
    [("do", "hold"), ("queue", "orders"), ("id", "w"), ("form_token", token)]
}

#[tokio::test]
async fn a_form_that_is_not_ours_does_nothing() {
    let fixture = fixture().await;
    fixture.fail("orders", "w", "busy").await;
    let mut browser = fixture.browser();
    let token = browser.token("review?do=hold&queue=orders&id=w").await;
    for wrong in ["", "0000", &token[1..]] {
        assert_eq!(browser.post("act", &hold_form(wrong)).await.status, 403, "{wrong:?}");
    }
    // Another browser has another token.
    let mut other = fixture.browser();
    other.get("blocked").await;
    assert_eq!(other.post("act", &hold_form(&token)).await.status, 403);
    assert_eq!(other.get("act").await.status, 405, "nothing is done by following a link");
    for (name, value) in
        [("sec-fetch-site", "cross-site"), ("origin", "http://evil.example"), ("host", "evil.example")]
    {
        let mut foreign = fixture.browser();
        let token = foreign.token("review?do=hold&queue=orders&id=w").await;
        foreign.headers.push((name.to_owned(), value.to_owned()));
        let status = foreign.post("act", &hold_form(&token)).await.status;
        assert!(status == 403 || status == 421, "{name}: {status}");
    }
    assert_eq!(fixture.workflow("orders", "w").await["status"], "blocked");
    assert_eq!(browser.post("act", &hold_form(&token)).await.status, 303);
    assert_eq!(fixture.workflow("orders", "w").await["status"], "held");
}

#[tokio::test]
async fn what_was_selected_is_done_to_each_and_refusals_are_told() {
    let fixture = fixture().await;
    for id in ["a", "b/c", "d"] {
        fixture.fail("orders", id, "busy").await;
    }
    let mut browser = fixture.browser();
    let token = browser.token("blocked").await;
    let picked = [
        ("do", "retry"),
        ("pick", "orders/a"),
        ("pick", "orders/b/c"),
        ("pick", "orders/gone"),
        ("form_token", &token),
    ];
    let review = browser.post("review", &picked).await.text();
    assert!(review.contains("1 refusal") && review.contains("b/c: "), "{review}");
    let done = browser.post("act", &picked).await.text();
    assert!(done.contains("2</span> done, 1 refused") && done.contains("gone"), "{done}");
    assert_eq!(fixture.workflow("orders", "b/c").await["status"], "ready");
    assert_eq!(fixture.workflow("orders", "d").await["status"], "blocked");
    let nothing = [("do", "retry"), ("back", "blocked"), ("form_token", &token)];
    let refused = browser.post("review", &nothing).await;
    assert!(refused.status == 422 && refused.text().contains("nothing is selected"), "{}", refused.text());
}

#[tokio::test]
async fn bulk_work_goes_slice_by_slice_and_goes_on_where_it_stopped() {
    let fixture = fixture().await;
    let lines: Vec<String> = (0..250)
        .map(|number| json!({ "workflow_id": format!("w{number:03}"), "position": 1 }).to_string())
        .collect();
    let headers = [("content-type", "application/x-ndjson")];
    fixture.api_as("POST", "/queues/orders/messages", &lines.join("\n"), &headers).await;
    fixture
        .api("POST", "/queues/orders/operate", r#"{"verb":"hold","filter":{"all":true},"limit":1000}"#)
        .await;
    let mut browser = fixture.browser();
    let plan = "do=resume&queue=orders&cause=held&back=blocked";
    let review = browser.screen(&format!("review?{plan}")).await;
    assert!(review.contains("Resume: 250 workflows"), "{review}");
    let mut answer = browser.act(plan, None).await;
    let mut slices = 1;
    while answer.text().contains("data-go-on") {
        assert!(answer.text().contains(&format!("{}</span> done", slices * 100)), "{}", answer.text());
        let fields = hidden(&answer.text());
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        answer = browser.post("act", &fields).await;
        slices += 1;
    }
    assert!(answer.text().contains("250</span> done, 0 refused"), "{}", answer.text());
    assert_eq!(slices, 3);
    let held = fixture.api("GET", "/queues/orders/workflows?status=held", "").await;
    assert_eq!(held["workflows"], Value::Array(Vec::new()));
}
