//! Checking pages when a file is opened: damage is refused then, not met later.

use std::path::Path;
use std::time::Duration;

use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::error::OpenError;
use seriatim::store::Check;

/// What the messages are, so long that they are in several blocks.
fn body(number: u32) -> String {
    format!("body {number:02} of all{:400}", "")
}

/// A file whose messages have left the journal, one of which was altered.
async fn forged_file(path: &Path) {
    let engine = Engine::builder(path).window_bytes(1).open().await.expect("a new file");
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.expect("a new queue");
    for n in 0..60 {
        queue.send(Message::new(body(n))).await.expect("accepted");
    }
    engine.close().await;
    let mut bytes = std::fs::read(path).expect("the file is there");
    let (text, forged) = (b"body 45 of all", b"body 95 of all");
    for at in 0..bytes.len() - text.len() {
        if bytes[at..].starts_with(text) {
            bytes[at..at + forged.len()].copy_from_slice(forged);
        }
    }
    std::fs::write(path, bytes).expect("it can be written");
}

#[tokio::test]
async fn a_file_with_damaged_pages_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    forged_file(&path).await;
    let before = std::fs::read(&path).unwrap();
    for check in [Check::Small, Check::Always] {
        let error = Engine::builder(&path).check(check).open().await.err().unwrap();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("a.redb: it is damaged"), "{error}");
        assert!(std::fs::read(&path).unwrap() == before, "it was changed");
    }
}

#[tokio::test]
async fn an_unchecked_file_serves_what_is_sound_and_never_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    forged_file(&path).await;
    let engine = Engine::builder(&path).check(Check::Never).open().await.unwrap();
    let queue = engine.client().queue("q").unwrap();
    let mut served = 0;
    while let Ok(delivery) = queue.receive(Duration::ZERO).await {
        let mut delivery = delivery.expect("the forged one stops the engine");
        assert_eq!(delivery.message().body, body(served));
        delivery.complete().await.unwrap();
        served += 1;
    }
    assert!((20..45).contains(&served), "{served} are in other blocks than the forged one");
}

#[tokio::test]
async fn a_file_whose_process_died_is_checked_and_opens() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    let engine = Engine::open(&path).await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send(Message::new("body").workflow("w")).await.unwrap();
    std::fs::copy(&path, &copy).unwrap();
    let reopened = Engine::builder(&copy).check(Check::Always).open().await.unwrap();
    assert_eq!(reopened.client().queue("q").unwrap().view().await.unwrap().counts.ready, 1);
}
