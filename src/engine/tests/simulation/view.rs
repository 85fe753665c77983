//! What an invariant may look at: the engine's state, the ledger, and what the last turn has brought.

use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::lock::LockTable;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::clock::Shown;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::plain::Plain;
use crate::id::QueueName;
use crate::id::SequenceNumber;

/// What was found: all is well, or what is wrong.
pub(crate) type Finding = Result<(), String>;

/// The world after a turn.
pub(crate) struct View<'a> {
    /// The engine's clocks in this turn, and in the one before.
    pub(crate) now: ClockInstants,
    pub(crate) before: ClockInstants,
    /// What the machine's clocks have shown.
    pub(crate) shown: &'a Shown,
    /// The first reminders that the turn before has left.
    pub(crate) due: Vec<Reminder>,
    pub(crate) plain: &'a Plain,
    pub(crate) ledger: &'a Ledger,
    pub(crate) facts: &'a [Fact],
}

impl View<'_> {
    pub(crate) fn rows(&self) -> &Rows {
        &self.plain.rows
    }

    pub(crate) fn locks(&self) -> &LockTable {
        self.plain.rules.locks()
    }

    pub(crate) fn queue(&self, name: &QueueName) -> Option<&QueueRecord> {
        self.rows().queues.values().find(|queue| queue.name == *name).map(|queue| &**queue)
    }

    pub(crate) fn messages_of(&self, queue: QueueId) -> impl Iterator<Item = (&MessageKey, &MessageRecord)> {
        let first = MessageKey { queue, sequence: SequenceNumber::new(0) };
        let from_first = self.rows().messages.range(first..).take_while(move |(key, _)| key.queue == queue);
        from_first.map(|(key, message)| (key, &**message))
    }

    pub(crate) fn message(&self, queue: &QueueName, sequence: SequenceNumber) -> Option<&MessageRecord> {
        let queue = self.queue(queue)?.id;
        self.rows().messages.get(&MessageKey { queue, sequence }).map(|message| &**message)
    }
}

/// A finding: that something which has to be so is so.
pub(crate) fn expect(is_so: bool, otherwise: impl FnOnce() -> String) -> Finding {
    if is_so { Ok(()) } else { Err(otherwise()) }
}
