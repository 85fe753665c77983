//! The audit.

use serde::Deserialize;

use crate::clock::Timestamp;
use crate::engine::rules::audit;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

#[derive(Debug, Deserialize)]
pub(crate) struct AuditEntry {
    number: u64,
    at: Timestamp,
    actor: String,
    verb: AuditVerb,
    queue: QueueName,
    workflow_id: Option<WorkflowId>,
    sequence_number: Option<SequenceNumber>,
    positions: Option<(u64, u64)>,
    reason: Option<String>,
    refusal: Option<String>,
    count: u64,
}

impl From<AuditEntry> for audit::AuditEntry {
    fn from(old: AuditEntry) -> audit::AuditEntry {
        audit::AuditEntry {
            number: old.number,
            at: old.at,
            actor: old.actor,
            verb: old.verb.into(),
            queue: old.queue,
            workflow_id: old.workflow_id,
            sequence_number: old.sequence_number,
            positions: old.positions,
            reason: old.reason,
            refusal: old.refusal,
            count: old.count,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum AuditVerb {
    CreateQueue,
    ChangeQueue,
    DeleteQueue,
    PurgeQueue,
    PurgeDeadLetters,
    PurgeWorkflow,
    Redrive,
    SetState,
    Hold,
    Resume,
    ResumeAndRedrive,
    RetryNow,
    SkipHead,
    DeclareVoid,
    SkipGap,
    ReleaseLock,
}

impl From<AuditVerb> for audit::AuditVerb {
    fn from(old: AuditVerb) -> audit::AuditVerb {
        match old {
            AuditVerb::CreateQueue => audit::AuditVerb::CreateQueue,
            AuditVerb::ChangeQueue => audit::AuditVerb::ChangeQueue,
            AuditVerb::DeleteQueue => audit::AuditVerb::DeleteQueue,
            AuditVerb::PurgeQueue => audit::AuditVerb::PurgeQueue,
            AuditVerb::PurgeDeadLetters => audit::AuditVerb::PurgeDeadLetters,
            AuditVerb::PurgeWorkflow => audit::AuditVerb::PurgeWorkflow,
            AuditVerb::Redrive => audit::AuditVerb::Redrive,
            AuditVerb::SetState => audit::AuditVerb::SetState,
            AuditVerb::Hold => audit::AuditVerb::Hold,
            AuditVerb::Resume => audit::AuditVerb::Resume,
            AuditVerb::ResumeAndRedrive => audit::AuditVerb::ResumeAndRedrive,
            AuditVerb::RetryNow => audit::AuditVerb::RetryNow,
            AuditVerb::SkipHead => audit::AuditVerb::SkipHead,
            AuditVerb::DeclareVoid => audit::AuditVerb::DeclareVoid,
            AuditVerb::SkipGap => audit::AuditVerb::SkipGap,
            AuditVerb::ReleaseLock => audit::AuditVerb::ReleaseLock,
        }
    }
}
