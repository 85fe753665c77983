//! Sends under an idempotency key.

use crate::engine::client::queue::Queue;
use crate::engine::client::queue::check_batch;
use crate::engine::client::queue::receipts;
use crate::engine::rules::command::Command;
use crate::engine::rules::receipt::Receipt;
use crate::error::SendError;
use crate::id::IdempotencyKey;
use crate::limits;
use crate::message::Message;
use crate::message::NewMessage;

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
    /// As [`Queue::send_batch`]; [`SendRefusal::KeyReused`](crate::error::SendRefusal::KeyReused) when the key was used for a
    /// request with another digest, and [`SendRefusal::TooManyKeys`](crate::error::SendRefusal::TooManyKeys).
    pub async fn send_batch_once(
        &self,
        key: IdempotencyKey,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Receipt>, SendError> {
        let mut checked: Vec<NewMessage> = Vec::new();
        for message in messages.into_iter().take(limits::SEND_BATCH_MAX + 1) {
            checked.push(message.check()?);
        }
        check_batch(&checked)?;
        let command = Command::SendOnce { queue: self.name().clone(), key, messages: checked };
        receipts(self.client().ask(command).await?)
    }
}
