//! How many messages wait early once those of a command are stored: what they reach in order takes no room.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::engine::rules::due::Due;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::record::Status;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;
use crate::id::MessageId;
use crate::id::Position;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;

/// A message of the command that may be sent.
struct Arrival {
    place: Place,
    message_id: Option<MessageId>,
    /// Its bytes, if it is early as long as the run has not reached it: a scheduled message is not before it is due.
    early_bytes: Option<u64>,
}

/// The run of one workflow as it will be once the messages of the command that were judged so far are stored.
///
/// As long as there is room for all of them to wait, nobody looks how far the run will reach.
pub(crate) struct ProjectedRun {
    through: u64,
    tail: Option<MessageId>,
    early: u64,
    early_bytes: u64,
    /// Links that the run has followed: messages that name each other in a circle are followed once around.
    followed: BTreeSet<SequenceNumber>,
    /// Messages of the command that the run has not reached.
    waiting: BTreeMap<Place, Arrival>,
    /// Messages of the command for which nobody has looked yet how far the run will reach: the first, which nearly always is the
    /// only one, and others. If it reaches none of them, they are as many early ones with as many bytes.
    unfollowed: (Option<Arrival>, Vec<Arrival>),
    unfollowed_early: u64,
    unfollowed_bytes: u64,
}

impl ProjectedRun {
    pub(crate) fn new(workflow: &OpenWorkflow) -> ProjectedRun {
        let record = &workflow.record;
        ProjectedRun {
            through: record.through,
            tail: record.rare.tail.clone(),
            early: record.early,
            early_bytes: record.early_bytes,
            followed: BTreeSet::new(),
            waiting: BTreeMap::new(),
            unfollowed: (None, Vec::new()),
            unfollowed_early: 0,
            unfollowed_bytes: 0,
        }
    }

    /// Adds a message of the command; false when it would have to wait early, and there is no room.
    pub(crate) fn add(
        &mut self,
        step: &Step<'_>,
        workflow: &OpenWorkflow,
        message: &NewMessage,
    ) -> Read<bool> {
        let scheduled = Due::of_kept_back(message.kept_back, step.clocks()).is_some();
        let arrival = Arrival {
            place: message.place.clone(),
            message_id: message.message_id.clone(),
            early_bytes: (!scheduled).then_some(message.len() as u64),
        };
        let may_wait = !scheduled && !self.is_reached(workflow, &message.place);
        if may_wait {
            self.unfollowed_early += 1;
            self.unfollowed_bytes += message.len() as u64;
        }
        match &mut self.unfollowed {
            (first @ None, _) => *first = Some(arrival),
            (_, others) => others.push(arrival),
        }
        if !may_wait || self.has_room(workflow) {
            return Ok(true);
        }
        (self.unfollowed_early, self.unfollowed_bytes) = (0, 0);
        let (first, others) = std::mem::take(&mut self.unfollowed);
        for arrival in first.into_iter().chain(others) {
            self.follow(step, workflow, arrival)?;
        }
        Ok(!self.waiting.contains_key(&message.place) || self.has_room(workflow))
    }

    /// Whether a message at this place is in the run as soon as it is stored.
    fn is_reached(&self, workflow: &OpenWorkflow, place: &Place) -> bool {
        match place {
            Place::Position(position) => position.get() <= self.through + 1,
            Place::After(predecessor) => workflow.is_chained() && *predecessor == self.tail,
            Place::Arrival => true,
        }
    }

    fn has_room(&self, workflow: &OpenWorkflow) -> bool {
        let options = &workflow.queue.options;
        self.early + self.unfollowed_early <= options.early_max
            && self.early_bytes + self.unfollowed_bytes <= options.early_bytes_max
    }

    /// Stores a message in thought, and lets the run go on as far as it will.
    fn follow(&mut self, step: &Step<'_>, workflow: &OpenWorkflow, arrival: Arrival) -> Read<()> {
        self.count(arrival.early_bytes, true);
        self.waiting.insert(arrival.place.clone(), arrival);
        for _ in 0..limits::EXTEND_MAX {
            let reached = match workflow.is_chained() {
                true => self.extend_chain(step, workflow)?,
                false => self.extend(step, workflow)?,
            };
            if !reached {
                break;
            }
        }
        Ok(())
    }

    fn extend(&mut self, step: &Step<'_>, workflow: &OpenWorkflow) -> Read<bool> {
        let next = self.through + 1;
        if let Some(mark) = workflow.mark_at(step, next)? {
            self.through = mark.to;
            return Ok(true);
        }
        let place = Position::new(next).ok().map(Place::Position);
        if place.is_some_and(|place| self.reach_waiting(&place).is_some()) {
            self.through = next;
            return Ok(true);
        }
        match workflow.line_from(step, next)? {
            Some((rank, _, message)) if rank == next => {
                self.count(matches!(message.status, Status::Ready).then_some(message.bytes), false);
                self.through = next;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn extend_chain(&mut self, step: &Step<'_>, workflow: &OpenWorkflow) -> Read<bool> {
        if let Some(arrival) = self.reach_waiting(&Place::After(self.tail.clone())) {
            self.tail = arrival.message_id;
            return Ok(true);
        }
        let Some(link) = step.records.link(&workflow.key, self.tail.as_ref())? else {
            return Ok(false);
        };
        let (Some(sequence), None) = (link.sequence, link.rank) else {
            return Ok(false);
        };
        if !self.followed.insert(sequence) {
            return Ok(false);
        }
        if link.settled.is_none() {
            let message = step.message_listed(workflow.key.queue, sequence)?;
            self.count(matches!(message.status, Status::Ready).then_some(message.bytes), false);
        }
        self.tail = link.message_id;
        Ok(true)
    }

    fn reach_waiting(&mut self, place: &Place) -> Option<Arrival> {
        let arrival = self.waiting.remove(place)?;
        self.count(arrival.early_bytes, false);
        Some(arrival)
    }

    /// Counts an early message, or one that is not early any more.
    fn count(&mut self, bytes: Option<u64>, early: bool) {
        let Some(bytes) = bytes else { return };
        if early {
            self.early += 1;
            self.early_bytes += bytes;
        } else {
            self.early -= 1;
            self.early_bytes -= bytes;
        }
    }
}
