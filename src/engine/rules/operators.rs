//! What operators ask: of queues, topics, workflows and dead letters. All of it can be put on record.

use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::audit::AuditVerb;
use crate::engine::rules::command::Operation;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::records::Read;
use crate::engine::rules::records::Records;
use crate::engine::rules::room_need::RoomNeed;
use crate::engine::rules::step::Step;
use crate::engine::rules::topic_record::TopicChange;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::topics::is_subscribed;
use crate::engine::rules::verb::Answer;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbRuling;
use crate::engine::rules::verbs::ChangeQueue;
use crate::engine::rules::verbs::ChangeTopic;
use crate::engine::rules::verbs::CreateQueue;
use crate::engine::rules::verbs::DeleteQueue;
use crate::engine::rules::verbs::EditAndRedrive;
use crate::engine::rules::verbs::Operate;
use crate::engine::rules::verbs::PauseQueue;
use crate::engine::rules::verbs::Purge;
use crate::engine::rules::verbs::Redrive;
use crate::engine::rules::verbs::SetState;
use crate::error::OperateRefusal;
use crate::error::QueueRefusal;
use crate::error::SendRefusal;
use crate::error::TopicRefusal;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::queue::QueueOptions;
use crate::topic::Rule;

/// How what an operator asks of messages is refused when there is no room for it.
const FULL: OperateRefusal = OperateRefusal::Send(SendRefusal::StorageFull);

impl EngineVerb for CreateQueue {
    const IS_OPERATORS: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<CreateQueue> {
        step.create_queue(&self.name, *self.options)
    }

    fn room(&self, records: &dyn Records) -> Read<RoomNeed> {
        room_of_queue(&self.name, &self.options, records)
    }

    fn without_room(&self) -> Option<Answer<CreateQueue>> {
        Some(Err(QueueRefusal::StorageFull(self.name.clone())))
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        Some((AuditVerb::CreateQueue, &self.name))
    }
}

impl EngineVerb for ChangeQueue {
    const IS_OPERATORS: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<ChangeQueue> {
        step.change_queue(&self.name, *self.options)
    }

    fn room(&self, records: &dyn Records) -> Read<RoomNeed> {
        room_of_queue(&self.name, &self.options, records)
    }

    fn without_room(&self) -> Option<Answer<ChangeQueue>> {
        Some(Err(QueueRefusal::StorageFull(self.name.clone())))
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        Some((AuditVerb::ChangeQueue, &self.name))
    }
}

/// Nothing, if there is such a queue already: a daemon that starts says again what is defined.
fn room_of_queue(name: &QueueName, options: &QueueOptions, records: &dyn Records) -> Read<RoomNeed> {
    let is_defined_so = records.queue_named(name)?.is_some_and(|queue| queue.options == *options);
    Ok(if is_defined_so { RoomNeed::Nothing } else { RoomNeed::of_messages(0, 1) })
}

impl EngineVerb for DeleteQueue {
    const IS_OPERATORS: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<DeleteQueue> {
        step.delete_queue(&self.name)
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        Some((AuditVerb::DeleteQueue, &self.name))
    }
}

impl EngineVerb for PauseQueue {
    const IS_OPERATORS: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<PauseQueue> {
        step.pause_queue(&self.name, self.paused)
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        let verb = if self.paused { AuditVerb::PauseQueue } else { AuditVerb::ResumeQueue };
        Some((verb, &self.name))
    }
}

/// Whether a topic is so already: a daemon that reads its definitions again says again what is defined.
fn is_topic_so(topic: &TopicRecord, change: &TopicChange, records: &dyn Records) -> Read<bool> {
    match change {
        TopicChange::Create => Ok(true),
        TopicChange::Subscribe { name, options, rules } => {
            is_subscribed(records, topic, name, (options, rules))
        }
        _ => Ok(false),
    }
}

impl EngineVerb for ChangeTopic {
    const IS_OPERATORS: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<ChangeTopic> {
        step.change_topic(&self.name, self.change)
    }

    fn bytes(&self) -> usize {
        match &self.change {
            TopicChange::Subscribe { rules, .. } | TopicChange::SetRules { rules, .. } => {
                rules.iter().map(Rule::len).sum()
            }
            TopicChange::Put { plan, .. } => {
                plan.subscriptions.iter().flat_map(|plan| &plan.rules).map(Rule::len).sum()
            }
            _ => 0,
        }
    }

    fn room(&self, records: &dyn Records) -> Read<RoomNeed> {
        // What all partitions have to have is refused by none.
        if matches!(self.change, TopicChange::Delete | TopicChange::Put { .. }) {
            return Ok(RoomNeed::Nothing);
        }
        let topic = records.topic(&self.name)?;
        if let Some(topic) = &topic
            && is_topic_so(topic, &self.change, records)?
        {
            return Ok(RoomNeed::Nothing);
        }
        // The row is written anew.
        let before = topic.map_or(0, |topic| topic.bytes());
        Ok(RoomNeed::of_messages(self.bytes() + before, 1))
    }

    fn without_room(&self) -> Option<Answer<ChangeTopic>> {
        Some(Err(TopicRefusal::StorageFull(self.name.clone())))
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        let verb = match &self.change {
            TopicChange::Create => AuditVerb::CreateTopic,
            TopicChange::Delete => AuditVerb::DeleteTopic,
            _ => AuditVerb::ChangeTopic,
        };
        Some((verb, &self.name))
    }
}

impl EngineVerb for SetState {
    const IS_OPERATORS: bool = true;
    const CAN_BE_TRIED: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<SetState> {
        step.set_state_of(&self.queue, self.workflow, self.state)
    }

    fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
        Ok(RoomNeed::of_state(self.state.as_deref()))
    }

    fn without_room(&self) -> Option<Answer<SetState>> {
        Some(Err(FULL))
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        Some((AuditVerb::SetState, &self.queue))
    }

    fn draft(&self, _: &Step<'_>, entry: &mut AuditEntry) -> Read<()> {
        entry.workflow_id = Some(self.workflow.clone());
        Ok(())
    }
}

impl EngineVerb for Operate {
    const IS_OPERATORS: bool = true;
    const CAN_BE_TRIED: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<Operate> {
        step.operate(&self.queue, self.workflow, self.operation)
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        let verb = match &self.operation {
            Operation::Hold { .. } => AuditVerb::Hold,
            Operation::Resume { redrive: false } => AuditVerb::Resume,
            Operation::Resume { redrive: true } => AuditVerb::ResumeAndRedrive,
            Operation::RetryNow => AuditVerb::RetryNow,
            Operation::SkipHead { .. } | Operation::SkipMessage { .. } => AuditVerb::SkipHead,
            Operation::VoidGap { range: Some(_) } => AuditVerb::DeclareVoid,
            Operation::VoidGap { range: None } => AuditVerb::SkipGap,
            Operation::ReleaseLock => AuditVerb::ReleaseLock,
            Operation::ResumeFor { .. } => AuditVerb::ResumeFor,
        };
        Some((verb, &self.queue))
    }

    fn draft(&self, step: &Step<'_>, entry: &mut AuditEntry) -> Read<()> {
        entry.workflow_id = Some(self.workflow.clone());
        match &self.operation {
            Operation::Hold { reason }
            | Operation::SkipHead { reason }
            | Operation::SkipMessage { reason, .. }
                if entry.reason.is_none() =>
            {
                entry.reason = Some(reason.clone()).filter(|reason| !reason.is_empty());
            }
            Operation::ResumeFor { kind } => {
                let given = entry.reason.take().map(|given| format!(": {given}")).unwrap_or_default();
                entry.reason = Some(format!("{kind}{given}"));
            }
            Operation::VoidGap { range: Some((from, to)) } => entry.positions = Some((from.get(), to.get())),
            _ => {}
        }
        match self.operation {
            Operation::RetryNow | Operation::SkipHead { .. } => {
                entry.sequence_number = step.head_of(&self.queue, &self.workflow)?;
            }
            Operation::SkipMessage { sequence, .. } => entry.sequence_number = Some(sequence),
            _ => {}
        }
        Ok(())
    }
}

impl EngineVerb for Redrive {
    const IS_OPERATORS: bool = true;
    const CAN_BE_TRIED: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<Redrive> {
        step.redrive(&self.queue, self.sequence, self.position)
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        Some((AuditVerb::Redrive, &self.queue))
    }

    fn draft(&self, step: &Step<'_>, entry: &mut AuditEntry) -> Read<()> {
        draft_redrive(&self.queue, (self.sequence, self.position), step, entry)
    }
}

impl EngineVerb for EditAndRedrive {
    const IS_OPERATORS: bool = true;
    const CAN_BE_TRIED: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<EditAndRedrive> {
        step.edit_and_redrive(&self.queue, self.edit)
    }

    fn bytes(&self) -> usize {
        self.edit.body.len()
    }

    /// The original stays beside what is written.
    fn room(&self, _: &dyn Records) -> Read<RoomNeed> {
        Ok(RoomNeed::of_messages(self.bytes(), 2))
    }

    fn without_room(&self) -> Option<Answer<EditAndRedrive>> {
        Some(Err(FULL))
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        Some((AuditVerb::EditAndRedrive, &self.queue))
    }

    fn draft(&self, step: &Step<'_>, entry: &mut AuditEntry) -> Read<()> {
        draft_redrive(&self.queue, (self.edit.sequence, self.edit.position), step, entry)
    }
}

fn draft_redrive(
    queue: &QueueName,
    (sequence, position): (SequenceNumber, Option<Position>),
    step: &Step<'_>,
    entry: &mut AuditEntry,
) -> Read<()> {
    entry.sequence_number = Some(sequence);
    entry.workflow_id = step.workflow_of(queue, sequence)?;
    entry.positions = position.map(|position| (position.get(), position.get()));
    Ok(())
}

impl EngineVerb for Purge {
    const IS_OPERATORS: bool = true;
    const CAN_BE_TRIED: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<Purge> {
        step.purge(&self.queue, self.scope, self.from)
    }

    fn is_bulk(&self) -> bool {
        !matches!(self.scope, PurgeScope::DeadLetter(_))
    }

    fn audited(&self) -> Option<(AuditVerb, &QueueName)> {
        let verb = match &self.scope {
            PurgeScope::Everything => AuditVerb::PurgeQueue,
            PurgeScope::DeadLetters | PurgeScope::DeadLetter(_) => AuditVerb::PurgeDeadLetters,
            PurgeScope::Workflow(_) => AuditVerb::PurgeWorkflow,
        };
        Some((verb, &self.queue))
    }

    fn draft(&self, _: &Step<'_>, entry: &mut AuditEntry) -> Read<()> {
        if let PurgeScope::Workflow(id) = &self.scope {
            entry.workflow_id = Some(id.clone());
        }
        Ok(())
    }
}
