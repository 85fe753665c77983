//! What a workflow's record says of it: counters, what it offers, and what it is reminded of.

use crate::engine::rules::record::Remind;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::schema::Ready;
use crate::engine::store::schema::Workflows;
use crate::engine::verify::compare::RowComparison;
use crate::engine::verify::workflows::WorkflowFindings;
use crate::error::Fault;

impl RowComparison<'_, '_> {
    /// Compares a workflow's record with what was found of it.
    pub(crate) fn compare_workflow(
        &mut self,
        key: &WorkflowKey,
        record: &WorkflowRecord,
        found: &WorkflowFindings,
    ) -> Result<(), Fault> {
        if self.queue(key.queue).is_none() {
            self.complain_of_workflow(key, "its queue is not there");
            return Ok(());
        }
        let counters = [
            ("in its line", record.line, found.line),
            ("early", record.early, found.early),
            ("early bytes", record.early_bytes, found.early_bytes),
            ("beside its line", record.aside, found.aside),
            ("dead letters", record.dead, found.dead),
        ];
        for (name, counted, found) in counters {
            if counted != found {
                self.complain_of_workflow(key, format!("it counts {counted} {name}, there are {found}"));
            }
        }
        if record.rare.has_state != found.has_state
            || (record.rare.state_set_at.is_some() && !record.rare.has_state)
        {
            self.complain_of_workflow(key, "its state is not as it says");
        }
        if self.has_places(key) {
            match (record.through + 1).checked_sub(record.cursor) {
                None => self.complain_of_workflow(key, "its cursor is beyond its run"),
                Some(run) if run != found.run && record.rare.shortening.is_none() => {
                    self.complain_of_workflow(key, "its run has a gap")
                }
                Some(_) => {}
            }
        }
        self.compare_offer(key, record, found)?;
        self.compare_reminders_of(key, record)
    }

    fn compare_offer(
        &mut self,
        key: &WorkflowKey,
        record: &WorkflowRecord,
        found: &WorkflowFindings,
    ) -> Result<(), Fault> {
        let offers = found.offers == Some(true) && record.rare.holds.is_empty() && !found.has_holder;
        match record.ticket {
            Some(_) if !offers => self.complain_of_workflow(key, "it is listed as ready, and is not"),
            None if offers => self.complain_of_workflow(key, "it is ready, and not listed as such"),
            _ => {}
        }
        if let Some(ticket) = record.ticket
            && self.rows.get::<Ready>(&key.queue, &ticket)?.as_ref() != Some(&key.stream)
        {
            self.complain_of_workflow(key, format!("its ticket {ticket} is not there"));
        }
        Ok(())
    }

    fn compare_reminders_of(&mut self, key: &WorkflowKey, record: &WorkflowRecord) -> Result<(), Fault> {
        let stream = || key.stream.clone();
        let reminders = [
            ("gap", record.rare.gap.and_then(|gap| gap.due), Remind::Gap(stream())),
            ("sweep", record.rare.sweep, Remind::Sweep(stream())),
            ("forgetting", record.forget, Remind::Forget(stream())),
        ];
        for (name, due, what) in reminders {
            if let Some(due) = due
                && !self.is_reminded(Reminder { due: due.into(), queue: key.queue, what })?
            {
                self.complain_of_workflow(key, format!("the reminder of its {name} is not there"));
            }
        }
        Ok(())
    }

    fn complain_of_workflow(&mut self, key: &WorkflowKey, problem: impl Into<String>) {
        self.findings.row::<Workflows>(&key.queue, &key.stream, problem);
    }
}
