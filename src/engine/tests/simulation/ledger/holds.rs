//! Who holds what, as far as the holders know.

use crate::clock::Timestamp;
use crate::engine::rules::command::LockedMessage;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::ledger::entry::Entry;
use crate::engine::tests::simulation::ledger::entry::Hold;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::engine::tests::simulation::ledger::fact::Standing;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::token::LockToken;

/// How messages were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    InTurn,
    InRun,
    /// By number.
    Fetched,
}

impl Ledger {
    /// A message was handed out.
    pub(crate) fn note_delivered(&mut self, queue: &QueueName, handed: &LockedMessage, how: Received) {
        let (sequence, is_fetched) = (handed.sequence, how == Received::Fetched);
        let known = self.entries.get(&sequence).cloned();
        let stream = known.as_ref().map_or(WorkflowRef::Single(sequence), |entry| entry.stream.clone());
        let holders = self.holders(queue, &stream).filter(|token| *token != handed.token).collect();
        let delivery_count = handed.record.delivery_count;
        let entry = known.as_ref();
        self.facts.push(Fact::Delivered {
            queue: queue.clone(),
            sequence,
            token: handed.token,
            delivery_count,
            expected: entry.map_or((0, 0), Entry::next_count),
            ended: entry.and_then(|entry| entry.end),
            not_before: entry.and_then(|entry| entry.not_before),
            locked_until: handed.locked_until,
            expected_until: self.expected_until(queue, handed.token),
            holders,
            is_known: known.is_some(),
            is_fetched,
            is_excused: entry.is_some_and(|entry| entry.is_excused),
        });
        if let Some(entry) = self.entries.get_mut(&sequence) {
            entry.count = (delivery_count, delivery_count);
            entry.may_return = false;
            entry.scheduled_at = None;
            let waits = self.queues.get(queue).is_some_and(|known| known.has_waited) || entry.is_hidden;
            if is_fetched && waits {
                // Its workflow waits for it: it stands in its line again once it is fetched.
                entry.not_before = None;
            }
        }
        let hold = Hold {
            queue: queue.clone(),
            stream,
            until: handed.locked_until,
            is_whole: false,
            is_run: how == Received::InRun,
            out: Vec::new(),
            is_unsure: false,
        };
        let hold = self.holds.entry(handed.token).or_insert(hold);
        hold.out.push((sequence, delivery_count));
    }

    /// Until when a message is locked that is handed out under a token now.
    fn expected_until(&self, queue: &QueueName, token: LockToken) -> Option<Timestamp> {
        let granted = self.holds.get(&token).map(|hold| hold.until);
        granted.or_else(|| Some(self.now + self.queues.get(queue)?.options.lock))
    }

    /// Who certainly holds a workflow now.
    pub(crate) fn holders(&self, queue: &QueueName, stream: &WorkflowRef) -> impl Iterator<Item = LockToken> {
        let holds = self.holds.iter().filter(move |(_, hold)| {
            hold.queue == *queue && hold.stream == *stream && self.now < hold.until && !hold.is_unsure
        });
        holds.map(|(token, _)| *token)
    }

    /// Whether a holder's delivery is still his.
    pub(crate) fn standing(
        &self,
        queue: &QueueName,
        token: LockToken,
        out: Option<(SequenceNumber, u32)>,
    ) -> Standing {
        let hold = self.holds.get(&token).filter(|hold| hold.queue == *queue && self.now < hold.until);
        match hold {
            None => Standing::Void,
            Some(hold) if out.is_some_and(|out| !hold.out.contains(&out)) => Standing::Void,
            Some(hold) if hold.is_unsure => Standing::Unsure,
            Some(_) => Standing::Current,
        }
    }

    /// Takes a delivery out of its holder's hands; what else he has may have been taken back.
    pub(crate) fn take_back(&mut self, token: LockToken, sequence: SequenceNumber, is_unsure: bool) {
        let Some(hold) = self.holds.get_mut(&token) else { return };
        hold.out.retain(|(out, _)| *out != sequence);
        hold.is_unsure |= is_unsure;
        if hold.is_unsure {
            for (out, _) in &hold.out {
                self.entries.entry(*out).and_modify(|entry| entry.is_excused = true);
            }
        }
        if !hold.is_whole && hold.out.is_empty() {
            self.holds.remove(&token);
        }
    }

    /// Takes the count of a hand-out back that was not started; perhaps it was taken back before.
    pub(crate) fn uncount(&mut self, sequence: SequenceNumber, is_unsure: bool) {
        let Some(entry) = self.entries.get_mut(&sequence) else { return };
        let lowest = entry.count.0.saturating_sub(1);
        entry.count = (lowest, if is_unsure { entry.count.1 } else { entry.count.1.saturating_sub(1) });
    }

    /// Time has passed: locks have run out.
    pub(crate) fn advance(&mut self, now: ClockInstants) {
        (self.now, self.wall) = (now.engine, now.wall);
        self.wall_max = self.wall_max.max(now.wall);
        self.lose(|hold| hold.until <= now.engine);
        // What has come stays, whatever the wall clock shows afterwards.
        for entry in self.entries.values_mut() {
            entry.not_before = entry.not_before.filter(|due| !due.is_past(now));
            if entry.scheduled_at.is_some_and(|due| due.is_past(now)) {
                entry.scheduled_at = None;
                // What is left of its time to live passes on engine time from now on.
                entry.expires_at = entry.expires_at.map(|(at, by_wall)| {
                    let left = by_wall.map(|by_wall| now.engine + by_wall.since(now.wall));
                    (left.map_or(at, |left| left.min(at)), by_wall)
                });
            }
        }
    }

    /// Holders lose what they hold. Of messages that fail together, one that is exhausted may hold the workflow before the
    /// others are judged.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(&Hold) -> bool) {
        for hold in self.holds.values().filter(|hold| hold.out.len() > 1 && is_lost(hold)) {
            for (sequence, _) in &hold.out {
                self.entries.entry(*sequence).and_modify(|entry| {
                    entry.is_excused = true;
                    entry.may_return |= hold.is_run;
                });
            }
        }
        self.holds.retain(|_, hold| !is_lost(hold));
    }
}
