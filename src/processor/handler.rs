//! Handlers, and how they get their bodies.

use std::future::Future;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::engine::Outcome;
use crate::engine::ReceivedMessage;
use crate::error::Misuse;
use crate::processor::context::Context;
use crate::processor::failure::Failure;

/// What is run for each delivery. Every async function of a [`Context`] and a body is one.
///
/// It runs at least once for each message, one at a time for each workflow, in order. A panic counts as a failure. What
/// it logs with `tracing` is inside a span `handle` that names the queue, the workflow, the sequence number and the attempt.
pub trait Handler<T>: Send + Sync + 'static {
    /// Handles one message.
    fn handle(&self, context: Context, body: T) -> impl Future<Output = Result<Outcome, Failure>> + Send;
}

impl<F, Fut, T, E> Handler<T> for F
where
    F: Fn(Context, T) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, E>> + Send,
    T: Send + 'static,
    E: Into<Failure>,
{
    fn handle(&self, context: Context, body: T) -> impl Future<Output = Result<Outcome, Failure>> + Send {
        let handling = self(context, body);
        async move { handling.await.map_err(Into::into) }
    }
}

/// What a handler can take as a body: any type that can be read from JSON, or [`Raw`].
pub trait Body: Send + Sized + 'static {
    /// Reads it from a message.
    ///
    /// # Errors
    /// [`Misuse`] when the body is not of this type; the message is then dead-lettered as `MalformedBody`.
    fn read(message: &ReceivedMessage) -> Result<Self, Misuse>;
}

impl<T: DeserializeOwned + Send + 'static> Body for T {
    fn read(message: &ReceivedMessage) -> Result<T, Misuse> {
        message.json()
    }
}

/// A body as it was sent, unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw(pub Bytes);

impl Body for Raw {
    fn read(message: &ReceivedMessage) -> Result<Raw, Misuse> {
        Ok(Raw(message.body.clone()))
    }
}
