//! Dead letters: listed, put back, and put back with another body.

use bytes::Bytes;

use crate::engine::client::queue::Queue;
use crate::engine::query::Query;
use crate::engine::query::QueryAnswer;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Reply;
use crate::engine::rules::redriven::Edit;
use crate::engine::rules::redriven::Redriven;
use crate::engine::view::DeadLetterView;
use crate::error::OperateError;
use crate::error::QueueError;
use crate::id::Position;
use crate::id::SequenceNumber;

impl Queue {
    /// Up to `limit` dead letters in order of reason and number, after the given one.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn dead_letters(
        &self,
        after: Option<&DeadLetterView>,
        limit: usize,
    ) -> Result<Vec<DeadLetterView>, QueueError> {
        let after = after.map(|last| (last.dead_letter.reason.clone(), last.sequence_number));
        let query = Query::DeadLetters { queue: self.name.clone(), after, limit };
        match self.client.look(&self.name, query).await? {
            QueryAnswer::DeadLetters(dead_letters) => Ok(dead_letters),
            other => unreachable!("a look at dead letters is answered with them: {other:?}"),
        }
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
        self.ask_redrive(Command::EditAndRedrive { queue: self.name.clone(), edit }).await
    }

    async fn redrive_to(
        &self,
        sequence: SequenceNumber,
        position: Option<Position>,
    ) -> Result<Redriven, OperateError> {
        self.ask_redrive(Command::Redrive { queue: self.name.clone(), sequence, position }).await
    }

    async fn ask_redrive(&self, command: Command) -> Result<Redriven, OperateError> {
        match self.client.ask(command).await? {
            Reply::Redrive(answer) => answer.map_err(OperateError::Refused),
            other => unreachable!("a redrive is answered as one: {other:?}"),
        }
    }
}
