//! The page in a real Chromium, driven over WebDriver. Without a browser these tests say so and try nothing.

use std::process::Stdio;

use fantoccini::Client;
use fantoccini::ClientBuilder;
use fantoccini::Locator;
use fantoccini::key::Key;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::process::Command;

use crate::fixture::skip::skip;
use crate::page::fixture::Fixture;
use crate::page::fixture::TIMEOUT;
use crate::page::stock::DEFINED;
use crate::page::stock::HOSTILE;

/// A browser, and the driver that ends with it.
pub(crate) struct Chromium {
    pub(crate) client: Client,
    _driver: Child,
}

/// What is not tried without a browser.
const WHAT: &str = "the page in a browser";

/// Where Debian and others put the driver.
const DRIVERS: [&str; 2] = ["chromedriver", "/usr/lib/chromium/chromedriver"];

impl Chromium {
    /// Starts a browser; `None` where there is none.
    pub(crate) async fn start() -> Option<Chromium> {
        Chromium::start_with(&[]).await
    }

    /// The same with arguments of Chromium's own.
    pub(crate) async fn start_with(others: &[&str]) -> Option<Chromium> {
        let spawn = |program: &&str| {
            let mut command = Command::new(program);
            command
                .arg("--port=0")
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .ok()
        };
        let Some(mut driver) = DRIVERS.iter().find_map(spawn) else {
            skip(WHAT, "chromium and its chromedriver are not installed");
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = loop {
            let line =
                tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("the driver talks in time");
            let Some(line) = line.expect("the driver talks") else {
                skip(WHAT, "chromedriver does not start");
                return None;
            };
            let told = line.split_once("started successfully on port ");
            if let Some(port) = told.and_then(|(_, port)| port.trim_end_matches('.').parse::<u16>().ok()) {
                break port;
            }
        };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1440,1000",
        ];
        let arguments: Vec<&str> = arguments.into_iter().chain(others.iter().copied()).collect();
        let options = json!({ "args": arguments });
        let logs = json!({ "browser": "ALL" });
        let wanted: serde_json::Map<String, Value> =
            [("goog:chromeOptions".to_owned(), options), ("goog:loggingPrefs".to_owned(), logs)]
                .into_iter()
                .collect();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let address = format!("http://127.0.0.1:{port}");
        let connecting = builder.capabilities(wanted).connect(&address);
        match tokio::time::timeout(TIMEOUT, connecting).await.expect("the driver answers in time") {
            Ok(client) => Some(Chromium { client, _driver: driver }),
            Err(error) => {
                skip(WHAT, &format!("chromium does not start: {error}"));
                None
            }
        }
    }

    pub(crate) async fn open(&self, url: &str) {
        self.client.goto(url).await.expect("the place is loaded");
        self.find("html[data-ready]").await;
    }

    /// Waits for an element.
    pub(crate) async fn find(&self, css: &str) -> fantoccini::elements::Element {
        let waiting = self.client.wait().at_most(TIMEOUT).for_element(Locator::Css(css));
        waiting.await.unwrap_or_else(|error| panic!("{css} does not come: {error}"))
    }

    pub(crate) async fn script(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Presses keys wherever the focus is.
    pub(crate) async fn press(&self, keys: &str) {
        let focused = self.client.active_element().await.expect("something has the focus");
        focused.send_keys(keys).await.expect("keys are taken");
    }

    /// Goes on with the tabulator until something is focused that says this.
    pub(crate) async fn tab_to(&self, text: &str) {
        for _ in 0..200 {
            self.press(&char::from(Key::Tab).to_string()).await;
            let here = self.script("return (document.activeElement.textContent || '').trim()").await;
            if here == text {
                let seen = self.script("return document.activeElement.matches(':focus-visible')").await;
                assert_eq!(seen, true, "the focus on {text} can be seen");
                return;
            }
        }
        panic!("the keyboard does not reach {text:?}");
    }

    pub(crate) async fn end(self) {
        self.client.close().await.expect("the browser ends");
    }
}

/// Whether a place is wider than the window, so that one has to scroll sideways.
pub(crate) const TOO_WIDE: &str =
    "return document.documentElement.scrollWidth > document.documentElement.clientWidth";

/// Buttons and links without a name, fields without a label, IDs that are there twice, headings that leave out a level.
pub(crate) const UNNAMED: &str = r#"
    const seen = (node) => node.offsetParent !== null;
    const named = (node) => node.textContent.trim() || node.getAttribute("aria-label") || node.title;
    const wrong = [];
    for (const node of document.querySelectorAll("a[href], button")) if (seen(node) && !named(node)) wrong.push(node.outerHTML);
    for (const node of document.querySelectorAll("input:not([type=hidden]), select"))
      if (!node.labels.length && !node.getAttribute("aria-label")) wrong.push(node.outerHTML);
    const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
    wrong.push(...ids.filter((id, at) => ids.indexOf(id) !== at));
    if (document.querySelectorAll("h1").length !== 1 || document.querySelectorAll("main").length !== 1) wrong.push("h1 or main");
    return wrong;
"#;

/// A workflow that stands still, and a definition.
pub(crate) async fn seeded() -> Fixture {
    let fixture = Fixture::open(&[DEFINED]).await;
    fixture.create("orders").await;
    fixture.stall("orders", "order-4711").await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_workflow_is_found_opened_and_repaired_by_keyboard_alone() {
    let Some(chromium) = Chromium::start().await else { return };
    let fixture = seeded().await;
    let page = format!("http://{}/ui/", fixture.address);
    chromium.open(&format!("{page}blocked")).await;
    chromium.tab_to("order-4711").await;
    chromium.press(&char::from(Key::Enter).to_string()).await;
    chromium.find(".strip .head").await;
    chromium.tab_to("Skip").await;
    chromium.press(&char::from(Key::Enter).to_string()).await;
    // The reason has the focus already, and the key for a new line sends the form.
    chromium.find("#reason:focus").await;
    chromium.press("the customer is gone").await;
    chromium.press(&char::from(Key::Enter).to_string()).await;
    let notice = chromium.find("#notice").await.text().await.expect("it has a text");
    assert!(notice.contains("is dead-lettered; 3 wait behind it"), "{notice}");
    assert_eq!(fixture.workflow("orders", "order-4711").await["next_position"], 17);
    assert_eq!(fixture.audited().await["reason"], "the customer is gone");
    chromium.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_is_on_the_page_without_loading_it_again() {
    let Some(chromium) = Chromium::start().await else { return };
    let fixture = seeded().await;
    chromium.open(&format!("http://{}/ui/blocked", fixture.address)).await;
    chromium.find("#row-orders_2forder_2d4711 input").await.click().await.expect("it can be ticked");
    chromium.script("window.stays = true").await;
    fixture.fail("orders", "late", "connection refused").await;
    chromium.find("#row-orders_2flate").await;
    let body = format!("/queues/orders/workflow/skip?id={}", "late");
    fixture.api("POST", &body, r#"{"reason":"done"}"#).await;
    // Once more something is awaited that comes after it, so that the row had the time to go.
    fixture.fail("orders", "later", "connection refused").await;
    chromium.find("#row-orders_2flater").await;
    assert!(chromium.client.find(Locator::Css("#row-orders_2flate")).await.is_err(), "what is over has gone");
    assert_eq!(chromium.script("return window.stays").await, true, "it was not loaded again");
    let ticked = "return document.querySelector('#row-orders_2forder_2d4711 input').checked";
    assert_eq!(chromium.script(ticked).await, true, "what somebody has ticked stays so");
    chromium.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_fits_a_phone_has_names_for_everything_and_runs_nothing_foreign() {
    let Some(chromium) = Chromium::start().await else { return };
    let fixture = seeded().await;
    fixture.fail("orders", HOSTILE, "<script>alert(1)</script>").await;
    fixture.bury("orders", "dead", "invalid", &"long".repeat(300)).await;
    let hostile = crate::page::fixture::encoded(HOSTILE);
    let places = [
        "overview".to_owned(),
        "blocked".to_owned(),
        "workflows?queue=orders".to_owned(),
        "workflow?queue=orders&id=order-4711".to_owned(),
        format!("workflow?queue=orders&id={hostile}"),
        format!("message?queue=orders&number={}", fixture.first("orders").await),
        "dead-letters".to_owned(),
        "schedules".to_owned(),
        "definitions".to_owned(),
        "audit".to_owned(),
        "tail".to_owned(),
        "review?do=skip&queue=orders&id=order-4711".to_owned(),
    ];
    for width in [390, 1_440] {
        chromium.client.set_window_size(width, 900).await.expect("the window has that size");
        for place in &places {
            chromium.open(&format!("http://{}/ui/{place}", fixture.address)).await;
            assert_eq!(chromium.script(TOO_WIDE).await, false, "{place} is wider than {width}");
            assert_eq!(chromium.script(UNNAMED).await, json!([]), "{place}");
            let lost = "return [...document.styleSheets].length";
            assert_eq!(chromium.script(lost).await, 1, "{place} has its stylesheet");
            assert!(chromium.client.get_alert_text().await.is_err(), "{place} runs what somebody has sent");
        }
    }
    chromium.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_put_back_together_and_progress_is_seen() {
    let Some(chromium) = Chromium::start().await else { return };
    let fixture = seeded().await;
    let lines: Vec<String> = (0..150)
        .map(|number| json!({ "workflow_id": format!("w{number}"), "position": 1 }).to_string())
        .collect();
    let headers = [("content-type", "application/x-ndjson")];
    fixture.api_as("POST", "/queues/orders/messages", &lines.join("\n"), &headers).await;
    fixture
        .api("POST", "/queues/orders/operate", r#"{"verb":"hold","filter":{"prefix":"w"},"limit":1000}"#)
        .await;
    chromium.open(&format!("http://{}/ui/blocked?queue=orders&cause=held", fixture.address)).await;
    let resume = Locator::XPath("//div[contains(@class,'bulk')]/a[text()='Resume']");
    chromium.client.find(resume).await.expect("a button").click().await.expect("it can be clicked");
    chromium.find("form[action=act] button.primary").await.click().await.expect("it can be clicked");
    // It goes on by itself to the end.
    let done = "//h1[contains(.,'done')]";
    let waiting = chromium.client.wait().at_most(TIMEOUT).for_element(Locator::XPath(done));
    waiting.await.expect("it comes to its end");
    let sum = chromium.find("#so-far").await.text().await.expect("a number");
    assert_eq!(sum, "150");
    chromium.end().await;
}

/// Lets the script of the page begin anew with a daemon that tells of one message, and says where the live tail leads from it.
const TOLD: &str = r#"
    let heard = {};
    window.EventSource = function () {
        this.addEventListener = (kind, hear) => { heard[kind] = hear; };
        this.close = () => {};
    };
    return import(document.querySelector("script[type=module]").src + "?again").then(() => {
        heard.held({ data: '{"event":"held","queue":"orders","sequence_number":18014398509481985}' });
        return document.querySelector("tbody a").href;
    });
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_live_tail_leads_to_the_message_that_it_names_however_long_its_number_is() {
    let Some(chromium) = Chromium::start().await else { return };
    let fixture = seeded().await;
    chromium.open(&format!("http://{}/ui/tail", fixture.address)).await;
    let place = chromium.script(TOLD).await;
    let place = place.as_str().expect("an address");
    assert!(place.ends_with("message?queue=orders&number=18014398509481985"), "{place}");
    chromium.end().await;
}

/// Serves the page under a prefix, as a reverse proxy does; each request has a connection of its own.
async fn proxy(upstream: std::net::SocketAddr, prefix: &'static str) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(forward(stream, upstream, prefix));
        }
    });
    address
}

async fn forward(mut from: TcpStream, upstream: std::net::SocketAddr, prefix: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut bytes = [0; 4_096];
        match from.read(&mut bytes).await? {
            0 => return Ok(()),
            count => head.extend_from_slice(&bytes[..count]),
        }
    }
    let text = String::from_utf8_lossy(&head).replacen(&format!(" {prefix}/"), " /", 1);
    let lines = text.split("\r\n").map(|line| match line.to_ascii_lowercase() {
        line if line.starts_with("connection:") => "connection: close".to_owned(),
        _ => line.to_owned(),
    });
    let head = lines.collect::<Vec<_>>().join("\r\n");
    let mut to = TcpStream::connect(upstream).await?;
    to.write_all(head.as_bytes()).await?;
    tokio::io::copy_bidirectional(&mut from, &mut to).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_with_a_prefix_somebody_signs_in_looks_and_acts() {
    let Some(chromium) = Chromium::start().await else { return };
    let fixture = crate::page::keys::fixture().await;
    let proxy = proxy(fixture.address, "/ops/seriatim").await;
    let page = format!("http://{proxy}/ops/seriatim/ui");
    chromium.open(&page).await;
    chromium.find("#key").await.send_keys(crate::page::keys::OWNER).await.expect("it takes a key");
    chromium.press(&char::from(Key::Enter).to_string()).await;
    chromium.find(".bar nav").await;
    chromium.open(&format!("{page}/workflow?queue=orders&id=in-orders")).await;
    let resume = Locator::LinkText("Resume");
    chromium.client.find(resume).await.expect("a button").click().await.expect("it can be clicked");
    chromium.find("form[action=act] button.primary").await.click().await.expect("it can be clicked");
    chromium.find("#notice").await;
    let here = chromium.client.current_url().await.expect("an address");
    assert!(here.as_str().starts_with(&page), "{here}");
    chromium.end().await;
}
