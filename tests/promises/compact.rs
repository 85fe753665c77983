//! A file that held much becomes as small as what it holds, and holds the same.

use std::path::Path;
use std::time::Duration;

use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::error::OpenError;

const BODY_BYTES: usize = 20_000;

/// A file in which much was stored and most of it was purged.
async fn emptied(path: &Path) {
    let engine = Engine::open(path).await.expect("a new file");
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.expect("a new queue");
    for workflow in ["kept", "purged"] {
        let count = if workflow == "kept" { 10 } else { 1_000 };
        let messages = (0..count).map(|number: usize| {
            Message::new(vec![u8::try_from(number % 251).expect("a byte"); BODY_BYTES]).workflow(workflow)
        });
        queue.send_batch(messages).await.expect("accepted");
    }
    queue.workflow("purged").expect("a good ID").purge().await.expect("purged");
    engine.close().await;
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the file is there").len()
}

#[tokio::test]
async fn a_compacted_file_is_smaller_sound_and_holds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    emptied(&path).await;
    let before = len(&path);
    let found = seriatim::store::compact(&path).unwrap();
    assert_eq!((found.bytes_before, found.bytes_after), (before, len(&path)));
    assert!(found.bytes_after < before / 2, "{found:?}");
    assert!(seriatim::store::verify(&path, |_| {}).unwrap().is_sound());
    let engine = Engine::open(&path).await.unwrap();
    let queue = engine.client().queue("q").unwrap();
    for number in 0..10 {
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        assert_eq!(&delivery.message().body[..], &[number; BODY_BYTES][..]);
        delivery.complete().await.unwrap();
    }
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
    engine.close().await;
}

#[tokio::test]
async fn a_file_that_somebody_has_open_or_that_is_none_of_ours_is_not_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    let engine = Engine::open(&ours).await.unwrap();
    assert!(matches!(seriatim::store::compact(&ours), Err(OpenError::Held { .. })));
    engine.close().await;
    std::fs::write(&theirs, vec![7; 100_000]).unwrap();
    assert!(matches!(seriatim::store::compact(&theirs), Err(OpenError::Foreign { .. })));
    assert!(matches!(Engine::open(&theirs).await, Err(OpenError::Foreign { .. })));
    assert_eq!(std::fs::read(&theirs).unwrap(), vec![7; 100_000]);
    assert!(!folder.path().join("b.redb.lock").exists(), "nothing is left beside it");
    let nothing = folder.path().join("c.redb");
    assert!(matches!(seriatim::store::compact(&nothing), Err(OpenError::Fault(_))));
    assert!(!nothing.exists(), "nothing is made");
    assert!(!folder.path().join("c.redb.lock").exists());
}
