//! All tables on one screen. Keys are bytes that sort as their parts do (`key.rs`); values are sealed (`seal.rs`).
//!
//! | table | key | value | a row exists |
//! |---|---|---|---|
//! | meta | name | by name | always |
//! | queues | queue | `QueueRecord` | while the queue exists |
//! | tallies | queue | `Tally` | while the queue exists |
//! | workflows | queue, stream | `WorkflowRecord` | while there is something to remember |
//! | states | queue, stream | bytes | while the workflow has a state |
//! | messages | queue, sequence | `MessageRecord` | while the message is stored |
//! | contents | queue, sequence | `Content` | while the message is stored |
//! | line | queue, stream, rank | sequence | while it stands in the line |
//! | aside | queue, stream, rank | sequence | while it stands beside the line |
//! | links | queue, stream, predecessor | `Link` | until the cursor is far beyond it |
//! | trails | queue, stream, rank | `TrailEntry` | as long as its link |
//! | roots | queue, stream, sequence | nothing | while it waits for an unknown predecessor |
//! | waiting | queue, stream, message ID | sequence | while the chain has not reached it |
//! | marks | queue, stream, first rank | `Mark` | while a message could come for its ranks |
//! | holdings | queue, stream | `Holding` | while messages of it are handed out |
//! | ready | queue, ticket | stream | while its head can be handed out |
//! | reminders | due, queue, what | nothing | until it is due |
//! | dead_by_reason | queue, reason, sequence | nothing | while it is a dead letter |
//! | dead_by_workflow | queue, stream, rank, sequence | nothing | while it is a dead letter |
//! | duplicates | queue, message ID | `Duplicate` | until its window is over |

use redb::TableDefinition;

/// The number of this layout. A change of bytes raises it.
pub(crate) const FORMAT: u32 = 1;

/// A table: raw keys, sealed values.
pub(crate) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) const META: Definition = TableDefinition::new("meta");
pub(crate) const QUEUES: Definition = TableDefinition::new("queues");
pub(crate) const TALLIES: Definition = TableDefinition::new("tallies");
pub(crate) const WORKFLOWS: Definition = TableDefinition::new("workflows");
pub(crate) const STATES: Definition = TableDefinition::new("states");
pub(crate) const MESSAGES: Definition = TableDefinition::new("messages");
pub(crate) const CONTENTS: Definition = TableDefinition::new("contents");
pub(crate) const LINE: Definition = TableDefinition::new("line");
pub(crate) const ASIDE: Definition = TableDefinition::new("aside");
pub(crate) const LINKS: Definition = TableDefinition::new("links");
pub(crate) const TRAILS: Definition = TableDefinition::new("trails");
pub(crate) const ROOTS: Definition = TableDefinition::new("roots");
pub(crate) const WAITING: Definition = TableDefinition::new("waiting");
pub(crate) const MARKS: Definition = TableDefinition::new("marks");
pub(crate) const HOLDINGS: Definition = TableDefinition::new("holdings");
pub(crate) const READY: Definition = TableDefinition::new("ready");
pub(crate) const REMINDERS: Definition = TableDefinition::new("reminders");
pub(crate) const DEAD_BY_REASON: Definition = TableDefinition::new("dead_by_reason");
pub(crate) const DEAD_BY_WORKFLOW: Definition = TableDefinition::new("dead_by_workflow");
pub(crate) const DUPLICATES: Definition = TableDefinition::new("duplicates");

/// The tables whose keys begin with a queue.
pub(crate) const OF_A_QUEUE: [Definition; 18] = [
    QUEUES,
    TALLIES,
    WORKFLOWS,
    STATES,
    MESSAGES,
    CONTENTS,
    LINE,
    ASIDE,
    LINKS,
    TRAILS,
    ROOTS,
    WAITING,
    MARKS,
    HOLDINGS,
    READY,
    DEAD_BY_REASON,
    DEAD_BY_WORKFLOW,
    DUPLICATES,
];

/// Every table.
pub(crate) fn all() -> impl Iterator<Item = Definition> {
    OF_A_QUEUE.into_iter().chain([META, REMINDERS])
}
