//! A word to all threads of a node that it is being stopped.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// Whether a node is being stopped. Clones say the same.
#[derive(Clone, Default)]
pub(crate) struct ClusterStop(Arc<(Mutex<bool>, Condvar)>);

impl ClusterStop {
    /// Says so to whoever waits, and to whoever asks from now on.
    pub(crate) fn say(&self) {
        let (is_said, changed) = &*self.0;
        *is_said.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Whether it was said.
    pub(crate) fn is_said(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for so long, or until it is said. Whether it was said.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let (is_said, changed) = &*self.0;
        let guard = is_said.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, time, |is_said| !*is_said);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Lets time pass, which no signal ends: it is looked again then.
pub(crate) async fn pause(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
