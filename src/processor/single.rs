//! Handling deliveries one by one: of many workflows at once, one at a time for each.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::Instrument;
use tracing::Span;

use crate::engine::Abandon;
use crate::engine::Delivery;
use crate::engine::Ending;
use crate::engine::Queue;
use crate::engine::Received;
use crate::error::ReceiveError;
use crate::error::SettleError;
use crate::error::SettleRefusal;
use crate::error::Unavailable;
use crate::processor::context::Context;
use crate::processor::delays::Delays;
use crate::processor::handler::Body;
use crate::processor::handler::Handler;
use crate::processor::invocation::Keeping;
use crate::processor::invocation::invoke;
use crate::processor::locks::KeptLock;
use crate::processor::outcome::Failure;
use crate::processor::outcome::Outcome;
use crate::processor::outcome::Retry;
use crate::processor::pool::Consumer;

/// Reason of a dead letter whose body the handler cannot take.
pub(crate) const MALFORMED_BODY: &str = "MalformedBody";

/// The reason of an attempt whose handler wants another.
const ASKED: &str = "the handler asked for a retry";

/// A handler with what it takes to run it on deliveries.
pub(crate) struct Single<H, T> {
    pub(crate) queue: Queue,
    pub(crate) handler: Arc<H>,
    pub(crate) keeping: Keeping,
    pub(crate) delays: Delays,
    pub(crate) body: PhantomData<fn() -> T>,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    Completed,
    Failed,
    SetAside,
    DeadLettered,
    /// The lock was lost: whatever the handler said is void.
    Lost,
}

/// How far a delivery has come when its handler has ended.
enum Ended {
    Done(Done),
    Settled(Handled),
}

/// A delivery that is only to be completed, and its lock, which is kept until it is.
pub(crate) struct Done {
    delivery: Delivery,
    _lock: KeptLock,
}

impl<H: Handler<T>, T: Body> Single<H, T> {
    /// Handles one delivery and settles it.
    pub(crate) async fn handle_one(&self, delivery: Delivery) -> Result<Handled, Unavailable> {
        let _watching = self.keeping.locks.watched();
        match self.run(delivery).await? {
            Ended::Done(mut done) => settled_as(Handled::Completed, done.delivery.complete().await),
            Ended::Settled(handled) => Ok(handled),
        }
    }

    /// Handles one delivery, and settles it unless all that is left is to complete it.
    async fn run(&self, mut delivery: Delivery) -> Result<Ended, Unavailable> {
        let body = match T::read(delivery.message()) {
            Ok(body) => body,
            Err(misuse) => {
                let settled = Box::pin(delivery.dead_letter(MALFORMED_BODY, misuse.to_string())).await;
                return settled_as(Handled::DeadLettered, settled).map(Ended::Settled);
            }
        };
        let (cancel, cancelled) = watch::channel(false);
        let mut lock = self.keeping.locks.keep(delivery.renewal(), delivery.lasts(), cancel).await;
        let token = delivery.lock_token();
        let context = Context::new(delivery.shared_message(), self.queue.clone(), token, cancelled);
        let handler = self.handler.clone();
        let span = span_of(&self.queue, delivery.message());
        let handling = async move { handler.handle(context, body).await }.instrument(span);
        let result = invoke(&mut lock, &self.keeping.give_up, handling).await?;
        match result {
            Some(Ok(outcome)) if outcome.is_only_done() => Ok(Ended::Done(Done { delivery, _lock: lock })),
            // In boxes, so that what is done at once has not to carry the room that the others need.
            Some(Ok(outcome)) => Box::pin(self.settle(delivery, outcome)).await.map(Ended::Settled),
            Some(Err(failure)) => Box::pin(self.settle_failure(delivery, failure)).await.map(Ended::Settled),
            None => {
                // Its handler is gone by now. If its lock was lost, this tells the engine what it knows already; if it
                // was given up, it has failed.
                drop(delivery);
                Ok(Ended::Settled(Handled::Lost))
            }
        }
    }

    async fn settle(&self, mut delivery: Delivery, outcome: Outcome) -> Result<Handled, Unavailable> {
        let (handled, settled) = match outcome {
            Outcome::Complete => (Handled::Completed, delivery.complete().await),
            Outcome::CompleteWith(completion) => {
                (Handled::Completed, delivery.complete_with(completion).await.map(drop))
            }
            Outcome::Retry => return self.settle_failure(delivery, Failure::new(ASKED)).await,
            Outcome::RetryAfter(delay) => {
                return self.settle_failure(delivery, Failure::new(ASKED).retry_after(delay)).await;
            }
            Outcome::RetryAt(at) => {
                return self.settle_failure(delivery, Failure::new(ASKED).retry_at(at)).await;
            }
            Outcome::Defer => (Handled::SetAside, delivery.defer().await),
            Outcome::DeferUntil(until) => (Handled::SetAside, delivery.defer_until(until).await),
            Outcome::DeadLetter { reason, description } => {
                (Handled::DeadLettered, delivery.dead_letter(reason, description).await)
            }
        };
        match settled {
            // The delivery is still held: an outcome that is not possible is a failure of the handler.
            Err(error) if !is_lost(&error) => {
                self.settle_failure(delivery, Failure::new(error.to_string())).await
            }
            settled => settled_as(handled, settled),
        }
    }

    async fn settle_failure(&self, mut delivery: Delivery, failure: Failure) -> Result<Handled, Unavailable> {
        let attempt = delivery.message().delivery_count;
        tracing::debug!(
            queue = %self.queue.name(),
            sequence = %delivery.sequence_number(),
            attempt,
            reason = %failure.reason,
            "a handler failed"
        );
        let ending = match failure.retry {
            Retry::Unbegun => Ending::Release,
            _ => failed_as(&self.queue, &self.delays, attempt, failure)?,
        };
        settled_as(Handled::Failed, delivery.end(ending).await)
    }
}

/// The span a handler runs in, so that what it logs says for which message.
pub(crate) fn span_of(queue: &Queue, message: &Received) -> Span {
    tracing::info_span!(
        "handle",
        queue = %queue.name(),
        workflow = message.workflow_id.as_ref().map(tracing::field::display),
        sequence = %message.sequence_number,
        attempt = message.delivery_count
    )
}

/// How a failed attempt ends: with the delay it chose, the processor's backoff, or the queue's.
pub(crate) fn failed_as(
    queue: &Queue,
    delays: &Delays,
    attempt: u32,
    failure: Failure,
) -> Result<Ending, Unavailable> {
    let abandon = match (failure.retry, delays.after(queue, attempt)?) {
        (Retry::After(delay), _) => Abandon::after(delay),
        (Retry::At(at), _) => Abandon::at(at),
        (_, Some(delay)) => Abandon::after(delay),
        (_, None) => Abandon::with_backoff(),
    };
    Ok(Ending::Abandon(abandon.reason(failure.reason)))
}

/// What became of a delivery, when settling it went as it did. Only an engine that is gone is an error.
pub(crate) fn settled_as(handled: Handled, settled: Result<(), SettleError>) -> Result<Handled, Unavailable> {
    match settled {
        Ok(()) => Ok(handled),
        Err(SettleError::Unavailable(unavailable)) => Err(unavailable),
        Err(error) => {
            tracing::debug!(%error, "a delivery could not be settled");
            Ok(Handled::Lost)
        }
    }
}

pub(crate) fn is_lost(error: &SettleError) -> bool {
    let lost = matches!(error.refusal(), Some(SettleRefusal::LockLost | SettleRefusal::QueueNotFound));
    lost || matches!(error, SettleError::Unavailable(_))
}

impl<H: Handler<T>, T: Body> Consumer for Single<H, T> {
    type Job = Delivery;
    type Done = Done;

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>, ReceiveError> {
        self.queue.receive_many(max, wait).await
    }

    async fn handle(&self, job: Delivery) -> Result<Option<Done>, Unavailable> {
        match self.run(job).await? {
            Ended::Done(done) => Ok(Some(done)),
            Ended::Settled(_) => Ok(None),
        }
    }

    async fn complete(&self, mut done: Vec<Done>) -> Result<(), Unavailable> {
        let deliveries = done.iter_mut().map(|done| &mut done.delivery);
        let completed = match self.queue.complete_all(deliveries).await {
            Ok(completed) => completed.into_iter().map(|one| one.map_err(SettleError::Refused)).collect(),
            Err(error) => vec![Err(error)],
        };
        completed.into_iter().try_for_each(|one| settled_as(Handled::Completed, one).map(drop))
    }

    async fn release(&self, mut job: Delivery) {
        let _ = job.release().await;
    }
}
