//! All tables on one screen. Keys are bytes that sort as their parts do (`key.rs`); values have checksums (`checksum.rs`).
//!
//! A commit appends one row to the journal; the tables hold what has been flushed out of it (`flush.rs`). A row of the
//! window over the journal, kept in memory, goes before the table's row. Tables that are in blocks (`block.rs`) have several rows
//! in one of the file.
//!
//! | table | key | value | a row exists |
//! |---|---|---|---|
//! | meta | name | by name | always |
//! | journal | position, piece | bytes | until its generation is flushed |
//! | queues | queue | `QueueRecord` | while the queue exists |
//! | tallies | queue | `QueueCounters` | while the queue exists |
//! | workflows | queue, stream | `WorkflowRecord` | while there is something to remember |
//! | states | queue, stream | bytes | while the workflow has a state |
//! | messages | queue, sequence | `MessageRecord` | while the message is stored |
//! | contents | queue, sequence | `MessageContent` | while the message is stored |
//! | line | queue, stream, rank | sequence | while it stands in the line |
//! | aside | queue, stream, rank | sequence | while it stands beside the line |
//! | links | queue, stream, predecessor | `ChainLink` | until the cursor is far beyond it |
//! | trails | queue, stream, rank | `TrailEntry` | as long as its link |
//! | roots | queue, stream, sequence | nothing | while it waits for an unknown predecessor |
//! | waiting | queue, stream, message ID | sequence | while the chain has not reached it |
//! | marks | queue, stream, first rank | `MarkRecord` | while a message could come for its ranks; with its workflow or its cursor |
//! | holdings | queue, stream | `Holding` | while somebody holds it |
//! | ready | queue, ticket | stream | while its head can be handed out |
//! | reminders | due, queue, what | nothing | until it is due |
//! | dead_by_reason | queue, reason, sequence | nothing | while it is a dead letter |
//! | dead_by_workflow | queue, stream, rank, sequence | nothing | while it is a dead letter |
//! | duplicates | queue, message ID | `Duplicate` | until its window is over |
//! | answers | queue, idempotency key | `AnswerRecord` | until its window is over |
//! | answer_counts | queue | how many answers | while there are some |
//! | audit | number | `AuditEntry` | until there are too many after it |
//! | history | queue, number | `HistoryEntry` | until it is too old, or there are too many after it |
//! | history_by_message | queue, sequence | number | as long as its entry |
//! | history_by_workflow | queue, stream, number | nothing | as long as its entry |
//! | cursors | queue, stream | `Cursor` | while the cursor of a forgotten workflow is remembered |
//! | cursors_by_age | queue, since, stream | nothing | as long as its cursor |
//! | cursor_counts | queue | `CursorCount` | once a cursor was remembered, or a link cut |
//! | topics | name | `TopicRecord` | while the topic exists |
//! | handovers | partition | `HandoverMark` | once that partition has handed something over |

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use redb::TableDefinition;
use redb::TableHandle;

use crate::clock::Timestamp;
use crate::engine::rules::audit::AuditEntry;
use crate::engine::rules::change::TrailEntry;
use crate::engine::rules::cursor::Cursor;
use crate::engine::rules::cursor::CursorCount;
use crate::engine::rules::history::HistoryEntry;
use crate::engine::rules::record::AnswerRecord;
use crate::engine::rules::record::ChainLink;
use crate::engine::rules::record::Duplicate;
use crate::engine::rules::record::HandoverMark;
use crate::engine::rules::record::Holding;
use crate::engine::rules::record::MarkRecord;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::definition::COUNTERS;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::definition::META;
use crate::engine::store::definition::QUEUES;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::line_rows::LineRows;
use crate::engine::store::one_row::OneRow;
use crate::engine::store::rare_rows::RareRows;
use crate::engine::store::rows::HashRows;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::slots::RowInSlots;
use crate::engine::store::table::FlushedKey;
use crate::engine::store::table::MEMTABLES;
use crate::engine::store::table::Table;
use crate::engine::store::table::TableVisitor;
use crate::error::Fault;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::lookup::SlotNumber;

/// The number of this layout. A change of bytes raises it.
pub(crate) const FORMAT: u32 = 5;

/// The same layout of a file whose margin is in use (`margin`): who knows of none would not find its last commits. A file that was closed
/// has the number before. The next layout is 7, and 8 while its margin is in use; 6 is the older one then, as 5 is.
pub(crate) const FORMAT_WITH_MARGIN: u32 = 6;

/// The last layout with a row of the file for each row of a table.
pub(crate) const FORMAT_BEFORE_BLOCKS: u32 = 4;

/// The last layout whose records are frozen in `format3`; it is upgraded when it is opened (`upgrade.rs`).
pub(crate) const FORMAT_3: u32 = 3;

/// The layout of the same records without a journal. Between the two, format 2 had no answers and no audit.
pub(crate) const FORMAT_BEFORE_JOURNAL: u32 = 1;

/// Makes a table.
macro_rules! table {
    ($number:literal $field:ident $table:ident: $rows:ident, $prefix:ty, $key:ty => $value:ty, at $place:ty) => {
        pub(crate) struct $table;

        impl Table for $table {
            type Prefix = $prefix;
            type Key = $key;
            type Rows = $rows<$key, WindowSlot<$value>>;
            type Gone = RareRows<$rows<$key, SlotStamp>>;
            type Value = $value;
            type Flushed = $table;
            type Place = $place;
            const NAME: &'static str = stringify!($field);
            const DEFINITION: RawTableDefinition = TableDefinition::new(Self::NAME);
            const NUMBER: u8 = $number;
            const IN_BLOCKS: bool = number_is_in_blocks($number);

            fn flushed_key<'k>(prefix: &'k $prefix, key: &'k $key) -> FlushedKey<'k, $table> {
                (prefix, key)
            }
        }
    };
}

/// Makes the same table as it is in slots: one row each.
macro_rules! row_in_slots {
    ($row:ident of $table:ident: $slot:ident { queue, $key:ident }, at $place:ty, from $first:expr) => {
        pub(crate) struct $row;

        impl Table for $row {
            type Prefix = $slot;
            type Key = ();
            type Rows = OneRow<WindowSlot<Self::Value>>;
            type Gone = OneRow<SlotStamp>;
            type Value = <$table as Table>::Value;
            type Flushed = $table;
            type Place = $place;
            const NAME: &'static str = $table::NAME;
            const DEFINITION: RawTableDefinition = $table::DEFINITION;
            const NUMBER: u8 = $table::NUMBER;
            const IN_BLOCKS: bool = $table::IN_BLOCKS;

            fn flushed_key<'k>(slot: &'k $slot, (): &'k ()) -> FlushedKey<'k, $table> {
                (&slot.queue, &slot.$key)
            }
        }

        impl RowInSlots for $row {
            const FIRST: <$table as Table>::Key = $first;

            fn slot_key(queue: QueueId, key: &<$table as Table>::Key) -> $slot {
                $slot { queue, $key: key.clone() }
            }
        }
    };
}

row_in_slots!(WorkflowRow of Workflows: WorkflowKey { queue, stream }, at SlotNumber, from WorkflowRef::FIRST);
row_in_slots!(HoldingRow of Holdings: WorkflowKey { queue, stream }, at SlotNumber, from WorkflowRef::FIRST);
row_in_slots!(MessageRow of Messages: MessageKey { queue, sequence }, at MessageKey, from SequenceNumber::new(0));
row_in_slots!(ContentRow of Contents: MessageKey { queue, sequence }, at MessageKey, from SequenceNumber::new(0));

/// How it is noted where the rows of a prefix are.
macro_rules! place_of {
    (of_messages) => {
        MessageKey
    };
    ($($of_workflows:ident)?) => {
        SlotNumber
    };
}

/// Makes the tables.
macro_rules! tables {
    ($($number:literal $field:ident $table:ident: $rows:ident, $prefix:ty, $key:ty => $value:ty $(, in $slots:ident as $row:ident)?;)*) => {
        $(table! { $number $field $table: $rows, $prefix, $key => $value, at place_of!($($slots)?) })*

        const _: () = assert!([$($number),*].len() == MEMTABLES, "a table has its place in memory");

        /// Their definitions, in the order of their numbers.
        pub(crate) const MEMTABLE: [RawTableDefinition; MEMTABLES] = [$($table::DEFINITION),*];

        /// Visits every table whose rows go through the journal, in the order of their numbers.
        pub(crate) fn visit_each(visitor: &mut impl TableVisitor) -> Result<(), Fault> {
            $(visitor.visit::<$table>()?;)*
            Ok(())
        }
    };
}

/// Gives a macro all tables whose rows go through the journal: what their rows are, and how they are kept in memory.
macro_rules! each_table {
    ($make:ident) => {
        $make! {
            0 workflows Workflows: HashRows, QueueId, WorkflowRef => WorkflowRecord, in of_workflows as WorkflowRow;
            1 states States: HashRows, QueueId, WorkflowRef => Bytes;
            2 messages Messages: HashRows, QueueId, SequenceNumber => Arc<MessageRecord>, in of_messages as MessageRow;
            3 contents Contents: HashRows, QueueId, SequenceNumber => MessageContent, in of_messages as ContentRow;
            4 line Line: LineRows, WorkflowKey, u64 => SequenceNumber, in of_workflows as Line;
            5 aside Aside: BTreeMap, WorkflowKey, u64 => SequenceNumber;
            6 links Links: BTreeMap, WorkflowKey, Option<MessageId> => ChainLink;
            7 trails Trails: BTreeMap, WorkflowKey, u64 => TrailEntry;
            8 roots Roots: BTreeMap, WorkflowKey, SequenceNumber => ();
            9 waiting Waiting: BTreeMap, WorkflowKey, MessageId => SequenceNumber;
            10 marks Marks: BTreeMap, WorkflowKey, u64 => MarkRecord;
            11 holdings Holdings: HashRows, QueueId, WorkflowRef => Holding, in of_workflows as HoldingRow;
            12 ready Ready: LineRows, QueueId, u64 => WorkflowRef;
            13 reminders Reminders: BTreeMap, (), ReminderKey => ();
            14 dead_by_reason DeadByReason: BTreeMap, QueueId, (String, SequenceNumber) => ();
            15 dead_by_workflow DeadByWorkflow: BTreeMap, WorkflowKey, (u64, SequenceNumber) => ();
            16 duplicates Duplicates: HashRows, QueueId, MessageId => Duplicate;
            17 answers Answers: HashRows, QueueId, Arc<str> => Arc<AnswerRecord>;
            18 answer_counts AnswerCounts: HashRows, QueueId, () => u64;
            19 audit Audit: BTreeMap, (), u64 => Arc<AuditEntry>;
            20 history History: HashRows, QueueId, u64 => Arc<HistoryEntry>;
            21 history_by_message HistoryByMessage: HashRows, QueueId, SequenceNumber => u64;
            22 history_by_workflow HistoryByWorkflow: BTreeMap, WorkflowKey, u64 => ();
            23 cursors Cursors: HashRows, QueueId, WorkflowRef => Cursor;
            24 cursors_by_age CursorsByAge: BTreeMap, QueueId, (Timestamp, WorkflowRef) => ();
            25 cursor_counts CursorCounts: HashRows, QueueId, () => CursorCount;
            26 topics Topics: BTreeMap, (), QueueName => Arc<TopicRecord>;
            27 handovers Handovers: BTreeMap, (), u64 => Arc<HandoverMark>;
        }
    };
}

pub(crate) use each_table;

each_table!(tables);

/// Whether the rows of the table of this number are in blocks: there is one for each message. Their keys begin with a queue.
const fn number_is_in_blocks(number: u8) -> bool {
    matches!(number, 2..=4)
}

/// Those whose rows are in blocks.
pub(crate) fn in_blocks() -> impl Iterator<Item = RawTableDefinition> {
    (0..).zip(MEMTABLE).filter(|(number, _)| number_is_in_blocks(*number)).map(|(_, definition)| definition)
}

/// Whether the rows of a table are in blocks.
pub(crate) fn is_in_blocks(table: &RawTableDefinition) -> bool {
    in_blocks().any(|other| other.name() == table.name())
}

/// Every table with checksummed rows.
pub(crate) fn checksummed() -> impl Iterator<Item = RawTableDefinition> {
    MEMTABLE.into_iter().chain([META, QUEUES, COUNTERS])
}

/// Every table.
pub(crate) fn all() -> impl Iterator<Item = RawTableDefinition> {
    checksummed().chain([JOURNAL])
}
