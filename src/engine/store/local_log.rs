//! The journal of the file as the log.

use std::sync::Arc;

use redb::Database;
use redb::Durability;
use redb::ReadTransaction;
use redb::ReadableDatabase;
use redb::WriteTransaction;

use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::journal;
use crate::engine::store::log::EachEntry;
use crate::engine::store::log::Entry;
use crate::engine::store::log::Log;
use crate::engine::store::margin::MarginRow;
use crate::engine::store::margin::MarginUse;
use crate::engine::store::margin::SharedMargin;
use crate::engine::store::meta::put_format;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::schema;
use crate::engine::store::transaction::begin;
use crate::error::Fault;
use crate::limits;
use crate::mutex::Mutex;

/// The journal of a file. The lock on the file is what keeps other writers away.
#[derive(Clone)]
pub(crate) struct LocalLog {
    /// Before the database, so that nothing is read from it when it is closed.
    freed: Arc<Mutex<FreedPages>>,
    database: Arc<Database>,
    options: StoreOptions,
    /// Where short rows go first, if the file has one.
    margin: Option<SharedMargin>,
}

/// The pages that commits have freed since this state of the file was taken: as long as somebody could read it, redb only lists
/// them. To give back the few that one small commit frees costs it a third of that commit, and to give back those of many hardly more.
#[derive(Default)]
struct FreedPages {
    kept_for: Option<ReadTransaction>,
    commits: u32,
    bytes: usize,
}

impl FreedPages {
    /// Notes a commit that is to come: with enough before it, it gives back what they and it have freed.
    fn note(&mut self, bytes: usize) {
        self.commits += 1;
        self.bytes += bytes;
        if self.commits >= limits::COMMITS_KEEP_PAGES || self.bytes >= limits::BYTES_KEEP_PAGES {
            *self = FreedPages::default();
        }
    }

    /// From here on, freed pages are kept.
    fn keep(&mut self, database: &Database) -> Result<(), Fault> {
        if self.kept_for.is_none() {
            self.kept_for = Some(database.begin_read().map_err(store_fault)?);
        }
        Ok(())
    }
}

impl LocalLog {
    pub(crate) fn new(
        database: Arc<Database>,
        options: StoreOptions,
        margin: Option<SharedMargin>,
    ) -> LocalLog {
        LocalLog { freed: Arc::default(), database, options, margin }
    }

    /// Lets the next commit give back what it frees, and those before it have: it frees much.
    pub(crate) fn give_back_pages(&self) {
        *self.freed.lock() = FreedPages::default();
    }

    /// Appends an entry whose commit writes nothing else: to the margin, if that takes it.
    ///
    /// # Errors
    /// The fault that makes the store useless. It is unknown then whether the entry is there.
    pub(crate) fn append_alone(&self, entry: Entry<'_>) -> Result<(), Fault> {
        if let Some(margin) = &self.margin {
            let mut margin = margin.lock();
            if margin.takes(entry.bytes) {
                return margin.append(entry);
            }
        }
        self.append_with(&[entry], Durability::Immediate, |_| Ok(()))
    }

    /// Appends entries and writes what else their commit has to write, in one transaction.
    ///
    /// # Errors
    /// The fault that makes the store useless. Unless it is one of the last sync, nothing is committed then.
    pub(crate) fn append_with(
        &self,
        entries: &[Entry<'_>],
        durability: Durability,
        write: impl FnOnce(&WriteTransaction) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.commit(MarginUse::GoesOn, durability, entries, write)
    }

    /// How many bytes the next commit has to write for rows of the margin.
    pub(crate) fn bytes_in_margin(&self) -> u64 {
        self.margin.as_ref().map_or(0, |margin| margin.lock().bytes())
    }

    /// The rows that are in the margin and not in the journal, in order.
    pub(crate) fn rows_in_margin(&self) -> Vec<MarginRow> {
        self.margin.as_ref().map(|margin| margin.lock().rows().to_vec()).unwrap_or_default()
    }

    /// Puts what is in the margin into the journal, of a file that is to be closed: a version that knows of no margin may open it.
    ///
    /// # Errors
    /// The fault that makes the store useless. Nothing is lost by it.
    pub(crate) fn end_margin(&self) -> Result<(), Fault> {
        match self.margin.as_ref().is_some_and(|margin| margin.lock().is_in_use()) {
            true => self.commit(MarginUse::Ends, Durability::Immediate, &[], |_| Ok(())),
            false => Ok(()),
        }
    }

    fn commit(
        &self,
        margin_use: MarginUse,
        durability: Durability,
        entries: &[Entry<'_>],
        write: impl FnOnce(&WriteTransaction) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut margin = self.margin.as_ref().map(SharedMargin::lock);
        let mut freed = self.freed.lock();
        let committed = guarded(|| {
            let mut transaction = begin(&self.database, self.options)?;
            transaction.set_durability(durability).map_err(store_fault)?;
            if let Some(margin) = &margin {
                match margin_use {
                    _ if margin.is_declared(margin_use) => {}
                    MarginUse::GoesOn => put_format(&transaction, schema::FORMAT_WITH_MARGIN)?,
                    MarginUse::Ends => put_format(&transaction, schema::FORMAT)?,
                }
            }
            let before = margin.as_ref().map(|margin| margin.rows()).unwrap_or_default();
            journal::append(
                &transaction,
                before.iter().map(MarginRow::entry).chain(entries.iter().copied()),
            )?;
            write(&transaction)?;
            if matches!(durability, Durability::None) {
                *freed = FreedPages::default();
                return transaction.commit().map_err(store_fault);
            }
            freed.note(entries.iter().map(|entry| entry.bytes.len()).sum());
            transaction.commit().map_err(store_fault)?;
            freed.keep(&self.database)
        });
        let committed = committed.unwrap_or_else(|panic| Err(panic.fault_in(&JOURNAL)));
        match (&mut margin, &committed) {
            (Some(margin), Ok(())) => margin.begin_anew(margin_use, entries.last().map(|entry| entry.bytes)),
            (Some(margin), Err(_)) => margin.stop(),
            (None, _) => {}
        }
        committed
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
                self.append_with(&[entry], Durability::Immediate, |_| Ok(()))
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

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    fn in_memory() -> LocalLog {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        LocalLog::new(Arc::new(database), StoreOptions::default(), None)
    }

    /// Appends a row so long, and drops those up to another; how many pages are in use then.
    fn append(log: &LocalLog, position: u64, row_len: usize, dropped: u64) -> u64 {
        let row = vec![7; row_len];
        let drop_rows = |transaction: &WriteTransaction| journal::drop_through(transaction, dropped);
        log.append_with(&[Entry { position, bytes: &row }], Durability::Immediate, drop_rows).unwrap();
        log.database.begin_write().unwrap().stats().unwrap().allocated_pages()
    }

    /// The most pages in use after a commit, of many with rows so long, each of which drops those before.
    fn pages_in_use_max(commits: u64, row_len: usize) -> u64 {
        let log = in_memory();
        (1..=commits).map(|position| append(&log, position, row_len, position - 1)).max().unwrap()
    }

    #[test]
    fn pages_that_commits_free_are_used_again() {
        let commits = u64::from(limits::COMMITS_KEEP_PAGES);
        let kept = pages_in_use_max(commits, 100);
        let in_use = pages_in_use_max(6 * commits, 100);
        assert!(in_use < 2 * kept, "{in_use} pages are in use, and {kept} were in the first round");
    }

    #[test]
    fn pages_of_large_commits_are_used_again_sooner() {
        let (row, pages) = (limits::BYTES_KEEP_PAGES / 4, (limits::BYTES_KEEP_PAGES / 4096) as u64);
        let in_use = pages_in_use_max(40, row);
        assert!(in_use < 3 * pages, "{in_use} pages are in use, and a quarter of {pages} by what is there");
    }

    #[test]
    fn pages_of_a_generation_are_used_again_at_once() {
        let (log, row) = (in_memory(), limits::BYTES_KEEP_PAGES / 4);
        let before = (1..4).map(|position| append(&log, position, row, 0)).max().unwrap();
        log.give_back_pages();
        let after = append(&log, 4, 1, 3);
        assert!(after < before / 2, "{before} pages were in use, and {after} still are");
    }
}
