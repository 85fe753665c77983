//! Copies one outbox into its queue, row by row in order, each once.
//!
//! An outbox is a workflow of a queue of the daemon's own, with one message. Completing that message is one transaction:
//! the rows are sent, the number of the last becomes the workflow's state, and the message is sent anew. So a row is
//! neither lost nor copied twice, whenever the process or the database dies.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::daemon::membership::Membership;
use crate::daemon::outbox_of_queue::OutboxOfQueue;
use crate::daemon::outbox_rows::open;
use crate::daemon::outbox_rows::pause_for;
use crate::daemon::outbox_status::OutboxStatus;
use crate::definition::OutboxDefinition;
use crate::engine::AcceptedWorkflow;
use crate::engine::Completion;
use crate::engine::Delivery;
use crate::engine::Queue;
use crate::engine::Receipt;
use crate::error::Error;
use crate::error::Misuse;
use crate::error::OperationError;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::intake::Intake;
use crate::limits;
use crate::message::Message;
use crate::own_queues::SOURCES_QUEUE;
use crate::postgres::Outbox;
use crate::postgres::OutboxLook;
use crate::postgres::OutboxRow;
use crate::postgres::SourceError;
use crate::postgres::Wakeup;

/// What an outbox's workflow keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OutboxState {
    /// The table, as the definition named it.
    table: String,
    /// Rows up to this number are copied.
    copied_through: i64,
    /// Those above this number were copied last; none when it was the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copied_from: Option<i64>,
}

/// Why an outbox cannot be copied on.
#[derive(Debug, Error)]
enum CopyError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Engine(#[from] Error),
    #[error("cannot copy into queue {0}: the disk is full")]
    DiskFull(QueueName),
    #[error("cannot copy into queue {0}: it is full")]
    QueueFull(QueueName),
    #[error(
        "cannot copy into queue {0}: too much of what was copied before waits to be handed over to other partitions"
    )]
    OutboxFull(QueueName),
    #[error(
        "cannot copy PostgreSQL table {now}: under the name {name:?} table {before} was copied; give the source another `name`"
    )]
    OtherTable { name: String, before: String, now: String },
}

impl From<Misuse> for CopyError {
    fn from(misuse: Misuse) -> CopyError {
        CopyError::Engine(misuse.into())
    }
}

/// What is done after a turn.
enum NextTurn {
    /// There is more to copy.
    Go,
    /// Nothing, until something comes or this has passed.
    Wait(Duration),
}

/// Copies one outbox.
pub(crate) struct OutboxCopier {
    of_queue: OutboxOfQueue,
    /// The queue in which outboxes live.
    sources: Queue,
    intake: Intake,
    membership: Membership,
    status: Arc<OutboxStatus>,
    table: Outbox,
    /// How many rows are read and sent at once; fewer after a refusal, to find the row that is refused.
    at_once: usize,
    /// Copied rows are deleted up to here, as far as is known.
    deleted_through: Option<i64>,
}

impl OutboxCopier {
    pub(crate) fn new(
        of_queue: OutboxOfQueue,
        sources: Queue,
        (intake, membership): (Intake, Membership),
        status: Arc<OutboxStatus>,
    ) -> Result<OutboxCopier, Misuse> {
        let table = open(&of_queue.outbox)?;
        let at_once = limits::SOURCE_ROWS_AT_ONCE;
        let deleted_through = None;
        Ok(OutboxCopier { of_queue, sources, intake, membership, status, table, at_once, deleted_through })
    }

    /// Copies until it is stopped. What goes wrong is logged once, and tried again for ever.
    pub(crate) async fn run(mut self, stopping: CancellationToken) {
        let wakeup = self.table.wakeup();
        let mut pause = limits::SOURCE_RETRY_FIRST;
        loop {
            let turn = tokio::select! {
                turn = self.turn() => turn,
                () = stopping.cancelled() => return,
            };
            let has_failed = turn.is_err();
            let wait = match turn {
                Ok(next) => {
                    (pause, _) = (limits::SOURCE_RETRY_FIRST, self.status.goes_on(&self.of_queue));
                    match next {
                        NextTurn::Go => continue,
                        NextTurn::Wait(wait) => wait,
                    }
                }
                Err(error) => {
                    self.status.failed(&self.of_queue, &error.to_string());
                    let wait = match error {
                        // Room comes by itself, as messages are handled.
                        CopyError::QueueFull(_) | CopyError::OutboxFull(_) => limits::SOURCE_RETRY_FIRST,
                        _ => pause,
                    };
                    pause = pause.saturating_mul(2).min(limits::SOURCE_RETRY_MAX);
                    wait
                }
            };
            tokio::select! {
                () = rest(wait, has_failed, &wakeup) => {}
                () = stopping.cancelled() => return,
            }
        }
    }

    /// Looks once, and copies what is there.
    async fn turn(&mut self) -> Result<NextTurn, CopyError> {
        if self.intake.client().storage_room().is_some_and(|room| room.is_full) {
            return Err(CopyError::DiskFull(self.of_queue.queue.clone()));
        }
        let progress = self.progress().await?;
        let copied_through = progress.as_ref().map(|progress| progress.copied_through);
        let id = WorkflowId::new(self.of_queue.id())?;
        let Some(waiting) = self.membership.outbox_of(self.sources.name(), &id).await else {
            // Another node has its partition, and copies it.
            self.status.looked(copied_through, 0, 0);
            return Ok(NextTurn::Wait(self.of_queue.outbox.poll));
        };
        if waiting > limits::SOURCE_OUTBOX_MAX {
            return Err(CopyError::OutboxFull(self.of_queue.queue.clone()));
        }
        self.delete_copied(progress.as_ref()).await?;
        let OutboxLook { rows, is_more, waits_for, wrong } =
            self.table.look(copied_through, self.at_once).await?;
        let in_hand = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let has_rest = is_more || waits_for > 0 || wrong.is_some();
        match has_rest {
            true => self.status.found(copied_through, in_hand),
            false => self.status.looked(copied_through, in_hand, waits_for),
        }
        let copied = self.copy(rows, copied_through).await;
        // A look is as small as what a full queue takes, so how many rows wait is asked also where none could be copied.
        let copied_through = *copied.as_ref().unwrap_or(&copied_through);
        // Only now: an answer comes behind the rows that are on their way, and perhaps not in time.
        if has_rest {
            match self.table.behind(copied_through).await {
                Ok(behind) => self.status.looked(copied_through, behind, waits_for),
                Err(error) if in_hand > 0 => {
                    tracing::debug!(%error, "how many rows of a source wait was not said in time");
                }
                Err(error) => return Err(error.into()),
            }
        }
        copied?;
        match (in_hand, wrong) {
            (0, Some(wrong)) => Err(wrong.into()),
            (0, None) if waits_for > 0 => Ok(NextTurn::Wait(limits::SOURCE_HELD_POLL)),
            (0, None) => Ok(NextTurn::Wait(self.of_queue.outbox.poll)),
            _ => Ok(NextTurn::Go),
        }
    }

    /// How far it is copied, as it is kept.
    async fn progress(&self) -> Result<Option<OutboxState>, CopyError> {
        let state = self.sources.workflow(self.of_queue.id())?.state().await.map_err(Error::from)?;
        let Some(state) = state else { return Ok(None) };
        let progress: OutboxState = serde_json::from_slice(&state)
            .map_err(|error| Misuse::new("state of a source", error.to_string()))?;
        let OutboxDefinition { name, table, .. } = &self.of_queue.outbox;
        match progress.table == *table {
            true => Ok(Some(progress)),
            false => {
                Err(CopyError::OtherTable { name: name.clone(), before: progress.table, now: table.clone() })
            }
        }
    }

    /// Deletes the rows that were copied last, if copied rows are deleted and these are not.
    async fn delete_copied(&mut self, progress: Option<&OutboxState>) -> Result<(), CopyError> {
        let Some(progress) = progress.filter(|_| self.of_queue.outbox.delete_copied) else { return Ok(()) };
        if self.deleted_through < Some(progress.copied_through) {
            self.table.delete(progress.copied_from, progress.copied_through).await?;
            self.deleted_through = Some(progress.copied_through);
        }
        Ok(())
    }

    /// Sends rows and keeps how far they are copied, in one transaction; how far that is then.
    async fn copy(
        &mut self,
        rows: Vec<OutboxRow>,
        copied_from: Option<i64>,
    ) -> Result<Option<i64>, CopyError> {
        let (mut messages, mut copied_through) = (Vec::with_capacity(rows.len()), copied_from);
        for row in rows {
            let number = row.id;
            match self.place(row) {
                Ok(message) => messages.push(message),
                Err(misuse) if messages.is_empty() => return Err(self.row(number, &misuse.to_string())),
                // Those before it are copied first.
                Err(_) => break,
            }
            copied_through = Some(number);
        }
        let (Some(through), count @ 1..) = (copied_through, messages.len()) else { return Ok(copied_from) };
        let table = self.of_queue.outbox.table.clone();
        let state = OutboxState { table, copied_through: through, copied_from };
        let completion = self.completion(&state, messages)?;
        // It is held until the delivery is settled.
        let (_accepted, mut delivery) = self.delivery().await?;
        let kept = self.progress().await?.map(|progress| progress.copied_through);
        if kept != copied_from {
            // Another node has copied before this one held it.
            return Ok(kept);
        }
        match delivery.complete_with(completion).await {
            Ok(receipts) => {
                self.note_duplicates(&receipts, through);
                self.at_once = self.at_once.saturating_mul(2).min(limits::SOURCE_ROWS_AT_ONCE);
                self.status.copied(through, count);
                Ok(Some(through))
            }
            Err(OperationError::Refused(SettleRefusal::Send(_)) | OperationError::Misuse(_)) if count > 1 => {
                self.at_once = count / 2;
                Ok(copied_from)
            }
            Err(OperationError::Refused(SettleRefusal::Send(SendRefusal::QueueFull { .. }))) => {
                Err(CopyError::QueueFull(self.of_queue.queue.clone()))
            }
            Err(OperationError::Refused(SettleRefusal::Send(refusal))) => {
                Err(self.row(through, &refusal.to_string()))
            }
            Err(OperationError::Misuse(misuse)) => Err(self.row(through, &misuse.to_string())),
            Err(error) => Err(Error::from(error).into()),
        }
    }

    /// A row as the queue's definition reads it. Where that finds no message ID in it, its number is one.
    fn place(&self, row: OutboxRow) -> Result<Message, Misuse> {
        let OutboxOfQueue { queue, outbox } = &self.of_queue;
        let numbered = outbox.ids_are_read().then(|| row.message.clone().message_id(row.id.to_string()));
        match (self.intake.place(queue, row.message), numbered) {
            (Err(misuse), Some(numbered)) if misuse.field() == "message ID" => {
                self.intake.place(queue, numbered)
            }
            (placed, _) => placed,
        }
    }

    /// Says how many rows were not stored: as a rule that is not meant.
    fn note_duplicates(&self, receipts: &[Receipt], through: i64) {
        let is_duplicate =
            |receipt: &&Receipt| matches!(receipt, Receipt::Duplicate(_) | Receipt::AlreadySettled);
        let duplicates = receipts.iter().filter(is_duplicate).count();
        if duplicates > 0 {
            let OutboxOfQueue { queue, outbox } = &self.of_queue;
            let table = &outbox.table;
            tracing::warn!(%queue, table, through, duplicates, "rows were passed over: what they say was accepted before");
        }
    }

    fn completion(&self, state: &OutboxState, messages: Vec<Message>) -> Result<Completion, Misuse> {
        let written =
            serde_json::to_vec(state).map_err(|error| Misuse::new("state of a source", error.to_string()))?;
        let completion = Completion::new().state(Bytes::from(written));
        let completion = messages
            .into_iter()
            .fold(completion, |completion, message| completion.send(self.of_queue.queue.as_str(), message));
        Ok(completion.send(SOURCES_QUEUE, self.own_message()))
    }

    /// The outbox's own message, which is there as long as nobody has purged it.
    async fn delivery(&self) -> Result<(AcceptedWorkflow, Delivery), Error> {
        loop {
            let accepted = self.sources.accept_workflow(self.of_queue.id()).await?;
            let mut received = accepted.receive(1, Duration::ZERO).await?;
            if let Some(delivery) = received.pop() {
                return Ok((accepted, delivery));
            }
            accepted.close().await?;
            self.sources.send(self.own_message()).await?;
        }
    }

    fn own_message(&self) -> Message {
        Message::new("").workflow(self.of_queue.id())
    }

    fn row(&self, id: i64, problem: &str) -> CopyError {
        let (table, problem) = (self.of_queue.outbox.table.clone(), problem.to_owned());
        SourceError::Row { table, id, problem }.into()
    }
}

/// Waits before the next turn, until the server says that there is something. After a failure that changes nothing.
async fn rest(wait: Duration, has_failed: bool, wakeup: &Wakeup) {
    if has_failed {
        pause_for(wait).await;
        return wakeup.forget();
    }
    tokio::select! {
        () = pause_for(wait) => {}
        () = wakeup.woken() => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_server_says_while_a_copy_has_failed_does_not_shorten_its_pause() {
        let wakeup = Wakeup(Arc::new(Notify::new()));
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        let is_within =
            async |has_failed| tokio::time::timeout(second, rest(minute, has_failed, &wakeup)).await.is_ok();
        wakeup.0.notify_one();
        assert!(!is_within(true).await, "it has to wait");
        rest(minute, true, &wakeup).await;
        assert!(!is_within(false).await, "the turn after the pause has looked at it");
        wakeup.0.notify_one();
        assert!(is_within(false).await);
    }
}
