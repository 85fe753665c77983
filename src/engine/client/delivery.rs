//! A delivery: a message handed out under a lock, to be settled.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::delivery_id::DeliveryId;
use crate::engine::client::outcome::Outcome;
use crate::engine::client::received_message::ReceivedMessage;
use crate::engine::client::settling::Abandon;
use crate::engine::client::settling::Completion;
use crate::engine::client::settling::postponed;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::DeliveryRef;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::verbs::Renew;
use crate::engine::rules::verbs::Settle;
use crate::error::SettleError;
use crate::header::Properties;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::shown::shown;
use crate::token::LockToken;

/// A message handed out under a lock.
///
/// Settle it: complete, abandon, defer or dead-letter it, or release it unstarted. A settle is durable before the next
/// message of the workflow is handed out.
///
/// # Settling twice
/// The future of a settle that is dropped before it is done may have taken effect, and so may one whose answer was lost.
/// Ask the same again: for a minute the same settlement (the same outcome, state and sends) of the same delivery is answered
/// as it was the first time, with the same receipts, and does nothing. Another settlement of it is refused with
/// [`SettleRefusal::AlreadySettled`](crate::error::SettleRefusal::AlreadySettled), which says how it was settled. After a minute, after
/// 262,144 other settlements, and after the engine was opened anew, both are
/// [`SettleRefusal::LockLost`](crate::error::SettleRefusal::LockLost). A [`release`](Delivery::release) takes effect also if its future is
/// dropped; do not ask it again under an [`AcceptedWorkflow`](crate::AcceptedWorkflow), which may have been handed the message anew.
///
/// # Dropping
/// A delivery that is dropped without being settled is given back at once as a failed attempt.
#[must_use = "a delivery that is dropped counts as a failed attempt"]
pub struct Delivery {
    message: Arc<ReceivedMessage>,
    hold: DeliveryHold,
    locked_until: Timestamp,
    since: Duration,
    lasts: Duration,
}

shown!(Delivery { sequence_number of message, workflow_id of message, delivery_count of message, locked_until });

/// Why what is dropped has failed.
pub(crate) const DROPPED: &str = "it was dropped without being settled";

/// Where deliveries came from that were handed out together. They share it, so that no two threads that settle some of them count
/// references to the same thing at every message.
pub(crate) struct DeliveryOrigin {
    pub(crate) client: Client,
    pub(crate) queue: QueueName,
}

/// What it takes to settle a delivery; dropped unsettled, it gives the message back.
pub(crate) struct DeliveryHold {
    origin: Arc<DeliveryOrigin>,
    id: DeliveryId,
    settled: bool,
}

impl Drop for DeliveryHold {
    fn drop(&mut self) {
        if !self.settled {
            let settlement = dropped();
            self.origin.client.give_back(self.command(settlement));
        }
    }
}

impl DeliveryHold {
    fn command(&self, settlement: Settlement) -> Settle {
        self.id.to_command(&self.origin.queue, settlement)
    }

    /// The queue it came from.
    pub(crate) fn queue(&self) -> &QueueName {
        &self.origin.queue
    }

    /// How it is named in a command that settles it.
    pub(crate) fn to_settle(&self) -> DeliveryRef {
        self.id.held()
    }

    /// Notes that a command has settled it: dropping it gives nothing back.
    pub(crate) fn note_settled(&mut self) {
        self.settled = true;
    }
}

/// How a delivery ends that is dropped unsettled.
fn dropped() -> Settlement {
    let (reason, properties) = (DROPPED.to_owned(), Properties::new());
    Settlement::Abandon { retry: Retry::Now, reason, properties, output: Output::default() }
}

impl Delivery {
    pub(crate) fn new(origin: Arc<DeliveryOrigin>, handed: LockedMessage) -> Delivery {
        let client = &origin.client;
        let (token, sequence_number) = (handed.token, handed.sequence);
        let id = DeliveryId { token, sequence_number, delivery_count: handed.record.delivery_count };
        let locked_until = client.shown(handed.locked_until);
        let (since, lasts) = (client.elapsed_at(handed.record.handed_out_at), handed.lasts());
        let message = Arc::new(ReceivedMessage::new(client, handed));
        let hold = DeliveryHold { origin, id, settled: false };
        Delivery { message, hold, locked_until, since, lasts }
    }

    /// The message.
    pub fn message(&self) -> &ReceivedMessage {
        &self.message
    }

    /// The message, for somebody else to keep.
    pub(crate) fn shared_message(&self) -> Arc<ReceivedMessage> {
        self.message.clone()
    }

    /// The queue it came from.
    pub fn queue(&self) -> &QueueName {
        self.hold.queue()
    }

    /// Its number.
    pub fn sequence_number(&self) -> SequenceNumber {
        self.hold.id.sequence_number
    }

    /// Until when it is locked, as far as this handle knows.
    pub fn locked_until(&self) -> Timestamp {
        self.locked_until
    }

    /// The lock token, to be shown to others as a fencing token.
    pub fn lock_token(&self) -> LockToken {
        self.hold.id.token
    }

    /// By what it is settled once it is [let go of](Delivery::keep).
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) fn id(&self) -> DeliveryId {
        self.hold.id
    }

    /// Lets go of the handle and keeps the lock: whoever knows the ID can settle the delivery with
    /// [`Queue::settler`](crate::Queue::settler) until the lock runs out.
    pub fn keep(mut self) -> DeliveryId {
        self.note_settled();
        self.hold.id
    }

    /// Completes the message.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::error::SettleRefusal::LockLost) when it is not held any more;
    /// [`SettleRefusal::AlreadySettled`](crate::error::SettleRefusal::AlreadySettled) when it was settled in another way. A future that
    /// is dropped may have taken effect: ask the same again (see [`Delivery`]).
    pub async fn complete(&mut self) -> Result<(), SettleError> {
        self.settle(Settlement::Complete(CompletionCommand::default())).await?;
        Ok(())
    }

    /// Completes the message; messages to send and the new workflow state are one transaction with it.
    ///
    /// # Errors
    /// As [`Delivery::complete`]; [`SettleRefusal::Send`](crate::error::SettleRefusal::Send) when one of the messages was
    /// refused: then nothing has happened, and the delivery is still held.
    pub async fn complete_with(&mut self, completion: Completion) -> Result<Vec<Receipt>, SettleError> {
        let completion = completion.check()?;
        Ok(self.settle(Settlement::Complete(completion)).await?.receipts)
    }

    /// Gives it back as a failed attempt, to be tried again at once.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn abandon(&mut self) -> Result<(), SettleError> {
        self.end(Outcome::Abandon(Abandon::now())).await
    }

    /// Gives it back as a failed attempt, to be tried again after a delay. Nothing behind it in its workflow is
    /// handed out meanwhile.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn abandon_after(
        &mut self,
        delay: Duration,
        reason: impl Into<String>,
    ) -> Result<(), SettleError> {
        self.end(Outcome::Abandon(Abandon::after(delay).reason(reason))).await
    }

    /// Gives it back as a failed attempt, with everything that can be said of it.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn abandon_with(&mut self, abandon: Abandon) -> Result<(), SettleError> {
        self.end(Outcome::Abandon(abandon)).await
    }

    /// Sets it aside until it is fetched by its sequence number; the workflow goes on without it.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn defer(&mut self) -> Result<(), SettleError> {
        self.end(Outcome::Defer).await
    }

    /// Sets it aside until an instant, or until it is fetched by its sequence number before.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn defer_until(&mut self, until: Timestamp) -> Result<(), SettleError> {
        self.end(Outcome::DeferUntil(until)).await
    }

    /// Sets it aside for this long, by a clock that does not jump, or until it is fetched by its sequence number before.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn defer_for(&mut self, delay: Duration) -> Result<(), SettleError> {
        self.end(Outcome::DeferFor(delay)).await
    }

    /// Moves it aside for good, with a reason by which dead letters are listed.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn dead_letter(
        &mut self,
        reason: impl Into<String>,
        description: impl Into<String>,
    ) -> Result<(), SettleError> {
        self.end(Outcome::DeadLetter { reason: reason.into(), description: description.into() }).await
    }

    /// Gives it back unstarted: the delivery count is what it was before the hand-out.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn release(&mut self) -> Result<(), SettleError> {
        self.end(Outcome::Release).await
    }

    /// Ends it in any way. The receipts of what a completion sends are not returned: [`Delivery::complete_with`] returns
    /// them.
    ///
    /// # Errors
    /// As [`Delivery::complete_with`].
    pub async fn end(&mut self, outcome: Outcome) -> Result<(), SettleError> {
        let settlement = outcome.check(&self.hold.origin.client)?;
        self.settle(settlement).await?;
        Ok(())
    }

    /// Gives it back as one of several that were handled together, when nobody knows which of them failed: it is handed
    /// out alone until it is settled.
    pub(crate) async fn abandon_as_suspect(&mut self, abandon: Abandon) -> Result<(), SettleError> {
        let settlement = abandon.check_shared(&self.hold.origin.client)?;
        self.settle(settlement).await?;
        Ok(())
    }

    /// Gives it back handled, but without the room for what it leads to: it is tried again after the queue's backoff, and the
    /// delivery count is what it was before the hand-out.
    pub(crate) async fn postpone(&mut self, reason: String) -> Result<(), SettleError> {
        let settlement = postponed(&self.hold.origin.client, reason)?;
        self.settle(settlement).await?;
        Ok(())
    }

    async fn settle(&mut self, settlement: Settlement) -> Result<SettleResult, SettleError> {
        if matches!(settlement, Settlement::Release) {
            return self.give_back_and_hear().await;
        }
        let settled = self.hold.origin.client.ask(self.hold.command(settlement)).await?;
        self.note_settled();
        Ok(settled)
    }

    /// Releases it. That is heard also if nobody waits for the answer: its holder may be handed the message again with the same count,
    /// and a second word of this delivery, as a drop has, would end that one.
    async fn give_back_and_hear(&mut self) -> Result<SettleResult, SettleError> {
        self.note_settled();
        let command = self.hold.command(Settlement::Release);
        let released = self.hold.origin.client.ask_at_once(command).await;
        self.hold.settled = match &released {
            Err(SettleError::Unavailable(why)) => why.may_be_done(),
            _ => true,
        };
        released
    }

    /// Gives it back unstarted. It is asked before this returns, so that whatever is asked later finds it given back; nobody
    /// hears whether its lock was lost before.
    pub(crate) fn give_back(mut self) {
        self.hold.origin.client.give_back(self.hold.command(Settlement::Release));
        self.note_settled();
    }

    /// What it takes to settle it.
    pub(crate) fn hold(&mut self) -> &mut DeliveryHold {
        &mut self.hold
    }

    /// Lets go of the message, and keeps what it takes to settle it.
    pub(crate) fn into_hold(self) -> DeliveryHold {
        self.hold
    }

    /// Notes that a command has settled it: dropping it gives nothing back.
    fn note_settled(&mut self) {
        self.hold.note_settled();
    }

    /// Prolongs the lock by the queue's lock time from now, and says until when.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn renew(&mut self) -> Result<Timestamp, SettleError> {
        self.locked_until = self.renewal().renew().await?;
        Ok(self.locked_until)
    }

    /// A handle that can only renew the lock, for a task beside the one that handles the message.
    pub fn renewal(&self) -> Renewal {
        Renewal { origin: self.hold.origin.clone(), token: self.hold.id.token }
    }

    /// When the lock was taken, in the clock's elapsed time, and for how long: whoever hears of it late must not renew it
    /// late.
    pub(crate) fn lock_time(&self) -> (Duration, Duration) {
        (self.since, self.lasts)
    }
}

/// A handle that can only renew a lock.
#[derive(Clone)]
pub struct Renewal {
    origin: Arc<DeliveryOrigin>,
    token: LockToken,
}

shown!(Renewal {});

impl Renewal {
    pub(crate) fn new(client: Client, queue: QueueName, token: LockToken) -> Renewal {
        Renewal { origin: Arc::new(DeliveryOrigin { client, queue }), token }
    }

    /// Prolongs the lock by the queue's lock time from now, and says until when.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::error::SettleRefusal::LockLost) when it is not held any more.
    pub async fn renew(&self) -> Result<Timestamp, SettleError> {
        let (until, _) = self.renew_until().await?;
        Ok(until)
    }

    /// Prolongs the lock, and says until when: by the wall clock, and in the clock's elapsed time, which nobody sets.
    pub(crate) async fn renew_until(&self) -> Result<(Timestamp, Duration), SettleError> {
        let until = self.ask().await?.locked_until.unwrap_or_default();
        Ok((self.origin.client.shown(until), self.origin.client.elapsed_at(until)))
    }

    /// Prolongs the lock, and says until when by the wall clock, and for how long from now.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) async fn renew_for(&self) -> Result<(Timestamp, Duration), SettleError> {
        let SettleResult { locked_until, lasts, .. } = self.ask().await?;
        Ok((self.origin.client.shown(locked_until.unwrap_or_default()), lasts.unwrap_or_default()))
    }

    /// Prolongs the lock, and says for how long from now.
    pub(crate) async fn prolong(&self) -> Result<Duration, SettleError> {
        Ok(self.ask().await?.lasts.unwrap_or_default())
    }

    async fn ask(&self) -> Result<SettleResult, SettleError> {
        let DeliveryOrigin { client, queue } = &*self.origin;
        client.ask(Renew { queue: queue.clone(), token: self.token }).await
    }
}
