//! Handlers that block their thread, run where that is allowed.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio::task::JoinSet;

use crate::engine::Outcome;
use crate::processor::batch::BatchHandler;
use crate::processor::batch::BatchOutcome;
use crate::processor::context::Context;
use crate::processor::failure::Failure;
use crate::processor::handler::Handler;

/// A handler that may block its thread, made by [`Processor::blocking`](crate::Processor::blocking).
pub struct Blocking<F>(F);

impl<F> fmt::Debug for Blocking<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").finish_non_exhaustive()
    }
}

impl<F> Blocking<F> {
    pub(crate) fn new(work: F) -> Blocking<F> {
        Blocking(work)
    }
}

impl<F, T, E> Handler<T> for Blocking<F>
where
    F: Fn(Context, T) -> Result<Outcome, E> + Clone + Send + Sync + 'static,
    T: Send + 'static,
    E: Into<Failure>,
{
    async fn handle(&self, context: Context, body: T) -> Result<Outcome, Failure> {
        let work = self.0.clone();
        let ended = on_a_thread(context.clone(), move || work(context, body).map_err(Into::into)).await?;
        Ok(ended.unwrap_or(Outcome::Release))
    }
}

impl<F, T, E> BatchHandler<T> for Blocking<F>
where
    F: Fn(Context, Vec<T>) -> Result<BatchOutcome, E> + Clone + Send + Sync + 'static,
    T: Send + 'static,
    E: Into<Failure>,
{
    async fn handle(&self, context: Context, bodies: Vec<T>) -> Result<BatchOutcome, Failure> {
        let work = self.0.clone();
        let ended = on_a_thread(context.clone(), move || work(context, bodies).map_err(Into::into)).await?;
        Ok(ended.unwrap_or_else(|| BatchOutcome::first(0).then(Outcome::Release)))
    }
}

/// Does work on a thread that nobody else needs; `None` when it was to end before there was a thread, and never begins.
async fn on_a_thread<T: Send + 'static>(
    context: Context,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Option<T>, Failure> {
    // Whether it begins is decided once: by a thread that takes it, or by the end of its time.
    let (span, is_decided) = (tracing::Span::current(), Arc::new(AtomicBool::new(false)));
    let (begins, until_begin) = (is_decided.clone(), context.clone());
    let begin = move || match begins.swap(true, Ordering::AcqRel) || context.is_cancelled() {
        true => Ok(None),
        false => span.in_scope(work).map(Some),
    };
    // A set, because it takes back what still waits for a thread when it is dropped; a handle would let it begin.
    let mut task = JoinSet::new();
    task.spawn_blocking(begin);
    let ended = tokio::select! {
        biased;
        ended = task.join_next() => ended,
        () = until_begin.cancelled() => match is_decided.swap(true, Ordering::AcqRel) {
            true => task.join_next().await,
            // There may be no thread for long.
            false => return Ok(None),
        },
    };
    match ended {
        Some(Ok(ended)) => ended,
        // Whoever runs the handler makes a failure of it.
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        Some(Err(_)) | None => Err(Failure::new("the runtime was shut down before the handler began")),
    }
}
