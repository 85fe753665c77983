//! The files are opened by this version.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use seriatim::Engine;
use seriatim::Message;
use seriatim::id::IdempotencyKey;
use seriatim::testing::ManualClock;

use crate::older::listing::difference;
use crate::older::listing::listing;
use crate::older::packed::pack;
use crate::older::packed::place;
use crate::older::packed::read;
use crate::older::story::BEGINNING;
use crate::older::story::END;
use crate::older::story::play;

/// The files of each format: closed in good order with all but the last flushed; killed with everything in the journal;
/// killed while it flushed.
const FILES: [&str; 6] = [
    "format-3-closed",
    "format-3-killed",
    "format-3-folding",
    "format-4-closed",
    "format-4-killed",
    "format-4-folding",
];

/// A journal so small that most of it is flushed.
const SMALL_WINDOW: u64 = 8 * 1024;

const LARGE_WINDOW: u64 = 64 * 1024 * 1024;

async fn open(path: &Path, clock: &ManualClock) -> Engine {
    Engine::builder(path).clock(clock.clone()).open().await.expect("the file opens")
}

async fn upgraded(name: &str) -> (tempfile::TempDir, PathBuf, Engine) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.redb");
    place(name, &path);
    let engine = open(&path, &ManualClock::new(END)).await;
    (folder, path, engine)
}

/// What a file showed to the version that wrote it; the story is one, so it is one for each format.
fn recorded(name: &str) -> Value {
    let renamed = [("failed", "retry"), ("Failed", "Retry")];
    if name.starts_with("format-4") {
        return listing_of("format-4.json", &renamed);
    }
    let names = [
        ("spent", "exhausted"),
        ("Spent", "Exhausted"),
        ("asked", "by_consumer"),
        ("Asked", "ByConsumer"),
        ("letter", "dead_letter"),
    ];
    let mut recorded = listing_of("format-3.json", &[&names[..], &renamed].concat());
    // Options are written in the words of a definition.
    for queue in recorded["queues"].as_array_mut().expect("queues are listed") {
        for option in ["/expired", "/late", "/exhausted", "/gap/then"] {
            let option = queue.pointer_mut(&format!("/queue/options{option}")).expect("it is an option");
            if let Some(word) = option.as_str() {
                *option = json!(word.replace("DeadLetter", "Dead_letter").to_lowercase());
            }
        }
    }
    // What stands behind a scheduled message waits as early, and was shown as ready.
    let behind = recorded.pointer_mut("/queues/4/messages/6/status").expect("it is listed");
    assert_eq!(*behind, json!("Ready"));
    *behind = json!({ "Deferred": { "until": null, "why": "Early" } });
    recorded
}

/// A listing in the names of today.
fn listing_of(file: &str, names: &[(&str, &str)]) -> Value {
    let listing = String::from_utf8(read(file)).expect("the listing is text");
    let rename = |listing: String, (old, name): &(&str, &str)| {
        listing.replace(&format!("\"{old}\""), &format!("\"{name}\""))
    };
    serde_json::from_str(&names.iter().fold(listing, rename)).expect("the listing is JSON")
}

#[tokio::test]
async fn a_file_of_an_older_format_shows_what_it_showed() {
    for name in FILES {
        let (_folder, path, engine) = upgraded(name).await;
        let shown = listing(engine.client()).await;
        assert_eq!(difference("", &recorded(name), &shown), None, "{name}");
        engine.close().await;
        let found = seriatim::store::verify(&path, |_| {}).expect("it can be looked at");
        assert!(found.is_sound(), "{name}: {:?}", found.damages);
        // And again, now that it is of today's format.
        let engine = open(&path, &ManualClock::new(END)).await;
        assert_eq!(difference("", &recorded(name), &listing(engine.client()).await), None, "{name}");
    }
}

#[tokio::test]
async fn a_file_of_an_older_format_can_be_verified_without_being_changed() {
    for name in FILES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.redb");
        place(name, &path);
        let before = std::fs::read(&path).expect("it is there");
        let found = seriatim::store::verify(&path, |_| {}).expect("it can be looked at");
        assert!(found.is_sound() && found.messages > 0, "{name}: {:?}", found.damages);
        assert!(before == std::fs::read(&path).expect("it is there"), "{name} was changed");
    }
}

#[tokio::test]
async fn what_an_older_version_remembered_is_still_known() {
    for name in FILES {
        let (_folder, _path, engine) = upgraded(name).await;
        let queue = engine.client().queue("arrival").unwrap();
        let accepted = queue.view().await.unwrap().counts.accepted;
        queue.send(Message::new("again").workflow("retried").message_id("r2")).await.unwrap();
        let pair =
            [Message::new("one").workflow("once"), Message::new("two").workflow("once").message_id("r1")];
        let key = IdempotencyKey::of_request("k", b"pair").unwrap();
        queue.send_batch_once(key, pair).await.unwrap();
        assert_eq!(queue.view().await.unwrap().counts.accepted, accepted, "{name}: duplicates are known");
        let chains = engine.client().queue("chains").unwrap();
        chains.send(Message::new("x").workflow("chain").message_id("x").after("d")).await.unwrap();
        let mut order = String::new();
        while let Some(mut delivery) = chains.receive(Duration::ZERO).await.unwrap() {
            order.push_str(&String::from_utf8_lossy(&delivery.message().body));
            delivery.complete().await.unwrap();
        }
        assert_eq!(order, "cdxyz", "{name}: the chain goes on");
    }
}

#[tokio::test]
async fn what_was_due_in_an_older_file_comes_due() {
    for name in FILES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.redb");
        place(name, &path);
        let clock = ManualClock::new(END);
        let engine = open(&path, &clock).await;
        clock.advance(Duration::from_secs(2_000));
        for queue in ["arrival", "positions"] {
            let counts = engine.client().queue(queue).unwrap().view().await.unwrap().counts;
            assert_eq!((counts.scheduled, counts.retry), (0, 0), "{name}: {queue}");
            assert!(counts.conserved(), "{name}: {queue}");
        }
    }
}

/// Writes the files and listings of the present format, when a folder for them is named.
#[tokio::test]
async fn the_files_of_the_present_format_can_be_written() {
    let kept = std::env::var_os("SERIATIM_WRITE_OLDER").map(PathBuf::from);
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let target = kept.as_deref().unwrap_or(scratch.path());
    for (name, window, closes) in
        [("closed", SMALL_WINDOW, true), ("killed", LARGE_WINDOW, false), ("folding", SMALL_WINDOW, false)]
    {
        let path = scratch.path().join(name);
        let clock = ManualClock::new(BEGINNING);
        let builder = Engine::builder(&path).window_bytes(window).clock(clock.clone());
        let engine = builder.open().await.expect("a new file");
        play(engine.client(), &clock).await;
        // All is durable, and nothing is written meanwhile: a copy is what a kill would leave.
        let killed = scratch.path().join(format!("{name}.copy"));
        std::fs::copy(&path, &killed).expect("a copy");
        engine.close().await;
        let written = if closes { path } else { killed };
        let packed = pack(&std::fs::read(&written).expect("it is there"));
        let engine = open(&written, &ManualClock::new(END)).await;
        let shown = listing(engine.client()).await;
        assert!(shown["queues"].as_array().is_some_and(|queues| queues.len() == 6));
        let listed = serde_json::to_string_pretty(&shown).expect("JSON");
        std::fs::write(target.join(format!("{name}.packed")), packed).expect("a folder that can be written");
        std::fs::write(target.join("listing.json"), listed).expect("a folder that can be written");
    }
}
