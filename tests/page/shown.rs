//! What the daemon was told to show, or to hide: its environment, traces, values; and what operators did.

use serde_json::json;

use crate::page::fixture::Fixture;
use crate::page::fixture::encoded;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[tokio::test]
async fn the_environment_is_a_badge_on_every_screen_and_a_trace_is_a_link() {
    let fixture = Fixture::open_with(&[], |options, _| {
        options.environment = Some("produ<ction:red".parse().expect("an environment"));
        options.trace_url = Some("https://traces.example/t/{trace_id}".parse().expect("an address"));
    })
    .await;
    fixture.create("orders").await;
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    for (position, parent) in [("1", parent.as_str()), ("2", "00-\"><script>-1-1")] {
        let headers = [
            ("seriatim-workflow-id", "w"),
            ("seriatim-position", position),
            ("seriatim-property-traceparent", &encoded(parent)),
        ];
        assert!(fixture.api_as("POST", "/queues/orders/messages", "{}", &headers).await.status < 300);
    }
    let status = fixture.api("GET", "/status", "").await;
    assert_eq!(status["environment"], json!({ "name": "produ<ction", "colour": "red" }));
    let mut browser = fixture.browser();
    for place in ["overview", "blocked", "workflow?queue=orders&id=w", "audit"] {
        let html = browser.screen(place).await;
        assert!(
            html.contains("class=\"environment red\"") && html.contains("produ&lt;ction"),
            "{place}: {html}"
        );
    }
    let first = fixture.first("orders").await;
    let html = browser.screen(&format!("message?queue=orders&number={first}")).await;
    let link = format!("<a href=\"https://traces.example/t/{TRACE}\" rel=\"noreferrer\">{TRACE}</a>");
    assert!(html.contains(&link), "{html}");
    let html = browser.screen(&format!("message?queue=orders&number={}", first + 1)).await;
    assert!(!html.contains("traces.example") && !html.contains("<script>-"), "{html}");
}

const REDACTED: (&str, &str) = (
    "cards.toml",
    "order = \"arrival\"\nredact = [\"/card/number\", \"/lines/*/iban\", { property = \"token\" }, { header = \"subject\" }]\n",
);

#[tokio::test]
async fn what_a_definition_redacts_is_hidden_on_the_page_and_not_in_the_api() {
    let fixture = Fixture::open(&[REDACTED]).await;
    let body = r#"{"card":{"number":"4111"},"lines":[{"iban":"DE02"},{"n":18446744073709551616}],"id":7}"#;
    let headers = [
        ("content-type", "application/json"),
        ("seriatim-property-token", "hush"),
        // As an endpoint keeps what a sender has said in another way.
        ("seriatim-property-seriatim-amqp", "token: hush"),
        ("seriatim-subject", "whisper"),
    ];
    for text in [body, "card=4111"] {
        assert!(fixture.api_as("POST", "/queues/cards/messages", text, &headers).await.status < 300);
    }
    let mut browser = fixture.browser();
    let first = fixture.first("cards").await;
    let html = browser.screen(&format!("message?queue=cards&number={first}")).await;
    for hidden in ["4111", "DE02", "hush", "whisper"] {
        assert!(!html.contains(hidden), "{hidden}: {html}");
    }
    assert!(html.contains("18446744073709551616") && html.contains("Some of it is hidden"), "{html}");
    let html = browser.screen(&format!("message?queue=cards&number={}", first + 1)).await;
    assert!(!html.contains("4111") && html.contains("this one is no JSON"), "{html}");
    assert_eq!(browser.get(&format!("body?queue=cards&number={first}")).await.status, 403);
    fixture.settle("cards", "dead_letter", json!({ "reason": "bad" })).await;
    assert_eq!(browser.get(&format!("edit?queue=cards&number={first}")).await.status, 403);
    let told = fixture.api("GET", &format!("/queues/cards/messages/{first}"), "").await;
    assert_eq!(told["body"]["card"]["number"], "4111");
    let redact = &fixture.api("GET", "/queues/cards", "").await["redact"];
    assert_eq!((&redact[0]["pointer"], &redact[2]["property"]), (&json!("/card/number"), &json!("token")));
}

#[tokio::test]
async fn what_operators_did_to_a_workflow_stands_on_its_screen() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    fixture.fail("orders", "w", "busy").await;
    fixture.fail("orders", "other", "busy").await;
    let mut browser = fixture.browser();
    let place = "workflow?queue=orders&id=w";
    assert!(!browser.screen(place).await.contains("What operators did"));
    browser.act("do=hold&queue=orders&id=w", Some("look at it first")).await;
    browser.act("do=hold&queue=orders&id=other", Some("not this one")).await;
    let html = browser.screen(place).await;
    assert!(
        html.contains("What operators did") && html.contains("hold by local: look at it first"),
        "{html}"
    );
    assert!(!html.contains("not this one"), "{html}");
    browser.act("do=resume&queue=orders&id=w", None).await;
    browser.act("do=skip&queue=orders&id=w", Some("a wrong order")).await;
    let number =
        fixture.api("GET", "/queues/orders/dead_letters", "").await["dead_letters"][0]["sequence_number"]
            .clone();
    browser.act(&format!("do=redrive&queue=orders&number={number}&position=2"), Some("mended")).await;
    let acts = fixture.api("GET", "/queues/orders/workflow/audit?id=w", "").await["actions"].clone();
    let verbs: Vec<&str> =
        acts.as_array().into_iter().flatten().filter_map(|act| act["verb"].as_str()).collect();
    assert_eq!(verbs, ["redrive", "skip_head", "resume", "hold"], "newest first: {acts}");
    let none = fixture.api("GET", "/queues/orders/workflow/audit?id=nobody", "").await;
    assert_eq!(none["actions"], json!([]));
}

#[tokio::test]
async fn a_queue_is_purged_after_a_review_with_a_reason() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    fixture.send("orders", "w", 1, "{}").await;
    let mut browser = fixture.browser();
    assert!(browser.screen("overview").await.contains("do=purge_queue&amp;queue=orders"));
    let plan = "do=purge_queue&queue=orders&back=overview";
    assert!(browser.screen(&format!("review?{plan}")).await.contains("Removed for good: 1 message"));
    assert_eq!(browser.act(plan, None).await.status, 422);
    assert_eq!(fixture.count("orders", "stored").await, 1);
    browser.act(plan, Some("a test")).await;
    assert_eq!(fixture.count("orders", "stored").await, 0);
}

#[tokio::test]
async fn messages_are_found_by_a_property_or_a_header_page_by_page() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("orders").await;
    let line = |number: u64| {
        let tenant = if number.is_multiple_of(40) { "blue" } else { "red" };
        json!({ "workflow_id": format!("w{number}"), "position": 1, "subject": format!("s{}", number % 7),
            "properties": { "tenant": tenant, "number": number } })
        .to_string()
    };
    let lines: Vec<String> = (0..2_400).map(line).collect();
    let headers = [("content-type", "application/x-ndjson")];
    fixture.api_as("POST", "/queues/orders/messages", &lines.join("\n"), &headers).await;
    let (mut from, mut found) = (0, 0);
    let mut answers = 0;
    loop {
        let path = format!("/queues/orders/messages?property=tenant%3Dblue&limit=1000&from={from}");
        let page = fixture.api("GET", &path, "").await;
        found += page["messages"].as_array().expect("messages").len();
        answers += 1;
        let Some(next) = page["from"].as_u64() else { break };
        from = next;
    }
    assert_eq!((found, answers), (60, 2), "one request looks at 2,000");
    let one = fixture.api("GET", "/queues/orders/messages?property=number%3D80&subject=s3", "").await;
    assert_eq!(one["messages"][0]["workflow_id"], "w80", "{one}");
    let wrong = fixture.api_as("GET", "/queues/orders/messages?property=tenant", "", &[]).await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    let mut browser = fixture.browser();
    assert!(browser.screen("workflows?queue=orders").await.contains("action=\"messages\""));
    let html = browser.screen("messages?queue=orders&by=&name=number&value=2399").await;
    assert!(html.contains("w2399") && !html.contains("w2398"), "{html}");
    let html = browser.screen("messages?queue=orders&by=subject&name=&value=s3").await;
    assert!(html.contains("Next page") && html.matches("<tr>").count() == 51, "{html}");
    assert!(browser.screen("messages?queue=orders&name=number&value=x").await.contains("no such message"));
}

#[tokio::test]
async fn a_queue_that_is_named_as_the_daemons_own_begin_is_operated_as_any_other() {
    let fixture = Fixture::open(&[]).await;
    fixture.create("seriatim.test").await;
    let html = fixture.browser().screen("overview").await;
    assert!(html.contains("href=\"tail?queue=seriatim.test\""), "{html}");
    assert!(
        !html.contains("tail?queue=seriatim.schedules"),
        "what the daemon keeps is only looked at: {html}"
    );
}
