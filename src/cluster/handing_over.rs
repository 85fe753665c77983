//! Handing over what the outbox of a partition holds: the owner sends each message to the partition of its workflow, which keeps in
//! mind what it has taken, and completes it once that is acknowledged.
//!
//! It may be asked for as often and as late as need be: the other partition knows it until it hears that it is settled in the outbox
//! (`handover_ledger`), which is not said of one that may arrive once more. An owner that begins asks it what it keeps, and tells it
//! which of that are not in the outbox any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::handover::Handover;
use crate::cluster::handover_ledger::HandoverLedger;
use crate::cluster::placing::CommandPlace;
use crate::cluster::router::Router;
use crate::cluster::stop::pause;
use crate::engine::Client;
use crate::engine::Delivery;
use crate::engine::Queue;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::HandoverAnswer;
use crate::engine::elsewhere::HandoverSource;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::encode;
use crate::engine::elsewhere::verbs;
use crate::error::SendRefusal;
use crate::error::SettleError;
use crate::error::Unavailable;
use crate::id::SequenceNumber;
use crate::limits;
use crate::own_queues::OUTBOX_QUEUE;
use crate::task::boxed;

/// The reason under which messages of the outbox are dead-lettered.
const REFUSED: &str = "handover_refused";

/// What came of handing a message over.
enum HandoverResult {
    /// It was done, now or before. What else the other partition keeps in mind, if it was asked.
    Done(Vec<SequenceNumber>),
    /// It was not done and may be later, or it is not known whether it was.
    NotNow,
    /// It was not done, as the other partition keeps these in mind, and no more beside them.
    Full(Vec<SequenceNumber>),
    /// A later owner has handed something over.
    Outdated,
    /// The partition that it is for knows of no such queue, and says so in these words.
    NoQueue(String),
    /// It cannot be done.
    Never(String),
}

/// The outbox of a partition, as it is handed over by the owner of one epoch.
struct OwnedOutbox {
    partition: u16,
    epoch: u32,
    queue: Queue,
    ledger: HandoverLedger,
    places: Arc<Semaphore>,
}

impl OwnedOutbox {
    fn new(partition: u16, epoch: u32, client: &Client) -> Option<OwnedOutbox> {
        let queue = client.queue(OUTBOX_QUEUE).ok()?;
        let places = Arc::new(Semaphore::new(limits::OUTBOX_HANDOVERS));
        Some(OwnedOutbox { partition, epoch, queue, ledger: HandoverLedger::default(), places })
    }

    /// Whether a message is not in it any more.
    async fn is_gone(&self, number: SequenceNumber) -> bool {
        let found = self.queue.peek(number, 1).await;
        found.is_ok_and(|found| found.first().is_none_or(|found| found.sequence_number != number))
    }
}

impl Router {
    /// Hands over what the outbox of a partition holds whenever this node owns that, until the node is stopped.
    pub(crate) async fn hand_over(self: Arc<Router>, partition: u16) {
        let mut owned: Option<Arc<OwnedOutbox>> = None;
        while !self.stop.is_said() {
            owned = self.partition(partition).owned().and_then(|(client, epoch)| match owned.take() {
                Some(outbox) if outbox.epoch == epoch => Some(outbox),
                _ => OwnedOutbox::new(partition, epoch, &client).map(Arc::new),
            });
            let Some(outbox) = &owned else {
                pause(limits::OUTBOX_PAUSE).await;
                continue;
            };
            let Ok(place) = outbox.places.clone().acquire_owned().await else { return };
            match outbox.queue.receive(limits::RECEIVE_SLICE).await {
                Ok(Some(delivery)) => {
                    let (router, outbox) = (self.clone(), outbox.clone());
                    self.runtime.spawn(boxed(async move {
                        router.hand_over_one(&outbox, delivery).await;
                        drop(place);
                    }));
                }
                Ok(None) => {}
                // Nothing was ever sent to another partition, or this one is another node's now.
                Err(_) => pause(limits::OUTBOX_PAUSE).await,
            }
        }
    }

    async fn hand_over_one(&self, outbox: &OwnedOutbox, mut delivery: Delivery) {
        let (partition, number) = (outbox.partition, delivery.sequence_number());
        let settled = match Handover::unwrap(&delivery.message().headers, &delivery.message().body) {
            None => refuse(partition, &mut delivery, "it does not say what it is".to_owned()).await,
            Some(handover) => {
                let to = match self.places.message(&handover.queue, &handover.message) {
                    CommandPlace::One(to) => to,
                    _ => partition,
                };
                match self.try_to_hand_over(outbox, (to, number), handover).await {
                    HandoverResult::Done(kept) => {
                        let settled = delivery.complete().await;
                        if settled.is_ok() {
                            outbox.ledger.tell(to, [number]);
                        }
                        self.settle_kept(outbox, to, kept).await;
                        settled
                    }
                    HandoverResult::Full(kept) => {
                        self.settle_kept(outbox, to, kept).await;
                        give_back(&mut delivery, limits::OUTBOX_PAUSE).await
                    }
                    HandoverResult::NotNow | HandoverResult::NoQueue(_) => {
                        give_back(&mut delivery, limits::OUTBOX_PAUSE).await
                    }
                    HandoverResult::Outdated => {
                        tracing::warn!(
                            partition,
                            to,
                            "another owner of the outbox has handed something over since: this one was deposed, or its log is older"
                        );
                        give_back(&mut delivery, limits::OUTBOX_PAUSE_DEPOSED).await
                    }
                    HandoverResult::Never(why) => refuse(partition, &mut delivery, why).await,
                }
            }
        };
        if let Err(error) = settled {
            // Whoever owns the partition next hands it over again, under the same number.
            tracing::debug!(partition, %error, "a message of the outbox is not settled");
        }
    }

    /// Sends it to the partition that it is for.
    async fn try_to_hand_over(
        &self,
        outbox: &OwnedOutbox,
        (to, number): (u16, SequenceNumber),
        handover: Handover,
    ) -> HandoverResult {
        let Handover { queue, message } = handover;
        // Whoever asked it would only wait for its log, and take a place of others.
        if self.partition(to).is_stuck() {
            return HandoverResult::NotNow;
        }
        let Some((settled, wants_kept)) = outbox.ledger.take(to, number, self.clock.elapsed()) else {
            return HandoverResult::NotNow;
        };
        let source = HandoverSource {
            partition: outbox.partition,
            epoch: outbox.epoch,
            number,
            digest: xxh3_64(&encode(&message)),
            settled: settled.clone(),
            wants_kept,
        };
        let name = queue.clone();
        let command = Command::HandOver(verbs::HandOver { source, queue, message });
        let own_epoch = || self.partition(to).owned().map(|(_, epoch)| epoch);
        let epoch = own_epoch();
        let reply = self.ask(to, command, Duration::ZERO).await;
        // An engine that this node had all the while was asked without NATS, and does what it is asked in that order.
        let is_own = epoch.is_some() && own_epoch() == epoch;
        match &reply {
            Ok(_) => outbox.ledger.note_answered(to, number),
            Err(why) if why.may_be_done() && !is_own => {
                outbox.ledger.note_late(to, number, self.clock.elapsed());
            }
            Err(_) => {}
        }
        let result = result_of(reply);
        if !matches!(result, HandoverResult::Done(_) | HandoverResult::Full(_)) {
            outbox.ledger.tell(to, settled);
        }
        match result {
            // Whoever has just taken the partition over may not have heard of it yet.
            HandoverResult::NoQueue(why) if matches!(self.definitions.is_there(&name).await, Ok(false)) => {
                HandoverResult::Never(why)
            }
            result => result,
        }
    }

    /// Notes which of the messages that another partition keeps in mind are settled here since an owner before.
    async fn settle_kept(&self, outbox: &OwnedOutbox, to: u16, kept: Vec<SequenceNumber>) {
        if !outbox.ledger.hear(to) {
            return;
        }
        for number in kept {
            if outbox.is_gone(number).await {
                outbox.ledger.tell(to, [number]);
            }
        }
    }
}

/// Gives back a message that cannot be handed over now. One without a workflow is set aside, for longer each time: given back, it would
/// be before all that came later, and so many of them would keep anything else from being handed over.
async fn give_back(delivery: &mut Delivery, wait: Duration) -> Result<(), SettleError> {
    // Meanwhile it keeps its place, so that very many of them are not tried all at once.
    pause(wait).await;
    if delivery.message().has_workflow() {
        return delivery.release().await;
    }
    let growth = 2_u32.saturating_pow(delivery.message().delivery_count.saturating_sub(1));
    delivery.defer_for(wait.saturating_mul(growth).min(limits::OUTBOX_PAUSE_MAX)).await
}

/// Gives up a message that cannot be handed over.
async fn refuse(partition: u16, delivery: &mut Delivery, why: String) -> Result<(), SettleError> {
    tracing::error!(partition, why, "a message to another partition is a dead letter of the outbox");
    delivery.dead_letter(REFUSED, why).await
}

fn result_of(reply: Result<Reply, Unavailable>) -> HandoverResult {
    match reply {
        Ok(Reply::HandOver(Ok(HandoverAnswer::Taken { kept }))) => HandoverResult::Done(kept),
        Ok(Reply::HandOver(Ok(HandoverAnswer::Full { kept }))) => HandoverResult::Full(kept),
        Ok(Reply::HandOver(Ok(HandoverAnswer::Outdated))) => HandoverResult::Outdated,
        Ok(Reply::HandOver(Err(refusal))) => match refusal {
            SendRefusal::QueueFull { .. }
            | SendRefusal::WorkflowFull { .. }
            | SendRefusal::TooManyKeys { .. }
            | SendRefusal::StorageFull => HandoverResult::NotNow,
            SendRefusal::QueueNotFound(_) => HandoverResult::NoQueue(refusal.to_string()),
            refusal => HandoverResult::Never(refusal.to_string()),
        },
        Err(error @ (Unavailable::TooLarge { .. } | Unavailable::Unsupported(_))) => {
            HandoverResult::Never(error.to_string())
        }
        _ => HandoverResult::NotNow,
    }
}
