//! One call of a handler: under a lock that is kept, stopped when that is lost.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::task::Poll;
use std::time::Duration;

use tokio::task::unconstrained;

use crate::engine::Client;
use crate::error::Unavailable;
use crate::limits;
use crate::processor::failure::Failure;
use crate::processor::lock_renewals::KeptLock;

/// Why an attempt has failed whose handler outlasted the drain and did not end when it was cancelled.
const OUTLASTED: &str =
    "the processor was stopped, and the handler had not ended when the drain time was over";

/// Runs a handler's future to its end; `None` when its lock was lost before. Then it is gone: nothing may be given back while
/// its handler still runs. A panic is a failure, and so is to outlast the drain, and the time to end by itself after that.
///
/// # Errors
/// [`Unavailable`] when the engine went away before: with it went the lock.
pub(crate) async fn invoke<T>(
    client: &Client,
    lock: &KeptLock,
    handling: impl Future<Output = Result<T, Failure>>,
) -> Result<Option<Result<T, Failure>>, Unavailable> {
    // Unconstrained, because a handler that always has something to do leaves the others of its task no turn.
    tokio::select! {
        biased;
        ended = caught(handling) => Ok(Some(ended)),
        stopped = unconstrained(stopped(client, lock)) => Ok(stopped?.map(Err)),
    }
}

/// Waits until a handler is to be dropped; with why its attempt has failed, unless its lock was lost.
async fn stopped(client: &Client, lock: &KeptLock) -> Result<Option<Failure>, Unavailable> {
    lock.signal().lost_or_outlasted().await;
    let grace_over = async {
        tracing::warn!("telling a handler that still runs to end: the drain time is over");
        client.sleep(limits::GIVE_UP_GRACE).await
    };
    tokio::select! {
        biased;
        lost = lock.lost() => lost.map(|()| None),
        slept = grace_over => {
            slept?;
            tracing::warn!("drop a handler that did not end when it was cancelled");
            Ok(Some(Failure::new(OUTLASTED).retry_after(Duration::ZERO)))
        }
    }
}

async fn caught<T>(handling: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut handling = std::pin::pin!(Some(handling));
    std::future::poll_fn(|context| {
        // Nobody sees the handler again after a panic, so it does not matter in what state it is. It may also panic when
        // it is dropped.
        let polled = guarded(|| {
            let polled = match handling.as_mut().as_pin_mut() {
                Some(handling) => handling.poll(context),
                None => Poll::Pending,
            };
            if polled.is_ready() {
                handling.set(None);
            }
            Ok(polled)
        });
        polled.unwrap_or_else(|failure| Poll::Ready(Err(failure)))
    })
    .await
}

/// Does what may panic: that is a failure.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        Err(Failure::new(format!("the handler panicked: {text}")))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a text")
}
