//! The processor, as its user sets it up.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::engine::Queue;
use crate::error::ReceiveError;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::batch::BatchHandler;
use crate::processor::batch::Batches;
use crate::processor::blocking::Blocking;
use crate::processor::delays::Delays;
use crate::processor::gate::Gate;
use crate::processor::handler::Body;
use crate::processor::handler::Handler;
use crate::processor::lock_renewals::LockRenewals;
use crate::processor::pool::Running;
use crate::processor::pool::Terms;
use crate::processor::pool::run_pool;
use crate::processor::pool::stop_requested;
#[cfg(any(feature = "daemon", test))]
use crate::processor::single::DeliveryEnd;
use crate::processor::single::EndCounter;
use crate::processor::single::Single;
use crate::processor::taker::Taker;
use crate::queue::Backoff;
use crate::shown::shown;
use crate::task;

/// Runs a handler for each message of a queue: many workflows at once, one message at a time for each, in order.
///
/// It receives what it has free slots for, renews locks at 70 % of their time, notifies a handler when its lock was lost, and
/// settles by what the handler says. A handler that panics has failed; nothing else happens.
///
/// While handlers are quick it receives ahead of its slots, at most 1,024 messages: as many as handlers begin within a tenth
/// of a second. What has not begun half a second later is given back as if it had not been handed out, and so is what has not
/// begun when the processor is stopped or dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), seriatim::Error> {
/// use seriatim::{Context, Failure, Message, Outcome, Processor, QueueOptions};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Paid { cents: u64 }
///
/// async fn book(context: Context, paid: Paid) -> Result<Outcome, Failure> {
///     println!("attempt {}: {} cents", context.attempt(), paid.cents);
///     Ok(Outcome::Complete)
/// }
///
/// let (engine, _clock) = seriatim::testing::engine().await?;
/// let payments = engine.client().create_queue("payments", QueueOptions::default()).await?;
/// payments.send(Message::json(&Paid { cents: 1999 })?.workflow("order-17")).await?;
///
/// let running = Processor::new(payments.clone()).start(book);
/// while payments.view().await?.counts.completed == 0 {
///     tokio::task::yield_now().await;
/// }
/// running.stop().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Dropping
/// Dropping the future of [`Processor::run_until`] drops the handlers that run: their messages count as failed. What handlers
/// have done before is completed.
#[derive(Clone)]
pub struct Processor {
    queue: Queue,
    concurrency: usize,
    drain: Duration,
    renew_for: Duration,
    delays: Delays,
    taker: Option<Arc<dyn Taker>>,
    gate: Option<Arc<dyn Gate>>,
    end_counter: Option<EndCounter>,
}

shown!(Processor { name of queue, concurrency });

impl Processor {
    /// A processor of a queue, with default options.
    pub fn new(queue: Queue) -> Processor {
        Processor {
            queue,
            concurrency: limits::CONCURRENCY_DEFAULT,
            drain: limits::DRAIN_DEFAULT,
            renew_for: limits::RENEW_FOR_DEFAULT,
            delays: Delays::default(),
            taker: None,
            gate: None,
            end_counter: None,
        }
    }

    /// Makes a handler of a plain function that may block its thread: it runs on a thread of tokio's pool for that, at most
    /// 512 at once unless the runtime says otherwise.
    ///
    /// Use it for whatever takes longer than about a millisecond without an `.await`: files, databases without an async client,
    /// computing. A handler that blocks an ordinary task keeps its lock, too, because locks are renewed and deliveries settled
    /// by a thread of the engine's own; but everything else on the runtime, other handlers included, waits for it.
    ///
    /// One that is to end before there is a thread for it does not begin; when its processor was stopped, its message is given
    /// back uncounted.
    ///
    /// A blocking handler cannot be stopped from outside. When its lock is lost, or the drain time is over, [`Context::is_cancelled`](crate::Context::is_cancelled)
    /// says so, and the message may be handled by somebody else while the handler still runs; show the
    /// [lock token](crate::Context::lock_token) to whatever must not be written twice.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// use seriatim::{Context, Message, Outcome, Processor, QueueOptions, Raw};
    ///
    /// let (engine, _clock) = seriatim::testing::engine().await?;
    /// let files = engine.client().create_queue("files", QueueOptions::default()).await?;
    /// files.send(Message::new("a.txt")).await?;
    ///
    /// let running = Processor::new(files.clone()).start(Processor::blocking(|_: Context, body: Raw| {
    ///     std::io::Write::write_all(&mut std::io::sink(), &body.0)?;
    ///     Ok::<_, std::io::Error>(Outcome::Complete)
    /// }));
    /// while files.view().await?.counts.completed == 0 {
    ///     tokio::task::yield_now().await;
    /// }
    /// running.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocking<F>(work: F) -> Blocking<F> {
        Blocking::new(work)
    }

    /// How many deliveries (or batches) it handles at once: 1 to 16,384, 64 by default. Quick handlers gain nothing by more
    /// of them.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Processor {
        self.concurrency = concurrency.clamp(1, limits::CONCURRENCY_MAX);
        self
    }

    /// For how long it renews the lock of one delivery, 5 minutes by default. After that the lock runs out by itself, and the handler
    /// is cancelled with it.
    #[must_use]
    pub fn renew_for(mut self, renew_for: Duration) -> Processor {
        self.renew_for = renew_for;
        self
    }

    /// How long it waits, when it is stopped, for the handlers that run: 30 seconds by default. A handler that still runs then is told
    /// to end ([`Context::cancelled`](crate::Context::cancelled)), is dropped three seconds later, and its attempt has failed; it is
    /// tried again at once.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Processor {
        self.drain = drain;
        self
    }

    /// Another backoff than the queue's, for failures that choose no delay. One with a `factor` of 0 does not grow.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Processor {
        self.delays = Delays::Backoff(Backoff { factor: backoff.factor.max(1), ..backoff });
        self
    }

    /// Exact delays, by attempt, for failures that choose none; where there is none, the queue's backoff.
    #[cfg(feature = "daemon")]
    pub(crate) fn exact_delays(
        mut self,
        after: impl Fn(u32) -> Option<Duration> + Send + Sync + 'static,
    ) -> Processor {
        self.delays = Delays::Exact(Arc::new(after));
        self
    }

    /// Has messages taken by one who needs no task for each; the handler gets the others.
    #[cfg(any(feature = "daemon", test))]
    pub(crate) fn taker(mut self, taker: Arc<dyn Taker>) -> Processor {
        self.taker = Some(taker);
        self
    }

    /// Receives only as much as a gate lets through.
    #[cfg(feature = "daemon")]
    pub(crate) fn gate(mut self, gate: Arc<dyn Gate>) -> Processor {
        self.gate = Some(gate);
        self
    }

    /// Counts how deliveries have ended, which may not be as their handlers said.
    #[cfg(any(feature = "daemon", test))]
    pub(crate) fn counting(
        mut self,
        end_counter: impl Fn(DeliveryEnd, usize) + Send + Sync + 'static,
    ) -> Processor {
        self.end_counter = Some(Arc::new(end_counter));
        self
    }

    /// Runs until `shutdown` is there, then stops in order: it receives nothing more, waits for the handlers that
    /// run, and gives back uncounted what was not started.
    ///
    /// # Errors
    /// [`ReceiveError`] when the queue or the engine is gone.
    ///
    /// # Panics
    /// Outside of a tokio runtime, on which its handlers run.
    pub async fn run_until<T: Body>(
        &self,
        handler: impl Handler<T>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ReceiveError> {
        self.run_until_drained(handler, shutdown, self.drained()).await
    }

    /// As [`Processor::run_until`]; from the shutdown on, handlers go on until `drained` ends and not for the drain time.
    pub(crate) async fn run_until_drained<T: Body>(
        &self,
        handler: impl Handler<T>,
        shutdown: impl Future<Output = ()> + Send,
        drained: impl Future<Output = Result<(), Unavailable>> + Send,
    ) -> Result<(), ReceiveError> {
        let single = self.single(handler);
        let (locks, _watching) = (single.locks.clone(), single.locks.watched());
        let terms = Terms { concurrency: self.concurrency, locks: &locks, shutdown, drained };
        run_pool(self.queue.client(), Arc::new(single), terms).await
    }

    /// Ends when handlers have had the time to drain, by the engine's clock.
    async fn drained(&self) -> Result<(), Unavailable> {
        self.queue.client().sleep(self.drain).await
    }

    /// Runs in the background, on the present tokio runtime. Whoever must hear at once when it ends because the queue or the engine is
    /// gone spawns [`Processor::run_until`], and awaits that.
    pub fn start<T: Body>(&self, handler: impl Handler<T>) -> Running {
        let processor = self.clone();
        Running::start(|stopping| {
            task::spawn(async move { processor.run_until(handler, stop_requested(stopping)).await })
        })
    }

    /// As [`Processor::run_until`], with up to `len_max` consecutive messages of one workflow in one call.
    ///
    /// # Errors
    /// As [`Processor::run_until`].
    pub async fn run_batches_until<T: Body>(
        &self,
        len_max: usize,
        handler: impl BatchHandler<T>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ReceiveError> {
        let locks = self.locks();
        let batches = Batches {
            locks: locks.clone(),
            queue: Arc::new(self.queue.clone()),
            handler: Arc::new(handler),
            delays: self.delays.clone(),
            len_max: len_max.clamp(1, limits::RECEIVE_MAX),
            received: AtomicUsize::new(0),
            body: PhantomData,
        };
        let (_watching, drained) = (locks.watched(), self.drained());
        let terms = Terms { concurrency: self.concurrency, locks: &locks, shutdown, drained };
        run_pool(self.queue.client(), Arc::new(batches), terms).await
    }

    /// As [`Processor::start`], with up to `len_max` consecutive messages of one workflow in one call.
    pub fn start_batches<T: Body>(&self, len_max: usize, handler: impl BatchHandler<T>) -> Running {
        let processor = self.clone();
        Running::start(|stopping| {
            let stop = stop_requested(stopping);
            task::spawn(async move { processor.run_batches_until(len_max, handler, stop).await })
        })
    }

    pub(crate) fn single<H: Handler<T>, T: Body>(&self, handler: H) -> Single<H, T> {
        Single {
            locks: self.locks(),
            queue: Arc::new(self.queue.clone()),
            handler: Arc::new(handler),
            delays: self.delays.clone(),
            taker: self.taker.clone(),
            gate: self.gate.clone(),
            end_counter: self.end_counter.clone(),
            body: PhantomData,
        }
    }

    fn locks(&self) -> Arc<LockRenewals> {
        LockRenewals::new(self.queue.client().clone(), self.renew_for)
    }
}
