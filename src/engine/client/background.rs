//! A thread of the engine's own for what must not wait for the user's runtime.

use std::future::Future;
use std::io;
use std::sync::OnceLock;

use tokio::runtime::Builder;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::engine::threads;
use crate::task;
use crate::task::boxed;

/// A thread with a runtime of its own, started when it is first needed: locks are kept and deliveries are settled here,
/// however long handlers keep the threads busy that they run on.
///
/// # Dropping
/// What still runs there is dropped, and the thread ends.
#[derive(Default)]
pub(crate) struct Background {
    started: OnceLock<Option<BackgroundRuntime>>,
}

struct BackgroundRuntime {
    runtime: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Background {
    /// Runs a future there. If the system gives no thread, it runs on the present runtime.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let started = self.started.get_or_init(|| match start() {
            Ok(started) => Some(started),
            Err(error) => {
                tracing::warn!(%error, "failed to start the thread that keeps locks; handlers that block may lose theirs");
                None
            }
        });
        match started {
            Some(started) => started.runtime.spawn(boxed(work)),
            None => task::spawn(work),
        }
    }
}

fn start() -> io::Result<BackgroundRuntime> {
    let runtime = Builder::new_current_thread().build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    threads::spawn("seriatim-locks", move || {
        // Nobody ever sends: it ends when the sender is dropped.
        let _ = runtime.block_on(stopped);
    })?;
    Ok(BackgroundRuntime { runtime: handle, _stop: stop })
}
