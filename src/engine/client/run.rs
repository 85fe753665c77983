//! A run: consecutive messages of one workflow, handed out under one lock.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::delivery::DROPPED;
use crate::engine::client::delivery::Renewal;
use crate::engine::client::outcome::Outcome;
use crate::engine::client::received_message::ReceivedMessage;
use crate::engine::client::settling::Abandon;
use crate::engine::client::settling::Completion;
use crate::engine::client::settling::postponed;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::verbs::SettleRun;
use crate::error::Misuse;
use crate::error::SettleError;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::shown::shown;
use crate::token::LockToken;

/// Consecutive messages of one workflow under one lock, to be settled from the first on.
///
/// The future of a settle that is dropped may have taken effect: ask the same again, as with a
/// [`Delivery`](crate::Delivery).
///
/// # Dropping
/// A run that is dropped gives its messages back as [`Run::abandon_all`] does.
#[must_use = "a run that is dropped counts as a failed attempt at its messages"]
pub struct Run {
    messages: Vec<ReceivedMessage>,
    completed: usize,
    hold: RunHold,
    locked_until: Timestamp,
    since: Duration,
    lasts: Duration,
}

shown!(Run { completed, locked_until });

/// Where a settlement begins that gives back all that is left: wherever the run has come to, as a completion that nobody waited
/// for may have taken effect. No run has the token of another, so it ends no other.
const ALL_THAT_IS_LEFT: Option<SequenceNumber> = None;

/// What it takes to settle a run; dropped unsettled, it gives the messages back.
struct RunHold {
    client: Client,
    queue: QueueName,
    token: LockToken,
    settled: bool,
}

impl Drop for RunHold {
    fn drop(&mut self) {
        if !self.settled {
            let next = Some(Settlement::Suspect {
                retry: Retry::Now,
                reason: DROPPED.to_owned(),
                output: Output::default(),
            });
            self.give_back(next);
        }
    }
}

impl RunHold {
    /// Gives back all that is left, and waits for no answer; the next message ends in its own way.
    fn give_back(&mut self, next: Option<Settlement>) {
        let completion = CompletionCommand::default();
        let settlement =
            RunSettlement { completed: 0, completion, next, keep_rest: false, first: ALL_THAT_IS_LEFT };
        let (queue, token) = (self.queue.clone(), self.token);
        self.client.give_back(SettleRun { queue, token, settlement });
        self.settled = true;
    }
}

impl Run {
    pub(crate) fn new(client: Client, queue: QueueName, handed: Vec<LockedMessage>) -> Option<Run> {
        let first = handed.first()?;
        let (token, locked_until) = (first.token, client.shown(first.locked_until));
        let (since, lasts) = (client.elapsed_at(first.record.handed_out_at), first.lasts());
        let messages = handed.into_iter().map(|handed| ReceivedMessage::new(&client, handed)).collect();
        let hold = RunHold { client, queue, token, settled: false };
        Some(Run { messages, completed: 0, hold, locked_until, since, lasts })
    }

    /// The messages that are not settled yet, in order.
    pub fn messages(&self) -> &[ReceivedMessage] {
        &self.messages[self.completed..]
    }

    /// Until when the run is locked, as far as this handle knows.
    pub fn locked_until(&self) -> Timestamp {
        self.locked_until
    }

    /// The lock token, to be shown to others as a fencing token.
    pub fn lock_token(&self) -> LockToken {
        self.hold.token
    }

    /// Lets go of the handle and keeps the lock: whoever knows the token can settle the run with
    /// [`Settler::settle_run`](crate::delivery::Settler::settle_run) until the lock runs out.
    pub fn keep(mut self) -> LockToken {
        self.hold.settled = true;
        self.hold.token
    }

    /// Completes all that is left.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::error::SettleRefusal::LockLost) when it is not held any more.
    pub async fn complete_all(&mut self) -> Result<(), SettleError> {
        self.complete_first(self.messages().len()).await
    }

    /// Completes the first `count` messages and keeps the others.
    ///
    /// # Errors
    /// As [`Run::complete_all`]; [`Misuse`] when there are fewer.
    pub async fn complete_first(&mut self, count: usize) -> Result<(), SettleError> {
        self.complete_first_with(count, Completion::new()).await?;
        Ok(())
    }

    /// Completes the first `count` messages and keeps the others; messages to send and the new workflow state are
    /// one transaction with it.
    ///
    /// # Errors
    /// As [`Run::complete_first`]; [`Misuse`] when something goes with no completion;
    /// [`SettleRefusal::Send`](crate::error::SettleRefusal::Send) when one of the messages was refused: then nothing has happened.
    pub async fn complete_first_with(
        &mut self,
        count: usize,
        completion: Completion,
    ) -> Result<Vec<Receipt>, SettleError> {
        self.check(count)?;
        let completion = completion.check_with(count)?;
        let settlement =
            RunSettlement { completed: count, completion, next: None, keep_rest: true, first: self.first() };
        let settled = self.settle(settlement).await?;
        self.completed += count;
        self.hold.settled = self.messages().is_empty();
        Ok(settled.receipts)
    }

    /// Completes the first `count` messages, ends the next in its own way, and gives back the others as if they had
    /// not been handed out.
    ///
    /// # Errors
    /// As [`Run::complete_first`]; [`Misuse`] when the next is completed, too.
    pub async fn complete_first_then(&mut self, count: usize, next: Outcome) -> Result<(), SettleError> {
        self.check(count.saturating_add(1))?;
        let next = next.check_next(&self.hold.client)?;
        self.end(count, Some(next), self.first()).await
    }

    /// Gives back all that is left as failed, without saying which of the messages failed.
    ///
    /// Each is handed out alone from then on, until it is settled, and its first delivery alone does not count again. So only
    /// the message that fails alone, too, is exhausted. A lost lock and a process that ends do the same. The delay is that of
    /// the first message; the others follow it.
    ///
    /// # Errors
    /// As [`Run::complete_all`]; [`Misuse`] when properties are to be set.
    pub async fn abandon_all(&mut self, abandon: Abandon) -> Result<(), SettleError> {
        let next = abandon.check_shared(&self.hold.client)?;
        self.end(0, Some(next), ALL_THAT_IS_LEFT).await
    }

    /// Gives back all that is left, handled, but without the room for what it leads to: it is tried again after the queue's
    /// backoff, and nothing is counted.
    pub(crate) async fn postpone_all(&mut self, reason: String) -> Result<(), SettleError> {
        let next = postponed(&self.hold.client, reason)?;
        self.end(0, Some(next), ALL_THAT_IS_LEFT).await
    }

    /// Gives back all that is left as if it had not been handed out.
    ///
    /// # Errors
    /// As [`Run::complete_all`].
    pub async fn release(&mut self) -> Result<(), SettleError> {
        self.end(0, None, ALL_THAT_IS_LEFT).await
    }

    /// Gives back all that is left as if it had not been handed out. It is asked before this returns, so that whatever is
    /// asked later finds it given back; nobody hears whether its lock was lost before.
    pub(crate) fn give_back(mut self) {
        self.hold.give_back(None);
    }

    /// Completes the first messages, ends the next in its own way, and gives back the others.
    async fn end(
        &mut self,
        completed: usize,
        next: Option<Settlement>,
        first: Option<SequenceNumber>,
    ) -> Result<(), SettleError> {
        let completion = CompletionCommand::default();
        self.settle(RunSettlement { completed, completion, next, keep_rest: false, first }).await?;
        self.completed = self.messages.len();
        self.hold.settled = true;
        Ok(())
    }

    /// Where it goes on: a settlement that is asked again is so never taken for the next.
    fn first(&self) -> Option<SequenceNumber> {
        self.messages().first().map(|message| message.sequence_number)
    }

    fn check(&self, count: usize) -> Result<(), Misuse> {
        match self.messages().len() {
            left if count > left => Err(Misuse::new("count", format!("is {count}; the run has {left} left"))),
            _ => Ok(()),
        }
    }

    async fn settle(&self, settlement: RunSettlement) -> Result<SettleResult, SettleError> {
        let RunHold { client, queue, token, .. } = &self.hold;
        let command = SettleRun { queue: queue.clone(), token: *token, settlement };
        client.ask(command).await
    }

    /// Prolongs the lock by the queue's lock time from now, and says until when.
    ///
    /// # Errors
    /// As [`Run::complete_all`].
    pub async fn renew(&mut self) -> Result<Timestamp, SettleError> {
        self.locked_until = self.renewal().renew().await?;
        Ok(self.locked_until)
    }

    /// A handle that can only renew the lock, for a task beside the one that handles the messages.
    pub fn renewal(&self) -> Renewal {
        Renewal::new(self.hold.client.clone(), self.hold.queue.clone(), self.hold.token)
    }

    /// When the lock was taken, in the clock's elapsed time, and for how long.
    pub(crate) fn lock_time(&self) -> (Duration, Duration) {
        (self.since, self.lasts)
    }
}
