//! Records and keys of every table, and the commands and changes that batches are made of.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::rules::change::Change;
use crate::engine::rules::record::Numbers;
use crate::engine::rules::record::QueueCounters;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::verbs::Command;
use crate::engine::store::codec;
use crate::engine::store::in_words::QueueNames;
use crate::engine::store::key::ReminderKey;
use crate::engine::store::key::key_of;
use crate::engine::store::key::parts_of;
use crate::engine::store::meta::BatchRecord;
use crate::engine::store::schema::visit_each;
use crate::engine::store::table::MEMTABLES;
use crate::engine::store::table::Table;
use crate::engine::store::table::TableVisitor;
use crate::engine::store::words::key_in_words;
use crate::error::Fault;

/// Reads bytes as what the first of them says: a table's record and key, or something else that is stored.
pub fn record(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    let kind = usize::from(*kind);
    visit_each(&mut RowOf { kind, bytes }).expect("nothing is asked of a disk");
    match kind.checked_sub(MEMTABLES) {
        Some(0) => again::<Command>(bytes),
        Some(1) => again::<Change>(bytes),
        Some(2) => again::<QueueRecord>(bytes),
        Some(3) => again::<QueueCounters>(bytes),
        Some(4) => again::<Numbers>(bytes),
        Some(5) => again::<BatchRecord>(bytes),
        Some(6) => reminder(bytes),
        _ => {}
    }
}

/// What was read is written, and read again, as the same.
fn again<T: Serialize + DeserializeOwned + Debug>(bytes: &[u8]) {
    let Some(record) = codec::decode::<T>(bytes) else { return };
    let written = codec::encode(&record);
    let read: T = codec::decode(&written).expect("what was written can be read");
    assert_eq!(codec::encode(&read), written, "{record:?}");
}

fn reminder(bytes: &[u8]) {
    let Some(reminder) = codec::decode::<Reminder>(bytes) else { return };
    assert_eq!(ReminderKey::new(&reminder).reminder().as_ref(), Some(&reminder));
}

/// The bytes as a record and as a key of one table.
struct RowOf<'a> {
    kind: usize,
    bytes: &'a [u8],
}

impl TableVisitor for RowOf<'_> {
    fn visit<T: Table>(&mut self) -> Result<(), Fault> {
        if self.kind != usize::from(T::NUMBER) {
            return Ok(());
        }
        if let Some(value) = codec::decode::<T::Value>(self.bytes) {
            let written = codec::encode(&value);
            let read: T::Value = codec::decode(&written).expect("what was written can be read");
            assert!(codec::encode(&read) == written, "a record of {}", T::NAME);
        }
        if let Some((prefix, key)) = parts_of::<T::Prefix, T::Key>(self.bytes) {
            assert_eq!(key_of(&prefix, &key), self.bytes, "a key has one form only");
            let _ = key_in_words::<T>(&prefix, &key, &QueueNames::new());
        }
        Ok(())
    }
}
