//! Handing over what the outbox of a partition holds: the owner sends each message to the partition of its workflow, under a key
//! by which that knows what it has already, and completes it once that is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::handover::Handover;
use crate::cluster::placing::CommandPlace;
use crate::cluster::placing::OUTBOX_QUEUE;
use crate::cluster::router::Router;
use crate::cluster::stop::pause;
use crate::engine::Delivery;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::encode;
use crate::engine::elsewhere::verbs;
use crate::error::SendRefusal;
use crate::error::Unavailable;
use crate::id::IdempotencyKey;
use crate::limits;

/// The reasons under which messages of the outbox are dead-lettered.
const REFUSED: &str = "handover_refused";
const UNKNOWN: &str = "handover_unknown";

/// What came of handing a message over.
enum HandoverResult {
    Done,
    /// It was not done, and may be later.
    NotNow,
    /// The partition that it is for knows of no such queue, and says so in these words.
    NoQueue(String),
    /// It cannot be done.
    Never(String),
    /// It is not known whether it was done.
    Unknown,
}

impl Router {
    /// Hands over what the outbox of a partition holds whenever this node owns that, until the node is stopped.
    pub(crate) async fn hand_over(self: Arc<Router>, partition: u16) {
        let places = Arc::new(Semaphore::new(limits::OUTBOX_HANDOVERS));
        while !self.stop.is_said() {
            let client = self.partition(partition).client();
            let Some(Ok(outbox)) = client.map(|client| client.queue(OUTBOX_QUEUE)) else {
                pause(limits::OUTBOX_PAUSE).await;
                continue;
            };
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match outbox.receive(limits::RECEIVE_SLICE).await {
                Ok(Some(delivery)) => {
                    let router = self.clone();
                    self.runtime.spawn(async move {
                        router.hand_over_one(partition, delivery).await;
                        drop(place);
                    });
                }
                Ok(None) => {}
                // Nothing was ever sent to another partition, or this one is another node's now.
                Err(_) => pause(limits::OUTBOX_PAUSE).await,
            }
        }
    }

    async fn hand_over_one(&self, partition: u16, mut delivery: Delivery) {
        let settled = match self.try_to_hand_over(partition, &mut delivery).await {
            HandoverResult::Done => delivery.complete().await,
            HandoverResult::NotNow | HandoverResult::NoQueue(_) => {
                pause(limits::OUTBOX_PAUSE).await;
                delivery.release().await
            }
            HandoverResult::Never(why) => {
                tracing::error!(
                    partition,
                    why,
                    "a message to another partition is a dead letter of the outbox"
                );
                delivery.dead_letter(REFUSED, why).await
            }
            HandoverResult::Unknown => {
                let why = "the partition that it is for has not answered, and may have it or not";
                tracing::error!(
                    partition,
                    why,
                    "a message to another partition is a dead letter of the outbox"
                );
                delivery.dead_letter(UNKNOWN, why).await
            }
        };
        if let Err(error) = settled {
            // Whoever owns the partition next hands it over again, under the same key.
            tracing::debug!(partition, %error, "a message of the outbox is not settled");
        }
    }

    /// Sends it, and again as long as it is not known whether it was done: it is, or is not, under its key.
    async fn try_to_hand_over(&self, partition: u16, delivery: &mut Delivery) -> HandoverResult {
        let message = delivery.message();
        let Some(Handover { queue, message }) = Handover::unwrap(&message.headers, &message.body) else {
            return HandoverResult::Never("it does not say what it is".to_owned());
        };
        let to = match self.places.message(&queue, &message) {
            CommandPlace::One(to) => to,
            _ => partition,
        };
        let text = format!("{OUTBOX_QUEUE}/{}", delivery.sequence_number().get());
        let key = IdempotencyKey::new(text, xxh3_64(&encode(&message))).expect("it is short");
        let name = queue.clone();
        let command = Command::SendOnce(verbs::SendOnce { queue, key, messages: vec![message] });
        let (begun, mut is_unknown) = (self.clock.elapsed(), false);
        loop {
            match result_of(self.ask(to, command.clone(), Duration::ZERO).await) {
                HandoverResult::Unknown => is_unknown = true,
                HandoverResult::NotNow if is_unknown => {}
                // Whoever has just taken the partition over may not have heard of it yet.
                HandoverResult::NoQueue(why) => match self.definitions.is_there(&name).await {
                    Ok(false) => return HandoverResult::Never(why),
                    _ if is_unknown => {}
                    _ => return HandoverResult::NotNow,
                },
                result => return result,
            }
            if self.clock.elapsed().saturating_sub(begun) > limits::OUTBOX_KEY_LASTS {
                return HandoverResult::Unknown;
            }
            pause(limits::OUTBOX_PAUSE).await;
            // Whoever has lost the lock is not the one to do it any more.
            if self.stop.is_said() || delivery.renew().await.is_err() {
                return HandoverResult::NotNow;
            }
        }
    }
}

fn result_of(reply: Result<Reply, Unavailable>) -> HandoverResult {
    match reply {
        Ok(Reply::Send(Ok(_))) => HandoverResult::Done,
        Ok(Reply::Send(Err(refusal))) => match refusal {
            SendRefusal::QueueFull { .. }
            | SendRefusal::WorkflowFull { .. }
            | SendRefusal::TooManyKeys { .. }
            | SendRefusal::StorageFull => HandoverResult::NotNow,
            SendRefusal::QueueNotFound(_) => HandoverResult::NoQueue(refusal.to_string()),
            refusal => HandoverResult::Never(refusal.to_string()),
        },
        Ok(_) => HandoverResult::Unknown,
        // Nobody has heard of it.
        Err(Unavailable::NotOwner | Unavailable::PartitionStopped { .. } | Unavailable::Busy) => {
            HandoverResult::NotNow
        }
        Err(error @ (Unavailable::TooLarge { .. } | Unavailable::Unsupported(_))) => {
            HandoverResult::Never(error.to_string())
        }
        Err(_) => HandoverResult::Unknown,
    }
}
