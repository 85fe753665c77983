//! Many workflows at once: receives no more than it can handle, and stops in order.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::task::JoinSet;

use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::invocation::told;

/// What a pool runs: where its jobs come from, and what is done with one.
pub(crate) trait Consumer: Send + Sync + 'static {
    type Job: Send + 'static;

    /// Receives up to `max` jobs.
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<Self::Job>, ReceiveError>> + Send;

    /// Handles and settles one.
    fn handle(&self, job: Self::Job) -> impl Future<Output = Result<(), Unavailable>> + Send;

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
    let mut jobs = JoinSet::new();
    let received = {
        let receiving = receive_all(&consumer, concurrency, &mut jobs, &stopping);
        tokio::select! {
            ended = receiving => ended,
            () = shutdown => Ok(()),
        }
    };
    stop.send_replace(true);
    let drained = drain(jobs, patience, give_up).await;
    received.and(drained.map_err(ReceiveError::from))
}

/// Receives for ever, as much as there are free slots for.
async fn receive_all<C: Consumer>(
    consumer: &Arc<C>,
    concurrency: usize,
    jobs: &mut JoinSet<Result<(), Unavailable>>,
    stopping: &watch::Receiver<bool>,
) -> Result<(), ReceiveError> {
    let slots = Arc::new(Semaphore::new(concurrency));
    loop {
        let first = slots.clone().acquire_owned().await.expect("nobody closes the slots");
        let free = slots.available_permits();
        drop(first);
        let received = consumer.receive((free + 1).min(limits::RECEIVE_MAX), limits::RECEIVE_WAIT).await?;
        for job in received {
            let slot = slots.clone().acquire_owned().await.expect("nobody closes the slots");
            let (consumer, stopping) = (consumer.clone(), stopping.clone());
            jobs.spawn(async move {
                let _slot = slot;
                if *stopping.borrow() {
                    consumer.release(job).await;
                    return Ok(());
                }
                consumer.handle(job).await
            });
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
