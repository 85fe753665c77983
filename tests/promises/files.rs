//! Opening, refusing, backing up: what happens to files.

use std::path::Path;
use std::time::Duration;

use seriatim::Engine;
use seriatim::Fault;
use seriatim::Message;
use seriatim::QueueOptions;
use seriatim::Unavailable;
use seriatim::error::OpenError;
use seriatim::error::OperateError;
use seriatim::error::OperateRefusal;
use seriatim::error::SendError;

async fn store_with_messages(path: &Path, count: u64) {
    let engine = Engine::open(path).await.expect("a new file");
    let queue = engine.client().create_queue("q", QueueOptions::by_position()).await.expect("a new queue");
    let messages = (1..=count).map(|n| Message::new(n.to_string()).workflow("w").position(n));
    queue.send_batch(messages).await.expect("accepted");
    engine.close().await;
}

async fn refusal(path: &Path) -> OpenError {
    let before = std::fs::read(path).expect("the file is there");
    let error = Engine::open(path).await.expect_err("the file is refused");
    let after = std::fs::read(path).expect("the file is still there");
    assert!(before == after, "a refused file is left untouched");
    error
}

#[tokio::test]
async fn a_second_opening_is_told_who_holds_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let engine = Engine::open(&path).await.unwrap();
    match Engine::open(&path).await.err().unwrap() {
        OpenError::Held { holder, .. } => assert_eq!(holder, "this process"),
        other => panic!("{other}"),
    }
    engine.close().await;
    assert!(Engine::open(&path).await.is_ok());
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = Engine::open(folder.path().join("nowhere/a.redb")).await.err().unwrap();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[tokio::test]
async fn a_foreign_file_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    for content in [&b""[..], b"hello", &[0xff; 100_000]] {
        std::fs::write(&path, content).unwrap();
        let error = refusal(&path).await;
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    }
    assert!(matches!(
        Engine::open(folder.path()).await.err().unwrap(),
        OpenError::Fault(_) | OpenError::Foreign { .. }
    ));
}

#[tokio::test]
async fn a_redb_file_of_somebody_else_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("theirs");
    transaction.open_table(table).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refusal(&path).await;
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
}

#[tokio::test]
async fn a_truncated_file_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    store_with_messages(&path, 200).await;
    let whole = std::fs::read(&path).unwrap();
    for tenths in [1, 5, 9] {
        std::fs::write(&path, &whole[..whole.len() * tenths / 10]).unwrap();
        let error = refusal(&path).await;
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("it is damaged: it ends after"), "{error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    for (path, what) in [(path.as_path(), "it is a pipe"), (folder.path(), "it is a folder")] {
        let error = Engine::open(path).await.err().unwrap();
        assert!(matches!(error, OpenError::Foreign { .. }) && error.to_string().contains(what), "{error}");
        let error = seriatim::store::verify(path, |_| {}).err().unwrap();
        assert!(error.to_string().contains(what), "{error}");
    }
    let (link, gone) = (folder.path().join("link"), folder.path().join("gone"));
    std::os::unix::fs::symlink(&gone, &link).unwrap();
    let error = Engine::open(&link).await.err().unwrap();
    assert!(error.to_string().contains("a link to a file that is not there"), "{error}");
    assert!(link.is_symlink() && !gone.exists(), "no new store takes its place");
    let error = Engine::open("/dev/null").await.err().unwrap();
    assert!(error.to_string().contains("a device"), "{error}");
    assert!(!Path::new("/dev/null.lock").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn files_of_a_store_are_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let [path, copy] = ["a.redb", "b.redb"].map(|name| folder.path().join(name));
    let engine = Engine::open(&path).await.unwrap();
    engine.client().backup(&copy).await.unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_once_the_file_is_gone_and_who_waits_hears_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["a.redb", "b.redb"].map(|name| folder.path().join(name));
    for replaced in [false, true] {
        let engine = Engine::open(&path).await.unwrap();
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
        queue.send(Message::new("a")).await.unwrap();
        assert!(engine.fault().is_none());
        let client = engine.client().clone();
        let waits = tokio::spawn(async move { client.ended().await });
        std::fs::copy(&path, &other).unwrap();
        match replaced {
            true => std::fs::rename(&other, &path).unwrap(),
            false => std::fs::remove_file(&path).unwrap(),
        }
        assert!(matches!(queue.send(Message::new("b")).await, Err(SendError::Unavailable(_))));
        assert!(matches!(waits.await.unwrap(), Unavailable::Stopped(Fault::Lost { .. })));
        assert!(matches!(engine.fault(), Some(Fault::Lost { .. })));
        engine.close().await;
        let _ = std::fs::rename(&other, &path);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_engine_that_is_asked_nothing_notices_that_its_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let engine = Engine::open(&path).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(engine.ended().await, Unavailable::Stopped(Fault::Lost { .. })));
}

#[tokio::test]
async fn the_leftover_of_a_creation_that_crashed_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    std::fs::write(folder.path().join("a.redb.new"), b"half a file").unwrap();
    store_with_messages(&path, 3).await;
    assert!(!folder.path().join("a.redb.new").exists());
}

#[tokio::test]
async fn a_file_whose_process_died_opens_with_everything_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    let engine = Engine::open(&path).await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for n in 0..50 {
        queue.send(Message::new(n.to_string()).workflow("w")).await.unwrap();
    }
    // A copy of the file while it is open is what a kill leaves behind.
    std::fs::copy(&path, &copy).unwrap();
    let reopened = Engine::open(&copy).await.unwrap();
    let view = reopened.client().queue("q").unwrap().view().await.unwrap();
    assert_eq!(view.counts.ready, 50);
}

#[tokio::test]
async fn a_backup_of_a_live_engine_is_an_engines_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.redb"), folder.path().join("b.redb"));
    store_with_messages(&path, 300).await;
    let engine = Engine::open(&path).await.unwrap();
    let rows = engine.client().backup(&copy).await.unwrap();
    assert!(rows > 900, "{rows}");
    let refused = engine.client().backup(&copy).await.unwrap_err();
    assert!(matches!(refused, OperateError::Refused(OperateRefusal::BackupFailed(_))), "{refused}");
    assert!(engine.fault().is_none(), "it is the copy that has failed");
    let queue = engine.client().queue("q").unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
    let backup = Engine::open(&copy).await.unwrap();
    let counts = backup.client().queue("q").unwrap().view().await.unwrap().counts;
    assert_eq!((counts.stored(), counts.completed), (300, 0), "the copy is of its instant");
}

#[tokio::test]
async fn a_close_ends_a_backup_under_way_and_lets_go_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let [path, copy, new] = ["a.redb", "b.redb", "b.redb.new"].map(|name| folder.path().join(name));
    let engine = Engine::open(&path).await.unwrap();
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for _ in 0..100 {
        queue.send(Message::new(vec![b'a'; 500_000])).await.unwrap();
    }
    let (client, target) = (engine.client().clone(), copy.clone());
    let backup = tokio::spawn(async move { client.backup(target).await });
    while !new.exists() && !copy.exists() {
        tokio::task::yield_now().await;
    }
    engine.close().await;
    Engine::open(&path).await.expect("nobody reads it any more");
    match backup.await.unwrap() {
        Ok(_) => assert!(copy.exists() && !new.exists(), "it was faster"),
        Err(OperateError::Unavailable(Unavailable::Closed)) => assert!(!copy.exists() && !new.exists()),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_backup_is_not_named_as_what_is_made_beside_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path().join("a.redb")).await.unwrap();
    for name in ["b.new", "b.part", "a.redb.lock", "b.ballast"] {
        let refused = engine.client().backup(folder.path().join(name)).await;
        assert!(
            matches!(&refused, Err(OperateError::Misuse(misuse)) if misuse.field() == "path"),
            "{refused:?}"
        );
    }
    engine.client().backup(folder.path().join("new")).await.unwrap();
}

#[tokio::test]
async fn a_flipped_bit_in_the_file_is_never_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    store_with_messages(&path, 40).await;
    let whole = std::fs::read(&path).unwrap();
    // A fixed stride through the pages that are not empty, so that a failure names the bit.
    let pages = whole.chunks(4_096).enumerate().filter(|(_, page)| page.iter().any(|byte| *byte != 0));
    let written: Vec<usize> = pages.flat_map(|(n, page)| n * 4_096..n * 4_096 + page.len()).collect();
    for (n, at) in written.iter().step_by(written.len() / 120 + 1).enumerate() {
        let bit = at * 8 + n % 8;
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &flipped).unwrap();
        let Ok(engine) = Engine::open(&path).await else {
            continue;
        };
        let queue = engine.client().queue("q").unwrap();
        let Ok(messages) = queue.peek(seriatim::SequenceNumber::new(0), 100).await else {
            continue;
        };
        for message in messages {
            let expected = message.position.map(|position| position.to_string()).unwrap_or_default();
            assert_eq!(message.body, expected, "bit {bit}");
        }
        engine.close().await;
    }
}
