//! The audit: its entries follow each other, in number and in time.

use crate::engine::store::schema::Audit;
use crate::engine::verify::compare::Comparison;
use crate::error::Fault;

impl Comparison<'_, '_> {
    /// Each entry has its own number, which follows the one before, and none is from the future.
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
            if entry.at > self.ledger.time {
                self.findings.row::<Audit>(&(), &number, "it is later than the last commit");
            }
            if let Some((last, at)) = before
                && (last + 1 != number || entry.at < at)
            {
                let problem = format!("it does not follow entry {last}");
                self.findings.row::<Audit>(&(), &number, problem);
            }
            before = Some((number, entry.at));
        }
        Ok(())
    }
}
