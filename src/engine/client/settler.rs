//! Deliveries that are settled by ID, by whoever knows it: across a connection, or in another process.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::engine::client::client::Client;
use crate::engine::client::delivery::Renewal;
use crate::engine::client::delivery_id::DeliveryId;
use crate::engine::client::outcome::Outcome;
use crate::engine::client::queue::Queue;
use crate::engine::client::settling::Completion;
use crate::engine::client::settling::check_state;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::SettleResult;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::output::Output;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::verb::surely;
use crate::engine::rules::verbs::CompleteAll;
use crate::engine::rules::verbs::SetWorkflowState;
use crate::engine::rules::verbs::SettleRun;
use crate::error::Misuse;
use crate::error::SettleError;
use crate::error::SettleRefusal;
use crate::header::Properties;
use crate::id::QueueName;
use crate::limits;
use crate::shown::shown;
use crate::token::LockToken;

/// Settles deliveries of a queue that were kept by ID.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), seriatim::Error> {
/// use std::time::Duration;
/// use seriatim::{Completion, Engine, Message, QueueOptions};
///
/// let engine = Engine::in_memory().open().await?;
/// let queue = engine.client().create_queue("q", QueueOptions::default()).await?;
/// queue.send(Message::new("hello")).await?;
///
/// let delivery = queue.receive(Duration::ZERO).await?.expect("it is ready");
/// let text = delivery.keep().to_string(); // may travel
/// queue.settler().complete(text.parse()?, Completion::new()).await?;
/// assert_eq!(queue.view().await?.counts.completed, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Dropping
/// Nothing happens: what is not settled is offered again when its lock runs out.
#[derive(Clone)]
pub struct Settler {
    client: Client,
    queue: QueueName,
}

shown!(Settler { queue });

impl Queue {
    /// What settles deliveries of this queue whose handles were let go of with [`Delivery::keep`](crate::Delivery::keep) or
    /// [`Run::keep`](crate::Run::keep).
    pub fn settler(&self) -> Settler {
        Settler::new(self.client.clone(), self.name.clone())
    }
}

impl Settler {
    pub(crate) fn new(client: Client, queue: QueueName) -> Settler {
        Settler { client, queue }
    }

    /// Completes a delivery; messages to send and the new workflow state are one transaction with it.
    ///
    /// # Errors
    /// As [`Delivery::complete_with`](crate::Delivery::complete_with).
    pub async fn complete(
        &self,
        id: DeliveryId,
        completion: Completion,
    ) -> Result<Vec<Receipt>, SettleError> {
        Ok(self.settle(id, Settlement::Complete(completion.check()?)).await?.receipts)
    }

    /// Ends a delivery in any way. The receipts of what a completion sends are not returned: [`Settler::complete`] returns
    /// them.
    ///
    /// # Errors
    /// As [`Delivery::complete_with`](crate::Delivery::complete_with).
    pub async fn end(&self, id: DeliveryId, outcome: Outcome) -> Result<(), SettleError> {
        self.end_with(id, outcome, Properties::new()).await
    }

    /// Ends a delivery in any way, and sets properties of its message unless that is completed or given back.
    ///
    /// # Errors
    /// As [`Settler::end`]; [`SettleRefusal::PropertiesTooLarge`].
    pub async fn end_with(
        &self,
        id: DeliveryId,
        outcome: Outcome,
        changed: Properties,
    ) -> Result<(), SettleError> {
        self.settle(id, outcome.check_with(&self.client, changed)?).await?;
        Ok(())
    }

    /// Completes up to 1,024 deliveries in one request; each is judged for itself, in the order given.
    ///
    /// # Errors
    /// [`Misuse`] when there are too many. What refuses one of them is in the answer at its place.
    pub async fn complete_all(
        &self,
        ids: &[DeliveryId],
    ) -> Result<Vec<Result<(), SettleRefusal>>, SettleError> {
        if ids.len() > limits::COMPLETE_ALL_MAX {
            let problem = format!("are more than {}", limits::COMPLETE_ALL_MAX);
            return Err(Misuse::new("deliveries", problem).into());
        }
        let deliveries = ids.iter().map(DeliveryId::held).collect();
        let command = CompleteAll { queue: self.queue.clone(), deliveries };
        Ok(surely(self.client.answer(command).await?))
    }

    /// Settles a run: completes its first `completed` messages, ends the next if `next` says how, and gives back the
    /// others as if they had not been handed out.
    ///
    /// # Errors
    /// As [`Run::complete_first_with`](crate::Run::complete_first_with); [`Misuse`] when the next is completed, too.
    pub async fn settle_run(
        &self,
        token: LockToken,
        completed: usize,
        completion: Completion,
        next: Option<Outcome>,
    ) -> Result<Vec<Receipt>, SettleError> {
        let completion = completion.check_with(completed)?;
        let next = next.map(|outcome| outcome.check_next(&self.client)).transpose()?;
        let settlement = RunSettlement { completed, completion, next, keep_rest: false, first: None };
        let command = SettleRun { queue: self.queue.clone(), token, settlement };
        Ok(self.client.ask(command).await?.receipts)
    }

    /// Gives a delivery back as if it had not been handed out. It is asked before this returns, so whatever is asked
    /// later finds it given back; nobody hears whether its lock was lost before.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) fn give_back(&self, id: DeliveryId) {
        self.settle_at_once(id, Settlement::Release);
    }

    /// Fails a delivery whose consumer is gone; it is offered again at once. It is asked before this returns, so whatever
    /// is asked later finds it failed; nobody hears whether its lock was lost before.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) fn break_off(&self, id: DeliveryId, reason: &str) {
        let (reason, properties) = (reason.to_owned(), Properties::new());
        let settlement =
            Settlement::Abandon { retry: Retry::Now, reason, properties, output: Output::default() };
        self.settle_at_once(id, settlement);
    }

    /// Prolongs a lock by the queue's lock time from now, and says until when.
    ///
    /// # Errors
    /// [`SettleRefusal::LockLost`] when it is not held any more.
    pub async fn renew(&self, token: LockToken) -> Result<Timestamp, SettleError> {
        self.renewal(token).renew().await
    }

    /// Prolongs a lock as [`Settler::renew`] does, and says for how long from now, too.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) async fn renew_for(&self, token: LockToken) -> Result<(Timestamp, Duration), SettleError> {
        self.renewal(token).renew_for().await
    }

    fn renewal(&self, token: LockToken) -> Renewal {
        Renewal::new(self.client.clone(), self.queue.clone(), token)
    }

    /// Sets the state of a workflow somebody took whole.
    ///
    /// # Errors
    /// As [`AcceptedWorkflow::set_state`](crate::AcceptedWorkflow::set_state).
    pub async fn set_state(&self, token: LockToken, state: Option<Bytes>) -> Result<(), SettleError> {
        if let Some(state) = &state {
            check_state(state)?;
        }
        self.client.ask(SetWorkflowState { queue: self.queue.clone(), token, state }).await
    }

    /// Asks for a settlement before it returns; nobody hears the answer.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    fn settle_at_once(&self, id: DeliveryId, settlement: Settlement) {
        self.client.give_back(id.to_command(&self.queue, settlement));
    }

    async fn settle(&self, id: DeliveryId, settlement: Settlement) -> Result<SettleResult, SettleError> {
        self.client.ask(id.to_command(&self.queue, settlement)).await
    }
}
