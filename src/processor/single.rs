//! Handling deliveries one by one: of many workflows at once, one at a time for each.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::Instrument;
use tracing::Span;

use crate::engine::Delivery;
use crate::engine::DeliveryHold;
use crate::engine::Outcome;
use crate::engine::Queue;
use crate::engine::ReceivedMessage;
use crate::error::ReceiveError;
use crate::error::SendRefusal;
use crate::error::SettleError;
use crate::error::SettleRefusal;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::context::Context;
use crate::processor::delays::Delays;
use crate::processor::failure::Failure;
use crate::processor::gate::Gate;
use crate::processor::handler::Body;
use crate::processor::handler::Handler;
use crate::processor::invocation::guarded;
use crate::processor::invocation::invoke;
use crate::processor::lock_renewals::KeptLock;
use crate::processor::lock_renewals::LockRenewals;
use crate::processor::pool::Consumer;
use crate::processor::pool::RunnerPool;
use crate::processor::settling::JobSlot;
use crate::processor::settling::joined;
use crate::processor::taker::Assignment;
use crate::processor::taker::Taker;

/// Reason of a dead letter whose body the handler cannot take.
pub(crate) const MALFORMED_BODY: &str = "MalformedBody";

/// A handler with what it takes to run it on deliveries.
pub(crate) struct Single<H, T> {
    /// Each handler counts one reference to it.
    pub(crate) queue: Arc<Queue>,
    pub(crate) handler: Arc<H>,
    pub(crate) locks: Arc<LockRenewals>,
    pub(crate) delays: Delays,
    /// Takes messages that need no task of their own.
    pub(crate) taker: Option<Arc<dyn Taker>>,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) end_counter: Option<EndCounter>,
    pub(crate) body: PhantomData<fn() -> T>,
}

/// Hears how deliveries have ended, and how many of them did so.
pub(crate) type EndCounter = Arc<dyn Fn(DeliveryEnd, usize) + Send + Sync>;

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryEnd {
    Completed,
    Failed,
    /// Its handler asked for another attempt.
    Abandoned,
    SetAside,
    DeadLettered,
    /// It is given back uncounted, and offered again at once.
    Released,
    /// The lock was lost: the outcome of the handler is void.
    Lost,
}

impl DeliveryEnd {
    /// What becomes of a delivery that ends so.
    fn by(outcome: &Outcome) -> DeliveryEnd {
        match outcome {
            Outcome::Complete | Outcome::CompleteWith(_) => DeliveryEnd::Completed,
            Outcome::Abandon(_) => DeliveryEnd::Abandoned,
            Outcome::Release => DeliveryEnd::Released,
            Outcome::Defer | Outcome::DeferFor(_) | Outcome::DeferUntil(_) => DeliveryEnd::SetAside,
            Outcome::DeadLetter { .. } => DeliveryEnd::DeadLettered,
        }
    }
}

/// A delivery whose lock is kept.
pub(crate) struct StartedDelivery {
    delivery: Delivery,
    lock: KeptLock,
}

/// How far a delivery has come when its handler is over.
enum AttemptEnd {
    /// Its handler has ended.
    Ended(FinishedDelivery),
    /// It is settled already.
    Settled(DeliveryEnd),
}

/// A delivery whose handler has ended, and its lock, which is kept until it is settled.
pub(crate) struct FinishedDelivery {
    said: SaidOfDelivery,
    lock: KeptLock,
}

/// What a handler said of a delivery, in little room, as it is moved several times. Nearly all say that the message is done and
/// nothing else: then it is let go of by the thread that handled it, and not by the one that settles.
enum SaidOfDelivery {
    Done(DeliveryHold),
    Other(Box<(Delivery, Result<Outcome, Failure>)>),
}

impl FinishedDelivery {
    fn new(delivery: Delivery, said: Result<Outcome, Failure>, lock: KeptLock) -> FinishedDelivery {
        let said = match said {
            Ok(outcome) if outcome.is_only_done() => SaidOfDelivery::Done(delivery.into_hold()),
            said => SaidOfDelivery::Other(Box::new((delivery, said))),
        };
        FinishedDelivery { said, lock }
    }

    /// What it takes to complete it, if its handler said nothing else.
    fn only_done(&mut self) -> Option<&mut DeliveryHold> {
        match &mut self.said {
            SaidOfDelivery::Done(hold) => Some(hold),
            SaidOfDelivery::Other(_) => None,
        }
    }
}

impl<H: Handler<T>, T: Body> Single<H, T> {
    /// Handles one delivery and settles it.
    pub(crate) async fn handle_one(&self, delivery: Delivery) -> Result<DeliveryEnd, Unavailable> {
        let _watching = self.locks.watched();
        match self.run(self.begin_one(delivery)).await? {
            AttemptEnd::Ended(done) => self.settle_one(done).await,
            AttemptEnd::Settled(handled) => Ok(handled),
        }
    }

    /// Handles one delivery, up to what its handler says.
    async fn run(&self, begun: StartedDelivery) -> Result<AttemptEnd, Unavailable> {
        let StartedDelivery { mut delivery, lock } = begun;
        if lock.signal().is_raised() {
            // It has waited for a thread for too long.
            return Ok(AttemptEnd::Settled(DeliveryEnd::Lost));
        }
        let body = match guarded(|| Ok(T::read(delivery.message()))) {
            Ok(Ok(body)) => body,
            // Reading it panics.
            Err(failure) => {
                return Ok(AttemptEnd::Ended(FinishedDelivery::new(delivery, Err(failure), lock)));
            }
            Ok(Err(misuse)) => {
                let settled = Box::pin(delivery.dead_letter(MALFORMED_BODY, misuse.to_string())).await;
                return settled_as(DeliveryEnd::DeadLettered, settled).map(AttemptEnd::Settled);
            }
        };
        let context = self.context_of(&delivery, &lock);
        let span = span_of(&self.queue, delivery.message());
        let handler = &*self.handler;
        let handling = async move { handler.handle(context, body).await };
        let client = self.queue.client();
        // In its place from the beginning: it has the handler's future in it, which may be large.
        let said = {
            let invoked = std::pin::pin!(invoke(client, &lock, handling));
            invoked.instrument(span).await?
        };
        match said {
            Some(said) => Ok(AttemptEnd::Ended(FinishedDelivery::new(delivery, said, lock))),
            // Its handler is gone by now. Dropping it tells the engine what it knows already.
            None => Ok(AttemptEnd::Settled(DeliveryEnd::Lost)),
        }
    }

    /// Keeps the lock of a delivery from now on.
    fn begin_one(&self, delivery: Delivery) -> StartedDelivery {
        let lock = self.locks.keep(delivery.renewal(), delivery.lock_time());
        StartedDelivery { delivery, lock }
    }

    /// Gives a delivery to the one who takes it.
    fn assign(&self, delivery: Delivery, taker: &Arc<dyn Taker>, slot: JobSlot<Self>) -> Assignment {
        let lock = self.locks.keep_accepted(delivery.renewal(), delivery.lock_time(), taker.clone());
        let context = self.context_of(&delivery, &lock);
        let taker = taker.clone();
        Assignment::new(lock.number(), context, move |result, lasted| {
            let said = guarded(|| taker.ended(result, lasted));
            slot.hand_on(FinishedDelivery::new(delivery, said, lock));
        })
    }

    /// What a handler knows of a delivery beside its body.
    fn context_of(&self, delivery: &Delivery, lock: &KeptLock) -> Context {
        let (message, token) = (delivery.shared_message(), delivery.lock_token());
        Context::new(message, self.queue.clone(), token, lock.signal().clone())
    }

    /// Settles a delivery by the outcome of its handler.
    async fn settle_one(&self, done: FinishedDelivery) -> Result<DeliveryEnd, Unavailable> {
        let FinishedDelivery { said, lock: _lock } = done;
        match said {
            SaidOfDelivery::Done(mut hold) => self.complete(vec![&mut hold]).await,
            SaidOfDelivery::Other(other) => match *other {
                (delivery, Ok(outcome)) => self.settle_outcome(delivery, outcome).await,
                (delivery, Err(failure)) => self.settle_failure(delivery, failure).await,
            },
        }
    }

    /// Completes deliveries in one request; says what became of the last of them.
    async fn complete(&self, done: Vec<&mut DeliveryHold>) -> Result<DeliveryEnd, Unavailable> {
        if done.is_empty() {
            return Ok(DeliveryEnd::Completed);
        }
        let count = done.len();
        let (completed, each) = match self.queue.complete_held(done).await {
            Ok(completed) => {
                (completed.into_iter().map(|one| one.map_err(SettleError::Refused)).collect(), 1)
            }
            Err(error) => (vec![Err(error)], count),
        };
        let ends = completed
            .into_iter()
            .map(|one| settled_as(DeliveryEnd::Completed, one).inspect(|end| self.count_ends(*end, each)));
        ends.reduce(|all, one| all.and(one)).expect("every delivery has its answer")
    }

    fn count_ends(&self, end: DeliveryEnd, count: usize) {
        if let Some(end_counter) = &self.end_counter {
            end_counter(end, count);
        }
    }

    async fn settle_outcome(
        &self,
        mut delivery: Delivery,
        outcome: Outcome,
    ) -> Result<DeliveryEnd, Unavailable> {
        let targets = outcome.targets();
        let (handled, outcome) = match outcome {
            Outcome::Abandon(abandon) => {
                let ended = self.settle_failure(delivery, Failure::of(abandon)).await;
                return ended
                    .map(|end| if end == DeliveryEnd::Failed { DeliveryEnd::Abandoned } else { end });
            }
            outcome => (DeliveryEnd::by(&outcome), outcome),
        };
        match delivery.end(outcome).await {
            Err(error) if lacks_room(&error) => {
                let reason = without_room(&self.queue, delivery.message(), &targets, &error);
                settled_as(DeliveryEnd::Failed, delivery.postpone(reason).await)
            }
            // The delivery is still held: an outcome that is not possible is a failure of the handler.
            Err(error) if !is_lost(&error) => {
                self.settle_failure(delivery, Failure::new(error.to_string())).await
            }
            settled => settled_as(handled, settled),
        }
    }

    async fn settle_failure(
        &self,
        mut delivery: Delivery,
        failure: Failure,
    ) -> Result<DeliveryEnd, Unavailable> {
        let attempt = delivery.message().delivery_count;
        tracing::debug!(
            queue = %self.queue.name(),
            sequence = %delivery.sequence_number(),
            attempt,
            reason = failure.reason(),
            "a handler failed"
        );
        if failure.is_unbegun {
            return settled_as(DeliveryEnd::Released, delivery.release().await);
        }
        if failure.is_postponed {
            return self.postpone(delivery, failure.abandon.reason).await;
        }
        let is_shared = failure.is_shared;
        let abandon = self.delays.apply(*failure.abandon, &self.queue, attempt)?;
        let plain = abandon.plain();
        let abandoned = match is_shared {
            true => delivery.abandon_as_suspect(abandon).await,
            false => delivery.abandon_with(abandon).await,
        };
        let abandoned = match abandoned {
            // What was to be kept with it is not possible; that it failed, and when it is tried again, is.
            Err(error) if !is_lost(&error) => delivery.abandon_with(plain.reason(error.to_string())).await,
            abandoned => abandoned,
        };
        settled_as(DeliveryEnd::Failed, abandoned)
    }

    /// Gives back a message for which whoever it goes to has no room: it is tried again later, uncounted.
    async fn postpone(&self, mut delivery: Delivery, reason: String) -> Result<DeliveryEnd, Unavailable> {
        let message = delivery.message();
        tracing::warn!(
            queue = %self.queue.name(),
            workflow = message.workflow_id.as_ref().map(tracing::field::display),
            sequence = %message.sequence_number,
            reason,
            "a message waits for whoever it goes to: it is handled again later, and the attempt is not counted"
        );
        settled_as(DeliveryEnd::Failed, delivery.postpone(reason).await)
    }
}

/// The span a handler runs in, so that what it logs says for which message.
pub(crate) fn span_of(queue: &Queue, message: &ReceivedMessage) -> Span {
    tracing::info_span!(
        "handle",
        queue = %queue.name(),
        workflow = message.workflow_id.as_ref().map(tracing::field::display),
        sequence = %message.sequence_number,
        attempt = message.delivery_count
    )
}

/// What became of a delivery, when settling it went as it did. Only an engine that is gone is an error; where a cluster has not
/// answered for sure, the message comes again, or does not.
pub(crate) fn settled_as(
    handled: DeliveryEnd,
    settled: Result<(), SettleError>,
) -> Result<DeliveryEnd, Unavailable> {
    match settled {
        Ok(()) => Ok(handled),
        Err(SettleError::Unavailable(unavailable)) if unavailable.is_over() => Err(unavailable),
        Err(SettleError::Unavailable(error)) => {
            tracing::warn!(%error, "a delivery was not settled for sure: it is handed out again, unless it was");
            Ok(DeliveryEnd::Lost)
        }
        Err(error) => {
            tracing::debug!(%error, "a delivery could not be settled");
            Ok(DeliveryEnd::Lost)
        }
    }
}

/// Whether a settlement was refused because something is full. The message is not to blame for that, nor its handler.
pub(crate) fn lacks_room(error: &SettleError) -> bool {
    matches!(
        error.refusal(),
        Some(SettleRefusal::Send(
            SendRefusal::QueueFull { .. } | SendRefusal::WorkflowFull { .. } | SendRefusal::StorageFull
        ))
    )
}

/// Why a message that was handled waits for room, in words that are kept with its attempts and logged.
pub(crate) fn without_room(
    queue: &Queue,
    message: &ReceivedMessage,
    targets: &[String],
    error: &SettleError,
) -> String {
    let targets = targets.join(", ");
    tracing::warn!(
        queue = %queue.name(),
        workflow = message.workflow_id.as_ref().map(tracing::field::display),
        sequence = %message.sequence_number,
        targets,
        %error,
        "a completion waits for room: the message is handled again later, and the attempt is not counted"
    );
    format!("its completion has no room in {targets}, so that the attempt is not counted: {error}")
}

pub(crate) fn is_lost(error: &SettleError) -> bool {
    let lost = matches!(
        error.refusal(),
        Some(SettleRefusal::LockLost | SettleRefusal::AlreadySettled { .. } | SettleRefusal::QueueNotFound)
    );
    lost || matches!(error, SettleError::Unavailable(unavailable) if !unavailable.is_of_request())
}

impl<H: Handler<T>, T: Body> Consumer for Single<H, T> {
    type Job = Delivery;
    type Begun = StartedDelivery;
    type Done = FinishedDelivery;

    /// What has to be let through a gate, or is taken, is not received ahead.
    fn ahead_max(&self) -> usize {
        if self.gate.is_none() && self.taker.is_none() { limits::AHEAD_MAX } else { 0 }
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>, ReceiveError> {
        let Some(gate) = &self.gate else {
            return self.queue.receive_many(max, wait).await;
        };
        match gate.open(self.queue.client().elapsed()) {
            Err(pause) => {
                // Not longer than a receive: whoever waits here hears nothing of an engine that is gone.
                self.queue.client().sleep(pause.min(limits::RECEIVE_WAIT)).await?;
                Ok(Vec::new())
            }
            Ok(most) => {
                let received = self.queue.receive_many(max.min(most), wait).await?;
                received.iter().for_each(|delivery| gate.note(delivery.message()));
                Ok(received)
            }
        }
    }

    fn take(&self, received: &mut Vec<Delivery>, shared_pool: &RunnerPool<Self>) {
        let Some(taker) = &self.taker else { return };
        let takes = |delivery: &mut Delivery| taker.takes(delivery.message());
        let jobs = received.extract_if(.., takes);
        let jobs: Vec<_> = jobs
            .map(|delivery| {
                // Suspects wait for each other, and others are to go on beside them.
                let slot = if delivery.message().is_suspect() {
                    shared_pool.slot_beside()
                } else {
                    shared_pool.slot()
                };
                self.assign(delivery, taker, slot)
            })
            .collect();
        if !jobs.is_empty() {
            taker.take(jobs);
        }
    }

    fn give_up(&self) {
        if let Some(taker) = &self.taker {
            taker.give_up_all();
        }
    }

    fn begin(&self, deliveries: Vec<Delivery>) -> Vec<(usize, StartedDelivery)> {
        let locked = |delivery: &Delivery| (delivery.renewal(), delivery.lock_time());
        let kept = self.locks.keep_all(deliveries, locked);
        let begun =
            kept.map(|(delivery, lock)| (delivery.message().body.len(), StartedDelivery { delivery, lock }));
        begun.collect()
    }

    async fn handle(&self, job: StartedDelivery) -> Result<Option<FinishedDelivery>, Unavailable> {
        match self.run(job).await? {
            AttemptEnd::Ended(done) => Ok(Some(done)),
            AttemptEnd::Settled(end) => {
                self.count_ends(end, 1);
                Ok(None)
            }
        }
    }

    async fn settle(self: Arc<Self>, mut done: Vec<FinishedDelivery>) -> Result<(), Unavailable> {
        let mut settling = JoinSet::new();
        for other in done.extract_if(.., |done| done.only_done().is_none()) {
            let single = self.clone();
            settling
                .spawn(async move { single.settle_one(other).await.map(|end| single.count_ends(end, 1)) });
        }
        let holds = done.iter_mut().filter_map(FinishedDelivery::only_done).collect();
        let mut all = self.complete(holds).await.map(drop);
        self.locks.let_go(done.into_iter().map(|done| done.lock));
        while let Some(settled) = settling.join_next().await {
            all = all.and(joined(settled));
        }
        all
    }

    fn give_back(&self, job: StartedDelivery) {
        job.delivery.give_back();
    }
}
