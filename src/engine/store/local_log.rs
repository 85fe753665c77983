//! The journal of the file as the log.

use std::sync::Arc;

use redb::Database;
use redb::Durability;
use redb::ReadableDatabase;
use redb::WriteTransaction;

use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::PAGES_MAKE_NO_SENSE;
use crate::engine::store::checksum::damaged;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::journal;
use crate::engine::store::log::EachEntry;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::transaction::begin;
use crate::error::Fault;

/// The journal of a file. The lock on the file is what keeps other writers away.
#[derive(Clone)]
pub(crate) struct LocalLog {
    database: Arc<Database>,
    options: StoreOptions,
}

impl LocalLog {
    pub(crate) fn new(database: Arc<Database>, options: StoreOptions) -> LocalLog {
        LocalLog { database, options }
    }

    /// Appends an entry and writes what else its commit has to write, in one transaction.
    ///
    /// # Errors
    /// The fault that makes the store useless; nothing is committed then.
    pub(crate) fn append_with(
        &self,
        entry: Entry<'_>,
        durability: Durability,
        write: impl FnOnce(&WriteTransaction) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let committed = guarded(|| {
            let mut transaction = begin(&self.database, self.options)?;
            transaction.set_durability(durability).map_err(store_fault)?;
            journal::append(&transaction, entry.position, entry.bytes)?;
            write(&transaction)?;
            transaction.commit().map_err(store_fault)
        });
        committed.unwrap_or_else(|_| Err(damaged(&JOURNAL, PAGES_MAKE_NO_SENSE)))
    }

    /// The entry at a position, and the last position; zero without an entry.
    fn look(&self, position: u64) -> Result<(Option<Vec<u8>>, u64), Fault> {
        let (mut found, mut last) = (None, 0);
        journal::read_all(&self.database.begin_read().map_err(store_fault)?, |at, bytes| {
            last = at;
            if at == position {
                found = Some(bytes.to_vec());
            }
            Ok(())
        })?;
        Ok((found, last))
    }
}

impl Log for LocalLog {
    fn append(&self, entry: Entry<'_>) -> Result<(), Fault> {
        match self.look(entry.position)? {
            (Some(found), _) if found == entry.bytes => Ok(()),
            (None, last) if last + 1 == entry.position || last == 0 => {
                self.append_with(entry, Durability::Immediate, |_| Ok(()))
            }
            (None, last) if last < entry.position => Err(Fault::Log(format!(
                "entry {} cannot be appended to a log that ends with entry {last}",
                entry.position
            ))),
            (None, _) => Err(Fault::Replaced),
            (Some(_), _) => Err(Fault::Deposed),
        }
    }

    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), Fault> {
        let transaction = self.database.begin_read().map_err(store_fault)?;
        journal::read_from(&transaction, position, |position, bytes| each(Entry { position, bytes }))
    }

    fn trim(&self, through: u64) -> Result<(), Fault> {
        let (_, last) = self.look(0)?;
        let transaction = begin(&self.database, self.options)?;
        journal::drop_through(&transaction, through.min(last.saturating_sub(1)))?;
        transaction.commit().map_err(store_fault)
    }
}
