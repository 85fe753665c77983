//! What was told without being asked: which workflows are held, and which messages were moved aside for good.

use std::collections::BTreeSet;

use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

/// What somebody believes who has heard every event and nothing else.
#[derive(Default)]
pub(crate) struct EventListener {
    pub(crate) held: BTreeSet<(QueueName, WorkflowId)>,
    pub(crate) dead: BTreeSet<SequenceNumber>,
}

impl EventListener {
    pub(crate) fn record(&mut self, event: &Event) {
        let workflow = event.workflow.as_ref().map(|workflow| (event.queue.clone(), workflow.clone()));
        match (&event.kind, workflow, event.sequence_number) {
            (EventKind::Held { .. }, Some(workflow), _) => drop(self.held.insert(workflow)),
            (EventKind::Resumed, Some(workflow), _) => drop(self.held.remove(&workflow)),
            (EventKind::DeadLettered { .. }, _, Some(sequence)) => drop(self.dead.insert(sequence)),
            (EventKind::Redriven { .. }, _, Some(sequence)) => drop(self.dead.remove(&sequence)),
            (EventKind::QueueDeleted, ..) => self.held.retain(|(queue, _)| *queue != event.queue),
            _ => {}
        }
    }
}
