//! One call of a handler: in a task of its own, under a lock that is renewed, stopped when that is lost.

use std::any::Any;
use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::Client;
use crate::engine::Renewal;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::outcome::Failure;
use crate::processor::renewal::keep_until_lost;

/// How locks are kept.
#[derive(Clone)]
pub(crate) struct Keeping {
    /// Becomes true when handlers that still run are to be ended.
    pub(crate) give_up: watch::Receiver<bool>,
    pub(crate) renew_for: Duration,
}

/// A task that is ended when nobody waits for it any more.
struct OwnedTask<T>(JoinHandle<T>);

impl<T> OwnedTask<T> {
    /// Ends the task, and waits until it is gone: nothing may be given back while its handler still runs.
    async fn end(&mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a handler's future to its end; `None` when the lock was lost before. A panic is a failure.
///
/// # Errors
/// [`Unavailable`] when the engine went away before: with it went the lock.
pub(crate) async fn invoke<T: Send + 'static>(
    client: &Client,
    renewal: &Renewal,
    lasts: Duration,
    keeping: &Keeping,
    cancel: &watch::Sender<bool>,
    handling: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<Option<Result<T, Failure>>, Unavailable> {
    let mut task = OwnedTask(tokio::spawn(handling));
    let kept = tokio::select! {
        biased;
        ended = &mut task.0 => return Ok(Some(result_of(ended))),
        kept = keep_until_lost(client, renewal, lasts, keeping.renew_for) => kept,
        () = told(&keeping.give_up) => {
            task.end().await;
            return Ok(None);
        }
    };
    cancel.send_replace(true);
    tokio::select! {
        _ = &mut task.0 => {}
        _ = client.sleep(limits::CANCEL_GRACE) => task.end().await,
    }
    kept.map(|()| None)
}

/// Waits until a flag is raised; a flag that nobody can raise any more never is.
pub(crate) async fn told(flag: &watch::Receiver<bool>) {
    let mut flag = flag.clone();
    if flag.wait_for(|raised| *raised).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn result_of<T>(ended: Result<Result<T, Failure>, tokio::task::JoinError>) -> Result<T, Failure> {
    match ended {
        Ok(result) => result,
        Err(error) if error.is_panic() => {
            Err(Failure::new(format!("the handler panicked: {}", panic_text(&*error.into_panic()))))
        }
        Err(_) => Err(Failure::new("the handler was ended from outside")),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a text")
}
