//! axe-core, pinned, finds nothing serious on any screen, in light and in dark. It is installed once, into the build folder;
//! where it cannot be had the test says so and tries nothing.

use std::fs;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use serde_json::json;

use crate::fixture::skip::skip_unless_ci;
use crate::page::browser::Chromium;
use crate::page::browser::seeded;
use crate::page::fixture::Fixture;
use crate::page::fixture::encoded;

const MANIFEST: &str = include_str!("axe/package.json");
const LOCK: &str = include_str!("axe/package-lock.json");

/// Runs axe, and answers what is serious or worse: the rule, and where.
pub(crate) const RUN: &str = r#"
    const answer = arguments[arguments.length - 1];
    axe.run(document, { resultTypes: ["violations"] }).then(
      ({ violations }) => answer(violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)),
      (error) => answer([String(error)]));
"#;

/// The script of axe, or why it cannot be had.
pub(crate) fn axe() -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    (MANIFEST, LOCK).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-axe-{:016x}", hasher.finish()));
    let script = folder.join("node_modules/axe-core/axe.min.js");
    if !script.exists() {
        install(&folder)?;
    }
    fs::read_to_string(&script).map_err(|error| format!("{}: {error}", script.display()))
}

fn install(folder: &PathBuf) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    fs::create_dir_all(folder).map_err(told)?;
    fs::write(folder.join("package.json"), MANIFEST).map_err(told)?;
    fs::write(folder.join("package-lock.json"), LOCK).map_err(told)?;
    let arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    let npm = Command::new("npm").args(arguments).current_dir(folder).output();
    let npm = npm.map_err(|error| format!("npm: {error}"))?;
    match npm.status.success() {
        true => Ok(()),
        false => Err(format!("npm: {}", String::from_utf8_lossy(&npm.stderr))),
    }
}

/// Every screen of a store in which something of each kind stands.
async fn places(fixture: &Fixture) -> Vec<String> {
    fixture.bury("orders", "dead", "invalid", "no IBAN").await;
    fixture.api("POST", "/queues/orders/workflow/hold?id=order-4711", r#"{"reason":"look"}"#).await;
    let letters = fixture.api("GET", "/queues/orders/dead_letters", "").await;
    let dead = &letters["dead_letters"][0]["sequence_number"];
    let first = fixture.first("orders").await;
    let mut places = [
        "overview",
        "blocked",
        "workflows?queue=orders",
        "workflow?queue=orders&id=order-4711",
        "messages?queue=orders&by=subject&value=x",
        "dead-letters",
        "dead-letters?queue=orders&reason=invalid",
        "schedules",
        "topics",
        "definitions",
        "audit",
        "tail",
        "review?do=skip&queue=orders&id=order-4711",
        "review?do=void&queue=orders&id=order-4711",
        "review?do=retry&queue=orders&id=nobody",
        "nowhere",
    ]
    .map(str::to_owned)
    .to_vec();
    places.push(format!("message?queue=orders&number={first}"));
    places.push(format!("message?queue=orders&number={dead}"));
    places.push(format!("edit?queue=orders&number={dead}"));
    places.push(format!("workflow?queue=orders&id={}", encoded(crate::page::stock::HOSTILE)));
    places
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_serious_on_any_screen_in_light_and_in_dark() {
    let axe = match axe() {
        Ok(axe) => axe,
        Err(why) => return skip_unless_ci("axe-core on the page", &why),
    };
    let fixture = seeded().await;
    fixture.fail("orders", crate::page::stock::HOSTILE, "<script>alert(1)</script>").await;
    let places = places(&fixture).await;
    // The number is Chromium's own for each scheme: 0 is dark, 1 is light.
    for scheme in ["0", "1"] {
        let argument = format!("--blink-settings=preferredColorScheme={scheme}");
        let Some(chromium) = Chromium::start_with(&[&argument]).await else { return };
        let is_dark = "return matchMedia('(prefers-color-scheme: dark)').matches";
        let mut found: Vec<(String, Value)> = Vec::new();
        for place in &places {
            chromium.open(&format!("http://{}/ui/{place}", fixture.address)).await;
            assert_eq!(chromium.script(is_dark).await, scheme == "0", "the browser takes the scheme");
            chromium.script(&axe).await;
            let wrong = chromium.client.execute_async(RUN, Vec::new()).await.expect("axe runs");
            if wrong != json!([]) {
                found.push((place.clone(), wrong));
            }
        }
        assert!(found.is_empty(), "scheme {scheme}: {found:#?}");
        chromium.end().await;
    }
}
