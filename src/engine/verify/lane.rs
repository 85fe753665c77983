//! Rows of one table that belong to workflows, walked through beside the workflows in the same order.

use std::iter::Peekable;

use crate::engine::rules::record::WorkflowKey;
use crate::engine::store::merged_tables::MergedEntry;
use crate::engine::store::merged_tables::MergedRows;
use crate::engine::store::table::Table;
use crate::engine::verify::findings::Findings;
use crate::error::Fault;

/// The rows of one table, workflow by workflow.
pub(crate) struct Lane<'m, T: Table> {
    rows: Peekable<MergedRows<'m, T>>,
    owner: fn(&T::Prefix, &T::Key) -> WorkflowKey,
}

impl<'m, T: Table> Lane<'m, T> {
    pub(crate) fn new(rows: MergedRows<'m, T>, owner: fn(&T::Prefix, &T::Key) -> WorkflowKey) -> Lane<'m, T> {
        Lane { rows: rows.peekable(), owner }
    }

    /// The next row of this workflow; rows before it belong to none.
    pub(crate) fn next_of(
        &mut self,
        workflow: &WorkflowKey,
        findings: &mut Findings<'_>,
    ) -> Result<Option<MergedEntry<T>>, Fault> {
        loop {
            let owner_of = self.owner;
            let Some((prefix, key, _)) = self.peek()? else { return Ok(None) };
            let owner = owner_of(prefix, key);
            if owner > *workflow {
                return Ok(None);
            }
            let row = self.take()?;
            if owner == *workflow {
                return Ok(row);
            }
            if let Some((prefix, key, _)) = row {
                findings.row::<T>(&prefix, &key, "its workflow is not there");
            }
        }
    }

    /// The next row of a workflow before this one; of any for `None`.
    pub(crate) fn next_before(
        &mut self,
        workflow: Option<&WorkflowKey>,
    ) -> Result<Option<MergedEntry<T>>, Fault> {
        let owner_of = self.owner;
        match self.peek()? {
            Some((prefix, key, _)) if workflow.is_none_or(|workflow| owner_of(prefix, key) < *workflow) => {
                self.take()
            }
            _ => Ok(None),
        }
    }

    /// What is left belongs to no workflow.
    pub(crate) fn end(mut self, findings: &mut Findings<'_>) -> Result<(), Fault> {
        while let Some((prefix, key, _)) = self.take()? {
            findings.row::<T>(&prefix, &key, "its workflow is not there");
        }
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<&MergedEntry<T>>, Fault> {
        match self.rows.peek() {
            Some(Err(fault)) => Err(fault.clone()),
            Some(Ok(row)) => Ok(Some(row)),
            None => Ok(None),
        }
    }

    fn take(&mut self) -> Result<Option<MergedEntry<T>>, Fault> {
        self.rows.next().transpose()
    }
}
