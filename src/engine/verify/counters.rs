//! Every queue: its counters equal what is there, and every message it ever accepted is accounted for.

use std::collections::BTreeSet;

use crate::engine::rules::record::Counts;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::store::in_words::InWords;
use crate::engine::verify::compare::RowComparison;
use crate::error::Fault;
use crate::id::QueueName;

impl<'a> RowComparison<'a, '_> {
    /// Compares queues with what was found in them.
    pub(crate) fn compare_queues(&mut self) -> Result<(), Fault> {
        let mut names: BTreeSet<&'a QueueName> = BTreeSet::new();
        for (queue, record) in &self.ledger.queues {
            if !names.insert(&record.name) {
                self.complain_of_queue("queues", *queue, "another queue has the same name");
            }
            self.compare_queue(*queue, record)?;
        }
        for queue in self.ledger.counters.keys() {
            if self.queue(*queue).is_none() {
                self.complain_of_queue("tallies", *queue, "its queue is not there");
            }
        }
        Ok(())
    }

    fn compare_queue(&mut self, queue: QueueId, record: &QueueRecord) -> Result<(), Fault> {
        if queue.0 > self.ledger.numbers.next_queue {
            self.complain_of_queue("queues", queue, "its number was never given");
        }
        if let Some(due) = record.idle_check
            && !self.is_reminded(Reminder { due: due.into(), queue, what: Remind::Idle })?
        {
            self.complain_of_queue("queues", queue, "its reminder is not there");
        }
        let Some(counters) = self.ledger.counters.get(&queue) else {
            self.complain_of_queue("queues", queue, "its counters are not there");
            return Ok(());
        };
        let found = self.found.get(&queue).copied().unwrap_or_default();
        for (name, counted, found) in differences(&counters.counts, &found) {
            let problem = format!("it counts {counted} {name}, there are {found}");
            self.complain_of_queue("tallies", queue, &problem);
        }
        if !counters.counts.conserved() {
            let problem = format!(
                "it has accepted {} messages, and does not account for each",
                counters.counts.accepted
            );
            self.complain_of_queue("tallies", queue, &problem);
        }
        Ok(())
    }

    fn complain_of_queue(&mut self, table: &'static str, queue: QueueId, problem: &str) {
        let key = queue.in_words(&self.findings.names);
        self.findings.add(table, key, problem);
    }
}

/// The counters of stored messages that differ.
fn differences(counted: &Counts, found: &Counts) -> Vec<(&'static str, u64, u64)> {
    let all = [
        ("ready", counted.ready, found.ready),
        ("locked", counted.locked, found.locked),
        ("early", counted.early, found.early),
        ("retry", counted.retry, found.retry),
        ("exhausted", counted.exhausted, found.exhausted),
        ("by_consumer", counted.by_consumer, found.by_consumer),
        ("scheduled", counted.scheduled, found.scheduled),
        ("dead-lettered", counted.dead_lettered, found.dead_lettered),
    ];
    all.into_iter().filter(|(_, counted, found)| counted != found).collect()
}
