//! Handling runs: consecutive messages of one workflow in one call.

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::Instrument;

use crate::engine::Completion;
use crate::engine::Outcome;
use crate::engine::Queue;
use crate::engine::Run;
use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::context::Context;
use crate::processor::delays::Delays;
use crate::processor::failure::Failure;
use crate::processor::handler::Body;
use crate::processor::invocation::guarded;
use crate::processor::invocation::invoke;
use crate::processor::lock_renewals::KeptLock;
use crate::processor::lock_renewals::LockRenewals;
use crate::processor::pool::Consumer;
use crate::processor::pool::RunnerPool;
use crate::processor::single::DeliveryEnd;
use crate::processor::single::MALFORMED_BODY;
use crate::processor::single::is_lost;
use crate::processor::single::lacks_room;
use crate::processor::single::settled_as;
use crate::processor::single::span_of;
use crate::processor::single::without_room;

/// What is run for each run of consecutive messages. Every async function of a [`Context`] and a vector of bodies is
/// one.
pub trait BatchHandler<T>: Send + Sync + 'static {
    /// Handles consecutive messages of one workflow, in order.
    ///
    /// An error, a panic and a lost lock do not say which message failed: all are tried again, each alone, so that only the
    /// one that is to blame is exhausted. [`BatchOutcome::then`] says which one failed.
    fn handle(
        &self,
        context: Context,
        bodies: Vec<T>,
    ) -> impl Future<Output = Result<BatchOutcome, Failure>> + Send;
}

impl<F, Fut, T, E> BatchHandler<T> for F
where
    F: Fn(Context, Vec<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<BatchOutcome, E>> + Send,
    T: Send + 'static,
    E: Into<Failure>,
{
    fn handle(
        &self,
        context: Context,
        bodies: Vec<T>,
    ) -> impl Future<Output = Result<BatchOutcome, Failure>> + Send {
        let handling = self(context, bodies);
        async move { handling.await.map_err(Into::into) }
    }
}

/// How a batch handler ended: so many from the first on are done, and the next perhaps ends in another way. The rest
/// is given back as if it had not been handed out.
#[derive(Clone, Debug)]
pub struct BatchOutcome {
    handled: usize,
    completion: Completion,
    next: Option<Outcome>,
}

impl BatchOutcome {
    /// All messages are done.
    pub fn all() -> BatchOutcome {
        BatchOutcome { handled: usize::MAX, completion: Completion::new(), next: None }
    }

    /// The first `count` messages are done; the rest was not started. With a `count` of 0 and nothing said of the next, the handler has
    /// failed: to give all back uncounted, say `first(0).then(Outcome::Release)`.
    pub fn first(count: usize) -> BatchOutcome {
        BatchOutcome { handled: count, completion: Completion::new(), next: None }
    }

    /// Says how the message after the done ones ends. Not as [`Outcome::Complete`] or [`Outcome::CompleteWith`]: count that message with
    /// those before it, or the handler has failed. Said of [`BatchOutcome::all`], or of a message that the handler was not shown because
    /// its body cannot be read, it means nothing.
    #[must_use]
    pub fn then(mut self, next: Outcome) -> BatchOutcome {
        self.next = Some(next);
        self
    }

    /// Adds messages to send and the new workflow state, in one transaction with the completion. Where no message is done, the
    /// handler has failed.
    #[must_use]
    pub fn with(mut self, completion: Completion) -> BatchOutcome {
        self.completion = completion;
        self
    }
}

/// A batch handler with what it takes to run it on runs.
pub(crate) struct Batches<H, T> {
    /// Each handler counts one reference to it.
    pub(crate) queue: Arc<Queue>,
    pub(crate) handler: Arc<H>,
    pub(crate) locks: Arc<LockRenewals>,
    pub(crate) delays: Delays,
    pub(crate) len_max: usize,
    /// How many runs the last receive brought.
    pub(crate) received: AtomicUsize,
    pub(crate) body: PhantomData<fn() -> T>,
}

/// A run whose lock is kept.
pub(crate) struct BegunRun {
    run: Run,
    lock: KeptLock,
}

impl<H: BatchHandler<T>, T: Body> Batches<H, T> {
    async fn handle_run(&self, begun: BegunRun) -> Result<DeliveryEnd, Unavailable> {
        let BegunRun { mut run, lock } = begun;
        if lock.signal().is_raised() {
            // It has waited for a thread for too long.
            return Ok(DeliveryEnd::Lost);
        }
        let mut bodies = Vec::with_capacity(run.messages().len());
        let mut malformed = None;
        for message in run.messages() {
            match guarded(|| Ok(T::read(message))) {
                Ok(Ok(body)) => bodies.push(body),
                Ok(Err(misuse)) => {
                    malformed = Some(misuse.to_string());
                    break;
                }
                // Reading it panics: what is before it is handled, and it then fails at the head.
                Err(failure) if bodies.is_empty() => return self.settle_failure(run, failure).await,
                Err(_) => break,
            }
        }
        let readable = bodies.len();
        if let (0, Some(description)) = (readable, &malformed) {
            let (reason, description) = (MALFORMED_BODY.to_owned(), description.clone());
            let settled = run.complete_first_then(0, Outcome::DeadLetter { reason, description }).await;
            return settled_as(DeliveryEnd::DeadLettered, settled);
        }
        let context = Context::new(
            Arc::new(run.messages()[0].clone()),
            self.queue.clone(),
            run.lock_token(),
            lock.signal().clone(),
        );
        let handler = self.handler.clone();
        let span = span_of(&self.queue, &run.messages()[0]);
        let handling = async move { handler.handle(context, bodies).await };
        let client = self.queue.client();
        // In its place from the beginning: it has the handler's future in it, which may be large.
        let said = {
            let invoked = std::pin::pin!(invoke(client, &lock, handling));
            invoked.instrument(span).await?
        };
        match said {
            Some(Ok(outcome)) => self.settle(run, outcome, readable).await,
            Some(Err(failure)) => self.settle_failure(run, failure).await,
            None => Ok(DeliveryEnd::Lost),
        }
    }

    async fn settle(
        &self,
        mut run: Run,
        outcome: BatchOutcome,
        readable: usize,
    ) -> Result<DeliveryEnd, Unavailable> {
        let done = outcome.handled.min(readable);
        if done == 0 && outcome.next.is_none() {
            return self.settle_failure(run, Failure::new("the handler handled nothing")).await;
        }
        let targets = outcome.completion.targets();
        if let Err(error) = run.complete_first_with(done, outcome.completion).await {
            if lacks_room(&error) {
                let reason = without_room(&self.queue, &run.messages()[0], &targets, &error);
                return settled_as(DeliveryEnd::Failed, run.postpone_all(reason).await);
            }
            // The run is still held: an outcome that is not possible is a failure of the handler.
            return match is_lost(&error) {
                true => settled_as(DeliveryEnd::Lost, Err(error)),
                false => self.settle_failure(run, Failure::new(error.to_string())).await,
            };
        }
        // Of a message that it was not shown, a handler can say nothing.
        let next = outcome.next.filter(|_| done < readable);
        let settled = match (run.messages().first(), next) {
            (Some(head), Some(Outcome::Abandon(abandon))) => {
                let abandon = self.delays.apply(abandon, &self.queue, head.delivery_count)?;
                let plain = abandon.plain();
                match run.complete_first_then(0, Outcome::Abandon(abandon)).await {
                    // What was to be kept with it is not possible; that it failed, and when it is tried again, is.
                    Err(error) if !is_lost(&error) && !lacks_room(&error) => {
                        let plain = plain.reason(error.to_string());
                        run.complete_first_then(0, Outcome::Abandon(plain)).await
                    }
                    settled => settled,
                }
            }
            (Some(_), Some(next)) => run.complete_first_then(0, next).await,
            (Some(_), None) => run.release().await,
            (None, _) => Ok(()),
        };
        match settled {
            // What was said of the next is not possible: that is a failure of the handler.
            Err(error) if !is_lost(&error) && !lacks_room(&error) => {
                self.settle_failure(run, Failure::new(error.to_string())).await
            }
            settled => settled_as(DeliveryEnd::Completed, settled),
        }
    }

    async fn settle_failure(&self, mut run: Run, failure: Failure) -> Result<DeliveryEnd, Unavailable> {
        let attempt = run.messages().first().map_or(1, |message| message.delivery_count);
        tracing::debug!(queue = %self.queue.name(), attempt, reason = failure.reason(), "a batch handler failed");
        // Nobody knows at which message; one that fails alone, too, is to blame.
        let abandon = self.delays.apply(*failure.abandon, &self.queue, attempt)?;
        settled_as(DeliveryEnd::Failed, run.abandon_all(abandon).await)
    }
}

impl<H: BatchHandler<T>, T: Body> Consumer for Batches<H, T> {
    type Job = Run;
    type Begun = BegunRun;
    type Done = Infallible;

    /// As many messages as are received ahead one by one.
    fn ahead_max(&self) -> usize {
        (limits::AHEAD_MAX / self.len_max).max(1)
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Run>, ReceiveError> {
        // Each run is a request: twice as many as there were last time, so that few are in vain.
        let max = max.min(2 * self.received.load(Ordering::Relaxed) + 1).min(limits::RUNS_MAX);
        let runs = self.queue.receive_runs(max, self.len_max, wait).await?;
        self.received.store(runs.len(), Ordering::Relaxed);
        Ok(runs)
    }

    fn begin(&self, runs: Vec<Run>) -> Vec<(usize, BegunRun)> {
        let begun = runs.into_iter().map(|run| {
            let bytes = run.messages().iter().map(|message| message.body.len()).sum();
            let lock = self.locks.keep(run.renewal(), run.lock_time());
            (bytes, BegunRun { run, lock })
        });
        begun.collect()
    }

    async fn handle(&self, job: BegunRun) -> Result<Option<Infallible>, Unavailable> {
        self.handle_run(job).await.map(|_| None)
    }

    /// Each run has a handler of its own.
    fn take(&self, _received: &mut Vec<Run>, _runners: &RunnerPool<Self>) {}

    fn give_up(&self) {}

    /// Whole runs are settled by themselves.
    async fn settle(self: Arc<Self>, done: Vec<Infallible>) -> Result<(), Unavailable> {
        match done.first() {
            Some(never) => match *never {},
            None => Ok(()),
        }
    }

    fn give_back(&self, job: BegunRun) {
        job.run.give_back();
    }
}
