//! The ledger: accepted messages, held locks, remembered IDs and sums.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::clock::Timestamp;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::Due;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::engine::tests::simulation::ledger::entry::Entry;
use crate::engine::tests::simulation::ledger::entry::Hold;
use crate::engine::tests::simulation::ledger::event_listener::EventListener;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::message::KeptBack;
use crate::message::NewMessage;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// How many messages of a queue were accepted and how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) accepted: u64,
    pub(crate) completed: u64,
    pub(crate) cancelled: u64,
    pub(crate) purged: u64,
    pub(crate) expired: u64,
}

/// A queue as its makers know it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) options: QueueOptions,
    /// Whether expired messages of it were dropped at any time.
    pub(crate) has_dropped: bool,
    /// Whether it has had a history ever since it was created.
    pub(crate) has_always_history: bool,
    /// Whether its workflows have waited at any time for what was set aside.
    pub(crate) has_waited: bool,
    /// The highest delivery count it has ever allowed.
    pub(crate) count_max_ever: u32,
    /// Whether exhausted messages may ever have found no room among the dead letters.
    pub(crate) has_few_dead: bool,
    pub(crate) sums: Sums,
}

/// A settlement, what was answered to it, and when.
type Done = (Settlement, Vec<Receipt>, Timestamp);

/// Everything that was answered.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) queues: BTreeMap<QueueName, Known>,
    pub(crate) entries: BTreeMap<SequenceNumber, Entry>,
    pub(crate) holds: BTreeMap<LockToken, Hold>,
    pub(crate) ids: BTreeMap<(QueueName, MessageId), (SequenceNumber, Timestamp)>,
    /// Of these, those whose message may have been purged, so that nobody knows whether they are remembered.
    pub(crate) unsure_ids: BTreeSet<(QueueName, MessageId)>,
    /// What was answered under idempotency keys: the request's digest, the receipts, and until when that is kept.
    pub(crate) answers: BTreeMap<(QueueName, String), (u64, Vec<Receipt>, Timestamp)>,
    /// The same of topics: until when it is kept.
    pub(crate) published: BTreeMap<(QueueName, String), Timestamp>,
    /// Who asked for what on record, and whether it was refused, in the order of the answers.
    pub(crate) on_record: Vec<(String, QueueName, bool)>,
    /// Settlements that were done, with what was answered, and when.
    pub(crate) done: BTreeMap<(LockToken, SequenceNumber, u32), Done>,
    /// The same of runs, the last time.
    pub(crate) done_runs: BTreeMap<LockToken, (RunSettlement, Vec<Receipt>, Timestamp)>,
    /// The highest number given so far.
    pub(crate) last: u64,
    /// Purges whose victims have not been looked for.
    pub(crate) has_purged: bool,
    /// What was told in events.
    pub(crate) event_listener: EventListener,
    pub(crate) facts: Vec<Fact>,
    pub(crate) now: Timestamp,
    pub(crate) wall: Timestamp,
    /// The latest that the wall clock has shown and was believed.
    pub(crate) wall_max: Timestamp,
}

impl Ledger {
    /// A message was sent, and this was answered.
    pub(crate) fn note_sent(&mut self, queue: &QueueName, message: &NewMessage, receipt: Receipt) {
        let Some(known) = self.queues.get_mut(queue) else { return };
        let options = known.options.clone();
        let id = message.message_id.clone().map(|id| (queue.clone(), id));
        let remembered = id.as_ref().and_then(|id| self.ids.get(id)).filter(|(_, until)| self.now < *until);
        let remembered = remembered.filter(|_| options.duplicate_window.is_some()).map(|(first, _)| *first);
        let is_unsure = id.as_ref().is_some_and(|id| self.unsure_ids.contains(id));
        let remembered = match receipt {
            Receipt::Duplicate(_) => remembered,
            _ => remembered.filter(|_| !is_unsure),
        };
        let is_pending =
            receipt.sequence_number().is_some_and(|first| self.is_same_place(first, queue, message));
        let (last, queue) = (self.last, queue.clone());
        self.facts.push(Fact::Sent { receipt, last, remembered, is_pending });
        let (Receipt::Accepted(sequence) | Receipt::DeadLettered(sequence)) = receipt else { return };
        let is_dead = matches!(receipt, Receipt::DeadLettered(_));
        self.queues.get_mut(&queue).expect("it was just found").sums.accepted += 1;
        self.enter(queue, message, sequence, is_dead, &options);
    }

    pub(crate) fn enter(
        &mut self,
        queue: QueueName,
        message: &NewMessage,
        sequence: SequenceNumber,
        is_dead: bool,
        options: &QueueOptions,
    ) {
        let due = match message.kept_back {
            Some(KeptBack::Until(at)) if at > self.wall => Some(Due::wall(at)),
            Some(KeptBack::For(span)) if !span.is_zero() => Some(Due::engine(self.now + span)),
            _ => None,
        };
        let lives = [message.time_to_live, options.time_to_live].into_iter().flatten().min();
        let stream = match &message.workflow_id {
            Some(id) if options.order != Order::None => WorkflowRef::Named(id.clone()),
            _ => WorkflowRef::Single(sequence),
        };
        let entry = Entry {
            queue: queue.clone(),
            stream,
            place: message.place.clone(),
            message_id: message.message_id.clone(),
            scheduled_at: due.filter(|_| !is_dead),
            expires_at: lives
                .map(|lives| match due {
                    Some(due) if due.is_of_wall() => (self.now + lives, Some(due.at() + lives)),
                    Some(due) => (due.at() + lives, None),
                    None => (self.now + lives, None),
                })
                .filter(|_| !is_dead),
            lives: message.time_to_live,
            count: (0, 0),
            not_before: due,
            is_excused: false,
            is_asked: false,
            is_hidden: false,
            may_return: false,
            end: None,
        };
        self.last = self.last.max(sequence.get());
        self.entries.insert(sequence, entry);
        if let (Some(id), Some(window)) = (&message.message_id, options.duplicate_window) {
            self.unsure_ids.remove(&(queue.clone(), id.clone()));
            self.ids.insert((queue, id.clone()), (sequence, self.now + window));
        }
    }

    /// Whether the message with this number stands where this one should.
    fn is_same_place(&self, first: SequenceNumber, queue: &QueueName, message: &NewMessage) -> bool {
        let Some(entry) = self.entries.get(&first) else { return false };
        entry.queue == *queue
            && entry.end.is_none()
            && entry.place == message.place
            && entry.message_id == message.message_id
            && entry.stream.workflow_id() == message.workflow_id.as_ref()
    }

    pub(crate) fn sums(&mut self, queue: &QueueName) -> Option<&mut Sums> {
        self.queues.get_mut(queue).map(|known| &mut known.sums)
    }

    /// Writes down how messages ended of which nobody was told.
    pub(crate) fn note_gone(&mut self, gone: Vec<(SequenceNumber, Option<End>)>) {
        self.has_purged = false;
        for (sequence, end) in gone {
            self.end(sequence, end.unwrap_or(End::Expired));
        }
    }

    pub(crate) fn end(&mut self, sequence: SequenceNumber, end: End) {
        if matches!(end, End::Cancelled | End::Purged) {
            self.ids.retain(|_, (known, _)| *known != sequence);
        }
        if let Some(entry) = self.entries.get_mut(&sequence) {
            entry.end.get_or_insert(end);
        }
    }

    /// A dead letter was put back: it is ready at once, and begins to live anew.
    pub(crate) fn note_put_back(&mut self, sequence: SequenceNumber) {
        if let Some(entry) = self.entries.get_mut(&sequence) {
            entry.is_excused = true;
            (entry.not_before, entry.scheduled_at) = (None, None);
            let longest = self.queues.get(&entry.queue).and_then(|known| known.options.time_to_live);
            let lives = entry.lives.into_iter().chain(longest).min();
            entry.expires_at = lives.map(|lives| (self.now + lives, None));
        }
    }

    /// A queue is gone with all that was in it.
    pub(crate) fn forget_queue(&mut self, queue: &QueueName) {
        self.queues.remove(queue);
        self.ids.retain(|(of, _), _| of != queue);
        self.answers.retain(|(of, _), _| of != queue);
        self.holds.retain(|_, hold| hold.queue != *queue);
        for entry in self.entries.values_mut().filter(|entry| entry.queue == *queue) {
            entry.end.get_or_insert(End::QueueGone);
        }
    }
}
