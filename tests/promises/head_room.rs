//! Head room of an engine in a program: what is new is refused below it, what ends something goes on, and with room all is
//! accepted again without opening the file anew.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use seriatim::Completion;
use seriatim::Engine;
use seriatim::Message;
use seriatim::Queue;
use seriatim::QueueOptions;
use seriatim::error::OperateError;
use seriatim::error::OperateRefusal;
use seriatim::error::QueueError;
use seriatim::error::QueueRefusal;
use seriatim::error::SendRefusal;

use crate::disk::Disk;
use crate::promises::fixture::complete_ready;
use crate::reliability::Measured;

const KILOBYTES: u64 = 24 * 1024;
const HEAD_ROOM_BYTES: u64 = 4 << 20;

/// More than any disk has.
const TOO_MUCH_BYTES: u64 = 1 << 56;

async fn open(path: &Path, head_room_bytes: u64) -> Engine {
    Engine::builder(path).head_room(head_room_bytes).open().await.expect("the file opens")
}

async fn is_full(queue: &Queue, bytes: usize) -> bool {
    match queue.send(Message::new(vec![b'a'; bytes])).await {
        Ok(_) => false,
        Err(error) if error.refusal() == Some(&SendRefusal::StorageFull) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Sends until nothing is accepted, not even what is small; says how much was.
async fn fill(queue: &Queue) -> usize {
    let mut count = 0;
    for bytes in [16 * 1024, 0] {
        while !is_full(queue, bytes).await {
            count += 1;
        }
    }
    count
}

/// A small disk, and the path of a file on it; nothing where none can be made.
fn disk(measured: &Measured, folder: &Path) -> Option<(Disk, PathBuf)> {
    let point = folder.join("disk");
    match Disk::in_memory(&point, KILOBYTES) {
        Ok(disk) => Some((disk, point.join("a.redb"))),
        Err(reason) => {
            measured.skip(&reason);
            None
        }
    }
}

#[tokio::test]
async fn below_the_head_room_what_is_new_is_refused_and_what_ends_something_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.redb");
    let engine = Engine::open(&path).await.expect("the file is new");
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.expect("it is new");
    for body in ["completed", "dead", "abandoned", "sends", "purged"] {
        queue.send(Message::new(body).workflow(body)).await.expect("there is room");
    }
    engine.close().await;

    let engine = open(&path, TOO_MUCH_BYTES).await;
    let room = engine.client().storage_room().expect("it is looked after");
    assert!(room.is_full && room.free_bytes < room.head_room_bytes, "{room:?}");
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.expect("nothing changes");
    assert!(is_full(&queue, 0).await);
    let other = engine.client().create_queue("other", QueueOptions::default()).await.err();
    assert!(matches!(other, Some(QueueError::Refused(QueueRefusal::StorageFull(_)))), "{other:?}");
    let backup = engine.client().backup(folder.path().join("copy")).await;
    assert!(matches!(backup, Err(OperateError::Refused(OperateRefusal::StorageFull { .. }))), "{backup:?}");

    queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
    queue.receive(Duration::ZERO).await.unwrap().unwrap().dead_letter("bad", "").await.unwrap();
    let mut abandoned = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    abandoned.abandon_after(Duration::from_secs(60), "later").await.unwrap();
    let mut sends = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let completion = Completion::new().send("q", Message::new("new"));
    let refused = sends.complete_with(completion).await.unwrap_err();
    assert!(
        refused.to_string().contains("disk"),
        "the last of the head room is for what takes nothing: {refused}"
    );
    sends.complete().await.expect("it may still be completed without");
    assert!(queue.purge().await.unwrap() >= 2);
    let counts = queue.view().await.unwrap().counts;
    assert_eq!((counts.completed, counts.ready, counts.retry), (2, 0, 0));
    engine.close().await;

    let engine = open(&path, HEAD_ROOM_BYTES).await;
    let queue = engine.client().queue("q").expect("a name");
    assert!(!is_full(&queue, 16).await);
}

#[tokio::test]
async fn a_disk_that_gets_room_accepts_again_by_itself() {
    let (measured, folder) = (Measured::begin("head-room"), tempfile::tempdir().expect("a folder"));
    let Some((disk, path)) = disk(&measured, folder.path()) else { return };
    let engine = open(&path, HEAD_ROOM_BYTES).await;
    let queue = engine.client().create_queue("q", QueueOptions::default()).await.expect("it is new");
    let accepted = fill(&queue).await;
    assert!(accepted > 100 && engine.client().storage_room().is_some_and(|room| room.is_full));
    disk.resize(2 * KILOBYTES);
    while is_full(&queue, 16).await {}
    assert_eq!(complete_ready(&queue).await, accepted + 1);
    engine.close().await;
    measured.end(1, 0);
}
