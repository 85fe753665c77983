//! Transactions of endpoints: sends and settlements of any queues that happen together or not at all.

use crate::engine::client::client::Client;
use crate::engine::client::delivery_id::DeliveryId;
use crate::engine::client::fanout::check_copies;
use crate::engine::client::outcome::Outcome;
use crate::engine::client::settling::Completion;
use crate::engine::client::topic::Topic;
use crate::engine::client::topic_message::TopicMessage;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::transact::RefusedStep;
use crate::engine::rules::transact::StepCommand;
use crate::engine::rules::transact::StepRefusal;
use crate::engine::rules::verbs::Publish;
use crate::engine::rules::verbs::Send;
use crate::engine::rules::verbs::Transact;
use crate::error::Misuse;
use crate::error::SendError;
use crate::error::SendRefusal;
use crate::error::SettleError;
use crate::error::Unavailable;
use crate::header::Properties;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;

/// Sends and settlements that happen together, in the order given, or not at all. Nothing has happened before
/// [`Transaction::commit`], and a transaction that is dropped never does.
pub(crate) struct Transaction {
    client: Client,
    steps: Vec<TransactionStep>,
}

enum TransactionStep {
    Done(StepCommand),
    /// Which subscriptions get it is chosen when the rest happens.
    Publish(Topic, TopicMessage),
}

/// Why a transaction was not done, or may not have been.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransactionError {
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Settle(#[from] SettleError),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl TransactionError {
    /// Whether all of it may have been done all the same.
    pub(crate) fn may_be_done(&self) -> bool {
        match self {
            TransactionError::Send(error) => error.may_be_done(),
            TransactionError::Settle(error) => error.may_be_done(),
            TransactionError::Unavailable(why) => why.may_be_done(),
        }
    }
}

impl Transaction {
    pub(crate) fn new(client: Client) -> Transaction {
        Transaction { client, steps: Vec::new() }
    }

    /// Sends a message to a queue.
    pub(crate) fn send(&mut self, queue: &QueueName, message: Message) -> Result<(), Misuse> {
        let (queue, messages) = (queue.clone(), vec![message.check()?]);
        self.steps.push(TransactionStep::Done(StepCommand::Send(Send { queue, messages })));
        Ok(())
    }

    /// Sends a message to a topic.
    pub(crate) fn publish(&mut self, topic: &Topic, message: TopicMessage) {
        self.steps.push(TransactionStep::Publish(topic.clone(), message));
    }

    /// Ends a delivery well.
    pub(crate) fn complete(&mut self, queue: &QueueName, id: DeliveryId) -> Result<(), Misuse> {
        self.settle(queue, id, Settlement::Complete(Completion::new().check()?));
        Ok(())
    }

    /// Ends a delivery in any way, and sets properties of its message.
    pub(crate) fn end_with(
        &mut self,
        queue: &QueueName,
        id: DeliveryId,
        (outcome, changed): (Outcome, Properties),
    ) -> Result<(), SettleError> {
        let settlement = outcome.check_with(&self.client, changed)?;
        self.settle(queue, id, settlement);
        Ok(())
    }

    fn settle(&mut self, queue: &QueueName, id: DeliveryId, settlement: Settlement) {
        self.steps.push(TransactionStep::Done(StepCommand::Settle(id.to_command(queue, settlement))));
    }

    /// Does everything, in one commit.
    ///
    /// # Errors
    /// What refused the first step that was; then nothing has happened. Of what [`TransactionError::may_be_done`] nobody knows that.
    pub(crate) async fn commit(self) -> Result<(), TransactionError> {
        if self.steps.len() > limits::TRANSACTION_STEPS_MAX {
            let problem = format!("has more than {} steps", limits::TRANSACTION_STEPS_MAX);
            return Err(SendError::from(Misuse::new("transaction", problem)).into());
        }
        for _ in 0..limits::TOPIC_TRIES_MAX {
            let steps = self.commands().await?;
            let answer = self.client.answer(Transact { steps }).await.map_err(SendError::from)?;
            let Err(RefusedStep { index, refusal }) = answer else { return Ok(()) };
            match (&self.steps[index], refusal) {
                (
                    TransactionStep::Publish(topic, _),
                    StepRefusal::Send(SendRefusal::TopicChanged(_) | SendRefusal::TopicNotFound(_)),
                ) => self.client.forget_topic(topic.name()),
                (_, StepRefusal::Send(refusal)) => return Err(SendError::Refused(refusal).into()),
                (_, StepRefusal::Settle(refusal)) => return Err(SettleError::Refused(refusal).into()),
            }
        }
        Err(SendError::from(Misuse::new("transaction", "its topics change too often")).into())
    }

    async fn commands(&self) -> Result<Vec<StepCommand>, SendError> {
        let mut commands = Vec::with_capacity(self.steps.len());
        let (mut count, mut bytes) = (0, 0);
        for step in &self.steps {
            commands.push(match step {
                TransactionStep::Done(command) => command.clone(),
                TransactionStep::Publish(topic, message) => {
                    let fanout = topic.fanout(std::slice::from_ref(message)).await?;
                    count += fanout.copy_count();
                    bytes += fanout.copy_bytes();
                    check_copies("transaction", (count, limits::TRANSACTION_COPIES_MAX), bytes)?;
                    StepCommand::Publish(Publish { topic: topic.name().clone(), fanout })
                }
            });
        }
        Ok(commands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueOptions;
    use crate::topic::Rule;

    #[test]
    fn a_transaction_makes_no_more_copies_than_a_turn_can_count_the_rows_of() {
        let check = |count| check_copies("transaction", (count, limits::TRANSACTION_COPIES_MAX), 0);
        check(limits::TRANSACTION_COPIES_MAX).unwrap();
        let refused = check(limits::TRANSACTION_COPIES_MAX + 1).unwrap_err().to_string();
        assert!(refused.contains("would make more than 262144 copies"), "{refused}");
    }

    #[tokio::test]
    async fn the_copies_of_a_transaction_have_no_more_bytes_together_than_the_inbox_holds() {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let topic = engine.client().create_topic("t").await.unwrap();
        for number in 0..129 {
            let (name, options) = (format!("s{number}"), QueueOptions::default());
            topic.subscribe(name, options, [Rule::everything()]).await.unwrap();
        }
        // One step makes copies of 129 MiB, and two make more than both may.
        let message = || TopicMessage::from(Message::new(vec![7; 1024 * 1024]).check().unwrap());
        let mut transaction = Transaction::new(engine.client().clone());
        transaction.publish(&topic, message());
        transaction.publish(&topic, message());
        let refused = transaction.commit().await.unwrap_err().to_string();
        assert!(refused.contains("would make copies of more than 268435456 bytes"), "{refused}");
        engine.close().await;
    }
}
