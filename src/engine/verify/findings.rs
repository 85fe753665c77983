//! What has been found so far, and whoever is told how far it has come.

use crate::engine::store::in_words::QueueNames;
use crate::engine::store::table::Table;
use crate::engine::store::words::key_in_words;
use crate::engine::verify::report::Damage;
use crate::engine::verify::report::Verification;
use crate::engine::verify::report::VerifyProgress;
use crate::engine::verify::report::VerifyStep;
use crate::error::Fault;
use crate::limits;

/// How many rows pass between two words on progress.
const ROWS_PER_WORD: u64 = 4_096;

/// The report in the making.
pub(crate) struct Findings<'p> {
    pub(crate) report: Verification,
    /// The queues' names, once they are known.
    pub(crate) names: QueueNames,
    progress: &'p mut dyn FnMut(VerifyProgress),
    at: VerifyProgress,
}

impl<'p> Findings<'p> {
    pub(crate) fn new(progress: &'p mut dyn FnMut(VerifyProgress)) -> Findings<'p> {
        let at = VerifyProgress { step: VerifyStep::Pages, rows: 0, rows_total: None };
        Findings { report: Verification::default(), names: QueueNames::new(), progress, at }
    }

    /// Notes a damage.
    pub(crate) fn add(&mut self, table: &'static str, key: String, problem: impl Into<String>) {
        self.report.damages_total += 1;
        if self.report.damages.len() < limits::DAMAGES_KEPT {
            self.report.damages.push(Damage { table, key, problem: problem.into() });
        }
    }

    /// Notes a damaged row.
    pub(crate) fn row<T: Table>(&mut self, prefix: &T::Prefix, key: &T::Key, problem: impl Into<String>) {
        let key = key_in_words::<T>(prefix, key, &self.names);
        self.add(T::NAME, key, problem);
    }

    /// Notes that something could not be read at all.
    pub(crate) fn fault(&mut self, table: &'static str, fault: &Fault) {
        match fault {
            Fault::Damaged { table, detail } => self.add(table, String::new(), detail.clone()),
            other => self.add(table, String::new(), other.to_string()),
        }
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self, step: VerifyStep, rows_total: Option<u64>) {
        self.at = VerifyProgress { step, rows: 0, rows_total };
        (self.progress)(self.at);
    }

    /// Notes a row that was read or compared.
    pub(crate) fn go_on(&mut self) {
        self.at.rows += 1;
        if self.at.rows.is_multiple_of(ROWS_PER_WORD) {
            (self.progress)(self.at);
        }
    }
}
