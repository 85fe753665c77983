//! A word to all threads of a node that it is being stopped.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::SetOnce;

use crate::mutex::Mutex;

/// Whether a node is being stopped. Clones say the same.
#[derive(Clone, Default)]
pub(crate) struct ClusterStop(Arc<StopState>);

/// Why something has ended without an answer.
pub(crate) const STOPPED: &str = "the node is stopped";

/// Known to threads, and to tasks.
#[derive(Default)]
struct StopState {
    is_said: Mutex<bool>,
    changed: Condvar,
    told: SetOnce<()>,
}

impl ClusterStop {
    /// Says so to whoever waits, and to whoever asks from now on.
    pub(crate) fn say(&self) {
        *self.0.is_said.lock() = true;
        self.0.changed.notify_all();
        let _ = self.0.told.set(());
    }

    /// Whether it was said.
    pub(crate) fn is_said(&self) -> bool {
        *self.0.is_said.lock()
    }

    /// Waits for so long, or until it is said. Whether it was said.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let guard = self.0.is_said.lock();
        let waited = self.0.changed.wait_timeout_while(guard, time, |is_said| !*is_said);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// What comes of some work; `None` when it is said before.
    pub(crate) async fn before<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = self.0.told.wait() => None,
        }
    }
}

/// Lets time pass, which no signal ends: it is looked again then.
pub(crate) async fn pause(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
