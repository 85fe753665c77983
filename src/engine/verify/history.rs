//! Histories: each has every entry of its span and no other, each entry is listed, and what is listed is there.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::in_words::InWords;
use crate::engine::store::schema::History;
use crate::engine::store::schema::HistoryByMessage;
use crate::engine::store::schema::HistoryByWorkflow;
use crate::engine::verify::compare::RowComparison;
use crate::error::Fault;

impl RowComparison<'_, '_> {
    /// Compares histories with their counts and their lists.
    pub(crate) fn compare_history(&mut self) -> Result<(), Fault> {
        let found = self.compare_entries()?;
        self.compare_lists()?;
        for (queue, counters) in &self.ledger.counters {
            let span = counters.history;
            let there = found.get(queue).copied().unwrap_or_default();
            if span.kept() != there {
                let problem = format!("it counts {} entries of its history, there are {there}", span.kept());
                self.complain_of_history(*queue, problem);
            }
            let reminder =
                |due: Timestamp| Reminder { due: due.into(), queue: *queue, what: Remind::History };
            let is_reminded = match span.check {
                Some(due) => self.is_reminded(reminder(due))?,
                None => span.kept() == 0,
            };
            if !is_reminded && self.queue(*queue).is_some() {
                self.complain_of_history(*queue, "the reminder of its history is not there".to_owned());
            }
        }
        Ok(())
    }

    fn compare_entries(&mut self) -> Result<BTreeMap<QueueId, u64>, Fault> {
        let mut found: BTreeMap<QueueId, u64> = BTreeMap::new();
        for row in self.rows.rows::<History>()? {
            let (queue, number, entry) = row?;
            self.findings.go_on();
            *found.entry(queue).or_default() += 1;
            let span = self.ledger.counters.get(&queue).map(|counters| counters.history).unwrap_or_default();
            if entry.number != number {
                let problem = format!("it says that it is number {}", entry.number);
                self.findings.row::<History>(&queue, &number, problem);
            }
            if self.queue(queue).is_none() {
                self.findings.row::<History>(&queue, &number, "its queue is not there");
            } else if !(span.first..span.next).contains(&number) {
                self.findings.row::<History>(&queue, &number, "its queue does not count it");
            }
            if let Some(sequence) = entry.sequence_number
                && self.rows.get::<HistoryByMessage>(&queue, &sequence)? != Some(number)
            {
                self.findings.row::<History>(&queue, &number, "it is not listed by its message");
            }
            if let Some(id) = entry.workflow_id.clone() {
                let key = WorkflowKey { queue, stream: WorkflowRef::Named(id) };
                if self.rows.get::<HistoryByWorkflow>(&key, &number)?.is_none() {
                    self.findings.row::<History>(&queue, &number, "it is not listed by its workflow");
                }
            }
        }
        Ok(found)
    }

    fn compare_lists(&mut self) -> Result<(), Fault> {
        for row in self.rows.rows::<HistoryByMessage>()? {
            let (queue, sequence, number) = row?;
            self.findings.go_on();
            let entry = self.rows.get::<History>(&queue, &number)?;
            if entry.and_then(|entry| entry.sequence_number) != Some(sequence) {
                self.findings.row::<HistoryByMessage>(&queue, &sequence, "its entry is not of this message");
            }
        }
        for row in self.rows.rows::<HistoryByWorkflow>()? {
            let (key, number, ()) = row?;
            self.findings.go_on();
            let entry = self.rows.get::<History>(&key.queue, &number)?;
            let of = entry.and_then(|entry| entry.workflow_id.clone());
            if of.as_ref() != key.stream.workflow_id() || of.is_none() {
                self.findings.row::<HistoryByWorkflow>(&key, &number, "its entry is not of this workflow");
            }
        }
        Ok(())
    }

    fn complain_of_history(&mut self, queue: QueueId, problem: String) {
        let key = queue.in_words(&self.findings.names);
        self.findings.add("tallies", key, problem);
    }
}
