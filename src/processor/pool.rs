//! Many workflows at once: receives no more than it can handle, and stops in order.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::task::JoinSet;

use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::completions::Finished;
use crate::processor::completions::complete_coming;
use crate::processor::completions::said;
use crate::processor::invocation::told;

/// What a pool runs: where its jobs come from, and what is done with one.
pub(crate) trait Consumer: Send + Sync + 'static {
    type Job: Send + 'static;
    /// A job that is done, and only to be completed.
    type Done: Send + 'static;

    /// Receives up to `max` jobs.
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<Self::Job>, ReceiveError>> + Send;

    /// Handles one, and settles it unless it is only to be completed.
    fn handle(&self, job: Self::Job) -> impl Future<Output = Result<Option<Self::Done>, Unavailable>> + Send;

    /// Completes many, each judged for itself.
    fn complete(&self, done: Vec<Self::Done>) -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// Gives one back unstarted.
    fn release(&self, job: Self::Job) -> impl Future<Output = ()> + Send;
}

/// How a pool runs, and how it ends.
pub(crate) struct Terms<'a, S, P> {
    pub(crate) concurrency: usize,
    /// Told when handlers that still run are to be ended.
    pub(crate) give_up: &'a watch::Sender<bool>,
    /// When to receive nothing more.
    pub(crate) shutdown: S,
    /// From then on: when to wait no longer for the handlers that run.
    pub(crate) patience: P,
}

/// A processor that runs in the background.
///
/// # Dropping
/// Dropping it lets it run on; [`Running::stop`] ends it in order.
pub struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), ReceiveError>>,
}

impl Running {
    pub(crate) fn start(
        run: impl FnOnce(watch::Receiver<bool>) -> JoinHandle<Result<(), ReceiveError>>,
    ) -> Running {
        let (stop, stopping) = watch::channel(false);
        Running { task: run(stopping), stop }
    }

    /// Stops receiving, waits for the handlers that run, and gives back what was not started.
    ///
    /// # Errors
    /// [`ReceiveError`] when it had ended before because the queue, the engine or the runtime it ran on is gone, and
    /// when the engine went away before all handlers had settled.
    pub async fn stop(self) -> Result<(), ReceiveError> {
        self.stop.send_replace(true);
        match self.task.await {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Unavailable::Closed.into()),
        }
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

/// Waits until it is time to stop; a side that is gone is no reason to.
pub(crate) async fn told_to_stop(stopping: watch::Receiver<bool>) {
    told(&stopping).await;
}

/// Runs until it is told to stop, then drains.
pub(crate) async fn run_pool<C: Consumer>(
    consumer: Arc<C>,
    terms: Terms<'_, impl Future<Output = ()> + Send, impl Future<Output = Result<(), Unavailable>> + Send>,
) -> Result<(), ReceiveError> {
    let Terms { concurrency, give_up, shutdown, patience } = terms;
    let (stop, stopping) = watch::channel(false);
    let (finished, coming) = mpsc::unbounded_channel();
    // A task of its own: what is done is completed even if nobody waits for this any more.
    let completing = tokio::spawn(complete_coming(consumer.clone(), coming));
    let desk = Arc::new(Desk { consumer, stopping, finished });
    let mut jobs = JoinSet::new();
    let received = tokio::select! {
        ended = receive_all(&desk, concurrency, &mut jobs) => ended,
        () = shutdown => Ok(()),
    };
    stop.send_replace(true);
    drop(desk);
    let drained = drain(jobs, patience, give_up).await;
    let completed = said(completing.await);
    received.and(drained.and(completed).map_err(ReceiveError::from))
}

/// What the jobs of a pool share.
struct Desk<C: Consumer> {
    consumer: Arc<C>,
    stopping: watch::Receiver<bool>,
    finished: mpsc::UnboundedSender<Finished<C::Done>>,
}

impl<C: Consumer> Desk<C> {
    async fn handle(&self, job: C::Job, slot: OwnedSemaphorePermit) -> Result<(), Unavailable> {
        if *self.stopping.borrow() {
            Box::pin(self.consumer.release(job)).await;
            return Ok(());
        }
        if let Some(done) = self.consumer.handle(job).await? {
            // When the engine is gone nobody takes it any more; whoever receives is told of that.
            let _ = self.finished.send(Finished { done, slot });
        }
        Ok(())
    }
}

/// Receives for ever, as much as there are free slots for.
async fn receive_all<C: Consumer>(
    desk: &Arc<Desk<C>>,
    concurrency: usize,
    jobs: &mut JoinSet<Result<(), Unavailable>>,
) -> Result<(), ReceiveError> {
    let slots = Arc::new(Semaphore::new(concurrency));
    loop {
        let mut free = slots.clone().acquire_owned().await.expect("nobody closes the slots");
        let more = slots.available_permits().min(limits::RECEIVE_MAX - 1);
        if let Ok(more) = slots.clone().try_acquire_many_owned(u32::try_from(more).unwrap_or(0)) {
            free.merge(more);
        }
        let received = desk.consumer.receive(free.num_permits(), limits::RECEIVE_WAIT).await?;
        for job in received {
            let slot = free.split(1).expect("no more is received than there are free slots");
            let desk = desk.clone();
            jobs.spawn(async move { desk.handle(job, slot).await });
        }
        while let Some(ended) = jobs.try_join_next() {
            if let Ok(Err(unavailable)) = ended {
                return Err(unavailable.into());
            }
        }
    }
}

/// Waits for the handlers that run, but not for ever; what still runs then is dropped, and counts as failed. An engine
/// that is gone is an error: their work is not settled.
async fn drain(
    mut jobs: JoinSet<Result<(), Unavailable>>,
    patience: impl Future<Output = Result<(), Unavailable>>,
    give_up: &watch::Sender<bool>,
) -> Result<(), Unavailable> {
    let waited = tokio::select! {
        ended = all_ended(&mut jobs) => return ended,
        waited = patience => waited,
    };
    give_up.send_replace(true);
    waited.and(all_ended(&mut jobs).await)
}

async fn all_ended(jobs: &mut JoinSet<Result<(), Unavailable>>) -> Result<(), Unavailable> {
    let mut all = Ok(());
    while let Some(ended) = jobs.join_next().await {
        all = all.and(ended.unwrap_or(Ok(())));
    }
    all
}
