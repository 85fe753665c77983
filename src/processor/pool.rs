//! Many workflows at once: receives what it has slots for and a little ahead, and stops in order.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::task::JoinSet;

use crate::engine::Client;
use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::line::JobLine;
use crate::processor::line::JobPlace;
use crate::processor::line::Ready;
use crate::processor::lock_renewals::LockRenewals;
use crate::processor::settling::FinishedJob;
use crate::processor::settling::JobSlot;
use crate::processor::settling::joined;
use crate::processor::settling::settle_coming;
use crate::processor::signal::signalled;
use crate::shown::shown;
use crate::task::boxed;

/// What a pool runs: where its jobs come from, and what is done with one.
pub(crate) trait Consumer: Send + Sync + Sized + 'static {
    type Job: Send + 'static;
    /// A job whose lock is kept.
    type Begun: Send + 'static;
    /// A job whose handler has ended, and which is to be settled.
    type Done: Send + 'static;

    /// How many jobs may be received ahead of free slots.
    fn ahead_max(&self) -> usize;

    /// Receives up to `max` jobs.
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<Self::Job>, ReceiveError>> + Send;

    /// Takes the jobs that need no runner, each with a place, and leaves the others.
    fn take(&self, received: &mut Vec<Self::Job>, shared_pool: &RunnerPool<Self>);

    /// Keeps the locks of jobs from now on, because their handlers may have to wait for a slot and for a thread. With each
    /// comes how many bytes its bodies have.
    fn begin(&self, jobs: Vec<Self::Job>) -> Vec<(usize, Self::Begun)>;

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

    /// Gives one back unstarted, as if it had not been handed out.
    fn give_back(&self, job: Self::Begun);
}

/// How a pool runs, and how it ends.
pub(crate) struct Terms<'a, S, P> {
    pub(crate) concurrency: usize,
    /// What handlers that still run are told by to end.
    pub(crate) locks: &'a LockRenewals,
    /// When to receive nothing more.
    pub(crate) shutdown: S,
    /// From then on: when to wait no longer for the handlers that run.
    pub(crate) drained: P,
}

/// A processor that runs in the background. It ends by itself when its queue is gone, which a log line says, or the engine:
/// [`Running::is_finished`] says whether, and [`Running::stop`] why.
///
/// # Dropping
/// Dropping it lets it run on; [`Running::stop`] ends it in order.
pub struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), ReceiveError>>,
}

shown!(Running {});

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
        joined(self.task.await)
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

/// Waits until it is time to stop; a side that is gone is no reason to.
pub(crate) async fn stop_requested(stopping: watch::Receiver<bool>) {
    signalled(&stopping).await;
}

/// Runs until it is stopped, then drains.
pub(crate) async fn run_pool<C: Consumer>(
    client: &Client,
    consumer: Arc<C>,
    terms: Terms<'_, impl Future<Output = ()> + Send, impl Future<Output = Result<(), Unavailable>> + Send>,
) -> Result<(), ReceiveError> {
    let Terms { concurrency, locks, shutdown, drained } = terms;
    let (ended, coming) = mpsc::unbounded_channel();
    let line = JobLine::new(consumer.clone(), concurrency);
    // On the engine's own thread: what is done is settled even if nobody waits for this any more, and if handlers keep all
    // other threads busy.
    let settling = client.spawn(settle_coming(consumer.clone(), line.clone(), coming));
    let shared_pool =
        Arc::new(RunnerPool { client: client.clone(), consumer: consumer.clone(), line, ended });
    let (mut runners, taken) = (JoinSet::new(), ConsumerGuard(Some(&*consumer)));
    // Dropped before the runners are, so that none of them begins another job.
    let closing = Closing {
        line: shared_pool.line.clone(),
        watching: Some(client.spawn(give_back_late(shared_pool.line.clone(), client.clone()))),
    };
    let received = tokio::select! {
        received = receive_all(&shared_pool, &mut runners) => received,
        () = shutdown => Ok(()),
        // Who settles has come to an end, and says below why.
        () = shared_pool.ended.closed() => Ok(()),
    };
    if let Err(error @ ReceiveError::Refused(_)) = &received {
        tracing::warn!(%error, "a processor receives nothing more");
    }
    let watching = closing.close();
    drop(shared_pool);
    let all_settled = async {
        // It has what the handlers have, too, and is not to be the last that lets go of that.
        if let Some(watching) = watching {
            let _ = watching.await;
        }
        let all = all_ended(&mut runners).await;
        all.and(joined(settling.await))
    };
    let mut all_settled = std::pin::pin!(all_settled);
    let drained = tokio::select! {
        drained = &mut all_settled => {
            if drained.is_ok() {
                taken.disarm();
            }
            drained
        }
        // Not for ever: what still runs then is dropped, and counts as failed.
        waited = drained => {
            locks.outlast_all();
            drop(taken);
            waited.and(all_settled.await)
        }
    };
    received.and(drained.map_err(ReceiveError::from))
}

/// What the runners of a pool share.
pub(crate) struct RunnerPool<C: Consumer> {
    client: Client,
    consumer: Arc<C>,
    line: Arc<JobLine<C>>,
    ended: mpsc::UnboundedSender<FinishedJob<C>>,
}

/// What a consumer has taken: dropped, it is ended at once, as tasks are that nobody waits for.
struct ConsumerGuard<'a, C: Consumer>(Option<&'a C>);

impl<C: Consumer> ConsumerGuard<'_, C> {
    /// Nothing is taken any more, and who takes goes on with what another run receives.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl<C: Consumer> Drop for ConsumerGuard<'_, C> {
    fn drop(&mut self) {
        if let Some(consumer) = self.0 {
            consumer.give_up();
        }
    }
}

/// A line that is closed when this is dropped, and who watches it until then.
struct Closing<C: Consumer> {
    line: Arc<JobLine<C>>,
    watching: Option<JoinHandle<()>>,
}

impl<C: Consumer> Closing<C> {
    /// Closes the line; returns who has watched it, and comes to an end.
    fn close(mut self) -> Option<JoinHandle<()>> {
        self.watching.take().inspect(JoinHandle::abort)
    }
}

impl<C: Consumer> Drop for Closing<C> {
    fn drop(&mut self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
        self.line.close();
    }
}

impl<C: Consumer> RunnerPool<C> {
    /// A slot for a job that needs no runner.
    pub(crate) fn slot(&self) -> JobSlot<C> {
        JobSlot::new(self.line.slot(), self.ended.clone())
    }

    /// A place for such a job beside the slots, as long as there is one: the slot stays free for another job.
    pub(crate) fn slot_beside(&self) -> JobSlot<C> {
        JobSlot::new(self.line.beside(), self.ended.clone())
    }

    /// Handles a job, and then what waits for longest, until nothing does.
    async fn run(&self, first: Ready<C>) -> Result<(), Unavailable> {
        let Ready { mut place, mut runner } = first;
        let (mut turn, mut handled) = (self.client.elapsed(), 0);
        loop {
            // After each pause, in which it may have been closed: then the runner gives its job back.
            if handled == 0 && self.line.is_closed() {
                return Ok(());
            }
            let done = self.consumer.handle(runner.begin()).await?;
            let is_unsettled = done.is_some();
            match done {
                Some(done) => self.hand_on(done, place),
                None => drop(place),
            }
            match runner.next(is_unsettled) {
                Some(next) => place = next,
                None => return Ok(()),
            }
            handled += 1;
            // Handlers that never wait would leave the others of their runtime no turn.
            if handled == limits::RUNNER_TURN_MAX || self.client.elapsed() >= turn + limits::RUNNER_TURN {
                tokio::task::yield_now().await;
                (turn, handled) = (self.client.elapsed(), 0);
            }
        }
    }

    /// Hands a job on, to be settled.
    fn hand_on(&self, done: C::Done, place: JobPlace<C>) {
        // When the engine is gone nobody takes it any more; whoever receives gets that error.
        let _ = self.ended.send(FinishedJob { done, place });
    }
}

/// Receives for ever, as much as there are free slots for, and ahead of them as the pace is.
async fn receive_all<C: Consumer>(
    shared_pool: &Arc<RunnerPool<C>>,
    runners: &mut JoinSet<Result<(), Unavailable>>,
) -> Result<(), ReceiveError> {
    loop {
        let room = shared_pool.line.room().await;
        let mut received = match shared_pool.consumer.receive(room, limits::RECEIVE_WAIT).await {
            Ok(received) => received,
            Err(error) if passes(&error) => {
                tracing::warn!(%error, "asking for messages again, as there is no answer now");
                shared_pool.client.sleep(limits::UNANSWERED_PAUSE).await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let elapsed = shared_pool.client.elapsed();
        shared_pool.line.note_answer((received.len(), room), elapsed);
        shared_pool.consumer.take(&mut received, shared_pool);
        for ready in shared_pool.line.add(shared_pool.consumer.begin(received), elapsed) {
            let shared_pool = shared_pool.clone();
            // In a box, as a task is moved several times before it runs.
            runners.spawn(boxed(async move { shared_pool.run(ready).await }));
        }
        while let Some(ended) = runners.try_join_next() {
            if let Ok(Err(unavailable)) = ended {
                return Err(unavailable.into());
            }
        }
    }
}

/// Whether the same may be asked again with success: on a cluster, the node that was asked is gone, or there is too much at once.
fn passes(error: &ReceiveError) -> bool {
    match error {
        ReceiveError::Unavailable(unavailable) => !unavailable.is_over() && !unavailable.is_of_request(),
        ReceiveError::Refused(refusal) => {
            matches!(refusal, ReceiveRefusal::TooManyWaiting(_) | ReceiveRefusal::TooManyLocks(_))
        }
        ReceiveError::Misuse(_) => false,
    }
}

/// Gives back what was received ahead of handlers that have become slow since: somebody else may handle it.
async fn give_back_late<C: Consumer>(line: Arc<JobLine<C>>, client: Client) {
    loop {
        line.filled().await;
        // An engine that is gone has nothing to be given back to.
        if client.sleep(limits::AHEAD_WAITS_MAX).await.is_err() {
            return;
        }
        line.give_back_before(client.elapsed().saturating_sub(limits::AHEAD_WAITS_MAX));
    }
}

async fn all_ended(runners: &mut JoinSet<Result<(), Unavailable>>) -> Result<(), Unavailable> {
    let mut all = Ok(());
    while let Some(ended) = runners.join_next().await {
        all = all.and(ended.unwrap_or(Ok(())));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering;
    use std::task::Context;
    use std::task::Waker;

    use super::*;

    /// Counts what is handled, at once, and what is given back.
    #[derive(Default)]
    struct Counter {
        handled: AtomicUsize,
        given_back: AtomicUsize,
    }

    impl Consumer for Counter {
        type Job = ();
        type Begun = ();
        type Done = Infallible;

        fn ahead_max(&self) -> usize {
            limits::AHEAD_MAX
        }

        async fn receive(&self, _max: usize, _wait: Duration) -> Result<Vec<()>, ReceiveError> {
            Ok(Vec::new())
        }

        fn take(&self, _received: &mut Vec<()>, _shared_pool: &RunnerPool<Counter>) {}

        fn begin(&self, jobs: Vec<()>) -> Vec<(usize, ())> {
            jobs.into_iter().map(|job| (0, job)).collect()
        }

        async fn handle(&self, (): ()) -> Result<Option<Infallible>, Unavailable> {
            self.handled.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        }

        async fn settle(self: Arc<Counter>, _done: Vec<Infallible>) -> Result<(), Unavailable> {
            Ok(())
        }

        fn give_up(&self) {}

        fn give_back(&self, (): ()) {
            self.given_back.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A pool with a job that may begin, and so many behind it.
    async fn pool(behind: usize) -> (RunnerPool<Counter>, Ready<Counter>) {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let consumer = Arc::new(Counter::default());
        let line = JobLine::new(consumer.clone(), 1);
        let ready = line.add(vec![(0, ()); 1 + behind], Duration::ZERO).pop().unwrap();
        let (ended, _) = mpsc::unbounded_channel();
        (RunnerPool { client: engine.client().clone(), consumer, line, ended }, ready)
    }

    fn counted(pool: &RunnerPool<Counter>) -> (usize, usize) {
        let Counter { handled, given_back } = &*pool.consumer;
        (handled.load(Ordering::Relaxed), given_back.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn what_a_runner_has_not_begun_is_given_back_when_it_is_dropped() {
        let (pool, ready) = pool(0).await;
        drop(pool.run(ready));
        assert_eq!(counted(&pool), (0, 1));
    }

    #[tokio::test]
    async fn what_a_runner_has_taken_before_a_pause_does_not_begin_once_it_is_closed() {
        let turn = limits::RUNNER_TURN_MAX as usize;
        for is_dropped in [false, true] {
            let (pool, ready) = pool(turn + 9).await;
            let mut run = Box::pin(pool.run(ready));
            let mut context = Context::from_waker(Waker::noop());
            assert!(run.as_mut().poll(&mut context).is_pending(), "it lets others go on");
            pool.line.close();
            if !is_dropped {
                assert!(run.as_mut().poll(&mut context).is_ready());
            }
            drop(run);
            assert_eq!(counted(&pool), (turn, 10));
            assert_eq!(pool.line.room().await, 1, "its slot is free");
        }
    }
}
