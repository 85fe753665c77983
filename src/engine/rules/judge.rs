//! Whether a message may be sent, and what becomes of it: decided before anything is changed.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::rules::early::ProjectedRun;
use crate::engine::rules::line::is_dead;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::SendRefusal;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::lookup::Lookup;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::LatePolicy;
use crate::queue::Order;

/// Reason of a dead letter whose place the gap policy or an operator had given up.
pub(crate) const ARRIVED_AFTER_GAP: &str = "arrived_after_gap";
/// Reason of a dead letter whose position was completed before it came.
pub(crate) const ARRIVED_LATE: &str = "arrived_late";

/// What becomes of a message that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    Duplicate(SequenceNumber),
    AlreadySettled,
    DeadLetter(&'static str),
}

/// What a place is already used for, in the rows or by an earlier message of the same command.
enum PlaceUse {
    Free,
    Pending(Pending),
    /// In after-order: the message with this ID stands behind another predecessor.
    Elsewhere(SequenceNumber),
    Completed,
    GivenUp,
}

/// The message that has a place.
#[derive(Clone)]
struct Pending {
    by: SequenceNumber,
    message_id: Option<MessageId>,
    /// Its body, if it is one of the same command; else it is stored.
    body: Option<Bytes>,
}

impl PlaceUse {
    fn stored(by: SequenceNumber, message_id: Option<MessageId>) -> PlaceUse {
        PlaceUse::Pending(Pending { by, message_id, body: None })
    }
}

/// Judges the messages of one command, each in the light of those before it.
#[derive(Default)]
pub(crate) struct Judge {
    accepted: u64,
    /// How many messages the command adds to each queue; those that it completes are taken off.
    growth: BTreeMap<QueueId, i64>,
    /// How many dead letters the command adds to each queue.
    dead: BTreeMap<QueueId, u64>,
    /// Whether what is sent may exceed a queue's limit by the part that is kept for drains.
    is_drain: bool,
    /// The messages that the command completes, and so their places.
    completed: Option<(QueueId, BTreeSet<SequenceNumber>)>,
    ids: BTreeMap<(Arc<str>, MessageId), SequenceNumber>,
    workflows: Lookup<WorkflowKey, JudgedWorkflow>,
    chained: BTreeMap<(WorkflowKey, MessageId), SequenceNumber>,
}

/// What the command brings to a workflow.
struct JudgedWorkflow {
    /// How far it goes on with it.
    run: ProjectedRun,
    /// The place that the first message of the command takes: for most workflows it is the only one.
    first: Option<(Place, Pending)>,
    /// Those that others take.
    others: BTreeMap<Place, Pending>,
}

impl JudgedWorkflow {
    fn new(workflow: &OpenWorkflow) -> JudgedWorkflow {
        JudgedWorkflow { run: ProjectedRun::new(workflow), first: None, others: BTreeMap::new() }
    }

    /// The message of the command that takes a place.
    fn at(&self, place: &Place) -> Option<&Pending> {
        match &self.first {
            Some((first, pending)) if first == place => Some(pending),
            _ => self.others.get(place),
        }
    }

    fn take(&mut self, place: Place, pending: Pending) {
        match self.first {
            None => self.first = Some((place, pending)),
            Some(_) => drop(self.others.insert(place, pending)),
        }
    }
}

impl Judge {
    /// Judges what a completion sends, as if the messages of a queue that it completes were completed already.
    pub(crate) fn after_completing(queue: QueueId, messages: &[SequenceNumber]) -> Judge {
        let count = i64::try_from(messages.len()).expect("a command completes a limited number of messages");
        Judge {
            growth: BTreeMap::from([(queue, -count)]),
            completed: Some((queue, messages.iter().copied().collect())),
            ..Judge::draining()
        }
    }

    /// Judges what drains a queue: it may exceed the limit by one eighth.
    pub(crate) fn draining() -> Judge {
        Judge { is_drain: true, ..Judge::default() }
    }

    /// Judges messages for one queue.
    pub(crate) fn judge(
        &mut self,
        step: &Step<'_>,
        queue: &Arc<QueueRecord>,
        messages: &[NewMessage],
    ) -> Ruling<Vec<Verdict>, SendRefusal> {
        let mut verdicts = Vec::with_capacity(messages.len());
        if queue.options.order.has_places() {
            self.workflows.reserve(messages.len());
        }
        for (index, message) in messages.iter().enumerate() {
            check_fit(queue, index, message).or_else(refuse)?;
            let verdict = self.judge_one(step, queue, index, message)?;
            self.accepted += u64::from(matches!(verdict, Verdict::Accept | Verdict::DeadLetter(_)));
            verdicts.push(verdict);
        }
        if !self.has_queue_room(step, queue, &verdicts)? {
            for (message, verdict) in messages.iter().zip(&verdicts) {
                self.judge_queue_room(step, queue, message, *verdict)?;
            }
        }
        if step.peek_sequence()? % limits::NUMBER_END + self.accepted >= limits::NUMBER_END {
            return refuse(SendRefusal::NumbersUsedUp);
        }
        Ok(verdicts)
    }

    /// Whether the queue has room for all that is accepted, without a look at each; then they are counted.
    fn has_queue_room(
        &mut self,
        step: &Step<'_>,
        queue: &Arc<QueueRecord>,
        verdicts: &[Verdict],
    ) -> Read<bool> {
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::DeadLetter(_))) {
            return Ok(false);
        }
        let accepted = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Accept)).count();
        let growth = self.growth.entry(queue.id).or_default();
        let then = growth.saturating_add_unsigned(accepted as u64);
        let has_room =
            step.counts(queue.id)?.limited().saturating_add_signed(then) <= queue.options.messages_max;
        if has_room {
            *growth = then;
        }
        Ok(has_room)
    }

    /// Whether the queue has room for one message more.
    fn judge_queue_room(
        &mut self,
        step: &Step<'_>,
        queue: &Arc<QueueRecord>,
        message: &NewMessage,
        verdict: Verdict,
    ) -> Ruling<(), SendRefusal> {
        let counts = step.counts(queue.id)?;
        match verdict {
            Verdict::Duplicate(_) | Verdict::AlreadySettled => Ok(()),
            Verdict::DeadLetter(_) => {
                let dead = self.dead.entry(queue.id).or_default();
                *dead += 1;
                match counts.dead_lettered + *dead > queue.options.dead_letters_max {
                    true => refuse(SendRefusal::QueueFull { stored: counts.dead_lettered }),
                    false => Ok(()),
                }
            }
            Verdict::Accept => {
                let growth = self.growth.entry(queue.id).or_default();
                *growth += 1;
                let stored = counts.limited();
                let then = stored.saturating_add_signed(*growth);
                if *growth <= 0 || then <= queue.options.messages_max {
                    return Ok(());
                }
                let may_exceed = then <= queue.options.drain_max()
                    && (self.is_drain || is_waited_for(step, queue, message)?);
                if may_exceed { Ok(()) } else { refuse(SendRefusal::QueueFull { stored }) }
            }
        }
    }

    fn judge_one(
        &mut self,
        step: &Step<'_>,
        queue: &Arc<QueueRecord>,
        index: usize,
        message: &NewMessage,
    ) -> Ruling<Verdict, SendRefusal> {
        let sequence = SequenceNumber::new(step.peek_sequence()? + self.accepted);
        if let Some(first) = self.first_with_id(step, queue, message)? {
            return Ok(Verdict::Duplicate(first));
        }
        let verdict = match ordered_workflow(queue, message) {
            Some(id) => self.judge_place(step, queue, index, message, id, sequence)?,
            None => Verdict::Accept,
        };
        if let (Verdict::Accept | Verdict::DeadLetter(_), Some(id), Some(_)) =
            (verdict, &message.message_id, queue.options.duplicate_window)
        {
            self.ids.insert((Arc::from(queue.name.as_str()), id.clone()), sequence);
        }
        Ok(verdict)
    }

    /// The message with the same ID that was accepted within the queue's window.
    fn first_with_id(
        &self,
        step: &Step<'_>,
        queue: &QueueRecord,
        message: &NewMessage,
    ) -> Ruling<Option<SequenceNumber>, SendRefusal> {
        let (Some(id), Some(_)) = (&message.message_id, queue.options.duplicate_window) else {
            return Ok(None);
        };
        if let Some(sequence) = self.ids.get(&(Arc::from(queue.name.as_str()), id.clone())) {
            return Ok(Some(*sequence));
        }
        let known = step.records.duplicate(queue.id, id)?;
        Ok(known.filter(|known| step.now < known.until).map(|known| known.sequence))
    }

    fn judge_place(
        &mut self,
        step: &Step<'_>,
        queue: &Arc<QueueRecord>,
        index: usize,
        message: &NewMessage,
        id: &WorkflowId,
        sequence: SequenceNumber,
    ) -> Ruling<Verdict, SendRefusal> {
        let workflow = OpenWorkflow::open(step, queue, WorkflowRef::Named(id.clone()))?;
        let judged =
            self.workflows.get_or_insert_with(workflow.key.clone(), || JudgedWorkflow::new(&workflow));
        let used = match judged.at(&message.place) {
            Some(pending) => PlaceUse::Pending(pending.clone()),
            None => match (workflow.use_of(step, message)?, &self.completed) {
                (used, None) => used,
                (used, Some(completed)) => after_completion(completed, &workflow, message, used),
            },
        };
        match used {
            PlaceUse::Free => {}
            PlaceUse::Pending(pending) => return judge_pending(step, queue, index, message, pending),
            PlaceUse::Elsewhere(by) => return refuse(SendRefusal::PlaceTaken { index, by }),
            PlaceUse::Completed => return judge_late(queue, index),
            PlaceUse::GivenUp => return Ok(Verdict::DeadLetter(ARRIVED_AFTER_GAP)),
        }
        if let (true, Some(id)) = (workflow.is_chained(), &message.message_id) {
            let earlier = self.chained.insert((workflow.key.clone(), id.clone()), sequence);
            if let Some(by) = earlier {
                return refuse(SendRefusal::PlaceTaken { index, by });
            }
        }
        if !judged.run.add(step, &workflow, message)? {
            return refuse(SendRefusal::WorkflowFull { index, early: workflow.record.early });
        }
        let (message_id, body) = (message.message_id.clone(), Some(message.body.clone()));
        judged.take(message.place.clone(), Pending { by: sequence, message_id, body });
        // Its room is for the workflow of the next message.
        step.rooms.give_back(workflow);
        Ok(Verdict::Accept)
    }
}

/// What a place is used for once the command has completed what it completes.
fn after_completion(
    (of, all): &(QueueId, BTreeSet<SequenceNumber>),
    workflow: &OpenWorkflow,
    message: &NewMessage,
    used: PlaceUse,
) -> PlaceUse {
    let is_completed = |by: &SequenceNumber| *of == workflow.queue.id && all.contains(by);
    match used {
        // Behind a predecessor the place stays that of the message that followed it.
        PlaceUse::Pending(pending)
            if is_completed(&pending.by)
                && (!workflow.is_chained() || pending.message_id == message.message_id) =>
        {
            PlaceUse::Completed
        }
        PlaceUse::Elsewhere(by) if is_completed(&by) => PlaceUse::GivenUp,
        used => used,
    }
}

/// The workflow in which a message has a place; `None` when it has only its time of arrival.
fn ordered_workflow<'a>(queue: &QueueRecord, message: &'a NewMessage) -> Option<&'a WorkflowId> {
    message.workflow_id.as_ref().filter(|_| queue.options.order.has_places())
}

/// Whether a message fills a place for which stored ones wait.
fn is_waited_for(step: &Step<'_>, queue: &Arc<QueueRecord>, message: &NewMessage) -> Read<bool> {
    let Some(id) = ordered_workflow(queue, message) else { return Ok(false) };
    let key = WorkflowKey { queue: queue.id, stream: WorkflowRef::Named(id.clone()) };
    match (&message.place, &message.message_id) {
        (Place::Position(position), _) => {
            Ok(step.records.line_from(&key, position.get().saturating_add(1))?.is_some())
        }
        (Place::After(_), Some(id)) => {
            let follower = step.records.link(&key, Some(id))?;
            let waits =
                |link: &ChainLink| link.sequence.is_some() && link.rank.is_none() && link.settled.is_none();
            Ok(follower.as_ref().is_some_and(waits))
        }
        _ => Ok(false),
    }
}

/// The place is pending: the same message again is answered, another one is refused.
fn judge_pending(
    step: &Step<'_>,
    queue: &QueueRecord,
    index: usize,
    message: &NewMessage,
    pending: Pending,
) -> Ruling<Verdict, SendRefusal> {
    let by = pending.by;
    let same = match (&message.message_id, pending.message_id) {
        (Some(new), Some(id)) => *new == id,
        (None, None) => match pending.body {
            Some(body) => body == message.body,
            None => {
                let stored = step.records.content(MessageKey { queue: queue.id, sequence: by })?;
                stored.is_some_and(|stored| stored.body == message.body)
            }
        },
        _ => false,
    };
    if same { Ok(Verdict::Duplicate(by)) } else { refuse(SendRefusal::PlaceTaken { index, by }) }
}

/// The place was completed: whatever comes for it is late.
fn judge_late(queue: &QueueRecord, index: usize) -> Ruling<Verdict, SendRefusal> {
    match queue.options.late {
        LatePolicy::Ignore => Ok(Verdict::AlreadySettled),
        LatePolicy::Refuse => refuse(SendRefusal::AlreadySettled { index }),
        LatePolicy::DeadLetter => Ok(Verdict::DeadLetter(ARRIVED_LATE)),
    }
}

/// Checks what the queue's options say of any message, and that its place fits the queue's order.
fn check_fit(queue: &QueueRecord, index: usize, message: &NewMessage) -> Result<(), SendRefusal> {
    let options = &queue.options;
    if message.body.len() > options.body_bytes_max {
        let (bytes, bytes_max) = (message.body.len(), options.body_bytes_max);
        return Err(SendRefusal::BodyTooLarge { index, bytes, bytes_max });
    }
    let mismatch = |detail: &str| Err(SendRefusal::PlaceMismatch { index, detail: detail.to_owned() });
    match (options.order, &message.place, &message.workflow_id) {
        (Order::None | Order::Arrival, Place::Arrival, _) => Ok(()),
        (Order::None | Order::Arrival, _, _) => mismatch("the queue takes no positions and no predecessors"),
        (_, Place::Arrival, None) => Ok(()),
        (_, _, None) => mismatch("a place needs a workflow ID"),
        (Order::Position { first }, Place::Position(position), Some(_)) => {
            check_first(first, *position, index)
        }
        (Order::Position { .. }, _, Some(_)) => mismatch("the queue needs a position"),
        (Order::After, Place::After(predecessor), Some(_)) => match &message.message_id {
            None => mismatch("the queue needs a message ID, so that successors can name it"),
            Some(id) if predecessor.as_ref() == Some(id) => {
                mismatch("the message names itself as predecessor")
            }
            Some(_) => Ok(()),
        },
        (Order::After, _, Some(_)) => {
            mismatch("the queue needs a predecessor, or to be told that it is the first")
        }
    }
}

fn check_first(first: Position, position: Position, index: usize) -> Result<(), SendRefusal> {
    if position < first {
        let detail = format!("position {position} is before {first}, the first position of the queue");
        return Err(SendRefusal::PlaceMismatch { index, detail });
    }
    Ok(())
}

impl OpenWorkflow {
    fn use_of(&self, step: &Step<'_>, message: &NewMessage) -> Ruling<PlaceUse, SendRefusal> {
        match &message.place {
            Place::Position(position) => self.use_of_position(step, position.get()),
            Place::After(predecessor) => {
                self.use_of_link(step, predecessor.as_ref(), message.message_id.as_ref())
            }
            Place::Arrival => Ok(PlaceUse::Free),
        }
    }

    fn use_of_position(&self, step: &Step<'_>, rank: u64) -> Ruling<PlaceUse, SendRefusal> {
        let in_line = match self.record.line {
            0 => None,
            _ => step.records.line_from(&self.key, rank)?,
        };
        let aside = match self.record.aside {
            0 => None,
            _ => step.records.aside_from(&self.key, rank)?,
        };
        let here = |entry: Option<(u64, SequenceNumber)>| entry.filter(|(at, _)| *at == rank);
        if let Some((_, sequence)) = here(in_line).or(here(aside)) {
            let pending = step.message_listed(self.key.queue, sequence)?;
            return Ok(PlaceUse::stored(sequence, pending.message_id.clone()));
        }
        if let Some(mark) = self.mark_at(step, rank)? {
            return Ok(if mark.how == SettlementKind::Completed {
                PlaceUse::Completed
            } else {
                PlaceUse::GivenUp
            });
        }
        Ok(if rank < self.record.cursor { PlaceUse::Completed } else { PlaceUse::Free })
    }

    fn use_of_link(
        &self,
        step: &Step<'_>,
        predecessor: Option<&MessageId>,
        id: Option<&MessageId>,
    ) -> Ruling<PlaceUse, SendRefusal> {
        if let Some(link) = step.records.link(&self.key, predecessor)? {
            return Ok(use_of_known_link(link, id));
        }
        let Some(id) = id else { return Ok(PlaceUse::Free) };
        if let Some(sequence) = step.records.waiting(&self.key, id)? {
            let pending = step.message_listed(self.key.queue, sequence)?;
            assert!(!is_dead(&pending), "a dead letter waits for no predecessor");
            return Ok(PlaceUse::Elsewhere(sequence));
        }
        let Some(rank) = self.rank_of_id(step, id)? else { return Ok(PlaceUse::Free) };
        // Where one with this ID was given up, the chain may end with it while another one stands before it.
        for rank in [Some(rank), self.rank_before_follower(step, id)?].into_iter().flatten() {
            // It follows another one, and successors could not say which of the two they mean.
            if let Some(ChainLink { sequence: Some(by), settled: None, .. }) = self.link_at(step, rank)? {
                return Ok(PlaceUse::Elsewhere(by));
            }
        }
        // A place that was given back is free, too, while the run is still shortened to what is before it.
        let is_given_back = self.record.rare.shortening.as_ref().is_some_and(|missing| rank == missing.rank);
        Ok(if is_given_back || self.record.is_beyond(rank) { PlaceUse::Free } else { PlaceUse::GivenUp })
    }
}

/// What the place behind a predecessor is used for, when somebody has followed it.
fn use_of_known_link(link: ChainLink, id: Option<&MessageId>) -> PlaceUse {
    match (link.sequence, link.settled) {
        (None, _) => PlaceUse::GivenUp,
        (Some(sequence), None) => PlaceUse::stored(sequence, link.message_id),
        // Another message followed this predecessor; it may be gone by now, but the place stays taken.
        (Some(sequence), Some(_)) if link.message_id.as_ref() != id => {
            PlaceUse::stored(sequence, link.message_id)
        }
        (Some(_), Some(SettlementKind::Completed)) => PlaceUse::Completed,
        (Some(_), Some(_)) => PlaceUse::GivenUp,
    }
}
