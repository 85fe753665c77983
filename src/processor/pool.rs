//! Many workflows at once: receives no more than it can handle, and stops in order.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::task::JoinSet;

use crate::engine::Client;
use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::invocation::told;
use crate::processor::settling::Ended;
use crate::processor::settling::Slot;
use crate::processor::settling::Slots;
use crate::processor::settling::joined;
use crate::processor::settling::settle_coming;

/// What a pool runs: where its jobs come from, and what is done with one.
pub(crate) trait Consumer: Send + Sync + 'static {
    type Job: Send + 'static;
    /// A job whose lock is kept.
    type Begun: Send + 'static;
    /// A job whose handler has ended, and which is to be settled.
    type Done: Send + 'static;

    /// Receives up to `max` jobs.
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<Self::Job>, ReceiveError>> + Send;

    /// Takes the jobs that need no task of their own, each with a slot, and leaves the others.
    fn take(&self, received: &mut Vec<Self::Job>, slots: &mut Slots<Self::Done>);

    /// Keeps the lock of a job from now on: its handler may have to wait for a thread.
    fn begin(&self, job: Self::Job) -> Self::Begun;

    /// Handles one; none when it is settled already.
    fn handle(
        &self,
        job: Self::Begun,
    ) -> impl Future<Output = Result<Option<Self::Done>, Unavailable>> + Send;

    /// Settles many, each judged for itself.
    fn settle(self: Arc<Self>, done: Vec<Self::Done>)
    -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// Ends at once what it has taken.
    fn give_up(&self);

    /// Gives one back unstarted.
    fn release(&self, job: Self::Begun) -> impl Future<Output = ()> + Send;
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
    client: &Client,
    consumer: Arc<C>,
    terms: Terms<'_, impl Future<Output = ()> + Send, impl Future<Output = Result<(), Unavailable>> + Send>,
) -> Result<(), ReceiveError> {
    let Terms { concurrency, give_up, shutdown, patience } = terms;
    let (stop, stopping) = watch::channel(false);
    let (ended, coming) = mpsc::unbounded_channel();
    // On the engine's own thread: what is done is settled even if nobody waits for this any more, and if handlers keep all
    // other threads busy.
    let settling = client.spawn(settle_coming(consumer.clone(), coming));
    let desk = Arc::new(Desk { consumer, stopping });
    let (mut jobs, taken) = (JoinSet::new(), Taken(&*desk.consumer));
    let received = tokio::select! {
        received = receive_all(&desk, concurrency, &ended, &mut jobs) => received,
        () = shutdown => Ok(()),
        // Who settles has come to an end, and says below why.
        () = ended.closed() => Ok(()),
    };
    stop.send_replace(true);
    drop(ended);
    let all_settled = async {
        let all = all_ended(&mut jobs).await;
        all.and(joined(settling.await))
    };
    let mut all_settled = std::pin::pin!(all_settled);
    let drained = tokio::select! {
        drained = &mut all_settled => drained,
        // Not for ever: what still runs then is dropped, and counts as failed.
        waited = patience => {
            give_up.send_replace(true);
            drop(taken);
            waited.and(all_settled.await)
        }
    };
    received.and(drained.map_err(ReceiveError::from))
}

/// What the jobs of a pool share.
struct Desk<C: Consumer> {
    consumer: Arc<C>,
    stopping: watch::Receiver<bool>,
}

/// What a consumer has taken: dropped, it is ended at once, as tasks are that nobody waits for.
struct Taken<'a, C: Consumer>(&'a C);

impl<C: Consumer> Drop for Taken<'_, C> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl<C: Consumer> Desk<C> {
    async fn handle(&self, job: C::Begun, slot: Slot<C::Done>) -> Result<(), Unavailable> {
        if *self.stopping.borrow() {
            Box::pin(self.consumer.release(job)).await;
            return Ok(());
        }
        if let Some(done) = self.consumer.handle(job).await? {
            slot.hand_on(done);
        }
        Ok(())
    }
}

/// Receives for ever, as much as there are free slots for.
async fn receive_all<C: Consumer>(
    desk: &Arc<Desk<C>>,
    concurrency: usize,
    ended: &mpsc::UnboundedSender<Ended<C::Done>>,
    jobs: &mut JoinSet<Result<(), Unavailable>>,
) -> Result<(), ReceiveError> {
    let (all, beside) = (Arc::new(Semaphore::new(concurrency)), Arc::new(Semaphore::new(concurrency)));
    loop {
        let mut free = all.clone().acquire_owned().await.expect("nobody closes the slots");
        let more = all.available_permits().min(limits::RECEIVE_MAX - 1);
        if let Ok(more) = all.clone().try_acquire_many_owned(u32::try_from(more).unwrap_or(0)) {
            free.merge(more);
        }
        let mut slots = Slots::new(free, beside.clone(), ended.clone());
        let mut received = desk.consumer.receive(slots.count(), limits::RECEIVE_WAIT).await?;
        desk.consumer.take(&mut received, &mut slots);
        for job in received {
            let (desk, slot, job) = (desk.clone(), slots.one(), desk.consumer.begin(job));
            jobs.spawn(async move { desk.handle(job, slot).await });
        }
        while let Some(ended) = jobs.try_join_next() {
            if let Ok(Err(unavailable)) = ended {
                return Err(unavailable.into());
            }
        }
    }
}

async fn all_ended(jobs: &mut JoinSet<Result<(), Unavailable>>) -> Result<(), Unavailable> {
    let mut all = Ok(());
    while let Some(ended) = jobs.join_next().await {
        all = all.and(ended.unwrap_or(Ok(())));
    }
    all
}
