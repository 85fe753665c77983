//! A workflow while a command works on it: what it is, and the room that it takes.

use std::cell::RefCell;
use std::sync::Arc;

use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::token::LockToken;

/// A workflow in the hands of one command.
///
/// Every change of it ends with [`OpenWorkflow::close`], which decides anew what it offers and sets its reminders, or with a
/// shorter way: for a send that leaves what is offered as it is, or for a workflow that is forgotten. One that is dropped
/// without would leave rows that contradict each other.
#[must_use = "a workflow that was opened has to be closed"]
pub(crate) struct OpenWorkflow {
    pub(crate) queue: Arc<QueueRecord>,
    pub(crate) key: WorkflowKey,
    pub(crate) record: WorkflowRecord,
    /// Whether anything was known of it when it was opened.
    pub(crate) is_known: bool,
    /// What it was when it was opened.
    pub(crate) stored: WorkflowRecord,
    /// The remembered cursor that it was opened with.
    pub(crate) recalled: Option<Cursor>,
    /// Who has it, as far as that is known without asking: nobody else can have it before the command ends.
    pub(crate) holder: KnownHolder,
    /// Whether this command has brought back a message that was handed out or set aside.
    pub(crate) has_come_back: bool,
}

/// Who has a workflow, as far as the command that works on it knows.
#[derive(Clone, Copy)]
pub(crate) enum KnownHolder {
    /// It has not asked.
    Unknown,
    /// Whoever was granted it, or had it when it was opened.
    Owner(LockToken),
    /// The command has taken it from whoever had it.
    Nobody,
}

/// Room of workflows that a command has closed, for those that it opens after them. They are large and handed on from one to the
/// next, so they are in boxes; and a batch opens more of them than an allocator keeps room for.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "they are handed on in their boxes")]
pub(crate) struct OpenRooms(RefCell<Vec<Box<OpenWorkflow>>>);

impl OpenRooms {
    /// Room for a workflow, in which its records still have to be put.
    pub(crate) fn take(&self, of: &Arc<QueueRecord>, known_as: WorkflowKey) -> Box<OpenWorkflow> {
        let Some(mut room) = self.0.borrow_mut().pop() else {
            return Box::new(OpenWorkflow {
                queue: of.clone(),
                key: known_as,
                record: WorkflowRecord::default(),
                is_known: false,
                stored: WorkflowRecord::default(),
                recalled: None,
                holder: KnownHolder::Unknown,
                has_come_back: false,
            });
        };
        let OpenWorkflow { queue, key, recalled, holder, has_come_back, .. } = &mut *room;
        // The next workflow is of the same queue as a rule: to count one reference more and one less costs more than this look.
        if !Arc::ptr_eq(queue, of) {
            *queue = of.clone();
        }
        *key = known_as;
        (*recalled, *holder, *has_come_back) = (None, KnownHolder::Unknown, false);
        room
    }

    /// Keeps the room of a workflow that is closed.
    #[inline]
    pub(crate) fn give_back(&self, closed: Box<OpenWorkflow>) {
        self.0.borrow_mut().push(closed);
    }
}
