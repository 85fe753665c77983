//! Where keys are configured: a key is shown once, and everybody sees and does what their key allows.

use std::path::Path;

use crate::page::fixture::Browser;
use crate::page::fixture::Fixture;

pub(crate) const OWNER: &str = "owner-key-000000000000000000000000000000000000000";
const READER: &str = "reader-key-00000000000000000000000000000000000000";
const SENDER: &str = "sender-key-00000000000000000000000000000000000000";
const SHOP: &str = "shop-key-0000000000000000000000000000000000000000";

fn write_keys(path: &Path) {
    let key = |name: &str, key: &str, rights: &str, queues: &str| {
        let file = format!("{name}.key");
        std::fs::write(path.with_file_name(&file), key).expect("the folder can be written");
        format!(
            "[[key]]\nname = \"{name}\"\nkey_file = \"{file}\"\nrights = [\"{rights}\"]\nqueues = [\"{queues}\"]\n"
        )
    };
    let keys = [
        key("owner", OWNER, "manage", "*"),
        key("reader", READER, "listen", "*"),
        key("sender", SENDER, "send", "*"),
        key("shop", SHOP, "manage", "orders"),
    ];
    std::fs::write(path, keys.concat()).expect("the folder can be written");
}

pub(crate) async fn fixture() -> Fixture {
    let fixture = Fixture::open_with(&[], |options, folder| {
        write_keys(&folder.join("keys.toml"));
        options.keys = Some(folder.join("keys.toml"));
    })
    .await;
    let bearer = format!("Bearer {OWNER}");
    for queue in ["orders", "other"] {
        let headers = [("authorization", bearer.as_str())];
        let ask = async |method: &str, path: String, body: &str| {
            let answer = fixture.api_as(method, &path, body, &headers).await;
            assert!(answer.status < 300, "{answer:?}");
        };
        ask("PUT", format!("/queues/{queue}"), r#"{"order":"position"}"#).await;
        ask("POST", format!("/queues/{queue}/workflow/hold?id=in-{queue}"), r#"{"reason":"look"}"#).await;
    }
    fixture
}

async fn sign_in(fixture: &Fixture, key: &str) -> (Browser, u16) {
    let mut browser = fixture.browser();
    let token = browser.token("blocked").await;
    let answer = browser.post("login", &[("form_token", &token), ("key", key)]).await;
    for (name, value) in &answer.headers {
        assert!(key.is_empty() || !value.contains(key), "{name} tells the key");
    }
    (browser, answer.status)
}

#[tokio::test]
async fn without_a_key_nothing_is_shown_but_the_form_for_one() {
    let fixture = fixture().await;
    let mut browser = fixture.browser();
    for place in [
        "overview",
        "blocked",
        "workflow?queue=orders&id=in-orders",
        "audit",
        "body?queue=orders&number=1",
        "events",
    ] {
        let answer = browser.get(place).await;
        assert_eq!(answer.status, 401, "{place}");
        assert!(
            answer.text().contains("type=\"password\"") && !answer.text().contains("in-orders"),
            "{place}"
        );
    }
    for wrong in [SENDER, "nonsense", ""] {
        let (mut browser, status) = sign_in(&fixture, wrong).await;
        assert_eq!((status, browser.get("blocked").await.status), (401, 401), "{wrong}");
    }
    let unasked = browser.post("login", &[("form_token", "x"), ("key", OWNER)]).await;
    assert_eq!(unasked.status, 401, "a form of another site signs nobody in");
    assert_eq!(browser.get("blocked").await.status, 401);
}

#[tokio::test]
async fn the_session_is_out_of_reach_of_scripts_and_of_other_sites_and_ends_when_told() {
    let fixture = fixture().await;
    let mut browser = fixture.browser();
    let token = browser.token("blocked").await;
    browser.headers.push(("x-forwarded-proto".to_owned(), "https".to_owned()));
    let answer = browser.post("login", &[("form_token", &token), ("key", OWNER)]).await;
    let cookie = answer.header("set-cookie").expect("a session").to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Secure"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    assert!(!cookie.contains("Path="), "a prefix of a proxy stays in it: {cookie}");
    let screen = browser.get("blocked").await;
    assert!(screen.text().contains("in-orders") && screen.text().contains("Sign out"));
    let token = screen.field("form_token").expect("a form");
    browser.post("logout", &[("form_token", &token)]).await;
    assert_eq!(browser.get("blocked").await.status, 401);
}

#[tokio::test]
async fn a_key_that_may_only_listen_sees_no_buttons_and_can_do_nothing() {
    let fixture = fixture().await;
    let (mut browser, _) = sign_in(&fixture, READER).await;
    for place in [
        "overview",
        "blocked",
        "workflow?queue=orders&id=in-orders",
        "dead-letters",
        "schedules",
        "definitions",
    ] {
        let html = browser.screen(place).await;
        assert!(!html.contains("review?do=") && !html.contains("name=\"do\""), "{place}: {html}");
        assert!(!html.contains("href=\"audit\""), "{place}");
    }
    let token = browser.token("blocked").await;
    let fields = [("do", "resume"), ("queue", "orders"), ("id", "in-orders"), ("form_token", token.as_str())];
    assert_eq!(browser.post("act", &fields).await.status, 403);
    let review = browser.screen("review?do=resume&queue=orders&id=in-orders").await;
    assert!(review.contains("Nothing can be done") && review.contains("lacks the right"), "{review}");
    assert_eq!(browser.get("audit").await.status, 403);
}

#[tokio::test]
async fn a_key_for_one_queue_sees_and_changes_that_queue_only() {
    let fixture = fixture().await;
    let (mut browser, _) = sign_in(&fixture, SHOP).await;
    let html = browser.screen("blocked").await;
    assert!(html.contains("in-orders") && !html.contains("in-other"), "{html}");
    assert_eq!(browser.get("workflow?queue=other&id=in-other").await.status, 403);
    assert_eq!(browser.act("do=resume&queue=orders&id=in-orders", None).await.status, 303);
    let bearer = format!("Bearer {OWNER}");
    let audit = fixture.api_as("GET", "/audit?newest=true&limit=1", "", &[("authorization", &bearer)]).await;
    assert!(audit.text().contains("\"actor\":\"shop\""), "{}", audit.text());
}

#[tokio::test]
async fn a_link_in_a_chat_leads_to_its_screen() {
    let fixture = fixture().await;
    let from_elsewhere =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    let follow = |browser: &mut Browser| {
        browser.headers = from_elsewhere.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    };
    // The browser keeps the cookie back, and sends it when the page itself asks again.
    let mut browser = fixture.browser();
    follow(&mut browser);
    let answer = browser.get("blocked").await;
    assert!(answer.status == 200 && answer.text().contains("http-equiv=\"refresh\""), "{}", answer.text());
    // Without keys there is nothing to wait for.
    let open = Fixture::open(&[]).await;
    let mut browser = open.browser();
    follow(&mut browser);
    assert_eq!(browser.get("overview").await.status, 200);
    browser.headers[2].1 = "iframe".to_owned();
    assert_eq!(browser.get("overview").await.status, 403, "inside another page it is refused");
}
