//! Handlers that block their thread, run where that is allowed.

use std::panic::resume_unwind;

use crate::engine::Outcome;
use crate::processor::batch::BatchHandler;
use crate::processor::batch::BatchOutcome;
use crate::processor::context::Context;
use crate::processor::failure::Failure;
use crate::processor::handler::Handler;

/// A handler that may block its thread, made by [`Processor::blocking`](crate::Processor::blocking).
pub struct Blocking<F>(F);

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
        on_a_thread(move || work(context, body).map_err(Into::into)).await
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
        on_a_thread(move || work(context, bodies).map_err(Into::into)).await
    }
}

/// Does work on a thread that nobody else needs.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(ended) => ended,
        // Whoever runs the handler makes a failure of it.
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_) => Err(Failure::new("the runtime was shut down before the handler began")),
    }
}
