//! Settling what handlers have done: many at once, most of them in one request.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::task::JoinSet;

use crate::error::Unavailable;
use crate::limits;
use crate::processor::line::JobLine;
use crate::processor::line::JobPlace;
use crate::processor::pool::Consumer;
use crate::task::boxed;

/// The place of a job that needs no runner, and the way to who settles it.
pub(crate) struct JobSlot<C: Consumer> {
    place: JobPlace<C>,
    ended: mpsc::UnboundedSender<FinishedJob<C>>,
}

/// A job whose handler has ended; its place is free again when it is settled.
pub(crate) struct FinishedJob<C: Consumer> {
    pub(crate) done: C::Done,
    pub(crate) place: JobPlace<C>,
}

impl<C: Consumer> JobSlot<C> {
    pub(crate) fn new(place: JobPlace<C>, ended: mpsc::UnboundedSender<FinishedJob<C>>) -> JobSlot<C> {
        JobSlot { place, ended }
    }

    /// Hands its job on, to be settled.
    pub(crate) fn hand_on(self, done: C::Done) {
        // When the engine is gone nobody takes it any more; whoever receives gets that error.
        let _ = self.ended.send(FinishedJob { done, place: self.place });
    }
}

/// Settles what comes until nobody is left who could hand on more.
///
/// What comes while two groups are under way goes together into the next: who is alone does not wait, and where there are
/// many the engine has one request to judge and one answer to give. As long as handlers are waited for, more is about to
/// come, and a second group leaves only when it is large.
pub(crate) async fn settle_coming<C: Consumer>(
    consumer: Arc<C>,
    line: Arc<JobLine<C>>,
    mut coming: mpsc::UnboundedReceiver<FinishedJob<C>>,
) -> Result<(), Unavailable> {
    let (mut under_way, mut has_ended) = (JoinSet::new(), false);
    loop {
        let may_leave = match under_way.len() {
            0 => true,
            some if some < limits::GROUPS_UNDER_WAY_MAX => {
                coming.len() >= limits::GROUP_LARGE || !line.has_waiting()
            }
            _ => false,
        };
        let mut come = Vec::with_capacity(coming.len().min(limits::COMPLETE_ALL_MAX));
        tokio::select! {
            count = coming.recv_many(&mut come, limits::COMPLETE_ALL_MAX), if !has_ended && may_leave => {
                has_ended = count == 0;
                if !has_ended {
                    under_way.spawn(boxed(settle(consumer.clone(), line.clone(), come)));
                }
            }
            Some(answered) = under_way.join_next() => joined(answered)?,
            else => return Ok(()),
        }
    }
}

/// How a task ended that was to end by itself: a panic in it is a defect, and goes on in who waits for it.
pub(crate) fn joined<E: From<Unavailable>>(ended: Result<Result<(), E>, JoinError>) -> Result<(), E> {
    match ended {
        Ok(ended) => ended,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime it ran on is gone.
        Err(_) => Err(Unavailable::Closed.into()),
    }
}

/// Settles a group, and lets go of its places when that is answered.
async fn settle<C: Consumer>(
    consumer: Arc<C>,
    line: Arc<JobLine<C>>,
    come: Vec<FinishedJob<C>>,
) -> Result<(), Unavailable> {
    let (done, places): (Vec<_>, Vec<_>) =
        come.into_iter().map(|FinishedJob { done, place }| (done, place)).unzip();
    let count = places.iter().filter(|place| place.is_of_runner()).count();
    // The command is sent when settling is first polled, which is before this is noted.
    let (settled, ()) = tokio::join!(consumer.settle(done), async { line.note_settled(count) });
    line.give_back_all(places);
    settled
}
