//! A partition on one node: a thread that follows its log, takes over when nobody has it, and then is the engine's writer until
//! the partition is lost or given up.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::runtime::Handle;
use tokio::sync::broadcast;

use crate::clock::SystemClock;
use crate::cluster::definitions::QueueDefinitions;
use crate::cluster::jet_stream::JetStreamLog;
use crate::cluster::leases::Leases;
use crate::cluster::stop::ClusterStop;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::Event;
use crate::engine::Events;
use crate::engine::log::Follower;
use crate::engine::log::FollowerOptions;
use crate::engine::log::SharedLog;
use crate::error::Fault;
use crate::error::OpenError;
use crate::error::Unavailable;
use crate::limits;

/// What a node does with a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionState {
    /// It reads what the owner writes.
    Following,
    /// It decides, and answers.
    Owner,
    /// It cannot go on with it, for this reason.
    Stopped(String),
}

/// A partition as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionStatus {
    /// Its number; the first is 0.
    pub partition: u16,
    /// What this node does with it.
    pub state: PartitionState,
    /// The position of the last entry of its log that this node has; of an owner, with which it became that.
    pub position: u64,
    /// The node that has it, if that is alive.
    pub owner: Option<String>,
}

/// What others may know of it.
struct SharedPartition {
    state: PartitionState,
    position: u64,
    client: Option<Client>,
}

/// A partition on this node.
pub(crate) struct Partition {
    number: u16,
    path: PathBuf,
    options: FollowerOptions,
    log: Arc<SharedLog<JetStreamLog>>,
    leases: Arc<Leases>,
    runtime: Handle,
    stop: ClusterStop,
    published: Mutex<SharedPartition>,
    definitions: Arc<QueueDefinitions>,
    events: broadcast::Sender<Event>,
    /// Up to which revision its engine has what queues there are.
    defined: tokio::sync::Mutex<u64>,
    /// Held while a partition is given to another node: one at a time.
    moving: Arc<tokio::sync::Mutex<()>>,
}

/// What a partition is made of.
pub(crate) struct PartitionParts {
    pub(crate) path: PathBuf,
    pub(crate) options: FollowerOptions,
    pub(crate) log: JetStreamLog,
    pub(crate) leases: Arc<Leases>,
    pub(crate) runtime: Handle,
    pub(crate) stop: ClusterStop,
    pub(crate) moving: Arc<tokio::sync::Mutex<()>>,
    pub(crate) definitions: Arc<QueueDefinitions>,
    /// Where it is told what happens to workflows.
    pub(crate) events: broadcast::Sender<Event>,
}

impl Partition {
    pub(crate) fn new(number: u16, parts: PartitionParts) -> Partition {
        let PartitionParts { path, options, log, leases, runtime, stop, moving, definitions, events } = parts;
        let published = SharedPartition { state: PartitionState::Following, position: 0, client: None };
        let (log, published) = (Arc::new(SharedLog::new(log)), Mutex::new(published));
        let defined = tokio::sync::Mutex::default();
        Partition {
            number,
            path,
            options,
            log,
            leases,
            runtime,
            stop,
            published,
            definitions,
            events,
            defined,
            moving,
        }
    }

    fn published(&self) -> MutexGuard<'_, SharedPartition> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine, if this node is the owner.
    pub(crate) fn client(&self) -> Option<Client> {
        self.published().client.clone()
    }

    pub(crate) fn status(&self) -> PartitionStatus {
        let published = self.published();
        PartitionStatus {
            partition: self.number,
            state: published.state.clone(),
            position: published.position,
            owner: self.leases.owner(self.number),
        }
    }

    /// Follows and serves until the node is stopped, or the partition cannot go on.
    pub(crate) fn run(self: Arc<Partition>) {
        while !self.stop.is_said() {
            let ended = self.follow_and_serve();
            self.published().client = None;
            self.runtime.block_on(self.leases.release(self.number));
            match ended {
                Ok(()) | Err(OpenError::Fault(Fault::Deposed)) => {
                    self.published().state = PartitionState::Following;
                }
                Err(_) if self.stop.is_said() => {}
                Err(error) => {
                    tracing::error!(partition = self.number, %error, "a partition is stopped on this node");
                    self.published().state = PartitionState::Stopped(error.to_string());
                    return;
                }
            }
        }
    }

    /// Follows until this node is to take over, and serves then until that is over.
    fn follow_and_serve(self: &Arc<Partition>) -> Result<(), OpenError> {
        let mut follower = Follower::open(&self.path, self.options, self.log.clone())?;
        loop {
            follower.catch_up()?;
            self.published().position = follower.position();
            if self.stop.wait(self.leases.lease() / 8) {
                return Ok(());
            }
            let Some(revision) = self.leases.may_claim(self.number) else { continue };
            if self.runtime.block_on(self.leases.claim(self.number, revision)) {
                follower.catch_up()?;
                self.published().position = follower.position();
                let clock = Arc::new(SystemClock::default());
                return follower
                    .serve(random(), first_number(self.number), clock, |engine| self.publish(engine));
            }
        }
    }

    /// Lets the engine of an owner be used, and looks after it until it ends.
    fn publish(self: &Arc<Partition>, engine: Engine) {
        tracing::info!(partition = self.number, "this node owns a partition");
        self.runtime.spawn(pass_on(engine.client().events(), self.events.clone()));
        self.runtime.spawn(self.clone().watch_over(engine));
    }

    /// Ends an engine when the node is stopped, or the partition is another's or should be.
    async fn watch_over(self: Arc<Partition>, engine: Engine) {
        let client = engine.client().clone();
        // Nobody is to find that there is no queue that was created before.
        *self.defined.lock().await = 0;
        if self.define(&client, self.definitions.seen()).await.is_ok() {
            let mut published = self.published();
            (published.state, published.client) = (PartitionState::Owner, Some(client.clone()));
        }
        let mut ticks = tokio::time::interval(self.leases.lease() / 8);
        loop {
            tokio::select! {
                _ = client.ended() => return,
                _ = ticks.tick() => {}
            }
            if self.stop.is_said() || !self.leases.has(self.number) {
                break;
            }
            let _ = self.define(&client, self.definitions.seen()).await;
            if self.leases.is_draining() || self.leases.should_move(self.number) {
                // Held until it is done; who waits for it asks again.
                let Ok(_moving) = self.moving.try_lock() else { continue };
                return self.end(engine).await;
            }
        }
        self.end(engine).await;
    }

    /// Has what queues there are in force, up to a revision.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine ends.
    pub(crate) async fn define(&self, client: &Client, revision: u64) -> Result<(), Unavailable> {
        let mut defined = self.defined.lock().await;
        if *defined < revision {
            *defined = self.definitions.bring(client, *defined, revision).await?;
        }
        Ok(())
    }

    /// Ends an engine in good order: what was asked before is committed and answered.
    async fn end(&self, engine: Engine) {
        self.published().client = None;
        engine.close().await;
    }
}

/// Tells whoever follows the whole node what happens in one of its engines, until that ends.
async fn pass_on(mut events: Events, node: broadcast::Sender<Event>) {
    while let Some(event) = events.next().await {
        if let Ok(event) = event {
            // Nobody has to listen.
            let _ = node.send(event);
        }
    }
}

/// The first number of a message in a partition: which partition it is stands above the 48 bits in which messages are counted.
pub(crate) fn first_number(partition: u16) -> u64 {
    u64::from(partition) * limits::NUMBER_END + 1
}

/// A number that no other owner has.
#[expect(
    clippy::disallowed_methods,
    reason = "an owner has to differ from every other, also from itself before"
)]
pub(crate) fn random() -> u64 {
    getrandom::u64().expect("the operating system has random numbers")
}
