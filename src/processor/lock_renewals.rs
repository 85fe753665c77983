//! The locks of the messages that are handled, nearly all of which are settled before they must be renewed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::deadlines::Deadlines;
use crate::engine::Client;
use crate::engine::Renewal;
use crate::error::Unavailable;
use crate::limits;
use crate::mutex::Mutex;
use crate::processor::renewal::first_due;
use crate::processor::renewal::keep_until_lost;
use crate::processor::renewal::with_wait;
use crate::processor::signal::Signal;
use crate::processor::signal::signalled;
use crate::processor::taker::Taker;

/// Keeps locks while handlers run, as long as they are [watched](Locks::watched).
///
/// A lock is only noted here: the engine is set to wake it at the first instant at which one is to be renewed, and one that is
/// still noted then gets a task of its own. All of that is done by the engine's own thread, so that locks are kept while
/// handlers keep all other threads busy.
pub(crate) struct LockRenewals {
    client: Client,
    renew_for: Duration,
    /// Whether the drain time is over, for those whose lock is renewed just then.
    outlasted: watch::Sender<bool>,
    noted: Mutex<RenewalNote>,
    /// Rung when a lock was noted that is due before the instant at which the engine wakes it.
    earlier: Notify,
}

#[derive(Default)]
struct RenewalNote {
    /// By when they are to be renewed, in the clock's elapsed time.
    due: Deadlines<Duration, RenewalLock>,
    next: u64,
    /// The instant at which the engine wakes it.
    next_at: Option<Duration>,
    /// The engine is gone, and with it all locks.
    is_over: bool,
}

struct RenewalLock {
    number: u64,
    renewal: Renewal,
    since: Duration,
    lasts: Duration,
    /// Tells the handler, and who runs it when that has had the time to end by itself.
    signal: Arc<Signal>,
    /// Who has taken the message, if it has no task of its own.
    taker: Option<Arc<dyn Taker>>,
}

impl Drop for RenewalLock {
    fn drop(&mut self) {
        self.signal.end();
    }
}

/// A lock that is kept until this is dropped.
pub(crate) struct KeptLock {
    locks: Arc<LockRenewals>,
    number: u64,
    due: Duration,
    signal: Arc<Signal>,
    is_let_go: bool,
}

impl Drop for KeptLock {
    fn drop(&mut self) {
        if self.is_let_go {
            return;
        }
        // It may be renewed just now.
        self.signal.end();
        let removed = self.locks.noted.lock().due.remove(self.due, self.number);
        // Here the list is free again: this wakes others.
        drop(removed);
    }
}

/// Locks are watched until this is dropped.
pub(crate) struct Watching(JoinHandle<Infallible>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl KeptLock {
    /// Its number, which no other of the same processor has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What becomes of it.
    pub(crate) fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// Waits until it is lost, and its handler has had the time to end by itself.
    ///
    /// # Errors
    /// [`Unavailable`] when the engine went away: with it went the lock.
    pub(crate) async fn lost(&self) -> Result<(), Unavailable> {
        match self.signal.lost().await {
            Some(lost) => lost,
            // Nobody keeps it any more. If that is because the engine is gone, it says why.
            None => Box::pin(self.locks.client.sleep(Duration::ZERO)).await,
        }
    }
}

impl LockRenewals {
    /// Locks that are renewed for so long at most.
    pub(crate) fn new(client: Client, renew_for: Duration) -> Arc<LockRenewals> {
        let (outlasted, noted, earlier) = (watch::Sender::new(false), Mutex::default(), Notify::new());
        Arc::new(LockRenewals { client, renew_for, outlasted, noted, earlier })
    }

    /// Keeps a lock that was taken at an instant of the clock's elapsed time, for so long.
    pub(crate) fn keep(
        self: &Arc<LockRenewals>,
        renewal: Renewal,
        lock_span: (Duration, Duration),
    ) -> KeptLock {
        self.noting(|noted| self.note(noted, renewal, lock_span, None))
    }

    /// Keeps the locks of many, with what belongs to each.
    pub(crate) fn keep_all<T>(
        self: &Arc<LockRenewals>,
        locked: Vec<T>,
        lock_of: impl Fn(&T) -> (Renewal, (Duration, Duration)),
    ) -> impl Iterator<Item = (T, KeptLock)> {
        let kept: Vec<KeptLock> = self.noting(|noted| {
            let locks = locked.iter().map(lock_of);
            locks.map(|(renewal, lock_span)| self.note(noted, renewal, lock_span, None)).collect()
        });
        locked.into_iter().zip(kept)
    }

    /// Keeps the lock of a message that a taker takes.
    pub(crate) fn keep_accepted(
        self: &Arc<LockRenewals>,
        renewal: Renewal,
        lock_span: (Duration, Duration),
        taker: Arc<dyn Taker>,
    ) -> KeptLock {
        self.noting(|noted| self.note(noted, renewal, lock_span, Some(taker)))
    }

    fn note(
        self: &Arc<LockRenewals>,
        noted: &mut RenewalNote,
        renewal: Renewal,
        lock_span: (Duration, Duration),
        taker: Option<Arc<dyn Taker>>,
    ) -> KeptLock {
        let (since, lasts) = lock_span;
        let signal = Arc::new(Signal::default());
        noted.next += 1;
        let number = noted.next;
        let renew_for = if taker.is_some() { with_wait(lasts, self.renew_for) } else { self.renew_for };
        let due = first_due(since, lasts, renew_for);
        if *self.outlasted.borrow() {
            signal.outlast();
        }
        if !noted.is_over {
            let lock = RenewalLock { number, renewal, since, lasts, signal: signal.clone(), taker };
            noted.due.insert(due, number, lock);
        } else {
            signal.end();
        }
        KeptLock { locks: self.clone(), number, due, signal, is_let_go: false }
    }

    /// Notes locks, and wakes who watches if one is due before the instant at which the engine does so.
    fn noting<T>(&self, note: impl FnOnce(&mut RenewalNote) -> T) -> T {
        let mut noted = self.noted.lock();
        let kept = note(&mut noted);
        let first = noted.due.first().map(|(due, _)| due);
        let is_earlier = first.is_some_and(|first| noted.next_at.is_none_or(|next_at| first < next_at));
        drop(noted);
        if is_earlier {
            self.earlier.notify_one();
        }
        kept
    }

    /// Keeps locks no longer, all at once.
    pub(crate) fn let_go(&self, locks: impl Iterator<Item = KeptLock>) {
        let mut removed = Vec::with_capacity(locks.size_hint().0);
        let mut noted = self.noted.lock();
        for mut lock in locks {
            lock.is_let_go = true;
            lock.signal.end();
            removed.extend(noted.due.remove(lock.due, lock.number));
        }
        // Here the list is free again: this wakes others.
        drop(noted);
        drop(removed);
    }

    /// Says to who runs each handler, and to each handler, that the drain time is over.
    pub(crate) fn outlast_all(&self) {
        // First for those whose lock is renewed just now.
        self.outlasted.send_replace(true);
        let noted = self.noted.lock();
        let signals: Vec<Arc<Signal>> = noted.due.iter().map(|lock| lock.signal.clone()).collect();
        drop(noted);
        signals.iter().for_each(|signal| signal.outlast());
    }

    /// Watches them in a task of its own: whoever waits for the processor may do something else meanwhile.
    pub(crate) fn watched(self: &Arc<LockRenewals>) -> Watching {
        let locks = self.clone();
        Watching(self.client.spawn(async move { locks.watch().await }))
    }

    async fn watch(&self) -> Infallible {
        loop {
            let first = self.ask_for_first();
            let until_first = async {
                match first {
                    Some(until) => self.client.sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                slept = until_first => match slept {
                    Ok(()) => self.renew_due(),
                    Err(unavailable) => return self.end(&unavailable).await,
                },
                () = self.earlier.notified() => {}
            }
        }
    }

    fn ask_for_first(&self) -> Option<Duration> {
        let mut noted = self.noted.lock();
        noted.next_at = noted.due.first().map(|(until, _)| until);
        noted.next_at
    }

    /// Starts to renew the locks that are due.
    fn renew_due(&self) {
        let due = self.noted.lock().due.take_until(self.client.elapsed());
        for lock in due {
            self.client.spawn(lock.keep(self.client.clone(), self.renew_for, self.outlasted.subscribe()));
        }
    }

    async fn end(&self, unavailable: &Unavailable) -> Infallible {
        let due = {
            let mut noted = self.noted.lock();
            noted.is_over = true;
            noted.due.take_until(Duration::MAX)
        };
        for lock in due {
            lock.signal_taker();
            lock.give_up(Err(unavailable.clone()));
        }
        std::future::pending().await
    }
}

impl RenewalLock {
    /// Renews it until it is lost, or until nobody wants it any more.
    async fn keep(self, client: Client, renew_for: Duration, outlasted: watch::Receiver<bool>) {
        let kept = async {
            let kept = self.keep_begun(&client, renew_for).await;
            self.signal_taker();
            let _ = client.sleep(limits::CANCEL_GRACE).await;
            kept
        };
        let kept = tokio::select! {
            kept = kept => kept,
            () = self.give_back_late(&client, renew_for) => return,
            () = self.signal.ended() => return,
            never = self.outlast(&outlasted) => match never {},
        };
        self.give_up(kept);
    }

    /// Says that the drain time is over when it is.
    async fn outlast(&self, outlasted: &watch::Receiver<bool>) -> Infallible {
        signalled(outlasted).await;
        self.signal.outlast();
        std::future::pending().await
    }

    /// Renews it until it is lost; what waits for its taker has its whole time before it.
    async fn keep_begun(&self, client: &Client, renew_for: Duration) -> Result<(), Unavailable> {
        let held = (self.since, self.lasts);
        let Some(taker) = &self.taker else {
            return keep_until_lost(client, &self.renewal, held, renew_for, || false).await;
        };
        let renew_for = with_wait(self.lasts, renew_for);
        keep_until_lost(client, &self.renewal, held, renew_for, || taker.is_waiting(self.number)).await
    }

    /// Has a message given back that has waited for its taker for so long: somebody else may handle it.
    async fn give_back_late(&self, client: &Client, renew_for: Duration) {
        if let Some(taker) = &self.taker
            && client.sleep_until(self.since.saturating_add(renew_for)).await.is_ok()
        {
            taker.give_back(self.number);
        }
        std::future::pending().await
    }

    /// Tells who handles the message that it is lost.
    fn signal_taker(&self) {
        // The flag first: a taker that does not know the number yet looks at the flag when it begins.
        self.signal.raise();
        if let Some(taker) = &self.taker {
            taker.cancel(self.number);
        }
    }

    /// Ends who handles the message, and has had the time to end by itself.
    fn give_up(self, lost: Result<(), Unavailable>) {
        self.signal.lose(lost);
        if let Some(taker) = &self.taker {
            taker.give_up(self.number);
        }
    }
}
