//! The audit: its entries follow each other in number. Their instants are of the wall clock, which may be set.

use crate::engine::store::schema::Audit;
use crate::engine::verify::compare::RowComparison;
use crate::error::Fault;

impl RowComparison<'_, '_> {
    /// Each entry has its own number, which follows the one before.
    pub(crate) fn compare_audit(&mut self) -> Result<(), Fault> {
        let mut before = None;
        for row in self.rows.rows::<Audit>()? {
            let ((), number, entry) = row?;
            self.findings.go_on();
            if entry.number != number {
                self.findings.row::<Audit>(
                    &(),
                    &number,
                    format!("it says that it is number {}", entry.number),
                );
            }
            if let Some(last) = before
                && last + 1 != number
            {
                let problem = format!("it does not follow entry {last}");
                self.findings.row::<Audit>(&(), &number, problem);
            }
            before = Some(number);
        }
        Ok(())
    }
}
