//! With a log before the file, nothing is answered before the log has acknowledged it.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc;
use std::task::Context;
use std::task::Waker;
use std::thread::JoinHandle;

use crate::clock::SystemClock;
use crate::engine::open::Engine;
use crate::engine::open::begin;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::store::log::EachEntry;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::error::Fault;
use crate::queue::QueueOptions;

/// A log that says when an entry has come, and acknowledges it when it is told to.
struct Gate {
    came: mpsc::Sender<u64>,
    /// Whether the next entry is acknowledged.
    goes: Mutex<mpsc::Receiver<bool>>,
}

impl Log for Gate {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        self.came.send(entry.position).unwrap();
        match self.goes.lock().unwrap().recv().unwrap() {
            true => Ok(()),
            false => Err(Fault::Deposed),
        }
    }

    fn read_from(&self, _position: u64, _each: &mut EachEntry<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn trim(&self, _through: u64) -> Result<(), Fault> {
        Ok(())
    }
}

/// When entries come to the log, and whether they are acknowledged.
type Outside = (mpsc::Receiver<u64>, mpsc::Sender<bool>);

/// An engine behind a log, the log's other side, and the thread that writes.
async fn engine(folder: &Path) -> (Engine, Outside, JoinHandle<()>) {
    let ((came, comes), (let_go, goes)) = (mpsc::channel(), mpsc::channel());
    let log = Arc::new(Gate { came, goes: Mutex::new(goes) });
    let (began, begins) = tokio::sync::oneshot::channel();
    let path = folder.join("gated.redb");
    let serve = move || {
        let mut store = Store::open_behind(&path, StoreOptions::default(), log).unwrap();
        store.take_over(1).unwrap();
        let (engine, writer) = begin(store, Arc::new(SystemClock::default())).unwrap();
        assert!(began.send(engine).is_ok());
        let _ = writer.run();
    };
    let thread = std::thread::Builder::new().spawn(serve).unwrap();
    let_go.send(true).unwrap();
    let engine = begins.await.unwrap();
    assert_eq!(comes.recv().unwrap(), 1, "the first entry begins the epoch");
    (engine, (comes, let_go), thread)
}

fn is_waiting(future: Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn nothing_is_answered_before_the_log_has_acknowledged_it() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, (comes, let_go), _) = engine(folder.path()).await;
    let client = engine.client().clone();
    let mut created = Box::pin(client.create_queue("q", QueueOptions::default()));
    assert!(is_waiting(created.as_mut()));
    assert_eq!(comes.recv().unwrap(), 2);
    assert!(is_waiting(created.as_mut()), "the log has it, and has not acknowledged it");
    let_go.send(true).unwrap();
    created.await.unwrap();
    let_go.send(true).unwrap();
    engine.close().await;
    assert_eq!(comes.recv().unwrap(), 3, "the last entry says when it has ended");
}

#[tokio::test]
async fn who_is_deposed_says_so_to_whoever_waits_and_answers_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, (comes, let_go), thread) = engine(folder.path()).await;
    let client = engine.client().clone();
    let mut created = Box::pin(client.create_queue("q", QueueOptions::default()));
    assert!(is_waiting(created.as_mut()));
    assert_eq!(comes.recv().unwrap(), 2);
    let_go.send(false).unwrap();
    let refused = created.await.err().unwrap().to_string();
    assert!(refused.contains("another node has taken over the partition"), "{refused}");
    assert!(matches!(engine.fault(), Some(Fault::Deposed)));
    engine.close().await;
    thread.join().unwrap();
    let again = Store::open(&folder.path().join("gated.redb"), StoreOptions::default()).unwrap();
    assert_eq!(again.place().0, 1, "what was refused is not in the file");
}
