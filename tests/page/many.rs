//! Very many workflows and queues: every screen stays small, and every row can be reached.

use std::collections::BTreeSet;

use serde_json::json;

use crate::page::fixture::Fixture;

const WORKFLOWS: usize = 100_000;
const BLOCKED: usize = 1_000;

/// Bytes that a screen may have.
const SCREEN_BYTES: usize = 300_000;

/// Where the link to the next page leads, if there is one.
fn next_page(html: &str) -> Option<String> {
    let more = html.split("<p class=\"more\">").nth(1)?;
    let next = more.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    Some(next.replace("&amp;", "&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn with_100_000_workflows_every_screen_is_small_and_every_blocked_one_is_found() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    // The last thousand wait for predecessors that have never come: who goes through all comes to them last.
    let line = |number: usize| {
        let position = if number >= WORKFLOWS - BLOCKED { 2 } else { 1 };
        json!({ "workflow_id": format!("order-{number:06}-{}", "x".repeat(80)), "position": position })
            .to_string()
    };
    let headers = [("content-type", "application/x-ndjson")];
    for begin in (0..WORKFLOWS).step_by(20_000) {
        let lines: Vec<String> = (begin..begin + 20_000).map(line).collect();
        let answer = fixture.api_as("POST", "/queues/orders/messages", &lines.join("\n"), &headers).await;
        assert_eq!(answer.status, 200);
    }
    let mut browser = fixture.browser();
    for place in [
        "overview",
        "workflows?queue=orders",
        "dead-letters",
        "audit",
        "tail",
        "workflows?queue=orders&prefix=order-0999",
    ] {
        let html = browser.screen(place).await;
        assert!(html.len() < SCREEN_BYTES, "{place} has {} bytes", html.len());
    }
    let (mut place, mut found, mut screens) = ("blocked".to_owned(), BTreeSet::new(), 0);
    loop {
        let html = browser.screen(&place).await;
        assert!(html.len() < SCREEN_BYTES, "{place} has {} bytes", html.len());
        let picks = html.split("name=\"pick\" value=\"orders/").skip(1);
        found.extend(picks.filter_map(|pick| pick.split('"').next().map(str::to_owned)));
        screens += 1;
        let Some(next) = next_page(&html) else { break };
        place = next;
    }
    // The last is full, and only the one behind it says that there is no more.
    assert_eq!((found.len(), screens), (BLOCKED, BLOCKED / 50 + 1), "no screen is in vain");
}

#[tokio::test]
async fn of_51_queues_with_dead_letters_each_is_shown() {
    let fixture = Fixture::open(&[]).await;
    for number in 0..=50 {
        let queue = format!("q{number:02}");
        fixture.create(&queue).await;
        fixture.bury(&queue, "w", "invalid", "no IBAN").await;
    }
    let mut browser = fixture.browser();
    let is_shown = |html: &str, queue: &str| html.contains(&format!("queue={queue}&amp;reason=invalid"));
    let first = browser.screen("dead-letters").await;
    assert!(is_shown(&first, "q49") && !is_shown(&first, "q50"), "{first}");
    let next = browser.screen(&next_page(&first).expect("a link to the next page")).await;
    assert!(is_shown(&next, "q50") && !is_shown(&next, "q49") && next_page(&next).is_none(), "{next}");
    let only = browser.screen("dead-letters?queue=q50").await;
    assert!(is_shown(&only, "q50") && !is_shown(&only, "q00"), "{only}");
}

#[tokio::test]
async fn with_more_queues_than_a_form_offers_it_goes_on_with_the_one_that_is_looked_at() {
    let fixture = Fixture::open(&[]).await;
    for number in 0..=200 {
        fixture.create(&format!("q{number:03}")).await;
    }
    let mut browser = fixture.browser();
    for screen in ["workflows", "blocked", "tail"] {
        let html = browser.screen(&format!("{screen}?queue=q200")).await;
        assert!(html.contains("<option value=\"q200\" selected>"), "{screen}: {html}");
        let html = browser.screen(&format!("{screen}?queue=q100")).await;
        assert_eq!(html.matches("<option value=\"q100\"").count(), 1, "{screen}: {html}");
    }
}
