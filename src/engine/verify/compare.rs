//! What the rows say of each other, table by table: the promises of the rules, looked at from outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::rules::record::Counts;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::merged_tables::MergedTables;
use crate::engine::store::schema;
use crate::engine::verify::findings::Findings;
use crate::engine::verify::ledger::Ledger;
use crate::error::Fault;
use crate::queue::Order;

/// The comparison of all rows.
pub(crate) struct RowComparison<'a, 'p> {
    pub(crate) rows: &'a MergedTables<'a>,
    pub(crate) ledger: &'a Ledger,
    pub(crate) findings: &'a mut Findings<'p>,
    /// What was found in each queue; of `ready`, the early ones are told apart last.
    pub(crate) found: BTreeMap<QueueId, Counts>,
}

impl<'a, 'p> RowComparison<'a, 'p> {
    pub(crate) fn new(
        rows: &'a MergedTables<'a>,
        ledger: &'a Ledger,
        findings: &'a mut Findings<'p>,
    ) -> RowComparison<'a, 'p> {
        RowComparison { rows, ledger, findings, found: BTreeMap::new() }
    }

    /// Compares everything.
    pub(crate) fn compare(mut self) -> Result<(), Fault> {
        self.compare_messages()?;
        self.compare_workflows()?;
        self.compare_ready()?;
        self.compare_reminders()?;
        self.compare_dead_letters()?;
        self.compare_duplicates()?;
        self.compare_answers()?;
        self.compare_audit()?;
        self.compare_topics()?;
        self.compare_history()?;
        self.compare_cursors()?;
        self.compare_queues()
    }

    pub(crate) fn queue(&self, queue: QueueId) -> Option<&'a QueueRecord> {
        self.ledger.queues.get(&queue)
    }

    pub(crate) fn message(&self, key: MessageKey) -> Result<Option<Arc<MessageRecord>>, Fault> {
        self.rows.get::<schema::Messages>(&key.queue, &key.sequence)
    }

    pub(crate) fn workflow(&self, key: &WorkflowKey) -> Result<Option<WorkflowRecord>, Fault> {
        self.rows.get::<schema::Workflows>(&key.queue, &key.stream)
    }

    pub(crate) fn is_reminded(&self, reminder: Reminder) -> Result<bool, Fault> {
        Ok(self.rows.get::<schema::Reminders>(&(), &ReminderKey::new(&reminder))?.is_some())
    }

    /// Whether messages of this workflow have places that can be missing.
    pub(crate) fn has_places(&self, key: &WorkflowKey) -> bool {
        let order = self.queue(key.queue).map(|queue| queue.options.order);
        order.is_some_and(Order::has_places) && matches!(key.stream, WorkflowRef::Named(_))
    }
}

/// Whether a message stands beside the line.
pub(crate) fn is_aside(message: &MessageRecord, has_places: bool) -> bool {
    match &message.status {
        Status::Scheduled { .. } => !has_places,
        Status::ByConsumer { aside, .. } => *aside,
        Status::Locked { fetched } => fetched.is_some_and(|deferred| deferred.aside),
        _ => false,
    }
}

pub(crate) fn is_dead(message: &MessageRecord) -> bool {
    matches!(message.status, Status::DeadLettered(_))
}

/// The reminders a message must have: when it comes back, and when its time is over.
pub(crate) fn reminders_of(key: MessageKey, message: &MessageRecord) -> Vec<Reminder> {
    let due = match &message.status {
        Status::Scheduled { due } => Some(*due),
        Status::Failed { due } | Status::ByConsumer { due, .. } => *due,
        _ => None,
    };
    let expiry = message.rare.expires_at.filter(|_| !is_dead(message));
    let reminder = |due, what| Reminder { due, queue: key.queue, what };
    let due = due.map(|due| reminder(due, Remind::Due(key.sequence)));
    let expiry = expiry.map(|at| reminder(at, Remind::Expiry(key.sequence)));
    due.into_iter().chain(expiry).collect()
}
