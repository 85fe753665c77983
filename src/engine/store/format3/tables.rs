//! The tables that went through the journal, by the numbers they have in it.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::engine::rules::audit;
use crate::engine::rules::change;
use crate::engine::rules::record;
use crate::engine::rules::workflow_record;
use crate::engine::store::codec;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::format3::messages::Answered;
use crate::engine::store::format3::messages::Content;
use crate::engine::store::format3::messages::Duplicate;
use crate::engine::store::format3::messages::MessageRecord;
use crate::engine::store::format3::operators::AuditEntry;
use crate::engine::store::format3::workflows::Holding;
use crate::engine::store::format3::workflows::Link;
use crate::engine::store::format3::workflows::Mark;
use crate::engine::store::format3::workflows::TrailEntry;
use crate::engine::store::format3::workflows::WorkflowRecord;
use crate::engine::store::schema;
use crate::engine::store::table::Table;
use crate::id::SequenceNumber;

/// A table as it was.
pub(crate) struct OldTable {
    pub(crate) definition: RawTableDefinition,
    /// Whether its keys begin with a queue.
    pub(crate) of_queue: bool,
    /// Makes today's payload of a row's, or nothing when that makes no sense.
    pub(crate) converted: fn(&[u8]) -> Option<Vec<u8>>,
}

/// A table `T`, whose rows were `Old` records and are `New` ones.
const fn table<T, Old, New>() -> OldTable
where
    T: Table,
    Old: DeserializeOwned + Into<New>,
    New: Into<T::Value>,
{
    OldTable { definition: T::DEFINITION, of_queue: true, converted: converted::<T, Old, New> }
}

fn converted<T, Old, New>(payload: &[u8]) -> Option<Vec<u8>>
where
    T: Table,
    Old: DeserializeOwned + Into<New>,
    New: Into<T::Value>,
{
    let new: New = codec::decode::<Old>(payload)?.into();
    let value: T::Value = new.into();
    Some(codec::encode(&value))
}

/// Every one, in the order of the numbers.
pub(crate) const TABLES: [OldTable; 20] = [
    table::<schema::Workflows, WorkflowRecord, workflow_record::WorkflowRecord>(),
    table::<schema::States, Bytes, Bytes>(),
    table::<schema::Messages, MessageRecord, record::MessageRecord>(),
    table::<schema::Contents, Content, record::MessageContent>(),
    table::<schema::Line, SequenceNumber, SequenceNumber>(),
    table::<schema::Aside, SequenceNumber, SequenceNumber>(),
    table::<schema::Links, Link, record::ChainLink>(),
    table::<schema::Trails, TrailEntry, change::TrailEntry>(),
    table::<schema::Roots, (), ()>(),
    table::<schema::Waiting, SequenceNumber, SequenceNumber>(),
    table::<schema::Marks, Mark, record::MarkRecord>(),
    table::<schema::Holdings, Holding, record::Holding>(),
    table::<schema::Ready, record::WorkflowRef, record::WorkflowRef>(),
    OldTable { of_queue: false, ..table::<schema::Reminders, (), ()>() },
    table::<schema::DeadByReason, (), ()>(),
    table::<schema::DeadByWorkflow, (), ()>(),
    table::<schema::Duplicates, Duplicate, record::Duplicate>(),
    table::<schema::Answers, Answered, record::AnswerRecord>(),
    table::<schema::AnswerCounts, u64, u64>(),
    OldTable { of_queue: false, ..table::<schema::Audit, AuditEntry, audit::AuditEntry>() },
];
