//! Tables as redb knows them, and those that are written in place.

use redb::TableDefinition;

/// A table: raw keys, raw values.
pub(crate) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) const META: Definition = TableDefinition::new("meta");
pub(crate) const JOURNAL: Definition = TableDefinition::new("journal");
pub(crate) const QUEUES: Definition = TableDefinition::new("queues");
pub(crate) const TALLIES: Definition = TableDefinition::new("tallies");
