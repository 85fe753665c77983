//! Tasks of the runtime, in boxes.

use std::future::Future;
use std::pin::Pin;

use tokio::task::JoinHandle;

/// A future in a box. What a runtime makes of a task is compiled for each kind of future, and so once for all that are in boxes and
/// have the same outcome.
pub(crate) type BoxedTask<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Puts a future in a box.
pub(crate) fn boxed<T>(work: impl Future<Output = T> + Send + 'static) -> BoxedTask<T> {
    Box::pin(work)
}

/// Runs a future beside what is running, in a box.
pub(crate) fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(boxed(work))
}
