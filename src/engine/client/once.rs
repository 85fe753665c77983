//! Sends under an idempotency key.

use crate::engine::client::fanout::origins_of;
use crate::engine::client::queue::Queue;
use crate::engine::client::queue::check_together;
use crate::engine::client::topic::Topic;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::verbs::PublishOnce;
use crate::engine::rules::verbs::SendOnce;
use crate::error::SendError;
use crate::error::SendRefusal;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;

impl Queue {
    /// Sends up to 1,024 messages in one transaction, once: who sends again under the same key within ten minutes gets
    /// the receipts of the first time, and nothing is stored. The receipts are on disk with the messages, so that a
    /// sender that has heard nothing, because the connection or the process was lost, can just send again. A refusal
    /// is not kept. Deleting the queue forgets its keys.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// use seriatim::{Engine, Message, QueueOptions};
    /// use seriatim::id::IdempotencyKey;
    ///
    /// let engine = Engine::in_memory().open().await?;
    /// let queue = engine.client().create_queue("q", QueueOptions::default()).await?;
    /// let key = IdempotencyKey::of_request("a5d1", b"paid")?;
    /// let first = queue.send_batch_once(key.clone(), [Message::new("paid")]).await?;
    /// let again = queue.send_batch_once(key, [Message::new("paid")]).await?;
    /// assert_eq!(first, again);
    /// assert_eq!(queue.view().await?.counts.accepted, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Queue::send_batch`]; [`SendRefusal::KeyReused`] when the key was used for a
    /// request with another digest, and [`SendRefusal::TooManyKeys`].
    pub async fn send_batch_once(
        &self,
        key: IdempotencyKey,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Receipt>, SendError> {
        let messages = check_together(messages, limits::SEND_BATCH_MAX)?;
        self.client().ask(SendOnce { queue: self.name().clone(), key, messages }).await
    }
}

impl Topic {
    /// Sends up to 1,024 messages in one transaction, once, as [`Queue::send_batch_once`]: who sends again under the same
    /// key within ten minutes gets what became of the copies the first time, and nothing is stored, whatever the rules and
    /// subscriptions have become since. Deleting the topic forgets its keys.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use seriatim::id::IdempotencyKey;
    /// use seriatim::topic::Rule;
    /// use seriatim::{Engine, Message, QueueOptions};
    ///
    /// let engine = Engine::in_memory().open().await?;
    /// let topic = engine.client().create_topic("orders").await?;
    /// let billing = topic.subscribe("billing", QueueOptions::default(), [Rule::everything()]).await?;
    /// let key = IdempotencyKey::of_request("a5d1", b"paid")?;
    /// let first = topic.send_batch_once(key.clone(), [Message::new("paid")]).await?;
    /// let again = topic.send_batch_once(key, [Message::new("paid")]).await?;
    /// assert_eq!(first, again);
    /// assert_eq!(billing.view().await?.counts.accepted, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Topic::send_batch`]; [`SendRefusal::KeyReused`] when the key was used for a request with another digest, and
    /// [`SendRefusal::TooManyKeys`].
    pub async fn send_batch_once(
        &self,
        key: IdempotencyKey,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<(QueueName, Receipt)>, SendError> {
        let messages = self.checked(messages)?;
        for _ in 0..limits::TOPIC_TRIES_MAX {
            let (fanout, failed) = match self.fanout(&messages).await {
                Ok(fanout) => (fanout, None),
                // What was done before is answered also where it could not be done any more.
                Err(error @ SendError::Misuse(_)) => {
                    let nobody = Fanout { origins: origins_of(&messages), ..Fanout::default() };
                    (nobody, Some(error))
                }
                Err(error) => return Err(error),
            };
            let command = PublishOnce { topic: self.name().clone(), key: key.clone(), fanout };
            let answer = self.client().answer(command).await;
            match (answer.inspect_err(|why| self.note_unanswered(why))?, failed) {
                (Ok(copies), _) => return Ok(copies),
                (Err(SendRefusal::TopicChanged(_) | SendRefusal::TopicNotFound(_)), failed) => {
                    self.client().forget_topic(self.name());
                    if let Some(error) = failed {
                        return Err(error);
                    }
                }
                (Err(refusal), _) => return Err(SendError::Refused(refusal)),
            }
        }
        Err(SendError::Refused(SendRefusal::TopicChanged(self.name().clone())))
    }
}
