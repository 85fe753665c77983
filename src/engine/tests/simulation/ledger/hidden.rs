//! Writes down what was handed out without a lock, and how that ended.

use crate::engine::rules::claim::Claim;
use crate::engine::rules::command::UnlockedMessage;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::ledger::Ledger;
use crate::engine::tests::simulation::ledger::entry::End;
use crate::engine::tests::simulation::ledger::entry::Entry;
use crate::engine::tests::simulation::ledger::fact::Fact;
use crate::id::QueueName;
use crate::token::LockToken;

impl Ledger {
    pub(crate) fn record_hidden(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::ReceiveHidden(verbs::ReceiveHidden { queue, .. }), Reply::ReceiveHidden(Ok(shown))) => {
                shown.iter().for_each(|shown| self.note_shown(queue, shown));
            }
            (Command::HideAgain(_), Reply::HideAgain(Ok(shown))) => self.put_off_hidden(shown),
            (Command::EndHidden(verbs::EndHidden { queue, claim }), Reply::Settle(Ok(_))) => {
                self.note_hidden_end(queue, claim)
            }
            _ => {}
        }
    }

    fn note_shown(&mut self, queue: &QueueName, shown: &UnlockedMessage) {
        let entry = self.entries.get(&shown.sequence).cloned();
        let stream = entry.as_ref().map_or(WorkflowRef::Single(shown.sequence), |entry| entry.stream.clone());
        let holders = self.holders(queue, &stream).collect();
        let delivery_count = shown.record.delivery_count;
        self.facts.push(Fact::Delivered {
            queue: queue.clone(),
            sequence: shown.sequence,
            token: LockToken::new(0, [0; 12]),
            delivery_count,
            expected: entry.as_ref().map_or((0, 0), Entry::next_count),
            ended: entry.as_ref().and_then(|entry| entry.end),
            not_before: entry.as_ref().and_then(|entry| entry.not_before),
            locked_until: self.now,
            expected_until: Some(self.now),
            holders,
            is_known: entry.is_some(),
            is_fetched: false,
            // Nobody failed: it is handed out as often as it is hidden.
            is_excused: true,
        });
        if let Some(entry) = self.entries.get_mut(&shown.sequence) {
            entry.count = (delivery_count, delivery_count);
            entry.may_return = false;
        }
        self.put_off_hidden(shown);
    }

    fn put_off_hidden(&mut self, shown: &UnlockedMessage) {
        let Some(entry) = self.entries.get_mut(&shown.sequence) else { return };
        entry.scheduled_at = None;
        entry.not_before = match shown.record.status {
            Status::ByConsumer { due, .. } => due,
            _ => None,
        };
        (entry.is_asked, entry.is_hidden, entry.is_excused) = (true, true, true);
    }

    fn note_hidden_end(&mut self, queue: &QueueName, claim: &Claim) {
        let (sequence, is_seen) = (claim.sequence_number, claim.delivery_count > 0);
        let ended = self.entries.get(&sequence).and_then(|entry| entry.end);
        self.facts.push(Fact::Completed { sequence, ended });
        self.end(sequence, if is_seen { End::Completed } else { End::Cancelled });
        if let Some(sums) = self.sums(queue) {
            *(if is_seen { &mut sums.completed } else { &mut sums.cancelled }) += 1;
        }
    }
}
