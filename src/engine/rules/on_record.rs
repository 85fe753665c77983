//! Commands on record: what an operator asks is written down in the same transaction, with what came of it.

use std::sync::Arc;

use crate::actor::Actor;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::audit::AuditVerb;
use crate::engine::rules::change::Change;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Reply;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::redriven::Edit;
use crate::engine::rules::step::Step;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::workflow::OpenWorkflow;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;

impl Step<'_> {
    /// Does what an operator asks, and writes it down. `begun` is the entry of a purge that goes on.
    pub(crate) fn run_on_record(
        &mut self,
        actor: &Actor,
        begun: Option<u64>,
        command: Command,
    ) -> Read<Reply> {
        let mut entry = self.draft(actor, &command)?;
        let described = self.effects.len();
        let mut reply = self.run_or_refuse(command, self.now)?;
        entry.count = count_of(&reply);
        if let Reply::Send(Ok(receipts)) = &reply {
            entry.sequence_number = receipts.first().and_then(Receipt::sequence_number);
        }
        entry.refusal = refusal_of(&reply);
        if entry.refusal.is_none() && entry.verb == AuditVerb::SkipGap {
            entry.positions = self.effects[described..].iter().find_map(given_up);
        }
        let number = self.write_down(entry, begun)?;
        if let Reply::Purge(Ok(purged)) = &mut reply {
            purged.entry = Some(number);
        }
        Ok(reply)
    }

    /// Adds to the entry that was begun, if it is still there, or appends one.
    fn write_down(&mut self, entry: AuditEntry, begun: Option<u64>) -> Read<u64> {
        let begun = match begun {
            Some(number) => self.records.audit(number)?,
            None => None,
        };
        if let Some(begun) = begun.filter(|begun| begun.is_same_work(&entry)) {
            let (count, refusal) = (begun.count + entry.count, entry.refusal);
            let entry = AuditEntry { count, refusal, ..Arc::unwrap_or_clone(begun) };
            return self.put_entry(entry);
        }
        let number = self.records.audit_last()?.map_or(1, |last| last.number + 1);
        if let Some(oldest) = number.checked_sub(limits::AUDIT_KEPT).filter(|oldest| *oldest > 0) {
            self.write(Change::Audit(oldest, None))?;
        }
        self.put_entry(AuditEntry { number, ..entry })
    }

    fn put_entry(&mut self, entry: AuditEntry) -> Read<u64> {
        let number = entry.number;
        self.write(Change::Audit(number, Some(Arc::new(entry))))?;
        Ok(number)
    }

    /// The entry as far as it is known before the command is done.
    fn draft(&self, actor: &Actor, command: &Command) -> Read<AuditEntry> {
        let (verb, queue) = verb_of(command);
        let mut entry = AuditEntry {
            number: 0,
            at: self.wall,
            actor: actor.name().to_owned(),
            verb,
            queue: queue.clone(),
            workflow_id: None,
            sequence_number: None,
            positions: None,
            reason: actor.reason().map(str::to_owned),
            refusal: None,
            count: 0,
        };
        match command {
            Command::SetState { workflow, .. } => entry.workflow_id = Some(workflow.clone()),
            Command::Purge { scope: PurgeScope::Workflow(id), .. } => entry.workflow_id = Some(id.clone()),
            Command::Send { messages, .. } => {
                entry.workflow_id = messages.first().and_then(|message| message.workflow_id.clone());
            }
            Command::Redrive { sequence, position, .. }
            | Command::EditAndRedrive { edit: Edit { sequence, position, .. }, .. } => {
                entry.sequence_number = Some(*sequence);
                entry.workflow_id = self.workflow_of(queue, *sequence)?;
                entry.positions = position.map(|position| (position.get(), position.get()));
            }
            Command::Operate { workflow, operation, .. } => {
                entry.workflow_id = Some(workflow.clone());
                self.draft_operation(&mut entry, workflow, operation)?;
            }
            _ => {}
        }
        Ok(entry)
    }

    fn draft_operation(
        &self,
        entry: &mut AuditEntry,
        workflow: &WorkflowId,
        operation: &Operation,
    ) -> Read<()> {
        match operation {
            Operation::Hold { reason } | Operation::SkipHead { reason } if entry.reason.is_none() => {
                entry.reason = Some(reason.clone()).filter(|reason| !reason.is_empty());
            }
            Operation::ResumeFor { kind } => {
                let given = entry.reason.take().map(|given| format!(": {given}")).unwrap_or_default();
                entry.reason = Some(format!("{kind}{given}"));
            }
            Operation::VoidGap { range: Some((from, to)) } => entry.positions = Some((from.get(), to.get())),
            _ => {}
        }
        if matches!(operation, Operation::RetryNow | Operation::SkipHead { .. }) {
            entry.sequence_number = self.head_of(&entry.queue, workflow)?;
        }
        Ok(())
    }

    /// The workflow that a message belongs to.
    fn workflow_of(&self, queue: &QueueName, sequence: SequenceNumber) -> Read<Option<WorkflowId>> {
        let Some(queue) = self.queue_named(queue)? else { return Ok(None) };
        let content = self.records.content(MessageKey { queue: queue.id, sequence })?;
        Ok(content.and_then(|content| content.workflow_id.clone()))
    }

    fn head_of(&self, queue: &QueueName, workflow: &WorkflowId) -> Read<Option<SequenceNumber>> {
        let Some(queue) = self.queue_named(queue)? else { return Ok(None) };
        let workflow = OpenWorkflow::open(self, &queue, WorkflowRef::Named(workflow.clone()))?;
        Ok(workflow.head(self)?.map(|(_, sequence, _)| sequence))
    }
}

impl AuditEntry {
    /// Whether another entry is about the same work of the same operator.
    fn is_same_work(&self, other: &AuditEntry) -> bool {
        let of = |entry: &AuditEntry| (entry.verb, entry.queue.clone(), entry.workflow_id.clone());
        self.actor == other.actor && of(self) == of(other)
    }
}

/// What an operator's command does, and to which queue.
fn verb_of(command: &Command) -> (AuditVerb, &QueueName) {
    match command {
        Command::CreateQueue { name, .. } => (AuditVerb::CreateQueue, name),
        Command::ChangeQueue { name, .. } => (AuditVerb::ChangeQueue, name),
        Command::DeleteQueue { name } => (AuditVerb::DeleteQueue, name),
        Command::ChangeTopic { name, change: TopicChange::Create } => (AuditVerb::CreateTopic, name),
        Command::ChangeTopic { name, change: TopicChange::Delete } => (AuditVerb::DeleteTopic, name),
        Command::ChangeTopic { name, .. } => (AuditVerb::ChangeTopic, name),
        Command::PauseQueue { name, paused: true } => (AuditVerb::PauseQueue, name),
        Command::PauseQueue { name, paused: false } => (AuditVerb::ResumeQueue, name),
        Command::SetState { queue, .. } => (AuditVerb::SetState, queue),
        Command::Send { queue, .. } => (AuditVerb::RunSchedule, queue),
        Command::Redrive { queue, .. } => (AuditVerb::Redrive, queue),
        Command::EditAndRedrive { queue, .. } => (AuditVerb::EditAndRedrive, queue),
        Command::Purge { queue, scope, .. } => (verb_of_purge(scope), queue),
        Command::Operate { queue, operation, .. } => (verb_of_operation(operation), queue),
        other => unreachable!("only what operators do is put on record: {other:?}"),
    }
}

fn verb_of_purge(scope: &PurgeScope) -> AuditVerb {
    match scope {
        PurgeScope::Everything => AuditVerb::PurgeQueue,
        PurgeScope::DeadLetters | PurgeScope::DeadLetter(_) => AuditVerb::PurgeDeadLetters,
        PurgeScope::Workflow(_) => AuditVerb::PurgeWorkflow,
    }
}

fn verb_of_operation(operation: &Operation) -> AuditVerb {
    match operation {
        Operation::Hold { .. } => AuditVerb::Hold,
        Operation::Resume { redrive: false } => AuditVerb::Resume,
        Operation::Resume { redrive: true } => AuditVerb::ResumeAndRedrive,
        Operation::RetryNow => AuditVerb::RetryNow,
        Operation::SkipHead { .. } => AuditVerb::SkipHead,
        Operation::VoidGap { range: Some(_) } => AuditVerb::DeclareVoid,
        Operation::VoidGap { range: None } => AuditVerb::SkipGap,
        Operation::ReleaseLock => AuditVerb::ReleaseLock,
        Operation::ResumeFor { .. } => AuditVerb::ResumeFor,
    }
}

fn count_of(reply: &Reply) -> u64 {
    match reply {
        Reply::Queue(Ok(changed)) | Reply::Topic(Ok(changed)) => u64::from(*changed),
        Reply::Operate(Ok(())) | Reply::Redrive(Ok(_)) => 1,
        Reply::Send(Ok(receipts)) => receipts.len() as u64,
        Reply::Purge(Ok(purged)) => purged.count,
        _ => 0,
    }
}

fn refusal_of(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Topic(answer) => answer.as_ref().err().map(ToString::to_string),
        Reply::Queue(answer) => answer.as_ref().err().map(ToString::to_string),
        Reply::Operate(answer) => answer.as_ref().err().map(ToString::to_string),
        Reply::Send(answer) => answer.as_ref().err().map(ToString::to_string),
        Reply::Redrive(answer) => answer.as_ref().err().map(ToString::to_string),
        Reply::Purge(answer) => answer.as_ref().err().map(ToString::to_string),
        other => unreachable!("an operator is not answered so: {other:?}"),
    }
}

fn given_up(effect: &Effect) -> Option<(u64, u64)> {
    match effect {
        Effect::Event(event) => match event.kind {
            EventKind::GapSkipped { from, to } => Some((from, to)),
            _ => None,
        },
        _ => None,
    }
}
