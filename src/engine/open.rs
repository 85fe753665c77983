//! Opening and closing an engine.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::client::client::Client;
use crate::engine::client::events::Events;
use crate::engine::clocks::ClockReading;
use crate::engine::clocks::Clocks;
use crate::engine::commits::Commits;
use crate::engine::inbox::Request;
use crate::engine::inbox::inbox;
use crate::engine::lingering::Lingering;
use crate::engine::meter::CommitMeter;
use crate::engine::rules::Rules;
use crate::engine::rules::due::NextDue;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::engine::wakeups::Wakeups;
use crate::engine::writer::Writer;
use crate::error::Fault;
use crate::error::OpenError;
use crate::error::Unavailable;
use crate::limits;
use crate::shown::shown;

/// How hard a commit is on the disk before it is acknowledged. Both survive kill -9 and power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// One fsync for a commit.
    #[default]
    Standard,
    /// Two fsyncs, and no shorter way for commits of a few messages: bit rot cannot silently roll back the last commit.
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
    /// engine when it is read, or when what stands beside it is written.
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
    /// Resolves when the thread that writes has let go of the file.
    released: Option<oneshot::Receiver<()>>,
}

shown!(Engine {});

/// How to open an engine, made by [`Engine::builder`].
pub struct EngineBuilder {
    place: EngineLocation,
    clock: Arc<dyn Clock>,
    options: StoreOptions,
}

shown!(EngineBuilder {});

/// Where an engine keeps its state.
enum EngineLocation {
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
        EngineBuilder::new(EngineLocation::File(path.as_ref().to_owned()))
    }

    /// Prepares an engine that keeps its state in memory only, for tests.
    pub fn in_memory() -> EngineBuilder {
        EngineBuilder::new(EngineLocation::Memory)
    }

    /// A handle for everything that can be asked of the engine. Cheap to clone.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Follows what happens to workflows from now on.
    pub fn events(&self) -> Events {
        self.client.events()
    }

    /// The fault that has stopped the engine, if one has; asked without waiting.
    ///
    /// A fault (the disk is full or fails, the file was taken away or replaced, a record is damaged) stops the engine for
    /// good: every call is answered with [`Unavailable::Stopped`](crate::Unavailable::Stopped), and opening the file again is the
    /// recovery. What was acknowledged is there then; what was asked last and not acknowledged may be there, whole, or not at all.
    pub fn fault(&self) -> Option<Fault> {
        self.client.fault()
    }

    /// Waits until the engine ends, and says why. A program that does nothing else with its engine than wait for calls of
    /// others hears of a fault in this way.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// let engine = seriatim::Engine::in_memory().open().await?;
    /// let client = engine.client().clone();
    /// let watch = tokio::spawn(async move { client.ended().await });
    /// assert!(engine.fault().is_none());
    /// engine.close().await;
    /// assert!(matches!(watch.await.expect("it ends"), seriatim::Unavailable::Closed));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ended(&self) -> Unavailable {
        self.client.ended().await
    }

    /// Closes the engine in order: what was asked before is done and committed, whoever still waits is told that it
    /// is closed, then the file is closed. What is handed out is offered again when the file is next opened.
    ///
    /// After a fault it waits until the file is let go of, so that it can be opened again.
    pub async fn close(self) {
        self.client.close().await;
        if let Some(released) = self.released {
            // The thread drops its end without a word.
            let _ = released.await;
        }
    }
}

impl EngineBuilder {
    fn new(place: EngineLocation) -> EngineBuilder {
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

    /// Sets how many bytes of the file are kept in memory; 32 MiB unless this is called.
    #[must_use]
    pub fn cache_bytes(mut self, cache_bytes: usize) -> EngineBuilder {
        self.options.cache_bytes = cache_bytes;
        self
    }

    /// Sets how many bytes of journal are kept, with their rows in memory, before the oldest quarter of them is flushed
    /// into tables; 48 MiB unless this is called. What is settled within the window costs one write; a larger window takes
    /// more memory, about two to three times its bytes, and longer to open.
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

    /// Keeps so many bytes of the disk free for what has to go on when it is nearly full (at least 4 MiB; 64 MiB suit
    /// most). Below that, sends and queue definitions are refused ([`SendRefusal::StorageFull`](crate::error::SendRefusal),
    /// [`QueueRefusal::StorageFull`](crate::error::QueueRefusal)), while receiving, settling, with the messages that a completion
    /// sends, and purging go on out of it; all is accepted again once there is room. So much of the disk is set aside in
    /// a file beside the engine's, named as that with `.ballast`.
    ///
    /// Without it, which is the default, a full disk is a fault that stops the engine.
    #[cfg(feature = "head-room")]
    #[must_use]
    pub fn head_room(mut self, bytes: u64) -> EngineBuilder {
        self.options.head_room_bytes = bytes.max(limits::HEAD_ROOM_BYTES_MIN);
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
        let (holds, released) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("seriatim-writer".to_owned());
        let run = move || match self.start() {
            Ok((engine, writer)) => {
                if opened.send(Ok(Engine { released: Some(released), ..engine })).is_ok() {
                    // Its client knows of the fault, and says so.
                    let _ = writer.run();
                }
                drop(holds);
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        thread.spawn(run).map_err(|error| Fault::File(Arc::new(error)))?;
        let died = || Fault::Defect("the thread that writes ended while opening".to_owned());
        result.await.map_err(|_| died())?
    }

    fn start(self) -> Result<(Engine, Writer), OpenError> {
        let store = match self.place {
            EngineLocation::File(path) => Store::open(&path, self.options)?,
            EngineLocation::Memory => Store::in_memory(self.options)?,
        };
        begin(store, self.clock)
    }
}

/// Begins an engine on an open store: what was handed out when it was last closed is given back.
pub(crate) fn begin(store: Store, clock: Arc<dyn Clock>) -> Result<(Engine, Writer), OpenError> {
    let clocks = Clocks::open(store.stamp(), ClockReading::of(&*clock));
    begin_with(store, clock, clocks)
}

/// The same with clocks that were opened before.
pub(crate) fn begin_with(
    store: Store,
    clock: Arc<dyn Clock>,
    mut clocks: Clocks,
) -> Result<(Engine, Writer), OpenError> {
    clocks.advance(ClockReading::of(&*clock));
    let (inbox, intake) = inbox();
    let (events, _) = broadcast::channel(limits::EVENTS_KEPT);
    let epoch = store.epoch();
    let waker = inbox.clone();
    clock.on_change(Box::new(move || waker.post_at_once(Request::Wake)));
    let meter = CommitMeter::new(clock.clone());
    let commits = Commits::start(store.committer(), inbox.clone(), events.clone(), meter.clone())?;
    let shared_clocks = clocks.shared();
    let rules = Rules::opened(store.queues(), clocks.now().engine);
    let mut writer = Writer {
        store,
        rules,
        intake,
        inbox: inbox.clone(),
        clock: clock.clone(),
        wakeups: Wakeups::default(),
        clocks,
        next_due: NextDue::default(),
        commits,
        looked_at_disk: Duration::ZERO,
        last_request_at: clock.elapsed(),
        recovers: false,
        lingering: Lingering::default(),
    };
    writer.recover()?;
    let room = writer.store.room().cloned();
    let client = Client::new(inbox, epoch, events, meter, (clock, shared_clocks), room);
    Ok((Engine { client, released: None }, writer))
}
