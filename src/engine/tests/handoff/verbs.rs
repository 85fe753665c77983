//! Verbs that do nothing but tell in which turn they were done.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::disk::Disk;
use crate::engine::rules::command::WorkflowGrant;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::step::Step;
use crate::engine::rules::verb::AnswerTypes;
use crate::engine::rules::verb::EngineVerb;
use crate::engine::rules::verb::VerbRuling;
use crate::engine::rules::verbs::CloseWorkflow;
use crate::engine::rules::verbs::Command;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// A send of so many bytes. The number it is told is the position of its turn.
#[derive(Clone, Debug)]
pub(crate) struct Accept {
    pub(crate) bytes: usize,
}

impl AnswerTypes for Accept {
    type Done = Vec<Receipt>;
    type Refusal = SendRefusal;
}

impl EngineVerb for Accept {
    fn run(self, step: &mut Step<'_>) -> VerbRuling<Accept> {
        Ok(vec![Receipt::Accepted(SequenceNumber::new(step.now.as_millis()))])
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Takes a workflow whole, which the disk counts.
#[derive(Clone)]
pub(crate) struct TakeCounted {
    pub(crate) queue: QueueName,
    pub(crate) token: LockToken,
    pub(crate) disk: Arc<Disk>,
}

impl fmt::Debug for TakeCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakeCounted").finish_non_exhaustive()
    }
}

impl AnswerTypes for TakeCounted {
    type Done = Option<WorkflowGrant>;
    type Refusal = ReceiveRefusal;
}

impl EngineVerb for TakeCounted {
    const HANDS_OUT: bool = true;

    fn run(self, step: &mut Step<'_>) -> VerbRuling<TakeCounted> {
        self.disk.taken.fetch_add(1, Ordering::Relaxed);
        let stream = WorkflowRef::Single(SequenceNumber::new(step.now.as_millis()));
        Ok(Some(WorkflowGrant { token: self.token, locked_until: step.now, stream, state: None }))
    }

    fn give_back(&self, done: Option<WorkflowGrant>, post: &mut dyn FnMut(Command)) {
        if let Some(taken) = done {
            post(CloseWorkflow { queue: self.queue.clone(), token: taken.token }.into());
        }
    }
}
