//! Very many workflows: every screen stays small, and every row can be reached.

use std::collections::BTreeSet;

use serde_json::json;

use crate::page::fixture::Fixture;

const WORKFLOWS: usize = 100_000;
const BLOCKED: usize = 1_000;

/// Bytes that a screen may have.
const SCREEN_BYTES: usize = 300_000;

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
        let Some(next) = html.split("<p class=\"more\">").nth(1) else { break };
        let next = next.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
        place = next.replace("&amp;", "&");
    }
    // The last is full, and only the one behind it says that there is no more.
    assert_eq!((found.len(), screens), (BLOCKED, BLOCKED / 50 + 1), "no screen is in vain");
}
