//! Dead letters: listed, received, put back, and put back with another body.

use std::time::Duration;

use bytes::Bytes;

use crate::engine::client::delivery::Delivery;
use crate::engine::client::queue::Queue;
use crate::engine::client::queue::check_max;
use crate::engine::client::queue::check_numbers;
use crate::engine::client::queue::deliveries;
use crate::engine::query::Query;
use crate::engine::rules::redriven::Edit;
use crate::engine::rules::redriven::Redriven;
use crate::engine::rules::verbs::EditAndRedrive;
use crate::engine::rules::verbs::ReceiveDeadLetters;
use crate::engine::rules::verbs::ReceiveDeferredDeadLetters;
use crate::engine::rules::verbs::Redrive;
use crate::engine::view::DeadLetterView;
use crate::error::OperateError;
use crate::error::QueueError;
use crate::error::ReceiveError;
use crate::id::Position;
use crate::id::SequenceNumber;

impl Queue {
    /// Up to `limit` dead letters in order of reason and number, after the given one. At most 1,000 are returned, whatever the
    /// limit; only none at all says that there are no more.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn dead_letters(
        &self,
        after: Option<&DeadLetterView>,
        limit: usize,
    ) -> Result<Vec<DeadLetterView>, QueueError> {
        let after = after.map(|last| (last.dead_letter.reason.clone(), last.sequence_number));
        let queue = self.name.clone();
        self.client.look(&self.name, |slot| Query::DeadLetters { queue, after, limit, slot }).await
    }

    /// Receives up to `max` dead letters that nobody has received, in order of reason and number, waiting up to `wait` for
    /// the first: to look at them with a program, to mend what they are about, to send them elsewhere.
    ///
    /// Each is locked for as long as a message of the queue is, and is settled as one. It is gone once it is completed; what
    /// is sent with that is one transaction with it. Abandoned, released, or with its lock lost, it can be received again at
    /// once, however often: it waits for no retry, never expires and is never exhausted. Deferred, it is set aside until
    /// [`Queue::receive_deferred_dead_letters`] asks for it; it does not come back by itself. Its workflow is not held
    /// meanwhile, so it has no state to set. Whoever redrives or purges it ends its lock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), seriatim::Error> {
    /// use std::time::Duration;
    /// use seriatim::{Completion, Engine, Message, QueueOptions};
    ///
    /// let engine = Engine::in_memory().open().await?;
    /// let queue = engine.client().create_queue("q", QueueOptions::default()).await?;
    /// queue.send(Message::new("40 EUR").workflow("a")).await?;
    /// let mut delivery = queue.receive(Duration::ZERO).await?.expect("it is ready");
    /// delivery.dead_letter("no such account", "").await?;
    ///
    /// for mut delivery in queue.receive_dead_letters(10, Duration::ZERO).await? {
    ///     let why = delivery.message().dead_letter.as_ref().expect("it is a dead letter");
    ///     assert_eq!(why.reason, "no such account");
    ///     let message = Message::new(delivery.message().body.clone()).workflow("a");
    ///     delivery.complete_with(Completion::new().send("q", message)).await?;
    /// }
    /// assert_eq!(queue.view().await?.counts.dead_lettered, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Queue::receive`].
    pub async fn receive_dead_letters(
        &self,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, ReceiveError> {
        check_max(max)?;
        let (queue, token) = (self.name.clone(), self.client.token()?);
        let command = ReceiveDeadLetters { queue, max, token };
        Ok(deliveries(&self.client, &self.name, self.client.ask_for_work(command, wait).await?))
    }

    /// Receives as [`Queue::receive_dead_letters`], but waits only until there is `enough`. What was handed out before is
    /// always received.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only endpoints of the daemon ask so"))]
    pub(crate) async fn receive_dead_letters_until(
        &self,
        max: usize,
        wait: Duration,
        enough: impl Future<Output = ()>,
    ) -> Result<Vec<Delivery>, ReceiveError> {
        check_max(max)?;
        let token = self.client.token()?;
        let command = ReceiveDeadLetters { queue: self.name.clone(), max, token };
        let handed = self.client.ask_for_work_until(command, token, wait, enough).await?;
        Ok(deliveries(&self.client, &self.name, handed))
    }

    /// Receives dead letters that were set aside, by number: all of them or none.
    ///
    /// # Errors
    /// [`ReceiveRefusal::MessageNotFound`](crate::error::ReceiveRefusal::MessageNotFound) when one is not a dead letter that is
    /// set aside, or somebody has it.
    pub async fn receive_deferred_dead_letters(
        &self,
        numbers: &[SequenceNumber],
    ) -> Result<Vec<Delivery>, ReceiveError> {
        check_numbers(numbers)?;
        let (queue, sequences) = (self.name.clone(), numbers.to_vec());
        let token = self.client.token()?;
        let command = ReceiveDeferredDeadLetters { queue, sequences, token };
        Ok(deliveries(&self.client, &self.name, self.client.ask(command).await?))
    }

    /// Puts a dead letter back: to its own place while its workflow is held before it, else as a new message. The
    /// answer says which.
    ///
    /// # Errors
    /// [`OperateRefusal::PlacePassed`](crate::error::OperateRefusal::PlacePassed) when the workflow has gone past its place;
    /// [`OperateRefusal::Quarantined`](crate::error::OperateRefusal::Quarantined) when everything of it goes to the dead
    /// letters until it is resumed.
    pub async fn redrive(&self, number: SequenceNumber) -> Result<Redriven, OperateError> {
        self.redrive_to(number, None).await
    }

    /// Puts a dead letter back as a new message at a position of its workflow.
    ///
    /// # Errors
    /// [`OperateRefusal::Send`](crate::error::OperateRefusal::Send) when the position is taken or settled.
    pub async fn redrive_as(&self, number: SequenceNumber, position: u64) -> Result<Redriven, OperateError> {
        self.redrive_to(number, Some(Position::new(position)?)).await
    }

    /// Puts a dead letter back with another body: to its own place while its workflow is held before it, at `position`
    /// if one is given, else as a new message. The original stays a dead letter with the reason `edited`, under a number
    /// of its own; its property `seriatim-edited-as` names the message that it became, whose property
    /// `seriatim-original` names it. An original is not redriven.
    ///
    /// # Errors
    /// As [`Queue::redrive`]; [`OperateRefusal::Send`](crate::error::OperateRefusal::Send) when the body is too large, or the
    /// position is taken or settled.
    pub async fn edit_and_redrive(
        &self,
        number: SequenceNumber,
        body: impl Into<Bytes>,
        position: Option<u64>,
    ) -> Result<Redriven, OperateError> {
        let position = position.map(Position::new).transpose()?;
        let edit = Edit { sequence: number, position, body: body.into() };
        self.client.operate(EditAndRedrive { queue: self.name.clone(), edit }).await
    }

    async fn redrive_to(
        &self,
        sequence: SequenceNumber,
        position: Option<Position>,
    ) -> Result<Redriven, OperateError> {
        self.client.operate(Redrive { queue: self.name.clone(), sequence, position }).await
    }
}
