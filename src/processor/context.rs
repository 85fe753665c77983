//! What a handler knows beside the body.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::engine::Queue;
use crate::engine::ReceivedMessage;
use crate::error::Misuse;
use crate::error::QueueError;
use crate::processor::signal::Signal;
use crate::shown::shown;
use crate::token::LockToken;

/// What a handler knows beside the body: the message, its attempt, its workflow's state, and whether to stop.
#[derive(Clone)]
pub struct Context {
    message: Arc<ReceivedMessage>,
    queue: Arc<Queue>,
    token: LockToken,
    lock: Arc<Signal>,
}

shown!(Context { name of queue, sequence_number of message, delivery_count of message });

impl Context {
    pub(crate) fn new(
        message: Arc<ReceivedMessage>,
        queue: Arc<Queue>,
        token: LockToken,
        lock: Arc<Signal>,
    ) -> Context {
        Context { message, queue, token, lock }
    }

    /// The message; in a batch, the first.
    pub fn message(&self) -> &ReceivedMessage {
        &self.message
    }

    /// The queue it came from.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Which attempt this is; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.message.delivery_count
    }

    /// The lock token, to be shown to others as a fencing token.
    pub fn lock_token(&self) -> LockToken {
        self.token
    }

    /// The state of the message's workflow; `None` when it has none.
    ///
    /// # Errors
    /// [`QueueError`] when the queue or the engine is gone.
    pub async fn state(&self) -> Result<Option<Bytes>, QueueError> {
        match &self.message.workflow_id {
            // Most have none, and need not ask for it.
            Some(id) if self.message.has_state() => Box::pin(self.queue.workflow(id)?.state()).await,
            _ => Ok(None),
        }
    }

    /// The state of the message's workflow, read as JSON.
    ///
    /// # Errors
    /// As [`Context::state`]; [`Misuse`] when it is not JSON of this type.
    pub async fn state_json<T: DeserializeOwned>(&self) -> Result<Option<T>, QueueError> {
        let Some(state) = self.state().await? else { return Ok(None) };
        let read = serde_json::from_slice(&state);
        Ok(Some(read.map_err(|error| Misuse::new("state", error.to_string()))?))
    }

    /// Whether the handler is to end soon: the lock was lost or the delivery is settled, so that what is still done cannot be
    /// settled any more; or the processor was stopped and its drain time is over.
    pub fn is_cancelled(&self) -> bool {
        self.is_lost() || self.is_given_up()
    }

    /// Waits until the handler is to end soon, as [`Context::is_cancelled`] says. One that still runs is dropped a second after its
    /// lock was lost, three seconds after the drain time was over.
    pub async fn cancelled(&self) {
        self.lock.raised_or_outlasted().await;
    }

    /// Whether the lock was lost, or the delivery is settled.
    pub(crate) fn is_lost(&self) -> bool {
        self.lock.is_raised()
    }

    /// Whether the handler has outlasted the drain of its processor.
    pub(crate) fn is_given_up(&self) -> bool {
        self.lock.is_outlasted()
    }
}
