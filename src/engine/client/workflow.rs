//! A handle of one workflow: its state, and what an operator can do to it.

use bytes::Bytes;

use crate::engine::client::client::Client;
use crate::engine::client::history::history;
use crate::engine::client::queue::Queue;
use crate::engine::client::queue::purge;
use crate::engine::client::settling::check_state;
use crate::engine::client::settling::shortened;
use crate::engine::query::Query;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::holds::HoldCause;
use crate::engine::rules::verbs::Operate;
use crate::engine::rules::verbs::SetState;
use crate::engine::view::MessageView;
use crate::engine::view::WorkflowView;
use crate::error::Misuse;
use crate::error::OperateError;
use crate::error::OperateRefusal;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::queue::HoldKind;
use crate::shown::shown;

/// A handle of one workflow. Cheap to clone; it holds nothing.
#[derive(Clone)]
pub struct Workflow {
    client: Client,
    queue: QueueName,
    id: WorkflowId,
}

shown!(Workflow { queue, id });

impl Queue {
    /// A handle of one workflow of this queue.
    ///
    /// # Errors
    /// [`Misuse`] for an ID that no workflow can have.
    pub fn workflow(&self, id: impl AsRef<str>) -> Result<Workflow, Misuse> {
        Ok(Workflow::new(self.client.clone(), self.name.clone(), WorkflowId::new(id)?))
    }
}

impl Workflow {
    pub(crate) fn new(client: Client, queue: QueueName, id: WorkflowId) -> Workflow {
        Workflow { client, queue, id }
    }

    /// Its ID.
    pub fn id(&self) -> &WorkflowId {
        &self.id
    }

    /// What it does, or why it does nothing; `None` when nothing is stored of it.
    ///
    /// # Errors
    /// [`QueueRefusal::QueueNotFound`](crate::error::QueueRefusal::QueueNotFound).
    pub async fn view(&self) -> Result<Option<WorkflowView>, QueueError> {
        let (queue, id) = (self.queue.clone(), self.id.clone());
        self.client.look(&self.queue, |slot| Query::Workflow { queue, id, slot }).await
    }

    /// Up to `limit` of its messages that have ended, newest first: before the entry with this number, or the newest. Empty
    /// where its queue remembers none. At most 1,000 are returned, whatever the limit.
    ///
    /// # Errors
    /// As [`Workflow::view`].
    pub async fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<HistoryEntry>, QueueError> {
        history(&self.client, &self.queue, Some(self.id.clone()), before, limit).await
    }

    /// Up to `limit` messages of its line in order, from a position (or sequence number, or ordinal) on.
    /// At most 1,000 are returned, whatever the limit, and no more once their bodies have 16 MiB.
    ///
    /// # Errors
    /// As [`Workflow::view`].
    pub async fn messages(&self, from: u64, limit: usize) -> Result<Vec<MessageView>, QueueError> {
        let (queue, id) = (self.queue.clone(), self.id.clone());
        self.client.look(&self.queue, |slot| Query::Line { queue, id, from, limit, slot }).await
    }

    /// Its state.
    ///
    /// # Errors
    /// As [`Workflow::view`].
    pub async fn state(&self) -> Result<Option<Bytes>, QueueError> {
        let (queue, id) = (self.queue.clone(), self.id.clone());
        self.client.look(&self.queue, |slot| Query::State { queue, id, slot }).await
    }

    /// Sets its state, or clears it. Its holder sets it with the completion instead.
    ///
    /// # Errors
    /// [`OperateRefusal::WorkflowLocked`](crate::error::OperateRefusal::WorkflowLocked) when somebody holds it.
    pub async fn set_state(&self, state: Option<Bytes>) -> Result<(), OperateError> {
        if let Some(state) = &state {
            check_state(state)?;
        }
        self.client.operate(SetState { queue: self.queue.clone(), workflow: self.id.clone(), state }).await
    }

    /// Holds it: nothing of it is offered until it is resumed. Who has something of it can settle that. If it is held
    /// for another cause, this hold stands on its own beside it.
    ///
    /// # Errors
    /// [`OperateRefusal::QueueNotFound`](crate::error::OperateRefusal::QueueNotFound).
    pub async fn hold(&self, reason: impl Into<String>) -> Result<(), OperateError> {
        let reason = shortened(reason.into(), limits::REASON_BYTES_MAX);
        self.operate(Operation::Hold { reason }).await
    }

    /// Resumes it, for whatever it is held: an exhausted message at its head is tried again, and a gap that is still
    /// open waits anew.
    ///
    /// # Errors
    /// [`OperateRefusal::NotHeld`](crate::error::OperateRefusal::NotHeld).
    pub async fn resume(&self) -> Result<(), OperateError> {
        self.operate(Operation::Resume { redrive: false }).await
    }

    /// Lifts one of its holds; it goes on when that was the last.
    ///
    /// # Errors
    /// [`OperateRefusal::NotHeldFor`](crate::error::OperateRefusal::NotHeldFor) when it is not held for this cause.
    pub async fn resume_for(&self, kind: HoldKind) -> Result<(), OperateError> {
        self.operate(Operation::ResumeFor { kind }).await
    }

    /// Puts all its dead letters whose places are ahead back in place, then resumes it, and says how many came back once
    /// that is done. If the future is dropped once it was asked, it is done all the same. A dry run puts none back.
    ///
    /// # Errors
    /// As [`Workflow::resume`].
    pub async fn resume_and_redrive(&self) -> Result<WorkflowRedrive, OperateError> {
        let before = self.view().await.map_err(operate_error)?.map_or(0, |view| view.dead_letters);
        self.operate(Operation::Resume { redrive: true }).await?;
        // Every look is answered by a turn, and every turn puts some of them back before it looks.
        let stayed = loop {
            let Some(view) = self.view().await.map_err(operate_error)? else { break 0 };
            if !view.holds.iter().any(|hold| hold.cause == HoldCause::Redriving) {
                break view.dead_letters;
            }
        };
        Ok(WorkflowRedrive { redriven: before.saturating_sub(stayed), stayed })
    }

    /// Tries the failed message at its head again now, not at its time.
    ///
    /// # Errors
    /// [`OperateRefusal::NothingWaits`](crate::error::OperateRefusal::NothingWaits).
    pub async fn retry_now(&self) -> Result<(), OperateError> {
        self.operate(Operation::RetryNow).await
    }

    /// Dead-letters the message at its head and goes on with the next.
    ///
    /// # Errors
    /// [`OperateRefusal::NoHead`](crate::error::OperateRefusal::NoHead) when there is none;
    /// [`OperateRefusal::WorkflowLocked`](crate::error::OperateRefusal::WorkflowLocked) when it is handed out.
    pub async fn skip_head(&self, reason: impl Into<String>) -> Result<(), OperateError> {
        let reason = shortened(reason.into(), limits::DESCRIPTION_BYTES_MAX);
        self.operate(Operation::SkipHead { reason }).await
    }

    /// The same, if this message is at its head: whoever has looked at that one skips no other that has come to the head since.
    ///
    /// # Errors
    /// As [`Workflow::skip_head`]; [`OperateRefusal::NotAtHead`](crate::error::OperateRefusal::NotAtHead) when another is at the head.
    pub async fn skip_message(
        &self,
        sequence_number: SequenceNumber,
        reason: impl Into<String>,
    ) -> Result<(), OperateError> {
        let reason = shortened(reason.into(), limits::DESCRIPTION_BYTES_MAX);
        self.operate(Operation::SkipMessage { sequence: sequence_number, reason }).await
    }

    /// Declares that missing positions will never come; a message that comes for one later is dead-lettered.
    ///
    /// # Errors
    /// [`OperateRefusal::NotMissing`](crate::error::OperateRefusal::NotMissing) names the first that is not missing.
    pub async fn declare_void(&self, from: u64, to: u64) -> Result<(), OperateError> {
        let range = Some((Position::new(from)?, Position::new(to)?));
        self.operate(Operation::VoidGap { range }).await
    }

    /// Gives up everything that is missing before the lowest waiting message. In after-order, dead-letters the first
    /// message whose predecessor is unknown instead: the chain waits for its own successor.
    ///
    /// # Errors
    /// [`OperateRefusal::NoHead`](crate::error::OperateRefusal::NoHead) when nothing waits behind a gap.
    pub async fn skip_gap(&self) -> Result<(), OperateError> {
        self.operate(Operation::VoidGap { range: None }).await
    }

    /// Takes it from its holder; what that has out counts as failed and is offered again.
    ///
    /// # Errors
    /// [`OperateRefusal::NotLocked`](crate::error::OperateRefusal::NotLocked).
    pub async fn release_lock(&self) -> Result<(), OperateError> {
        self.operate(Operation::ReleaseLock).await
    }

    /// Removes its messages for good, dead letters included, except what is handed out. Returns how many.
    ///
    /// # Errors
    /// [`OperateRefusal::QueueNotFound`](crate::error::OperateRefusal::QueueNotFound).
    pub async fn purge(&self) -> Result<u64, OperateError> {
        purge(&self.client, &self.queue, PurgeScope::Workflow(self.id.clone())).await
    }

    async fn operate(&self, operation: Operation) -> Result<(), OperateError> {
        let (queue, workflow) = (self.queue.clone(), self.id.clone());
        self.client.operate(Operate { queue, workflow, operation }).await
    }
}

/// What became of the dead letters of a workflow that was resumed and redriven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkflowRedrive {
    /// How many are back in their places.
    pub redriven: u64,
    /// How many are dead letters still: the workflow has gone past their places, or its queue has no room for them.
    pub stayed: u64,
}

fn operate_error(error: QueueError) -> OperateError {
    match error {
        QueueError::Refused(QueueRefusal::QueueNotFound(queue)) => {
            OperateError::Refused(OperateRefusal::QueueNotFound(queue))
        }
        QueueError::Refused(other) => unreachable!("a look is refused only without its queue: {other:?}"),
        QueueError::Misuse(misuse) => misuse.into(),
        QueueError::Unavailable(unavailable) => unavailable.into(),
    }
}
