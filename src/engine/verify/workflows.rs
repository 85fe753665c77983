//! Every workflow: what stands in its line and beside it, what its holder has, and what it offers.

use std::sync::Arc;

use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::merged_tables::MergedTables;
use crate::engine::store::schema::Aside;
use crate::engine::store::schema::Cursors;
use crate::engine::store::schema::DeadByWorkflow;
use crate::engine::store::schema::Holdings;
use crate::engine::store::schema::Line;
use crate::engine::store::schema::Marks;
use crate::engine::store::schema::States;
use crate::engine::store::schema::Waiting;
use crate::engine::store::schema::Workflows;
use crate::engine::store::table::Table;
use crate::engine::verify::chains::Chain;
use crate::engine::verify::compare::RowComparison;
use crate::engine::verify::compare::is_aside;
use crate::engine::verify::compare::is_dead;
use crate::engine::verify::lane::Lane;
use crate::error::Fault;
use crate::id::SequenceNumber;

/// All tables whose rows belong to workflows, walked through at once.
struct Lanes<'m> {
    line: Lane<'m, Line>,
    aside: Lane<'m, Aside>,
    waiting: Lane<'m, Waiting>,
    dead: Lane<'m, DeadByWorkflow>,
    marks: Lane<'m, Marks>,
    /// Of workflows that are forgotten, whose marks are kept.
    cursors: Lane<'m, Cursors>,
    states: Lane<'m, States>,
    holdings: Lane<'m, Holdings>,
    chain: Chain<'m>,
}

impl<'m> Lanes<'m> {
    fn new(rows: &'m MergedTables<'m>) -> Result<Lanes<'m>, Fault> {
        Ok(Lanes {
            line: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
            aside: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
            waiting: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
            dead: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
            marks: Lane::new(rows.rows()?, |workflow, _| workflow.clone()),
            cursors: Lane::new(rows.rows()?, workflow_of),
            states: Lane::new(rows.rows()?, workflow_of),
            holdings: Lane::new(rows.rows()?, workflow_of),
            chain: Chain::new(rows)?,
        })
    }
}

fn workflow_of(queue: &QueueId, stream: &WorkflowRef) -> WorkflowKey {
    WorkflowKey { queue: *queue, stream: stream.clone() }
}

/// How many ranks two ranges have in common.
fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    let (from, to) = (a.0.max(b.0), a.1.min(b.1));
    if from <= to { to - from + 1 } else { 0 }
}

/// What was found of one workflow.
#[derive(Default)]
pub(crate) struct WorkflowFindings {
    pub(crate) line: u64,
    pub(crate) early: u64,
    pub(crate) early_bytes: u64,
    pub(crate) aside: u64,
    pub(crate) dead: u64,
    pub(crate) has_state: bool,
    pub(crate) has_holder: bool,
    /// How many ranks of the run are in the line, or settled already.
    pub(crate) run: u64,
    /// Whether its order allows to hand out a message: said by the first that is not handed out.
    pub(crate) offers: Option<bool>,
}

impl WorkflowFindings {
    /// Counts a message behind a gap, if it counts as early.
    fn note_early(&mut self, message: &MessageRecord) {
        if message.status == Status::Ready {
            self.early += 1;
            self.early_bytes += message.bytes;
        }
    }
}

impl<'a> RowComparison<'a, '_> {
    /// Compares workflows with all that belongs to them.
    pub(crate) fn compare_workflows(&mut self) -> Result<(), Fault> {
        let mut lanes = Lanes::new(self.rows)?;
        for row in self.rows.rows::<Workflows>()? {
            let (queue, stream, record) = row?;
            let key = WorkflowKey { queue, stream };
            self.findings.go_on();
            self.walk_cursors(&mut lanes, Some(&key))?;
            let found = self.walk(&mut lanes, &key, &record)?;
            self.compare_workflow(&key, &record, &found)?;
            let counts = self.found.entry(queue).or_default();
            counts.early += found.early;
            counts.ready = counts.ready.saturating_sub(found.early);
        }
        self.walk_cursors(&mut lanes, None)?;
        let Lanes { line, aside, waiting, dead, marks, states, holdings, chain, .. } = lanes;
        line.end(self.findings)?;
        aside.end(self.findings)?;
        waiting.end(self.findings)?;
        dead.end(self.findings)?;
        marks.end(self.findings)?;
        states.end(self.findings)?;
        holdings.end(self.findings)?;
        chain.end(self.findings)
    }

    fn walk(
        &mut self,
        lanes: &mut Lanes<'a>,
        key: &WorkflowKey,
        record: &WorkflowRecord,
    ) -> Result<WorkflowFindings, Fault> {
        let mut found = WorkflowFindings::default();
        let marks = self.walk_marks(&mut lanes.marks, key)?;
        found.run = marks.iter().map(|mark| overlap(*mark, (record.cursor, record.through))).sum();
        self.walk_line(&mut lanes.line, key, record, &marks, &mut found)?;
        let has_places = self.has_places(key);
        while let Some((workflow, id, sequence)) = lanes.waiting.next_of(key, self.findings)? {
            let fits = |message: &MessageRecord| {
                message.rank.is_none() && !is_dead(message) && message.message_id.as_ref() == Some(&id)
            };
            if let Some(message) = self.listed::<Waiting>(key, &workflow, &id, sequence, fits)? {
                found.line += 1;
                found.note_early(&message);
                if let Some(problem) = self.problem_of_waiting(&workflow, &message, sequence, record)? {
                    self.findings.row::<Waiting>(&workflow, &id, problem);
                }
            }
        }
        while let Some((workflow, rank, sequence)) = lanes.aside.next_of(key, self.findings)? {
            let fits = |message: &MessageRecord| {
                message.rank == Some(rank) && !is_dead(message) && is_aside(message, has_places)
            };
            found.aside += u64::from(self.listed::<Aside>(key, &workflow, &rank, sequence, fits)?.is_some());
        }
        while let Some((workflow, place, ())) = lanes.dead.next_of(key, self.findings)? {
            let fits = |message: &MessageRecord| message.rank.unwrap_or(0) == place.0 && is_dead(message);
            let listed = self.listed::<DeadByWorkflow>(key, &workflow, &place, place.1, fits)?;
            found.dead += u64::from(listed.is_some());
        }
        while lanes.states.next_of(key, self.findings)?.is_some() {
            found.has_state = true;
        }
        while let Some((_, _, holding)) = lanes.holdings.next_of(key, self.findings)? {
            found.has_holder = true;
            for sequence in holding.out.iter() {
                let fits = |message: &MessageRecord| matches!(message.status, Status::Locked { .. });
                self.listed::<Holdings>(key, &key.queue, &key.stream, sequence, fits)?;
            }
        }
        lanes.chain.walk(self, key, record)?;
        Ok(found)
    }

    /// The settled ranges of workflows that are forgotten, as far as the walk has come.
    fn walk_cursors(&mut self, lanes: &mut Lanes<'a>, before: Option<&WorkflowKey>) -> Result<(), Fault> {
        while let Some((queue, stream, cursor)) = lanes.cursors.next_before(before)? {
            let marks = self.walk_marks(&mut lanes.marks, &workflow_of(&queue, &stream))?;
            if marks.iter().any(|(from, to)| (*from..=*to).contains(&cursor.next)) {
                self.findings.row::<Cursors>(&queue, &stream, "the position it waits for is settled");
            }
        }
        Ok(())
    }

    /// The settled ranges of a workflow.
    fn walk_marks(
        &mut self,
        marks: &mut Lane<'a, Marks>,
        key: &WorkflowKey,
    ) -> Result<Vec<(u64, u64)>, Fault> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        while let Some((workflow, rank, mark)) = marks.next_of(key, self.findings)? {
            let behind = ranges.last().is_none_or(|(_, to)| *to < mark.from);
            if mark.from != rank || mark.to < mark.from || !behind {
                self.findings.row::<Marks>(&workflow, &rank, "its range makes no sense");
            }
            ranges.push((mark.from, mark.to));
        }
        Ok(ranges)
    }

    fn walk_line(
        &mut self,
        line: &mut Lane<'a, Line>,
        key: &WorkflowKey,
        record: &WorkflowRecord,
        marks: &[(u64, u64)],
        found: &mut WorkflowFindings,
    ) -> Result<(), Fault> {
        let has_places = self.has_places(key);
        while let Some((workflow, rank, sequence)) = line.next_of(key, self.findings)? {
            let fits = |message: &MessageRecord| {
                message.rank == Some(rank) && !is_dead(message) && !is_aside(message, has_places)
            };
            let Some(message) = self.listed::<Line>(key, &workflow, &rank, sequence, fits)? else { continue };
            found.line += 1;
            found.run += u64::from((record.cursor..=record.through).contains(&rank));
            let early = has_places && rank > record.through;
            if early {
                found.note_early(&message);
            }
            if found.offers.is_none() {
                found.offers = match message.status {
                    Status::Locked { .. } => None,
                    Status::Ready => Some(!(early || has_places && record.is_beyond(rank))),
                    _ => Some(false),
                };
            }
            let at = marks.partition_point(|(_, to)| *to < rank);
            if rank >= record.cursor && marks.get(at).is_some_and(|(from, _)| *from <= rank) {
                self.findings.row::<Line>(&workflow, &rank, "its place is marked as settled");
            }
        }
        Ok(())
    }

    /// The message that a row names, if it is there and belongs to the row's workflow and place.
    fn listed<T: Table>(
        &mut self,
        workflow: &WorkflowKey,
        prefix: &T::Prefix,
        row: &T::Key,
        sequence: SequenceNumber,
        fits: impl Fn(&MessageRecord) -> bool,
    ) -> Result<Option<Arc<MessageRecord>>, Fault> {
        let Some(message) = self.message(MessageKey { queue: workflow.queue, sequence })? else {
            self.findings.row::<T>(prefix, row, format!("message {sequence} is not there"));
            return Ok(None);
        };
        if message.stream != workflow.stream || !fits(&message) {
            self.findings.row::<T>(prefix, row, format!("message {sequence} does not belong here"));
            return Ok(None);
        }
        Ok(Some(message))
    }
}
