//! One command being applied: the instant, the rows, the locks, and what the command causes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::due::Due;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::effect::Event;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::lock::LockTable;
use crate::engine::rules::open_workflow::OpenRooms;
use crate::engine::rules::rate_buckets::RateBuckets;
use crate::engine::rules::record::Counts;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::records::Read;
use crate::engine::rules::settlements::Settlements;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::error::Fault;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;

/// Why a command ends early: it is refused, which is an answer, or the store failed, which stops the engine.
#[derive(Debug)]
pub(crate) enum Stop<R> {
    Refused(R),
    Fault(Fault),
}

/// What a rule arrives at.
pub(crate) type Ruling<T, R> = Result<T, Stop<R>>;

impl<R> Stop<R> {
    /// The same, with another refusal.
    pub(crate) fn map<S>(self, of: impl FnOnce(R) -> S) -> Stop<S> {
        match self {
            Stop::Refused(refusal) => Stop::Refused(of(refusal)),
            Stop::Fault(fault) => Stop::Fault(fault),
        }
    }
}

impl<R> From<Fault> for Stop<R> {
    fn from(fault: Fault) -> Stop<R> {
        Stop::Fault(fault)
    }
}

/// Parts an answer, which may be a refusal, from a fault.
pub(crate) fn answer<T, R>(ruling: Ruling<T, R>) -> Read<Result<T, R>> {
    match ruling {
        Ok(done) => Ok(Ok(done)),
        Err(Stop::Refused(refusal)) => Ok(Err(refusal)),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

/// Ends a rule with a refusal. Only allowed before the first change.
pub(crate) fn refuse<T, R>(refusal: R) -> Ruling<T, R> {
    Err(Stop::Refused(refusal))
}

/// One command being applied.
pub(crate) struct Step<'a> {
    /// Engine time, on which durations run.
    pub(crate) now: Timestamp,
    /// Wall time, with which given instants are compared and which people are shown.
    pub(crate) wall: Timestamp,
    pub(crate) records: &'a mut dyn MutableRecords,
    pub(crate) locks: &'a mut LockTable,
    pub(crate) rates: &'a mut RateBuckets,
    pub(crate) settlements: &'a mut Settlements,
    /// The last use of queues that left no trace on disk.
    pub(crate) used_at: &'a BTreeMap<QueueId, Timestamp>,
    pub(crate) effects: Vec<Effect>,
    numbers: Option<Numbers>,
    /// Of the queues that the command has touched; nearly always one.
    counters: Vec<(QueueId, QueueCounters)>,
    /// The queues that the command deletes.
    pub(crate) gone: Vec<QueueId>,
    changes: usize,
    /// Messages that have joined a run, those of earlier steps of its transaction among them.
    pub(crate) joined: usize,
    /// Room of workflows that it has closed.
    pub(crate) rooms: OpenRooms,
}

/// Room for tickets between two sequence numbers. Both fit into 64 bits, because sequence numbers of one partition end before
/// 2^48; the partition in the bits above them says nothing of an order.
const TICKETS_BITS: u32 = 15;

impl<'a> Step<'a> {
    pub(crate) fn new(
        now: ClockInstants,
        records: &'a mut dyn MutableRecords,
        locks: &'a mut LockTable,
        rates: &'a mut RateBuckets,
        settlements: &'a mut Settlements,
        used_at: &'a BTreeMap<QueueId, Timestamp>,
    ) -> Step<'a> {
        let (effects, counters) = (Vec::new(), Vec::new());
        let ClockInstants { engine: now, wall } = now;
        let (numbers, gone, changes, joined, rooms) = (None, Vec::new(), 0, 0, OpenRooms::default());
        Step {
            now,
            wall,
            records,
            locks,
            rates,
            settlements,
            used_at,
            effects,
            numbers,
            counters,
            gone,
            changes,
            joined,
            rooms,
        }
    }

    /// Another command at the same instant, within this one: what both let join is bounded together.
    pub(crate) fn next_step(&mut self) -> Step<'_> {
        let (now, joined) = (self.clocks(), self.joined);
        let next = Step::new(now, self.records, self.locks, self.rates, self.settlements, self.used_at);
        Step { joined, ..next }
    }

    /// What both clocks show.
    pub(crate) fn clocks(&self) -> ClockInstants {
        ClockInstants { engine: self.now, wall: self.wall }
    }

    /// How many rows the command has changed so far; a refused command has changed none.
    pub(crate) fn changes(&self) -> usize {
        self.changes
    }

    /// Writes the counters the command has touched, and gives up what it causes.
    pub(crate) fn finish(mut self) -> Read<Vec<Effect>> {
        if let Some(numbers) = self.numbers.take() {
            self.records.write(Change::Numbers(numbers))?;
        }
        self.counters.sort_unstable_by_key(|(queue, _)| *queue);
        for (queue, counters) in std::mem::take(&mut self.counters) {
            assert!(
                counters.counts.conserved(),
                "every accepted message is accounted for: {:?}",
                counters.counts
            );
            self.records.write(Change::Counters(queue, Box::new(counters)))?;
        }
        Ok(self.effects)
    }

    pub(crate) fn write(&mut self, change: Change) -> Read<()> {
        self.changes += 1;
        self.records.write(change)
    }

    pub(crate) fn write_message(&mut self, key: MessageKey, record: Option<Arc<MessageRecord>>) -> Read<()> {
        self.changes += 1;
        self.records.write_message(key, record)
    }

    pub(crate) fn update_message(
        &mut self,
        key: MessageKey,
        found: Arc<MessageRecord>,
        change: &mut dyn FnMut(&mut MessageRecord),
    ) -> Read<Arc<MessageRecord>> {
        self.changes += 1;
        self.records.update_message(key, found, change)
    }

    pub(crate) fn write_workflow(&mut self, key: &WorkflowKey, record: Option<WorkflowRecord>) -> Read<()> {
        self.changes += 1;
        self.records.write_workflow(key, record)
    }

    pub(crate) fn write_content(&mut self, key: MessageKey, content: Option<MessageContent>) -> Read<()> {
        self.changes += 1;
        self.records.write_content(key, content)
    }

    pub(crate) fn write_ready(&mut self, key: &WorkflowKey, ticket: u64, is_ready: bool) -> Read<()> {
        self.changes += 1;
        self.records.write_ready(key, ticket, is_ready)
    }

    pub(crate) fn write_line(
        &mut self,
        key: &WorkflowKey,
        rank: u64,
        entry: Option<SequenceNumber>,
    ) -> Read<()> {
        self.changes += 1;
        self.records.write_line(key, rank, entry)
    }

    pub(crate) fn write_holding(&mut self, key: &WorkflowKey, holding: Option<Holding>) -> Read<()> {
        self.changes += 1;
        self.records.write_holding(key, holding)
    }

    pub(crate) fn queue_named(&self, name: &QueueName) -> Read<Option<Arc<QueueRecord>>> {
        self.records.queue_named(name)
    }

    /// The queue of a name, or a refusal that names it.
    pub(crate) fn queue_or<R>(
        &self,
        name: &QueueName,
        refusal: impl FnOnce(QueueName) -> R,
    ) -> Ruling<Arc<QueueRecord>, R> {
        self.queue_named(name)?.ok_or_else(|| Stop::Refused(refusal(name.clone())))
    }

    pub(crate) fn queue(&self, id: QueueId) -> Read<Arc<QueueRecord>> {
        Ok(self.records.queue(id)?.expect("a workflow's queue exists as long as the workflow"))
    }

    /// The queue's counters, to be changed: a use of the queue.
    #[inline]
    pub(crate) fn counters(&mut self, queue: QueueId) -> Read<&mut QueueCounters> {
        let now = self.now;
        let counters = self.counters_unused(queue)?;
        counters.used_at = now;
        Ok(counters)
    }

    /// The queue's counters, to be changed by what is no use of the queue.
    #[inline]
    pub(crate) fn counters_unused(&mut self, queue: QueueId) -> Read<&mut QueueCounters> {
        self.changes += 1;
        let at = match self.counters.first() {
            Some((first, _)) if *first == queue => 0,
            _ => self.place_of_counters(queue)?,
        };
        Ok(&mut self.counters[at].1)
    }

    /// Where the counters of a queue are, which are read if the command has not touched it yet.
    fn place_of_counters(&mut self, queue: QueueId) -> Read<usize> {
        if let Some(at) = self.counters.iter().position(|(touched, _)| *touched == queue) {
            return Ok(at);
        }
        self.counters.push((queue, self.records.counters(queue)?));
        Ok(self.counters.len() - 1)
    }

    /// The queue's counters, with what the command has changed so far.
    pub(crate) fn counts(&self, queue: QueueId) -> Read<Counts> {
        match self.counters.iter().find(|(touched, _)| *touched == queue) {
            Some((_, counters)) => Ok(counters.counts),
            None => Ok(self.records.counters(queue)?.counts),
        }
    }

    /// Whether a queue keeps as many dead letters as it may.
    pub(crate) fn has_all_dead_letters(&self, queue: &QueueRecord) -> Read<bool> {
        Ok(self.counts(queue.id)?.dead_lettered >= queue.options.dead_letters_max)
    }

    /// Whether one message more may be stored in a queue by what drains it.
    pub(crate) fn has_drain_room(&self, queue: &QueueRecord) -> Read<bool> {
        Ok(self.counts(queue.id)?.limited() < queue.options.drain_max())
    }

    /// Before a lock ends: whoever waited because there were as many as there may be can go on.
    pub(crate) fn note_locks_freed(&mut self) {
        if self.locks.len() >= limits::LOCKS_MAX {
            self.effects.push(Effect::LocksFreed);
        }
    }

    /// Forgets what is kept in memory of a queue that is gone.
    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        self.counters.retain(|(touched, _)| *touched != queue);
        self.gone.push(queue);
    }

    pub(crate) fn numbers(&mut self) -> Read<&mut Numbers> {
        if self.numbers.is_none() {
            self.numbers = Some(self.records.numbers()?);
        }
        self.changes += 1;
        Ok(self.numbers.as_mut().expect("they were just loaded"))
    }

    /// The number the next accepted message gets.
    pub(crate) fn peek_sequence(&self) -> Read<u64> {
        let numbers = match self.numbers {
            Some(numbers) => numbers,
            None => self.records.numbers()?,
        };
        Ok(numbers.next_sequence.max(1))
    }

    pub(crate) fn next_sequence(&mut self) -> Read<SequenceNumber> {
        self.next_sequences(1)
    }

    /// Uses up so many numbers, each the next; the first of them.
    pub(crate) fn next_sequences(&mut self, count: u64) -> Read<SequenceNumber> {
        let next = self.peek_sequence()?;
        let in_partition = next % limits::NUMBER_END;
        assert!(
            0 < in_partition && in_partition + count <= limits::NUMBER_END,
            "a send is refused before the sequence numbers are used up"
        );
        self.numbers()?.next_sequence = next + count;
        Ok(SequenceNumber::new(next))
    }

    /// A place behind everything that is ready. It is odd, and grows with the sequence numbers, so that a message that
    /// comes back finds a place where it was.
    pub(crate) fn next_ticket(&mut self) -> Read<u64> {
        let least = (self.peek_sequence()? % limits::NUMBER_END) << TICKETS_BITS;
        let numbers = self.numbers()?;
        numbers.next_ticket = (numbers.next_ticket + 1).max(least) | 1;
        Ok(numbers.next_ticket)
    }

    /// The place of a message that is a workflow of its own and was handed out before: before whatever was accepted after
    /// it. It is even, so nobody else has it.
    pub(crate) fn former_ticket(sequence: SequenceNumber) -> u64 {
        (sequence.get() % limits::NUMBER_END + 1) << TICKETS_BITS
    }

    pub(crate) fn message(
        &self,
        queue: QueueId,
        sequence: SequenceNumber,
    ) -> Read<Option<Arc<MessageRecord>>> {
        self.records.message(MessageKey { queue, sequence })
    }

    /// A message that must be there, because a row points at it.
    pub(crate) fn message_listed(
        &self,
        queue: QueueId,
        sequence: SequenceNumber,
    ) -> Read<Arc<MessageRecord>> {
        Ok(self.message(queue, sequence)?.expect("every listed message is stored"))
    }

    pub(crate) fn set_reminder(&mut self, due: impl Into<Due>, queue: QueueId, what: Remind) -> Read<()> {
        self.write(Change::Reminder(Reminder { due: due.into(), queue, what }, true))
    }

    pub(crate) fn drop_reminder(&mut self, due: impl Into<Due>, queue: QueueId, what: Remind) -> Read<()> {
        self.write(Change::Reminder(Reminder { due: due.into(), queue, what }, false))
    }

    /// Lets those who wait for messages of the queue look again; told once for all that a command brings in a row.
    pub(crate) fn note_work(&mut self, queue: &QueueRecord) {
        if !matches!(self.effects.last(), Some(Effect::Work(name)) if *name == queue.name) {
            self.effects.push(Effect::Work(queue.name.clone()));
        }
    }

    /// Tells whoever listens, after the commit.
    pub(crate) fn emit(
        &mut self,
        queue: &QueueName,
        workflow: Option<&WorkflowId>,
        sequence: Option<SequenceNumber>,
        kind: EventKind,
    ) {
        self.effects.push(Effect::Event(Event {
            at: self.wall,
            queue: queue.clone(),
            workflow: workflow.cloned(),
            sequence_number: sequence,
            kind,
        }));
    }
}
