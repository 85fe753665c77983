//! What screens show, and what they never do: run what somebody has sent, or leave the folder they are in.

use serde_json::json;

use crate::page::fixture::Browser;
use crate::page::fixture::Fixture;
use crate::page::fixture::encoded;
use crate::page::stock::DEFINED;
use crate::page::stock::HOSTILE;

/// Every screen, for a workflow and a message.
fn places(queue: &str, id: &str, number: u64) -> Vec<String> {
    let (queue, id) = (encoded(queue), encoded(id));
    let mut places: Vec<String> = [
        "overview",
        "topics",
        "blocked",
        "workflows",
        "dead-letters",
        "schedules",
        "definitions",
        "audit",
        "tail",
    ]
    .map(str::to_owned)
    .to_vec();
    places.push("topic?name=shop".to_owned());
    places.push(format!("workflows?queue={queue}&prefix={id}"));
    places.push(format!("workflow?queue={queue}&id={id}"));
    places.push(format!("message?queue={queue}&number={number}"));
    places.push(format!("messages?queue={queue}&name={id}&value={id}"));
    places.push(format!("dead-letters?queue={queue}&reason=invalid"));
    places.push(format!("blocked?queue={queue}&cause=retry&text=a"));
    places.push(format!("review?do=hold&queue={queue}&id={id}&back=blocked"));
    places.push(format!("review?do=void&queue={queue}&id={id}"));
    places
}

/// A screen without what its forms send back, which has to stay as it was.
fn without_values(html: &str) -> String {
    let mut parts = html.split(" value=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |html, part| html + part.split_once('"').map_or("", |(_, rest)| rest))
}

async fn hostile() -> Fixture {
    let fixture = Fixture::open(&[DEFINED]).await;
    fixture.create("orders").await;
    let body = "<script>alert(1)</script>\u{202e}\u{0000}";
    fixture.send("orders", HOSTILE, 1, &json!({ HOSTILE: body }).to_string()).await;
    fixture
        .settle(
            "orders",
            "abandon",
            json!({ "retry_after": "1h", "reason": "<script>alert(2)</script>\n\u{202e}x" }),
        )
        .await;
    let rule = json!({ "rules": [{ "name": "large", "filter": "a = '<script>alert(6)</script>\u{202e}'" }] });
    fixture.api("PUT", "/topics/shop", "").await;
    fixture.api("PUT", "/topics/shop/subscriptions/billing", &rule.to_string()).await;
    fixture.bury("orders", "dead", "invalid", "<script>alert(3)</script>").await;
    let hold = format!("/queues/orders/workflow/hold?id={}", encoded("<script>alert(4)</script>"));
    fixture.api("POST", &hold, &json!({ "reason": "<script>alert(5)</script>" }).to_string()).await;
    fixture
}

#[tokio::test]
async fn what_somebody_has_sent_is_shown_as_text_on_every_screen() {
    let fixture = hostile().await;
    let mut browser = fixture.browser();
    for place in places("orders", HOSTILE, fixture.first("orders").await) {
        let html = without_values(&browser.screen(&place).await);
        for forbidden in
            ["<script>alert", "<img", "onerror=alert(1)>&\"", "\u{202e}", "\u{200b}", "javascript:"]
        {
            assert!(!html.contains(forbidden), "{place} has {forbidden:?}: {html}");
        }
    }
    let blocked = browser.screen("blocked").await;
    assert!(blocked.contains("&lt;img src=x") && blocked.contains("\u{27e8}U+202E\u{27e9}"), "{blocked}");
}

#[tokio::test]
async fn a_topic_shows_what_its_subscriptions_get_and_what_waits_in_them() {
    let fixture = Fixture::open(&[]).await;
    let mut browser = fixture.browser();
    assert!(browser.screen("topics").await.contains("No topics."));
    let rules = json!({ "rules": [
        { "name": "large", "filter": "amount > 100", "action": "SET size = 'large'" },
        { "name": "orders", "correlation": { "subject": "order" } },
    ] });
    fixture.api("PUT", "/topics/shop", "").await;
    fixture.api("PUT", "/topics/shop/subscriptions/billing", &rules.to_string()).await;
    fixture.api("PUT", "/topics/shop/subscriptions/none", &json!({ "rules": [] }).to_string()).await;
    fixture.api("POST", "/topics/shop/messages", "{}").await;
    let list = browser.screen("topics").await;
    assert!(list.contains("topic?name=shop"), "{list}");
    let topic = browser.screen("topic?name=shop").await;
    for shown in [
        "amount &gt; 100",
        "SET size = 'large'",
        "subject = &quot;order&quot;",
        "workflows?queue=shop%2Fsubscriptions%2Fbilling",
        "No rules: it gets nothing.",
        "2 subscriptions",
    ] {
        assert!(topic.contains(shown), "{shown:?} is missing: {topic}");
    }
    assert_eq!(browser.get("topic?name=missing").await.status, 404);
}

#[tokio::test]
async fn nothing_runs_on_a_screen_but_the_one_script_and_no_page_can_frame_it() {
    let fixture = hostile().await;
    let mut browser = fixture.browser();
    for place in places("orders", HOSTILE, fixture.first("orders").await) {
        let answer = browser.get(&place).await;
        let policy = answer.header("content-security-policy").expect("a policy").to_owned();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let html = answer.text();
        assert_eq!(html.matches("<script").count(), 1, "{place}");
        for inline in [" style=", "<style", " onclick=", " onload=", " onsubmit="] {
            assert!(!html.contains(inline), "{place} has {inline}");
        }
    }
}

/// The addresses that a screen leads to.
fn links(html: &str) -> Vec<String> {
    let of = |name: &str| {
        let begin = format!(" {name}=\"");
        let parts = html.split(&begin).skip(1);
        parts.filter_map(|part| part.split('"').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    ["href", "src", "action"].into_iter().flat_map(of).collect()
}

#[tokio::test]
async fn every_link_works_behind_any_prefix_of_a_proxy() {
    let fixture = hostile().await;
    let mut browser = fixture.browser();
    for place in places("orders", HOSTILE, fixture.first("orders").await) {
        let found = links(&browser.screen(&place).await);
        assert!(found.len() > 5, "{place}: {found:?}");
        for link in found.iter().filter(|link| !link.starts_with('#')) {
            let name = link.split('?').next().expect("a link has a beginning");
            assert!(!link.starts_with(['/', '.']) || link == "./", "{place} leads to {link}");
            assert!(!name.contains(':') && !name.contains(".."), "{place} leads to {link}");
        }
    }
    for (place, expected) in [("", ["overview", "blocked"]), ("login", ["./", "./"])] {
        let answer = browser.get(place).await;
        let location = answer.header("location").expect("it leads on");
        assert!(answer.status == 303 && expected.contains(&location), "{place} leads to {location}");
    }
}

#[tokio::test]
async fn the_picture_of_a_workflow_explains_itself() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    fixture.stall("orders", "order-4711").await;
    let mut browser = fixture.browser();
    let html = browser.screen("workflow?queue=orders&id=order-4711").await;
    let line =
        html.split("<ol class=\"strip\"").nth(1).and_then(|rest| rest.split("</ol>").next()).expect("a line");
    let mut from = 0;
    for told in [
        "15",
        "done",
        "16",
        "failed 3\u{d7}",
        "again ",
        "17",
        "waits",
        "18",
        "19",
        "never came",
        "20",
        "early",
    ] {
        let at = line[from..].find(told).unwrap_or_else(|| panic!("{told} is not in order in {line}"));
        from += at + told.len();
    }
    for told in ["bank is closed", "Tried again", "<svg"] {
        assert!(html.contains(told), "{told} is missing");
    }
    let message = browser.screen("message?queue=orders&number=16").await;
    assert!(message.contains("18446744073709551616"), "numbers stay exact");
    assert_eq!(message.matches("bank is closed").count(), 3, "every attempt is told");
}

/// Waits until what stands still is known, which an event says.
async fn until_blocked(browser: &mut Browser) -> String {
    for _ in 0..10_000 {
        let answer = browser.get("").await;
        if answer.header("location") == Some("blocked") {
            return browser.screen("blocked").await;
        }
        tokio::task::yield_now().await;
    }
    panic!("nothing is known to be blocked");
}

#[tokio::test]
async fn the_home_is_what_is_stuck_and_else_the_overview() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    let mut browser = fixture.browser();
    assert_eq!(browser.get("").await.header("location"), Some("overview"));
    fixture.fail("orders", "order-1", "connection refused").await;
    let html = until_blocked(&mut browser).await;
    for told in ["order-1", "connection refused", "Tried again", "1 here"] {
        assert!(html.contains(told), "{told} is missing: {html}");
    }
    let other = browser.screen("blocked?text=somewhere%20else").await;
    assert!(!other.contains("order-1") && other.contains("Nothing stands still that this finds"));
    assert!(browser.screen("blocked?text=refused&cause=retry&queue=orders").await.contains("order-1"));
}

#[tokio::test]
async fn a_page_without_a_screen_says_so_as_a_page() {
    let fixture = Fixture::open(&[]).await;
    let mut browser = fixture.browser();
    for place in
        ["nowhere", "workflow?queue=none&id=x", "message?queue=none&number=1", "review?do=explode", "review"]
    {
        let answer = browser.get(place).await;
        assert!((400..500).contains(&answer.status), "{place}: {}", answer.status);
        assert!(answer.text().contains("role=\"alert\"") && answer.text().contains("</nav>"), "{place}");
    }
}

#[tokio::test]
async fn a_body_is_downloaded_as_it_is_and_never_looked_into() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    let body = format!("<html>{}", "x".repeat(900_000));
    let headers = [("seriatim-workflow-id", "w"), ("seriatim-position", "1"), ("content-type", "text/html")];
    fixture.api_as("POST", "/queues/orders/messages", &body, &headers).await;
    let mut browser = fixture.browser();
    let answer = browser.get("body?queue=orders&number=1").await;
    assert_eq!(
        (answer.header("content-type"), answer.text() == body),
        (Some("application/octet-stream"), true)
    );
    assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"message-1\""));
    let screen = browser.screen("message?queue=orders&number=1").await;
    assert!(screen.len() < 300_000 && screen.contains("Only the beginning is shown"), "{}", screen.len());
}

#[tokio::test]
async fn dead_letters_of_one_kind_stand_together() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    for number in 1..=3 {
        fixture
            .bury("orders", &format!("w{number}"), "invalid", &format!("order {number} costs {number}0"))
            .await;
    }
    fixture.bury("orders", "w9", "invalid", "no such customer").await;
    let groups = fixture.api("GET", "/queues/orders/dead_letters/groups", "").await;
    let letters: Vec<_> =
        groups["groups"].as_array().expect("groups").iter().map(|group| &group["dead_letters"]).collect();
    assert_eq!(letters, [&json!(3), &json!(1)]);
    let html = fixture.browser().screen("dead-letters").await;
    assert!(html.contains("order 1 costs 10") && html.contains("no such customer"), "{html}");
    assert!(!html.contains("order 2 costs 20"), "a group is one row");
}
