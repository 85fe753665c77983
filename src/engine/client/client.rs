//! The client: a handle for everything that can be asked of an engine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::actor::Actor;
use crate::clock::Clock;
use crate::clock::ClockSteps;
use crate::clock::Timestamp;
use crate::engine::client::background::Background;
use crate::engine::client::events::Events;
use crate::engine::client::known_topics::KnownTopics;
use crate::engine::clocks::SharedClocks;
use crate::engine::inbox::BackupOrder;
use crate::engine::inbox::Inbox;
use crate::engine::inbox::Request;
use crate::engine::meter::CommitMeter;
use crate::engine::meter::CommitStats;
use crate::engine::query::Query;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::due::Due;
use crate::engine::rules::effect::Event;
use crate::engine::rules::verbs::Command;
use crate::engine::store::DiskRoom;
use crate::engine::store::leftover::remove_unfinished_copies;
use crate::engine::store::lock_file::is_beside_a_store;
use crate::engine::store::space::StorageRoom;
use crate::error::Fault;
use crate::error::Misuse;
use crate::error::OperateError;
use crate::error::Unavailable;
use crate::shown::shown;
use crate::token::LockToken;

/// A handle for everything that can be asked of an engine. Cheap to clone; the engine stays open as long as there is
/// one, unless it is closed.
#[derive(Clone)]
pub struct Client {
    shared: Arc<ClientState>,
    /// Who is written down with what operators do, if anybody is.
    actor: Option<Arc<Actor>>,
    /// Whether what operators do is only tried.
    is_dry_run: bool,
}

shown!(Client { actor, is_dry_run });

struct ClientState {
    inbox: Inbox,
    epoch: u32,
    events: broadcast::Sender<Event>,
    meter: CommitMeter,
    clock: Arc<dyn Clock>,
    clocks: Arc<SharedClocks>,
    room: Option<DiskRoom>,
    background: Background,
    topics: KnownTopics,
}

impl Drop for ClientState {
    fn drop(&mut self) {
        let (slot, _) = oneshot::channel();
        self.inbox.post_at_once(Request::Close { slot });
    }
}

impl Client {
    pub(crate) fn new(
        inbox: Inbox,
        epoch: u32,
        events: broadcast::Sender<Event>,
        meter: CommitMeter,
        (clock, clocks): (Arc<dyn Clock>, Arc<SharedClocks>),
        room: Option<DiskRoom>,
    ) -> Client {
        let (background, topics) = (Background::default(), KnownTopics::default());
        Client {
            shared: Arc::new(ClientState {
                inbox,
                epoch,
                events,
                meter,
                clock,
                clocks,
                room,
                background,
                topics,
            }),
            actor: None,
            is_dry_run: false,
        }
    }

    /// When the next lock runs out or the next reminder is due, by the wall clock.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine is closed.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Unavailable> {
        self.look_up(|slot| Query::NextDue { slot }).await
    }

    /// Follows what happens to workflows from now on.
    pub fn events(&self) -> Events {
        Events::new(self.shared.events.subscribe(), self.shared.inbox.clone())
    }

    /// How much room the disk has, as it was last looked at; `None` when no head room is kept on it.
    pub fn storage_room(&self) -> Option<StorageRoom> {
        self.shared.room.as_ref().map(DiskRoom::view)
    }

    /// The fault that has stopped the engine, if one has; asked without waiting. The engine stays stopped: opening its
    /// file again is the recovery.
    pub fn fault(&self) -> Option<Fault> {
        match self.shared.inbox.ended()? {
            Unavailable::Stopped(fault) => Some(fault.clone()),
            _ => None,
        }
    }

    /// Waits until the engine ends, and says why: [`Unavailable::Closed`] when it was closed, [`Unavailable::Stopped`]
    /// with the fault when one has stopped it. It waits for ever while the engine goes on.
    pub async fn ended(&self) -> Unavailable {
        self.shared.inbox.why_ended().await
    }

    /// Has written down what the clocks show, for whoever follows.
    #[cfg(feature = "cluster")]
    pub(crate) fn note_time(&self) {
        self.shared.inbox.post_at_once(Request::NoteTime);
    }

    /// What commits have cost since the engine was opened.
    pub fn commit_stats(&self) -> CommitStats {
        self.shared.meter.read()
    }

    /// This client, acting for somebody: what operators do through it, and through every handle that comes from it, is
    /// written down in the audit, with who does it and why, in the same transaction, even when it is refused. That is
    /// to create, change, delete and purge queues, to redrive dead letters, and every verb of a
    /// [`Workflow`](crate::Workflow); sending, receiving and settling are not written down. No bodies are.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// use seriatim::{Actor, Engine, QueueOptions};
    /// use seriatim::view::AuditVerb;
    ///
    /// let engine = Engine::in_memory().open().await?;
    /// engine.client().create_queue("orders", QueueOptions::default()).await?; // nobody is written down
    ///
    /// let ada = engine.client().acting_as(Actor::new("ada")?.because("the customer called")?);
    /// let order = ada.queue("orders")?.workflow("order-17")?;
    /// order.hold("").await?;
    /// assert!(order.release_lock().await.is_err()); // nobody has a lock
    ///
    /// let audit = engine.client().audit(0, 100).await.expect("the engine is open");
    /// assert_eq!(audit.iter().map(|entry| entry.verb).collect::<Vec<_>>(), [AuditVerb::Hold, AuditVerb::ReleaseLock]);
    /// assert_eq!((audit[0].actor.as_str(), audit[0].reason.as_deref()), ("ada", Some("the customer called")));
    /// assert!(audit[0].refusal.is_none() && audit[1].refusal.is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Client {
        Client { shared: self.shared.clone(), actor: Some(Arc::new(actor)), is_dry_run: self.is_dry_run }
    }

    /// This client for dry runs: what operators do to messages and workflows through it, and through every handle that comes
    /// from it, is applied, answered as ever and taken back at once. Nothing is written, not even to the audit, and nobody
    /// else sees it. Of a purge, the first step is tried: the answer counts what that removes. What is done to queues and topics
    /// cannot be tried, and is refused as misuse of `dry_run`. Sending, receiving and settling are done.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// use seriatim::{Engine, Message, QueueOptions};
    ///
    /// let engine = Engine::in_memory().open().await?;
    /// let orders = engine.client().create_queue("orders", QueueOptions::by_position()).await?;
    /// orders.send(Message::new("").workflow("order-17").position(3)).await?;
    ///
    /// let order = engine.client().dry_run().queue("orders")?.workflow("order-17")?;
    /// assert!(order.declare_void(1, 9).await.is_err()); // position 3 is there
    /// order.declare_void(1, 2).await?; // could be done
    /// assert_eq!(order.view().await?.unwrap().next_position, Some(1)); // and was not
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn dry_run(&self) -> Client {
        Client { is_dry_run: true, ..self.clone() }
    }

    /// Whether it is [only trying](Client::dry_run).
    pub(crate) fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Up to `limit` entries of the audit in order of number, after the given one (0: from the oldest that is kept): what
    /// was done by clients that [act as somebody](Client::acting_as). The last 100,000 are kept. At most 1,000 are returned,
    /// whatever the limit.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine is closed.
    pub async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, Unavailable> {
        self.look_up(|slot| Query::Audit { after, limit, slot }).await
    }

    /// Copies the state as it is now to a new file, while the engine goes on; the copy is an engine's file itself.
    /// Returns how many records it has. While it runs, the engine's file cannot reuse freed space. What a process that was ended
    /// has left of a copy into the same folder is removed.
    ///
    /// # Errors
    /// [`OperateRefusal::StorageFull`](crate::error::OperateRefusal::StorageFull) when there is not enough room where it goes, or the disk of the engine's file is
    /// nearly full meanwhile, if head room is kept; [`Misuse`] when its name ends as what is made beside a file does (`.new`, `.part`,
    /// `.lock`, `.ballast`); [`OperateRefusal::BackupFailed`](crate::error::OperateRefusal::BackupFailed) when the target exists or cannot be written, or
    /// when a record is damaged.
    pub async fn backup(&self, target: impl AsRef<Path>) -> Result<u64, OperateError> {
        let (slot, answer) = oneshot::channel();
        let target = target.as_ref().to_owned();
        if is_beside_a_store(&target) {
            return Err(
                Misuse::new("path", "ends as what is made beside a file does: choose another name").into()
            );
        }
        remove_unfinished_copies(&target);
        let room = self.shared.room.as_ref().map(|room| room.admit_copy(&target));
        let room = room.transpose().map_err(OperateError::Refused)?;
        let order = Box::new(BackupOrder { target, room, slot });
        let _pending = self.shared.inbox.post(Request::Backup(order), 0).await?;
        match answer.await {
            Ok(copied) => copied,
            Err(_) => Err(self.shared.inbox.why_ended().await.into()),
        }
    }

    pub(crate) fn known_topics(&self) -> &KnownTopics {
        &self.shared.topics
    }

    pub(crate) async fn close(&self) {
        let (slot, closed) = oneshot::channel();
        if let Ok(_pending) = self.shared.inbox.post(Request::Close { slot }, 0).await {
            let _ = closed.await;
        }
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        &self.shared.inbox
    }

    /// Who is written down with what operators do.
    pub(crate) fn actor(&self) -> Option<&Arc<Actor>> {
        self.actor.as_ref()
    }

    /// The steps of the wall clock of more than a minute that the engine has noticed since its file was made. A step changes
    /// no duration; given instants (schedules, cron ticks) follow a step forward once it has lasted 30 s.
    pub fn clock_steps(&self) -> ClockSteps {
        self.shared.clocks.steps()
    }

    /// The wall clock as far as the engine believes it, which is what given instants are compared with.
    pub(crate) fn wall_now(&self) -> Timestamp {
        self.shared.clocks.wall(self.elapsed())
    }

    /// An instant of engine time in the clock's elapsed time.
    pub(crate) fn elapsed_at(&self, at: Timestamp) -> Duration {
        self.shared.clocks.elapsed_at(at)
    }

    /// Engine time when the clock has run so long.
    #[cfg(feature = "cluster")]
    pub(crate) fn engine_at(&self, elapsed: Duration) -> Timestamp {
        self.shared.clocks.engine(elapsed)
    }

    /// An instant of engine time as people are shown it.
    pub(crate) fn shown(&self, at: Timestamp) -> Timestamp {
        self.shared.clocks.shown(at)
    }

    /// An instant of either clock as people are shown it.
    pub(crate) fn shown_due(&self, due: Due) -> Timestamp {
        if due.is_of_wall() { due.at() } else { self.shown(due.at()) }
    }

    /// Sleeps by the engine's clock.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine ends before.
    pub(crate) async fn sleep(&self, lasts: Duration) -> Result<(), Unavailable> {
        self.sleep_until(self.elapsed().saturating_add(lasts)).await
    }

    /// How long the engine's clock has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.shared.clock.elapsed()
    }

    /// Sleeps until the engine's clock has run so long.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine ends before.
    pub(crate) async fn sleep_until(&self, until: Duration) -> Result<(), Unavailable> {
        let (slot, awake) = oneshot::channel();
        let _pending = self.shared.inbox.post(Request::Sleep { until, slot }, 0).await?;
        match awake.await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.shared.inbox.why_ended().await),
        }
    }

    /// Runs a future on the engine's own thread, whatever the user's runtime is busy with.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.shared.background.spawn(work)
    }

    /// Posts a command whose answer nobody waits for.
    pub(crate) fn give_back(&self, command: impl Into<Command>) {
        self.shared.inbox.give_back(command.into());
    }

    /// A new lock token. The operating system's chance makes it unguessable.
    ///
    /// # Errors
    /// [`Unavailable`] when the operating system gives no chance, which leaves nothing to go on with.
    pub(crate) fn token(&self) -> Result<LockToken, Unavailable> {
        let mut chance = [0; 12];
        fill(&mut chance)?;
        Ok(LockToken::new(self.shared.epoch, chance))
    }

    /// Chance for a backoff.
    pub(crate) fn entropy(&self) -> Result<u64, Unavailable> {
        let mut chance = [0; 8];
        fill(&mut chance)?;
        Ok(u64::from_le_bytes(chance))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tokens and backoff are drawn here, and enter the rules as data"
)]
fn fill(chance: &mut [u8]) -> Result<(), Unavailable> {
    getrandom::fill(chance)
        .map_err(|error| Unavailable::Stopped(Fault::Defect(format!("draw chance: {error}"))))
}
