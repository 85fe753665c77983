//! After-order: links, the trails back to them, and the messages that wait for an unknown predecessor.

use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::merged_tables::MergedTables;
use crate::engine::store::schema::Links;
use crate::engine::store::schema::Roots;
use crate::engine::store::schema::Trails;
use crate::engine::store::schema::Waiting;
use crate::engine::verify::compare::RowComparison;
use crate::engine::verify::findings::Findings;
use crate::engine::verify::lane::Lane;
use crate::error::Fault;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::limits;

/// The tables of after-ordered workflows.
pub(crate) struct Chain<'m> {
    links: Lane<'m, Links>,
    trails: Lane<'m, Trails>,
    roots: Lane<'m, Roots>,
}

impl<'m> Chain<'m> {
    pub(crate) fn new(rows: &'m MergedTables<'m>) -> Result<Chain<'m>, Fault> {
        Ok(Chain {
            links: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
            trails: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
            roots: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
        })
    }

    /// Compares one workflow's rows.
    pub(crate) fn walk(
        &mut self,
        all: &mut RowComparison<'m, '_>,
        key: &WorkflowKey,
        record: &WorkflowRecord,
    ) -> Result<(), Fault> {
        while let Some((workflow, after, link)) = self.links.next_of(key, all.findings)? {
            if let Some(problem) = all.problem_of_link(&workflow, after.as_ref(), &link, record)? {
                all.findings.row::<Links>(&workflow, &after, problem);
            }
        }
        while let Some((workflow, rank, trail)) = self.trails.next_of(key, all.findings)? {
            let link = all.rows.get::<Links>(&workflow, &trail.after)?;
            if !link.is_some_and(|link| leads_to(rank, &link)) {
                all.findings.row::<Trails>(&workflow, &rank, "it leads to no link");
            }
        }
        while let Some((workflow, sequence, ())) = self.roots.next_of(key, all.findings)? {
            if !all.is_root(&workflow, sequence)? {
                all.findings.row::<Roots>(&workflow, &sequence, "its message waits for none that is unknown");
            }
        }
        Ok(())
    }

    pub(crate) fn end(self, findings: &mut Findings<'_>) -> Result<(), Fault> {
        self.links.end(findings)?;
        self.trails.end(findings)?;
        self.roots.end(findings)
    }
}

/// Whether a trail leads to a link: to that of its own rank or, from beyond all ranks, where it is kept under the number
/// of its message, to one that the chain has not reached.
fn leads_to(rank: u64, link: &ChainLink) -> bool {
    match rank.checked_sub(limits::NUMBER_END) {
        None => link.rank == Some(rank),
        Some(number) => link.sequence == Some(SequenceNumber::new(number)),
    }
}

impl RowComparison<'_, '_> {
    fn problem_of_link(
        &self,
        key: &WorkflowKey,
        after: Option<&MessageId>,
        link: &ChainLink,
        record: &WorkflowRecord,
    ) -> Result<Option<&'static str>, Fault> {
        if let Some(rank) = link.rank {
            let trail = self.rows.get::<Trails>(key, &rank)?;
            if trail.is_none_or(|trail| trail.after.as_ref() != after) {
                return Ok(Some("no trail leads to it"));
            }
            if rank > record.through {
                return Ok(Some("its place is beyond the run"));
            }
        }
        let (Some(sequence), None) = (link.sequence, link.settled) else { return Ok(None) };
        let message = self.message(MessageKey { queue: key.queue, sequence })?;
        let fits = message.is_some_and(|message| {
            message.stream == key.stream
                && message.rare.after.as_ref() == after
                && message.message_id == link.message_id
                && message.rank == link.rank
        });
        Ok((!fits).then_some("its message is not there, or another"))
    }

    /// What is wrong with a message that waits: it is found by its link, and by its predecessor or as a root.
    pub(crate) fn problem_of_waiting(
        &self,
        key: &WorkflowKey,
        message: &MessageRecord,
        sequence: SequenceNumber,
        record: &WorkflowRecord,
    ) -> Result<Option<&'static str>, Fault> {
        let link = self.rows.get::<Links>(key, &message.rare.after)?;
        if link.and_then(|link| link.sequence) != Some(sequence) {
            return Ok(Some("no link leads to it"));
        }
        let is_found =
            self.predecessor_waits(key, message)? || self.rows.get::<Roots>(key, &sequence)?.is_some();
        Ok((!is_found && !record.rare.extending && record.rare.shortening.is_none())
            .then_some("its predecessor is unknown, and it is no root"))
    }

    fn predecessor_waits(&self, key: &WorkflowKey, message: &MessageRecord) -> Result<bool, Fault> {
        match &message.rare.after {
            Some(after) => Ok(self.rows.get::<Waiting>(key, after)?.is_some()),
            None => Ok(false),
        }
    }

    /// Whether a message waits, and nothing it could wait for does.
    fn is_root(&self, key: &WorkflowKey, sequence: SequenceNumber) -> Result<bool, Fault> {
        let Some(message) = self.message(MessageKey { queue: key.queue, sequence })? else {
            return Ok(false);
        };
        let fits = message.stream == key.stream && message.rank.is_none();
        Ok(fits && !self.predecessor_waits(key, &message)?)
    }
}
