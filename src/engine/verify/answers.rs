//! Answers that are kept for idempotency keys: each will be forgotten, and all are counted.

use std::collections::BTreeMap;

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::store::schema::AnswerCounts;
use crate::engine::store::schema::Answers;
use crate::engine::verify::compare::RowComparison;
use crate::error::Fault;

impl RowComparison<'_, '_> {
    /// Each answer that is kept will be forgotten, and its queue counts it.
    pub(crate) fn compare_answers(&mut self) -> Result<(), Fault> {
        let mut found: BTreeMap<QueueId, u64> = BTreeMap::new();
        for row in self.rows.rows::<Answers>()? {
            let (queue, key, known) = row?;
            self.findings.go_on();
            *found.entry(queue).or_default() += 1;
            let reminder = Reminder { due: known.until.into(), queue, what: Remind::Answer(key.clone()) };
            let is_of_topics = queue == QueueId::OF_TOPICS;
            let shared: usize = known.shares.iter().map(|(_, count)| *count as usize).sum();
            if shared != (if is_of_topics { known.receipts.len() } else { 0 }) {
                self.findings.row::<Answers>(&queue, &key, "its receipts are not those of its subscriptions");
            }
            if self.queue(queue).is_none() && !is_of_topics {
                self.findings.row::<Answers>(&queue, &key, "its queue is not there");
            } else if !self.is_reminded(reminder)? {
                self.findings.row::<Answers>(&queue, &key, "its reminder is not there");
            }
            let numbers = known.receipts.iter().filter_map(|receipt| receipt.sequence_number());
            if numbers.max().is_some_and(|last| last.get() >= self.ledger.numbers.next_sequence) {
                self.findings.row::<Answers>(&queue, &key, "its message's number was never given");
            }
        }
        self.compare_answer_counts(found)
    }

    fn compare_answer_counts(&mut self, mut found: BTreeMap<QueueId, u64>) -> Result<(), Fault> {
        for row in self.rows.rows::<AnswerCounts>()? {
            let (queue, (), counted) = row?;
            let found = found.remove(&queue).unwrap_or_default();
            if counted != found {
                let problem = format!("it counts {counted} answers, there are {found}");
                self.findings.row::<AnswerCounts>(&queue, &(), problem);
            }
        }
        for (queue, found) in found {
            let problem = format!("it counts no answers, there are {found}");
            self.findings.row::<AnswerCounts>(&queue, &(), problem);
        }
        Ok(())
    }
}
