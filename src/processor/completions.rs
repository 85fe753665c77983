//! Completing what handlers have done: many in one request.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::task::JoinSet;

use crate::error::Unavailable;
use crate::limits;
use crate::processor::pool::Consumer;

/// A job that is done, and the slot that is free again when it is completed.
pub(crate) struct Finished<D> {
    pub(crate) done: D,
    pub(crate) slot: OwnedSemaphorePermit,
}

/// Completes what comes until nobody is left who could send more.
///
/// What comes while requests are under way goes together into the next: who is alone does not wait, and where there are
/// many the engine has one request to judge and one answer to give.
pub(crate) async fn complete_coming<C: Consumer>(
    consumer: Arc<C>,
    mut coming: mpsc::UnboundedReceiver<Finished<C::Done>>,
) -> Result<(), Unavailable> {
    let (mut under_way, mut has_ended) = (JoinSet::new(), false);
    loop {
        let mut come = Vec::new();
        tokio::select! {
            count = coming.recv_many(&mut come, limits::COMPLETE_ALL_MAX),
                if !has_ended && under_way.len() < limits::COMPLETIONS_UNDER_WAY_MAX =>
            {
                has_ended = count == 0;
                if !has_ended {
                    let consumer = consumer.clone();
                    under_way.spawn(async move { complete(&*consumer, come).await });
                }
            }
            Some(answered) = under_way.join_next() => said(answered)?,
            else => return Ok(()),
        }
    }
}

/// What a task said that was to end by itself: a panic in it is a defect, and goes on in who waits for it.
pub(crate) fn said(ended: Result<Result<(), Unavailable>, JoinError>) -> Result<(), Unavailable> {
    match ended {
        Ok(said) => said,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime it ran on is gone.
        Err(_) => Err(Unavailable::Closed),
    }
}

/// Completes them, and lets go of their slots when that is answered.
async fn complete<C: Consumer>(consumer: &C, come: Vec<Finished<C::Done>>) -> Result<(), Unavailable> {
    let mut slots: Option<OwnedSemaphorePermit> = None;
    let mut all = Vec::with_capacity(come.len());
    for Finished { done, slot } in come {
        all.push(done);
        match &mut slots {
            Some(slots) => slots.merge(slot),
            None => slots = Some(slot),
        }
    }
    let completed = consumer.complete(all).await;
    drop(slots);
    completed
}
