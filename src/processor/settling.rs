//! Settling what handlers have done: many at once, most of them in one request.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::task::JoinSet;

use crate::error::Unavailable;
use crate::limits;
use crate::processor::pool::Consumer;

/// Free slots for jobs, and the way to who settles them.
pub(crate) struct Slots<D> {
    free: OwnedSemaphorePermit,
    /// Places beside the slots, for jobs that wait for each other.
    beside: Arc<Semaphore>,
    ended: mpsc::UnboundedSender<Ended<D>>,
}

/// The slot of one job.
pub(crate) struct Slot<D> {
    permit: OwnedSemaphorePermit,
    ended: mpsc::UnboundedSender<Ended<D>>,
}

/// A job whose handler has ended; its slot is free again when it is settled.
pub(crate) struct Ended<D> {
    done: D,
    permit: OwnedSemaphorePermit,
}

impl<D> Slots<D> {
    pub(crate) fn new(
        free: OwnedSemaphorePermit,
        beside: Arc<Semaphore>,
        ended: mpsc::UnboundedSender<Ended<D>>,
    ) -> Slots<D> {
        Slots { free, beside, ended }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.free.num_permits()
    }

    /// One of them.
    pub(crate) fn one(&mut self) -> Slot<D> {
        let permit = self.free.split(1).expect("no more is received than there are free slots");
        Slot { permit, ended: self.ended.clone() }
    }

    /// A place beside them, as long as there is one: the slot stays free for another job.
    pub(crate) fn one_beside(&mut self) -> Slot<D> {
        match self.beside.clone().try_acquire_owned() {
            Ok(permit) => Slot { permit, ended: self.ended.clone() },
            Err(_) => self.one(),
        }
    }
}

impl<D> Slot<D> {
    /// Hands its job on, to be settled.
    pub(crate) fn hand_on(self, done: D) {
        // When the engine is gone nobody takes it any more; whoever receives is told of that.
        let _ = self.ended.send(Ended { done, permit: self.permit });
    }
}

/// Settles what comes until nobody is left who could hand on more.
///
/// What comes while two groups are under way goes together into the next: who is alone does not wait, and where there are
/// many the engine has one request to judge and one answer to give.
pub(crate) async fn settle_coming<C: Consumer>(
    consumer: Arc<C>,
    mut coming: mpsc::UnboundedReceiver<Ended<C::Done>>,
) -> Result<(), Unavailable> {
    let (mut under_way, mut has_ended) = (JoinSet::new(), false);
    loop {
        let mut come = Vec::new();
        tokio::select! {
            count = coming.recv_many(&mut come, limits::COMPLETE_ALL_MAX),
                if !has_ended && under_way.len() < limits::GROUPS_UNDER_WAY_MAX =>
            {
                has_ended = count == 0;
                if !has_ended {
                    under_way.spawn(settle(consumer.clone(), come));
                }
            }
            Some(answered) = under_way.join_next() => joined(answered)?,
            else => return Ok(()),
        }
    }
}

/// How a task ended that was to end by itself: a panic in it is a defect, and goes on in who waits for it.
pub(crate) fn joined(ended: Result<Result<(), Unavailable>, JoinError>) -> Result<(), Unavailable> {
    match ended {
        Ok(ended) => ended,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime it ran on is gone.
        Err(_) => Err(Unavailable::Closed),
    }
}

/// Settles a group, and lets go of its slots when that is answered.
async fn settle<C: Consumer>(consumer: Arc<C>, come: Vec<Ended<C::Done>>) -> Result<(), Unavailable> {
    let mut permits: Vec<OwnedSemaphorePermit> = Vec::new();
    let mut all = Vec::with_capacity(come.len());
    for Ended { done, permit } in come {
        all.push(done);
        match permits.iter_mut().find(|known| Arc::ptr_eq(known.semaphore(), permit.semaphore())) {
            Some(permits) => permits.merge(permit),
            None => permits.push(permit),
        }
    }
    let settled = consumer.settle(all).await;
    drop(permits);
    settled
}
