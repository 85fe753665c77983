//! A run: consecutive messages of one workflow, handed out under one lock.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::delivery::Renewal;
use crate::engine::client::delivery::dropped;
use crate::engine::client::delivery::settled;
use crate::engine::client::received::Received;
use crate::engine::client::settling::Completion;
use crate::engine::client::settling::Ending;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Completion as CompletionCommand;
use crate::engine::rules::command::Handed;
use crate::engine::rules::command::Receipt;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settled;
use crate::error::Misuse;
use crate::error::SettleError;
use crate::id::QueueName;
use crate::token::LockToken;

/// Consecutive messages of one workflow under one lock, to be settled from the first on.
///
/// # Dropping
/// A run that is dropped gives its messages back: the first unsettled one as a failed attempt, the others as if they
/// had not been handed out.
#[must_use = "a run that is dropped counts as a failed attempt of its first message"]
pub struct Run {
    messages: Vec<Received>,
    completed: usize,
    hold: RunHold,
    locked_until: Timestamp,
    lasts: Duration,
}

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
            let completion = CompletionCommand::default();
            let next = Some(dropped());
            let settlement = RunSettlement { completed: 0, completion, next, keep_rest: false };
            let (queue, token) = (self.queue.clone(), self.token);
            self.client.give_back(Command::SettleRun { queue, token, settlement });
        }
    }
}

impl Run {
    pub(crate) fn new(client: Client, queue: QueueName, handed: Vec<Handed>) -> Option<Run> {
        let first = handed.first()?;
        let (token, locked_until, lasts) = (first.token, first.locked_until, first.lasts());
        let hold = RunHold { client, queue, token, settled: false };
        let messages = handed.into_iter().map(Received::new).collect();
        Some(Run { messages, completed: 0, hold, locked_until, lasts })
    }

    /// The messages that are not settled yet, in order.
    pub fn messages(&self) -> &[Received] {
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
    /// [`Kept::settle_run`](crate::Kept::settle_run) until the lock runs out.
    pub fn keep(mut self) -> LockToken {
        self.hold.settled = true;
        self.hold.token
    }

    /// Completes all that is left.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`](crate::SettleRefusal::LockLost) when it is not held any more.
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
    /// As [`Run::complete_first`]; [`SettleRefusal::Send`](crate::SettleRefusal::Send) when one of the messages was
    /// refused: then nothing has happened.
    pub async fn complete_first_with(
        &mut self,
        count: usize,
        completion: Completion,
    ) -> Result<Vec<Receipt>, SettleError> {
        self.check(count)?;
        let completion = completion.check()?;
        let settlement = RunSettlement { completed: count, completion, next: None, keep_rest: true };
        let settled = self.settle(settlement).await?;
        self.completed += count;
        self.hold.settled = self.messages().is_empty();
        Ok(settled.receipts)
    }

    /// Completes the first `count` messages, ends the next in its own way, and gives back the others as if they had
    /// not been handed out.
    ///
    /// # Errors
    /// As [`Run::complete_first`].
    pub async fn complete_first_then(&mut self, count: usize, next: Ending) -> Result<(), SettleError> {
        self.check(count.saturating_add(1))?;
        let next = Some(next.check(&self.hold.client)?);
        let completion = CompletionCommand::default();
        self.settle(RunSettlement { completed: count, completion, next, keep_rest: false }).await?;
        self.completed = self.messages.len();
        self.hold.settled = true;
        Ok(())
    }

    /// Gives back all that is left as if it had not been handed out.
    ///
    /// # Errors
    /// As [`Run::complete_all`].
    pub async fn release(&mut self) -> Result<(), SettleError> {
        let completion = CompletionCommand::default();
        self.settle(RunSettlement { completed: 0, completion, next: None, keep_rest: false }).await?;
        self.completed = self.messages.len();
        self.hold.settled = true;
        Ok(())
    }

    fn check(&self, count: usize) -> Result<(), Misuse> {
        match self.messages().len() {
            left if count > left => Err(Misuse::new("count", format!("is {count}; the run has {left} left"))),
            _ => Ok(()),
        }
    }

    async fn settle(&self, settlement: RunSettlement) -> Result<Settled, SettleError> {
        let RunHold { client, queue, token, .. } = &self.hold;
        let command = Command::SettleRun { queue: queue.clone(), token: *token, settlement };
        settled(client.ask(command).await?)
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

    /// For how long the lock was still held at the hand-out.
    pub(crate) fn lasts(&self) -> Duration {
        self.lasts
    }
}
