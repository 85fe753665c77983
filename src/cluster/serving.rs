//! The engine of a partition that this node owns: it is let be used, looked after, and ended when the partition is another node's or
//! should be.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::OwnedMutexGuard;
use tokio::sync::broadcast;

use crate::cluster::partition::LOOKS_A_LEASE;
use crate::cluster::partition::Partition;
use crate::cluster::partition::PartitionState;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::Event;
use crate::engine::Events;
use crate::error::Unavailable;
use crate::limits;
use crate::own_queues::OUTBOX_QUEUE;
use crate::task::boxed;

/// For so many leases a partition is kept that another node should have.
const KEPT_LEASES: u32 = 3;

/// For so many leases it is tried to let an engine be used, and for as long as servers may take to agree on a leader, before the
/// partition is left to others.
const DOORS_LEASES: u32 = 16;

/// How far an owner has come.
struct OwnerProgress {
    /// How often it was looked whether there is something to do.
    looks: u32,
    is_published: bool,
    /// Whether it was said why it is not.
    is_said: bool,
    began: Duration,
    /// Since when it is being given to another node.
    gives_since: Option<Duration>,
}

impl OwnerProgress {
    fn new(began: Duration) -> OwnerProgress {
        OwnerProgress { looks: 0, is_published: false, is_said: false, began, gives_since: None }
    }
}

impl Partition {
    /// Lets the engine of an owner be used, and looks after it until it ends.
    pub(crate) fn publish(self: &Arc<Partition>, engine: Engine, epoch: u32) {
        self.epoch.store(epoch, Ordering::Relaxed);
        self.gives_away.store(false, Ordering::Relaxed);
        tracing::info!(partition = self.number, "this node owns a partition");
        self.node.runtime.spawn(boxed(pass_on(engine.client().events(), self.node.events.clone())));
        self.node.runtime.spawn(boxed(self.clone().watch_over(engine)));
    }

    async fn watch_over(self: Arc<Partition>, engine: Engine) {
        self.meter().begin(engine.client());
        self.look_after(engine).await;
        self.meter().end();
    }

    /// Ends an engine when the node is stopped, or the partition is another's or should be.
    async fn look_after(&self, engine: Engine) {
        let client = engine.client().clone();
        let mut ticks = tokio::time::interval(self.node.leases.lease() / LOOKS_A_LEASE);
        let mut progress = OwnerProgress::new(client.elapsed());
        let mut newest = self.node.leases.newest_settled();
        loop {
            tokio::select! {
                _ = client.ended() => return,
                _ = ticks.tick() => progress.looks += 1,
            }
            if self.node.stop.is_said() || !self.node.leases.has(self.number) {
                break;
            }
            // Whoever has begun to follow sees that come, and knows from then on what passes.
            let newest_before = std::mem::replace(&mut newest, self.node.leases.newest_settled());
            if newest > newest_before {
                client.note_time();
            }
            if !self.is_open(&client, &mut progress).await {
                break;
            }
            if self.is_given_up(&client, &mut progress).await {
                // Who waits for it asks again.
                let Ok(moving) = self.node.moving.clone().try_lock_owned() else { continue };
                return self.end_in_turn(engine, moving).await;
            }
        }
        self.end(engine).await;
    }

    /// Has the engine go on with the queues that there are. False when it could not be let be used for long: others may have it then.
    async fn is_open(&self, client: &Client, progress: &mut OwnerProgress) -> bool {
        if progress.is_published {
            let _ = self.enforced.go_on(client).await;
            return true;
        }
        let Err(why) = self.open_doors(client).await else {
            progress.is_published = true;
            return true;
        };
        if !std::mem::replace(&mut progress.is_said, true) {
            tracing::warn!(partition = self.number, %why, "a partition that was taken over answers nobody yet");
        }
        let is_late = client.elapsed().saturating_sub(progress.began)
            > (self.node.leases.lease() * DOORS_LEASES).max(limits::ROUTE_WAIT * 2);
        if is_late {
            self.node.leases.leave_to_others(self.number);
        }
        !is_late
    }

    /// Lets the engine be asked, once it has the queues that there are.
    async fn open_doors(&self, client: &Client) -> Result<(), Unavailable> {
        self.enforced.begin(client).await?;
        let mut published = self.published();
        // Once it has ended it is taken from there, or was already.
        if let Some(why) = client.ended().now_or_never() {
            return Err(why);
        }
        (published.state, published.client) = (PartitionState::Owner, Some(client.clone()));
        Ok(())
    }

    /// Whether the partition is to be another node's at this moment. From when it should be, nothing more is handed out, and for some
    /// time it is waited until what is locked is settled.
    async fn is_given_up(&self, client: &Client, progress: &mut OwnerProgress) -> bool {
        // Who should have it may have been unable to take it: it is not given up at once, or nobody would have it for long.
        let is_kept = progress.looks < KEPT_LEASES * LOOKS_A_LEASE;
        let gives = self.node.leases.is_draining() || (!is_kept && self.node.leases.should_move(self.number));
        self.gives_away.store(gives, Ordering::Relaxed);
        if !gives {
            progress.gives_since = None;
            return false;
        }
        let now = client.elapsed();
        let since = *progress.gives_since.get_or_insert_with(|| {
            client.end_waits();
            now
        });
        if now.saturating_sub(since) >= limits::MOVE_DRAIN {
            return true;
        }
        // A list of very many queues takes its time.
        let is_looked = now == since || progress.looks.is_multiple_of(LOOKS_A_LEASE / 2);
        is_looked && !self.has_locks(client).await
    }

    /// Whether somebody has something to settle. What waits in the outbox is handed over once, whoever does it.
    async fn has_locks(&self, client: &Client) -> bool {
        let views = tokio::time::timeout(self.node.leases.lease(), client.all_queues()).await;
        // An engine that waits for its log does not say, and is not waited for.
        let Ok(Ok(views)) = views else { return false };
        views.iter().any(|view| view.counts.locked > 0 && view.name.as_str() != OUTBOX_QUEUE)
    }

    /// Ends an engine while others of the node go on, unless it takes too long.
    async fn end_in_turn(&self, engine: Engine, moving: OwnedMutexGuard<()>) {
        let mut ended = pin!(self.end(engine));
        if tokio::time::timeout(limits::MOVE_WAIT, ended.as_mut()).await.is_err() {
            drop(moving);
            ended.await;
        }
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
