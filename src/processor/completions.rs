//! Completing what handlers have done: many in one request.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::Unavailable;
use crate::limits;
use crate::processor::pool::Consumer;
use crate::processor::pool::all_ended;

/// What was done, and the slot that is free again when it is completed.
pub(crate) struct Done<D> {
    pub(crate) done: D,
    pub(crate) slot: OwnedSemaphorePermit,
}

/// Completes what comes until nobody is left who could send more.
///
/// What comes while requests are under way goes together into the next: who is alone does not wait, and where there are
/// many the engine has one request to judge and one answer to give.
pub(crate) async fn complete_all<C: Consumer>(
    consumer: Arc<C>,
    mut coming: mpsc::UnboundedReceiver<Done<C::Done>>,
) -> Result<(), Unavailable> {
    let mut under_way = JoinSet::new();
    loop {
        let mut come = Vec::new();
        tokio::select! {
            count = coming.recv_many(&mut come, limits::COMPLETE_ALL_MAX),
                if under_way.len() < limits::COMPLETIONS_UNDER_WAY_MAX =>
            {
                if count == 0 {
                    return all_ended(&mut under_way).await;
                }
                let consumer = consumer.clone();
                under_way.spawn(async move { complete(&*consumer, come).await });
            }
            Some(ended) = under_way.join_next() => ended.unwrap_or(Ok(()))?,
        }
    }
}

async fn complete<C: Consumer>(consumer: &C, come: Vec<Done<C::Done>>) -> Result<(), Unavailable> {
    let (mut all, mut slots) = (Vec::with_capacity(come.len()), None::<OwnedSemaphorePermit>);
    for Done { done, slot } in come {
        all.push(done);
        match &mut slots {
            Some(slots) => slots.merge(slot),
            None => slots = Some(slot),
        }
    }
    consumer.complete(all).await
}
