//! Commands on record: what an operator asks is written down in the same transaction, with what came of it.

use std::convert::Infallible;
use std::sync::Arc;

use crate::actor::Actor;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::audit::AuditVerb;
use crate::engine::rules::change::Change;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbOutcome;
use crate::engine::rules::verb::surely;
use crate::engine::rules::verbs::Command;
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
    ) -> Ruling<Reply, Infallible> {
        let Some(mut entry) = self.draft(actor, &command)? else { return command.run(self) };
        let described = self.effects.len();
        let mut reply = surely(self.run_or_refuse(command)?);
        entry.count = reply.count();
        entry.sequence_number = reply.first_number().or(entry.sequence_number);
        entry.refusal = reply.refusal();
        if entry.refusal.is_none() && entry.verb == AuditVerb::SkipGap {
            entry.positions = self.effects[described..].iter().find_map(given_up);
        }
        let number = self.write_down(entry, begun)?;
        reply.note_entry(number);
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
            self.records.write(Change::Audit(oldest, None))?;
        }
        self.put_entry(AuditEntry { number, ..entry })
    }

    fn put_entry(&mut self, entry: AuditEntry) -> Read<u64> {
        let number = entry.number;
        // Not counted as a change: a refused command has an entry, too.
        self.records.write(Change::Audit(number, Some(Arc::new(entry))))?;
        Ok(number)
    }

    /// The entry as far as it is known before the command is done; `None` for what no operator does.
    fn draft(&self, actor: &Actor, command: &Command) -> Read<Option<AuditEntry>> {
        let Some((verb, queue)) = command.audited() else { return Ok(None) };
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
        command.draft(self, &mut entry)?;
        Ok(Some(entry))
    }

    /// The workflow that a message belongs to.
    pub(crate) fn workflow_of(
        &self,
        queue: &QueueName,
        sequence: SequenceNumber,
    ) -> Read<Option<WorkflowId>> {
        let Some(queue) = self.queue_named(queue)? else { return Ok(None) };
        let content = self.records.content(MessageKey { queue: queue.id, sequence })?;
        Ok(content.and_then(|content| content.workflow_id.clone()))
    }

    pub(crate) fn head_of(&self, queue: &QueueName, workflow: &WorkflowId) -> Read<Option<SequenceNumber>> {
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

fn given_up(effect: &Effect) -> Option<(u64, u64)> {
    match effect {
        Effect::Event(event) => match event.kind {
            EventKind::GapSkipped { from, to } => Some((from, to)),
            _ => None,
        },
        _ => None,
    }
}
