//! A delivery: a message handed out under a lock, to be settled.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::kept::DeliveryId;
use crate::engine::client::received::Received;
use crate::engine::client::settling::Abandon;
use crate::engine::client::settling::Completion;
use crate::engine::client::settling::Ending;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Completion as CompletionCommand;
use crate::engine::rules::command::Handed;
use crate::engine::rules::command::Held;
use crate::engine::rules::command::Receipt;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::Settled;
use crate::engine::rules::command::Settlement;
use crate::error::SettleError;
use crate::error::SettleRefusal;
use crate::header::Properties;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// A message handed out under a lock.
///
/// Settle it: complete, abandon, defer or dead-letter it, or release it unstarted. After a settle that succeeded,
/// further ones are refused. A settle is durable before the next message of the workflow is handed out.
///
/// # Dropping
/// A delivery that is dropped without being settled is given back at once as a failed attempt.
#[must_use = "a delivery that is dropped counts as a failed attempt"]
pub struct Delivery {
    message: Arc<Received>,
    hold: DeliveryHold,
    locked_until: Timestamp,
    lasts: Duration,
}

/// What it takes to settle a delivery; dropped unsettled, it gives the message back.
struct DeliveryHold {
    client: Client,
    queue: QueueName,
    token: LockToken,
    sequence: SequenceNumber,
    delivery_count: u32,
    settled: bool,
}

impl Drop for DeliveryHold {
    fn drop(&mut self) {
        if !self.settled {
            let settlement = dropped();
            self.client.give_back(self.command(settlement));
        }
    }
}

impl DeliveryHold {
    fn held(&self) -> Held {
        Held { token: self.token, sequence: self.sequence, delivery_count: self.delivery_count }
    }

    fn command(&self, settlement: Settlement) -> Command {
        let Held { token, sequence, delivery_count } = self.held();
        Command::Settle { queue: self.queue.clone(), token, sequence, delivery_count, settlement }
    }
}

/// How a delivery ends that is dropped unsettled.
pub(crate) fn dropped() -> Settlement {
    let reason = "it was dropped without being settled".to_owned();
    Settlement::Abandon { retry: Retry::Now, reason, properties: Properties::new() }
}

impl Delivery {
    pub(crate) fn new(client: Client, queue: QueueName, handed: Handed) -> Delivery {
        let (token, sequence, locked_until) = (handed.token, handed.sequence, handed.locked_until);
        let delivery_count = handed.record.delivery_count;
        let hold = DeliveryHold { client, queue, token, sequence, delivery_count, settled: false };
        let lasts = handed.lasts();
        Delivery { message: Arc::new(Received::new(handed)), hold, locked_until, lasts }
    }

    /// The message.
    pub fn message(&self) -> &Received {
        &self.message
    }

    /// The message, for somebody else to keep.
    pub(crate) fn shared_message(&self) -> Arc<Received> {
        self.message.clone()
    }

    /// The queue it came from.
    pub fn queue(&self) -> &QueueName {
        &self.hold.queue
    }

    /// Its number.
    pub fn sequence_number(&self) -> SequenceNumber {
        self.hold.sequence
    }

    /// Until when it is locked, as far as this handle knows.
    pub fn locked_until(&self) -> Timestamp {
        self.locked_until
    }

    /// The lock token, to be shown to others as a fencing token.
    pub fn lock_token(&self) -> LockToken {
        self.hold.token
    }

    /// Lets go of the handle and keeps the lock: whoever knows the ID can settle the delivery with
    /// [`Queue::kept`](crate::Queue::kept) until the lock runs out.
    pub fn keep(mut self) -> DeliveryId {
        self.note_settled();
        let Held { token, sequence, delivery_count } = self.hold.held();
        DeliveryId { token, sequence_number: sequence, delivery_count }
    }

    /// Ends it well.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::SettleRefusal::LockLost) when it is not held any more.
    pub async fn complete(&mut self) -> Result<(), SettleError> {
        self.settle(Settlement::Complete(CompletionCommand::default())).await?;
        Ok(())
    }

    /// Ends it well; messages to send and the new workflow state are one transaction with it.
    ///
    /// # Errors
    /// As [`Delivery::complete`]; [`SettleRefusal::Send`](crate::SettleRefusal::Send) when one of the messages was
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
        self.end(Ending::Abandon(Abandon::now())).await
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
        self.end(Ending::Abandon(Abandon::after(delay).reason(reason))).await
    }

    /// Gives it back as a failed attempt, with everything that can be said of it.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn abandon_with(&mut self, abandon: Abandon) -> Result<(), SettleError> {
        self.end(Ending::Abandon(abandon)).await
    }

    /// Sets it aside until it is fetched by its sequence number; the workflow goes on without it.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn defer(&mut self) -> Result<(), SettleError> {
        self.end(Ending::Defer(None)).await
    }

    /// Sets it aside until an instant, or until it is fetched by its sequence number before.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn defer_until(&mut self, until: Timestamp) -> Result<(), SettleError> {
        self.end(Ending::Defer(Some(until))).await
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
        self.end(Ending::DeadLetter { reason: reason.into(), description: description.into() }).await
    }

    /// Gives it back unstarted: the delivery count is what it was before the hand-out.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn release(&mut self) -> Result<(), SettleError> {
        self.end(Ending::Release).await
    }

    /// Ends it in any way but well.
    ///
    /// # Errors
    /// As [`Delivery::complete`].
    pub async fn end(&mut self, ending: Ending) -> Result<(), SettleError> {
        let settlement = ending.check(&self.hold.client)?;
        self.settle(settlement).await?;
        Ok(())
    }

    async fn settle(&mut self, settlement: Settlement) -> Result<Settled, SettleError> {
        self.to_settle().map_err(SettleError::Refused)?;
        let settled = settled(self.hold.client.ask(self.hold.command(settlement)).await?)?;
        self.note_settled();
        Ok(settled)
    }

    /// How it is named in a command that settles it; refused when it is settled already.
    pub(crate) fn to_settle(&self) -> Result<Held, SettleRefusal> {
        match self.hold.settled {
            true => Err(SettleRefusal::MessageNotFound(self.hold.sequence)),
            false => Ok(self.hold.held()),
        }
    }

    /// Notes that a command has settled it: dropping it gives nothing back.
    pub(crate) fn note_settled(&mut self) {
        self.hold.settled = true;
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
        let DeliveryHold { client, queue, token, .. } = &self.hold;
        Renewal::new(client.clone(), queue.clone(), *token)
    }

    /// For how long the lock was still held at the hand-out.
    pub(crate) fn lasts(&self) -> Duration {
        self.lasts
    }
}

/// A handle that can only renew a lock.
#[derive(Clone)]
pub struct Renewal {
    client: Client,
    queue: QueueName,
    token: LockToken,
}

impl Renewal {
    pub(crate) fn new(client: Client, queue: QueueName, token: LockToken) -> Renewal {
        Renewal { client, queue, token }
    }

    /// Prolongs the lock by the queue's lock time from now, and says until when.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::SettleRefusal::LockLost) when it is not held any more.
    pub async fn renew(&self) -> Result<Timestamp, SettleError> {
        Ok(self.ask().await?.locked_until.unwrap_or_default())
    }

    /// Prolongs the lock, and says for how long from now.
    pub(crate) async fn prolong(&self) -> Result<Duration, SettleError> {
        Ok(self.ask().await?.lasts.unwrap_or_default())
    }

    async fn ask(&self) -> Result<Settled, SettleError> {
        settled(self.client.ask(Command::Renew { queue: self.queue.clone(), token: self.token }).await?)
    }
}

/// The answer to a settle.
pub(crate) fn settled(reply: Reply) -> Result<Settled, SettleError> {
    match reply {
        Reply::Settle(answer) => answer.map_err(SettleError::Refused),
        other => unreachable!("a settle is answered as one: {other:?}"),
    }
}
