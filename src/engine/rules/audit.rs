//! What is kept of operators: the rows of the audit, without a word on who writes them.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

/// What an operator has done, or was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its number: 1, 2, 3 and so on.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What.
    pub verb: AuditVerb,
    /// To which queue, or to what in it.
    pub queue: QueueName,
    /// To which workflow, if it was about one.
    pub workflow_id: Option<WorkflowId>,
    /// To which message, if it was about one: for a retry or a skip, the one at the head.
    pub sequence_number: Option<SequenceNumber>,
    /// The first and the last of the positions that were given up (ordinals in an after-ordered workflow).
    pub positions: Option<(u64, u64)>,
    /// Why, as the operator said.
    pub reason: Option<String>,
    /// Why it was refused; `None` when it was done.
    pub refusal: Option<String>,
    /// How much it has changed: messages removed by a purge, else 1, and 0 if nothing.
    pub count: u64,
}

/// What operators do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AuditVerb {
    /// Create a queue.
    CreateQueue,
    /// Change the options of a queue.
    ChangeQueue,
    /// Delete a queue.
    DeleteQueue,
    /// Remove all messages of a queue.
    PurgeQueue,
    /// Remove all dead letters of a queue.
    PurgeDeadLetters,
    /// Remove all messages of a workflow.
    PurgeWorkflow,
    /// Put a dead letter back.
    Redrive,
    /// Set the state of a workflow, or clear it.
    SetState,
    /// Hold a workflow.
    Hold,
    /// Resume a workflow.
    Resume,
    /// Put the dead letters of a workflow back, and resume it.
    ResumeAndRedrive,
    /// Try a failed message again now.
    RetryNow,
    /// Dead-letter the message at the head.
    SkipHead,
    /// Declare that positions will never come.
    DeclareVoid,
    /// Give up what is missing before the lowest waiting message.
    SkipGap,
    /// Take a workflow from its holder.
    ReleaseLock,
    /// Pause the handlers of a queue.
    PauseQueue,
    /// Let the handlers of a queue go on.
    ResumeQueue,
    /// Lift one of the holds of a workflow; others stay.
    ResumeFor,
    /// Put a dead letter back with another body.
    EditAndRedrive,
    /// Send at once what a schedule sends.
    RunSchedule,
    /// Create a topic.
    CreateTopic,
    /// Change the subscriptions or rules of a topic.
    ChangeTopic,
    /// Delete a topic with its subscriptions.
    DeleteTopic,
}

impl AuditVerb {
    /// Its name: the method's.
    pub fn as_str(self) -> &'static str {
        match self {
            AuditVerb::CreateQueue => "create_queue",
            AuditVerb::ChangeQueue => "change_queue",
            AuditVerb::DeleteQueue => "delete_queue",
            AuditVerb::PurgeQueue => "purge_queue",
            AuditVerb::PurgeDeadLetters => "purge_dead_letters",
            AuditVerb::PurgeWorkflow => "purge_workflow",
            AuditVerb::Redrive => "redrive",
            AuditVerb::SetState => "set_state",
            AuditVerb::Hold => "hold",
            AuditVerb::Resume => "resume",
            AuditVerb::ResumeAndRedrive => "resume_and_redrive",
            AuditVerb::RetryNow => "retry_now",
            AuditVerb::SkipHead => "skip_head",
            AuditVerb::DeclareVoid => "declare_void",
            AuditVerb::SkipGap => "skip_gap",
            AuditVerb::ReleaseLock => "release_lock",
            AuditVerb::PauseQueue => "pause_queue",
            AuditVerb::ResumeQueue => "resume_queue",
            AuditVerb::ResumeFor => "resume_for",
            AuditVerb::EditAndRedrive => "edit_and_redrive",
            AuditVerb::RunSchedule => "run_schedule",
            AuditVerb::CreateTopic => "create_topic",
            AuditVerb::ChangeTopic => "change_topic",
            AuditVerb::DeleteTopic => "delete_topic",
        }
    }
}

impl fmt::Display for AuditVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
