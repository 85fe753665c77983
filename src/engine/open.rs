//! Opening and closing an engine.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::events::Events;
use crate::engine::commits::Commits;
use crate::engine::inbox::Request;
use crate::engine::inbox::inbox;
use crate::engine::meter::Meter;
use crate::engine::rules::Rules;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::wakeups::Wakeups;
use crate::engine::writer::Writer;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;

/// How hard a commit is on the disk before it is acknowledged. Both survive kill -9 and power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// One fsync for a commit.
    #[default]
    Standard,
    /// Two fsyncs: bit rot in the file's header cannot silently roll back the last commit.
    Strict,
}

/// Whether every page of the file is read and its checksum compared when it is opened, so that damage is refused then
/// and not met later. Records have checksums of their own that are always compared when they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// If the file has at most [`CHECK_BYTES_MAX`](limits::CHECK_BYTES_MAX) bytes: larger ones take long to read.
    #[default]
    Small,
    /// Whatever it takes.
    Always,
    /// Never: opens at once, and opens a damaged file too, as far as that goes: a record that is damaged stops the
    /// engine when it is read.
    Never,
}

/// An open engine: a file of queues, and the thread that writes it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), seriatim::Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let path = folder.path().join("orders.redb");
/// use seriatim::{Engine, Message, QueueOptions};
///
/// let engine = Engine::open(path).await?;
/// let orders = engine.client().create_queue("orders", QueueOptions::by_position()).await?;
/// orders.send(Message::new("paid").workflow("order-17").position(1)).await?;
/// engine.close().await;
/// # Ok(())
/// # }
/// ```
///
/// Dropping it, and every client of it, closes the file as [`Engine::close`] does, without waiting for it.
pub struct Engine {
    client: Client,
}

/// How to open an engine, made by [`Engine::builder`].
pub struct EngineBuilder {
    place: Place,
    clock: Arc<dyn Clock>,
    options: StoreOptions,
}

/// Where an engine keeps its state.
enum Place {
    File(PathBuf),
    Memory,
}

impl Engine {
    /// Opens the engine of a file, or creates it.
    ///
    /// # Errors
    /// [`OpenError`] when another engine holds the file (it is named), when it is not an engine's file or a newer
    /// one (it is left untouched), or when the disk fails.
    pub async fn open(path: impl AsRef<Path>) -> Result<Engine, OpenError> {
        Engine::builder(path).open().await
    }

    /// Prepares to open the engine of a file with options.
    pub fn builder(path: impl AsRef<Path>) -> EngineBuilder {
        EngineBuilder::new(Place::File(path.as_ref().to_owned()))
    }

    /// Prepares an engine that keeps its state in memory only, for tests.
    pub fn in_memory() -> EngineBuilder {
        EngineBuilder::new(Place::Memory)
    }

    /// A handle for everything that can be asked of the engine. Cheap to clone.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Follows what happens to workflows from now on.
    pub fn events(&self) -> Events {
        self.client.events()
    }

    /// Closes the engine in order: what was asked before is done and committed, whoever still waits is told that it
    /// is closed, then the file is closed. What is handed out is offered again when the file is next opened.
    pub async fn close(self) {
        self.client.close().await;
    }
}

impl EngineBuilder {
    fn new(place: Place) -> EngineBuilder {
        EngineBuilder { place, clock: Arc::new(SystemClock::default()), options: StoreOptions::default() }
    }

    /// Chooses how hard a commit is on the disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> EngineBuilder {
        self.options.strict = durability == Durability::Strict;
        self
    }

    /// Makes opening after a crash immediate, at the price of slower commits.
    #[must_use]
    pub fn quick_repair(mut self, quick_repair: bool) -> EngineBuilder {
        self.options.quick_repair = quick_repair;
        self
    }

    /// Sets how many bytes of the file are kept in memory.
    #[must_use]
    pub fn cache_bytes(mut self, cache_bytes: usize) -> EngineBuilder {
        self.options.cache_bytes = cache_bytes;
        self
    }

    /// Sets how many bytes of journal are kept, with their rows in memory, before the oldest quarter of them is folded
    /// into tables. What is settled within the window costs one write; a larger window takes more memory, about two
    /// to three times its bytes, and longer to open.
    #[must_use]
    pub fn window_bytes(mut self, window_bytes: u64) -> EngineBuilder {
        self.options.generation_bytes = (window_bytes / limits::GENERATIONS as u64).max(1);
        self
    }

    /// Chooses whether every page of the file is checked when it is opened.
    #[must_use]
    pub fn check(mut self, check: Check) -> EngineBuilder {
        self.options.check_bytes_max = match check {
            Check::Small => limits::CHECK_BYTES_MAX,
            Check::Always => u64::MAX,
            Check::Never => 0,
        };
        self
    }

    /// Makes every fsync longer by so much, to see what a slower disk would do.
    #[must_use]
    pub fn sync_delay(mut self, sync_delay: Duration) -> EngineBuilder {
        self.options.sync_delay = sync_delay;
        self
    }

    /// Sets where the engine reads the time.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> EngineBuilder {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens the engine: repairs the file if its process died, and gives back what was handed out then.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub async fn open(self) -> Result<Engine, OpenError> {
        let (opened, result) = oneshot::channel();
        let thread = std::thread::Builder::new().name("seriatim-writer".to_owned());
        let run = move || match self.start() {
            Ok((engine, writer)) => {
                if opened.send(Ok(engine)).is_ok() {
                    writer.run();
                }
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        thread.spawn(run).map_err(|error| Fault::File(Arc::new(error)))?;
        let died = || Fault::Defect("the thread that writes ended while opening".to_owned());
        result.await.map_err(|_| died())?
    }

    fn start(self) -> Result<(Engine, Writer), OpenError> {
        let store = match self.place {
            Place::File(path) => Store::open(&path, self.options)?,
            Place::Memory => Store::in_memory(self.options)?,
        };
        begin(store, self.clock)
    }
}

/// Begins an engine on an open store: what was handed out when it was last closed is given back.
pub(crate) fn begin(store: Store, clock: Arc<dyn Clock>) -> Result<(Engine, Writer), OpenError> {
    let (inbox, intake) = inbox();
    let (events, _) = broadcast::channel(limits::EVENTS_KEPT);
    let epoch = store.epoch();
    let waker = inbox.clone();
    clock.on_change(Box::new(move || waker.post_at_once(Request::Wake)));
    let meter = Meter::new(clock.clone());
    let commits = Commits::start(store.committer(), inbox.clone(), events.clone(), meter.clone())?;
    let mut writer = Writer {
        store,
        rules: Rules::default(),
        intake,
        inbox: inbox.clone(),
        clock: clock.clone(),
        wakeups: Wakeups::default(),
        time: Timestamp::default(),
        elapsed: Duration::ZERO,
        next_due: None,
        commits,
        recovers: false,
    };
    writer.recover()?;
    Ok((Engine { client: Client::new(inbox, epoch, events, meter, clock) }, writer))
}
