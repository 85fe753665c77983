//! What a table is whose rows go through the journal.

use std::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::key::KeyPart;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::SlotStamp;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::weight::Weight;
use crate::error::Fault;

/// About what a key and its lengths take in the journal.
const KEY_BYTES: u64 = 24;

/// How many there are.
pub(crate) const MEMTABLES: usize = 28;

/// A table whose rows go through the journal.
pub(crate) trait Table: 'static {
    /// The first part of the key: rows are only ever looked for within one prefix.
    type Prefix: KeyPart + Clone + Ord + Hash + Send + 'static;
    /// The rest of the key.
    type Key: KeyPart + Clone + Ord + Hash + Send + 'static;
    /// How the rows of a prefix are kept in memory.
    type Rows: RowMap<Self::Key, WindowSlot<Self::Value>>;
    type Gone: RowMap<Self::Key, SlotStamp>;
    type Value: Weight + Clone + Serialize + DeserializeOwned + Send + 'static;
    /// The same table as its flushed rows are looked for, which may be within other prefixes.
    type Flushed: Table<Value = Self::Value>;
    /// Where the rows of a prefix are, as changes note it: where they are in slots, a number instead of a text.
    type Place: Clone + Send + 'static;
    const NAME: &'static str;
    const DEFINITION: RawTableDefinition;
    /// The table's number in a journal row; never used for another.
    const NUMBER: u8;
    /// Whether its flushed rows are in blocks (`block.rs`).
    const IN_BLOCKS: bool;

    /// A key in the parts by which it is looked for among the flushed rows.
    fn flushed_key<'k>(prefix: &'k Self::Prefix, key: &'k Self::Key) -> FlushedKey<'k, Self::Flushed>;
}

/// What is done to one table after the other.
pub(crate) trait TableVisitor {
    fn visit<T: Table>(&mut self) -> Result<(), Fault>;
}

/// A key with its prefix.
pub(crate) type PrefixedKey<T> = (<T as Table>::Prefix, <T as Table>::Key);

/// A key with the place of its prefix.
pub(crate) type PlacedKey<T> = (<T as Table>::Place, <T as Table>::Key);

/// The parts of a key.
pub(crate) type FlushedKey<'k, T> = (&'k <T as Table>::Prefix, &'k <T as Table>::Key);

/// A row as a look-up returns it.
pub(crate) type Row<T> = (<T as Table>::Key, <T as Table>::Value);

/// About how many bytes a row takes in the journal; the pace of generations needs no more.
pub(crate) fn weight_of<T: Table>(value: Option<&T::Value>) -> u64 {
    KEY_BYTES + value.map_or(0, Weight::bytes)
}
