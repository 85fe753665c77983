//! What becomes of a lock while its message is handled, for all who have to know it.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::atomic::fence;

use tokio::sync::Notify;
use tokio::sync::watch;

use crate::error::Unavailable;

/// Waits until a flag is raised; a flag that nobody can raise any more never is.
pub(crate) async fn signalled(flag: &watch::Receiver<bool>) {
    let mut flag = flag.clone();
    if flag.wait_for(|raised| *raised).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What becomes of one lock: shared by who keeps it, who runs the handler, and the handler. One allocation a message.
#[derive(Default)]
pub(crate) struct Signal {
    /// The handler is to end soon: the lock is lost, or nobody keeps it any more.
    raised: AtomicBool,
    /// Nobody keeps it any more, or nobody wants it to be kept.
    over: AtomicBool,
    /// Its processor has been stopped, and the drain time is over.
    outlasted: AtomicBool,
    /// Why the handler is to be dropped: its lock was lost, or with the engine all locks were.
    lost: OnceLock<Result<(), Unavailable>>,
    /// Whether anybody has ever waited to hear of any of these: nearly always nobody does.
    is_awaited: AtomicBool,
    rung: Notify,
}

impl Signal {
    /// Tells the handler to end soon.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.ring();
    }

    /// Says that the processor has been stopped, and the drain time is over.
    pub(crate) fn outlast(&self) {
        self.outlasted.store(true, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        // Either this sees who waits, or who waits sees what was set before: each sets one and then looks at the other.
        fence(Ordering::SeqCst);
        if self.is_awaited.load(Ordering::Acquire) {
            self.rung.notify_waiters();
        }
    }

    /// Whether the handler is to end soon.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Says that the handler is to be dropped.
    pub(crate) fn lose(&self, lost: Result<(), Unavailable>) {
        let _ = self.lost.set(lost);
        self.raise();
    }

    /// Says that nobody keeps the lock any more, or nobody wants it to be kept.
    pub(crate) fn end(&self) {
        // Who keeps it and who wants it kept both say so: the second has nobody to tell.
        if !self.over.swap(true, Ordering::AcqRel) {
            self.raise();
        }
    }

    /// Waits until nobody keeps the lock any more, or nobody wants it to be kept.
    pub(crate) async fn ended(&self) {
        self.until(|signal| signal.over.load(Ordering::Acquire)).await;
    }

    /// Waits until the handler is to be dropped; `None` when its lock is no longer kept and no reason is known.
    pub(crate) async fn lost(&self) -> Option<Result<(), Unavailable>> {
        self.until(Signal::is_lost).await;
        self.lost.get().cloned()
    }

    /// Waits until the handler is to be dropped, or the drain time is over.
    pub(crate) async fn lost_or_outlasted(&self) {
        self.until(|signal| signal.is_lost() || signal.is_outlasted()).await;
    }

    /// Waits until the handler is to end soon, or the drain time is over.
    pub(crate) async fn raised_or_outlasted(&self) {
        self.until(|signal| signal.is_raised() || signal.is_outlasted()).await;
    }

    /// Whether the drain time is over.
    pub(crate) fn is_outlasted(&self) -> bool {
        self.outlasted.load(Ordering::Acquire)
    }

    fn is_lost(&self) -> bool {
        self.lost.get().is_some() || self.over.load(Ordering::Acquire)
    }

    async fn until(&self, is_so: impl Fn(&Signal) -> bool) {
        self.is_awaited.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        loop {
            let mut rung = std::pin::pin!(self.rung.notified());
            // From here on no ring is missed.
            rung.as_mut().enable();
            if is_so(self) {
                return;
            }
            rung.await;
        }
    }
}
