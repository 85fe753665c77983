//! Tables as redb knows them, and those that are written in place.

use redb::TableDefinition;

/// A table: raw keys, raw values.
pub(crate) type RawTableDefinition = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) const META: RawTableDefinition = TableDefinition::new("meta");
pub(crate) const JOURNAL: RawTableDefinition = TableDefinition::new("journal");
pub(crate) const QUEUES: RawTableDefinition = TableDefinition::new("queues");
pub(crate) const COUNTERS: RawTableDefinition = TableDefinition::new("tallies");
