//! The handler: applies a change to what its path holds, and makes some first attempts fail.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use seriatim::Completion;
use seriatim::Delivery;
use seriatim::Message;
use seriatim::Queue;
use seriatim::ReceivedMessage;
use tokio::sync::watch;
use tokio::task::JoinSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::demo::git::ChangeBody;
use crate::demo::replay::error::ReplayError;
use crate::demo::replay::path_state::PathState;
use crate::demo::replay::plan::Handling;

/// Tasks that receive at once.
pub(crate) const WORKERS: usize = 4;

/// Deliveries one of them has at once.
const DELIVERIES: usize = 64;

/// How long a receive waits before it looks whether everything is done.
const WAIT: Duration = Duration::from_millis(50);

/// How long a failed message waits for its retry.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Why a first attempt failed; kept with the message, so that it fails once however often the process is killed.
const INJECTED: &str = "injected failure";

/// The subject of a message that was sent again at the back.
const AGAIN: &str = "again";

/// What a handler needs to know.
pub(crate) struct ReplayHandler {
    pub(crate) queue: Queue,
    pub(crate) handling: Handling,
    pub(crate) failures: f64,
    pub(crate) seed: u64,
    pub(crate) on_cluster: bool,
    /// Changes applied since this process began.
    pub(crate) applied: AtomicU64,
}

impl ReplayHandler {
    /// Receives and handles until `finished` says that everything is done.
    pub(crate) async fn work(
        self: Arc<Self>,
        mut finished: watch::Receiver<bool>,
    ) -> Result<(), ReplayError> {
        while !*finished.borrow_and_update() {
            let deliveries = match self.queue.receive_many(DELIVERIES, WAIT).await.map_err(ReplayError::from)
            {
                Err(error) if self.on_cluster && error.passes() => continue,
                received => received?,
            };
            let mut handled = JoinSet::new();
            for delivery in deliveries {
                handled.spawn(self.clone().handle(delivery));
            }
            while let Some(result) = handled.join_next().await {
                match result.map_err(|error| ReplayError::system("handle a message")(error.into()))? {
                    // Done already, or handed out again to somebody.
                    Err(error) if self.on_cluster && error.passes() => {}
                    handled => handled?,
                }
            }
        }
        Ok(())
    }

    async fn handle(self: Arc<Self>, mut delivery: Delivery) -> Result<(), ReplayError> {
        let message = delivery.message();
        let (chosen, failed) = (self.is_chosen(message), has_failed(message));
        if chosen && !failed {
            return self.fail(delivery).await;
        }
        let change: ChangeBody = message.json()?;
        let id = message.workflow_id.clone();
        let id = id.ok_or_else(|| ReplayError::BadState("of a message without one".to_owned()))?;
        let before = match self.queue.workflow(&id)?.state().await? {
            Some(state) => {
                let state = serde_json::from_slice::<PathState>(&state);
                Some(state.map_err(|_| ReplayError::BadState(id.to_string()))?)
            }
            None => None,
        };
        let state = PathState::after(before, change, chosen);
        let state = serde_json::to_vec(&state).map_err(|_| ReplayError::BadState(id.to_string()))?;
        delivery.complete_with(Completion::new().state(state)).await?;
        self.applied.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Fails a first attempt: it is retried in its place, or sent again at the back.
    async fn fail(&self, mut delivery: Delivery) -> Result<(), ReplayError> {
        if self.handling != Handling::RetryAtBack {
            delivery.abandon_after(RETRY_DELAY, INJECTED).await?;
            return Ok(());
        }
        let message = delivery.message();
        let mut again = Message::new(message.body.clone()).subject(AGAIN);
        if let Some(id) = &message.workflow_id {
            again = again.workflow(id.as_str());
        }
        let completion = Completion::new().send(self.queue.name().as_str(), again);
        delivery.complete_with(completion).await?;
        Ok(())
    }

    /// Whether the first attempt of a message is to fail; the same for the same seed.
    fn is_chosen(&self, message: &ReceivedMessage) -> bool {
        let share = xxh3_64_with_seed(&message.body, self.seed) as f64 / u64::MAX as f64;
        share < self.failures
    }
}

fn has_failed(message: &ReceivedMessage) -> bool {
    let again = message.headers.subject.as_deref() == Some(AGAIN);
    again || message.attempts.iter().any(|attempt| attempt.reason == INJECTED)
}
