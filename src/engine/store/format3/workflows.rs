//! Workflows: what is known of each, and what their messages leave behind.

use serde::Deserialize;

use crate::clock::Timestamp;
use crate::engine::rules::change;
use crate::engine::rules::holds;
use crate::engine::rules::record;
use crate::engine::rules::workflow_record;
use crate::engine::rules::workflow_record::Rare;
use crate::engine::rules::workflow_record::RareFields;
use crate::id::MessageId;
use crate::id::SequenceNumber;

#[derive(Debug, Deserialize)]
pub(crate) struct WorkflowRecord {
    cursor: u64,
    through: u64,
    tail: Option<MessageId>,
    done: u64,
    line: u64,
    early: u64,
    early_bytes: u64,
    aside: u64,
    dead: u64,
    has_state: bool,
    hold: Option<Hold>,
    gap: Option<GapRecord>,
    ticket: Option<u64>,
    sweep: Option<Timestamp>,
    extending: bool,
    idle_since: Option<Timestamp>,
    forget: Option<Timestamp>,
}

impl From<WorkflowRecord> for workflow_record::WorkflowRecord {
    fn from(old: WorkflowRecord) -> workflow_record::WorkflowRecord {
        workflow_record::WorkflowRecord {
            cursor: old.cursor,
            through: old.through,
            done: old.done,
            line: old.line,
            early: old.early,
            early_bytes: old.early_bytes,
            aside: old.aside,
            dead: old.dead,
            ticket: old.ticket,
            idle_since: old.idle_since,
            forget: old.forget,
            rare: Rare::from(RareFields {
                tail: old.tail,
                has_state: old.has_state,
                state_set_at: None,
                holds: old.hold.map(holds::Hold::from).into_iter().collect(),
                gap: old.gap.map(workflow_record::GapRecord::from),
                sweep: old.sweep,
                extending: old.extending,
                shortening: None,
            }),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Hold {
    cause: HoldCause,
    since: Timestamp,
    reason: String,
}

impl From<Hold> for holds::Hold {
    fn from(old: Hold) -> holds::Hold {
        holds::Hold { cause: old.cause.into(), since: old.since, reason: old.reason }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum HoldCause {
    Operator,
    Spent(SequenceNumber),
    Gap,
    Predecessor(SequenceNumber),
    Quarantine(SequenceNumber),
    Redriving,
}

impl From<HoldCause> for holds::HoldCause {
    fn from(old: HoldCause) -> holds::HoldCause {
        match old {
            HoldCause::Operator => holds::HoldCause::Operator,
            HoldCause::Spent(sequence) => holds::HoldCause::Exhausted(sequence),
            HoldCause::Gap => holds::HoldCause::Gap,
            HoldCause::Predecessor(sequence) => holds::HoldCause::Predecessor(sequence),
            HoldCause::Quarantine(sequence) => holds::HoldCause::Quarantine(sequence),
            HoldCause::Redriving => holds::HoldCause::Redriving,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct GapRecord {
    at: u64,
    since: Timestamp,
    due: Option<Timestamp>,
}

impl From<GapRecord> for workflow_record::GapRecord {
    fn from(old: GapRecord) -> workflow_record::GapRecord {
        workflow_record::GapRecord { at: old.at, since: old.since, due: old.due }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Holding {
    out: Vec<SequenceNumber>,
}

impl From<Holding> for record::Holding {
    fn from(old: Holding) -> record::Holding {
        // What was held it did not say, so that each message has failed by itself, as it had then.
        record::Holding { out: old.out.into_iter().collect(), is_run: false }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum Settled {
    Completed,
    Aside,
    DeadLettered,
    Expired,
    Cancelled,
    Purged,
    Skipped,
    Voided,
}

impl From<Settled> for record::SettlementKind {
    fn from(old: Settled) -> record::SettlementKind {
        match old {
            Settled::Completed => record::SettlementKind::Completed,
            Settled::Aside => record::SettlementKind::Aside,
            Settled::DeadLettered => record::SettlementKind::DeadLettered,
            Settled::Expired => record::SettlementKind::Expired,
            Settled::Cancelled => record::SettlementKind::Cancelled,
            Settled::Purged => record::SettlementKind::Purged,
            Settled::Skipped => record::SettlementKind::Skipped,
            Settled::Voided => record::SettlementKind::Voided,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Mark {
    from: u64,
    to: u64,
    how: Settled,
}

impl From<Mark> for record::MarkRecord {
    fn from(old: Mark) -> record::MarkRecord {
        record::MarkRecord { from: old.from, to: old.to, how: old.how.into() }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Link {
    sequence: Option<SequenceNumber>,
    message_id: Option<MessageId>,
    rank: Option<u64>,
    settled: Option<Settled>,
}

impl From<Link> for record::ChainLink {
    fn from(old: Link) -> record::ChainLink {
        record::ChainLink {
            sequence: old.sequence,
            message_id: old.message_id,
            rank: old.rank,
            settled: old.settled.map(record::SettlementKind::from),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct TrailEntry {
    after: Option<MessageId>,
}

impl From<TrailEntry> for change::TrailEntry {
    fn from(old: TrailEntry) -> change::TrailEntry {
        change::TrailEntry { after: old.after }
    }
}
