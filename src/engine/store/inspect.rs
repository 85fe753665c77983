//! Looking at a file without changing it: read only, behind a gate that never opens.

use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use redb::Database;
use redb::DatabaseError;
use redb::ReadTransaction;
use redb::ReadableDatabase;
use redb::ReadableTable;
use redb::StorageError;
use redb::TableError;
use redb::TableHandle;
use redb::backends::FileBackend;

use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::LAST_COMMIT_LEADS_ASTRAY;
use crate::engine::store::checksum::verify_checksum;
use crate::engine::store::definition;
use crate::engine::store::definition::RawTableDefinition;
use crate::engine::store::journal;
use crate::engine::store::key::name_key;
use crate::engine::store::lock_file::check_is_file;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::lock_file::held_by_another;
use crate::engine::store::margin::Margin;
use crate::engine::store::meta::EPOCH_ROW;
use crate::engine::store::missing;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::pages::with_place;
use crate::engine::store::recognize::check_format;
use crate::engine::store::recognize::check_magic;
use crate::engine::store::recognize::refusal;
use crate::engine::store::recognize::refusal_of_panic;
use crate::engine::store::schema;
use crate::engine::store::shared_file::SharedFile;
use crate::engine::store::transaction::begin;
use crate::engine::store::upgrade::bring_up_to_date;
use crate::engine::store::write_barrier::GatedFile;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;

/// A file that is looked at. Whatever redb wants to write, be it a repair, stays in memory.
pub(crate) struct Inspection {
    database: Option<Database>,
    margin: Option<Margin>,
    /// What is wrong with that.
    margin_damage: Option<Fault>,
    path: PathBuf,
    /// The format of what is in memory.
    format: u32,
}

impl Inspection {
    /// Opens a file to look at it.
    ///
    /// # Errors
    /// [`OpenError`] as for an engine: somebody has it open, or it is not an engine's file.
    pub(crate) fn open(path: &Path) -> Result<Inspection, OpenError> {
        check_is_file(path)?;
        let mut file = File::open(path).map_err(|error| fault_of(path, &error))?;
        check_magic(path, &mut file)?;
        let write_barrier = GatedFile::for_looking(FileBackend::new(file).map_err(store_fault)?);
        let file = SharedFile::new(write_barrier);
        let mut builder = Database::builder();
        builder.set_cache_size(limits::STORE_CACHE_BYTES);
        let database = match guarded(|| builder.create_with_backend(file.clone())) {
            Ok(Ok(database)) => database,
            Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => return Err(held_by_another(path)),
            Ok(Err(error)) => return Err(refusal(path, error)),
            Err(panic) => return Err(refusal_of_panic(path, panic)),
        };
        let (database, margin) = (Some(database), Margin::of(file)?);
        let mut inspection =
            Inspection { database, margin, margin_damage: None, path: path.to_owned(), format: 0 };
        match guarded(|| check_format(path, inspection.database())) {
            Ok(checked) => inspection.format = checked?,
            Err(panic) => return Err(refusal_of_panic(path, panic)),
        }
        Ok(inspection)
    }

    /// The same as a file that was closed and is of this version's format, in memory: what was written before is upgraded there, and what
    /// was left in its margin is put into the journal.
    ///
    /// # Errors
    /// [`OpenError::Older`] when that would take too much memory; the damage that is in the way.
    pub(crate) fn upgraded(mut self) -> Result<Inspection, OpenError> {
        let (path, found, mut margin) = (self.path.clone(), self.format, self.margin.take());
        let is_older = found != schema::FORMAT;
        if is_older && std::fs::metadata(&path).map_err(file_fault)?.len() > limits::LOOK_OLDER_BYTES_MAX {
            return Err(OpenError::Older { path, found, known: schema::FORMAT });
        }
        // Whoever goes through the journal finds what is wrong with it.
        let last = || guarded(|| journal::last_entry(&self.transaction()?)).ok().and_then(Result::ok);
        let last = margin.as_ref().and_then(|_| last());
        let mut damage = None;
        let done = guarded(|| {
            let is_left = match (&mut margin, last) {
                (Some(margin), Some(last)) => match margin.find_left(last) {
                    Err(fault @ Fault::Damaged { .. }) => {
                        damage = Some(fault);
                        false
                    }
                    found => found?,
                },
                _ => false,
            };
            if !is_older && !is_left {
                return Ok(());
            }
            let transaction = begin(self.database(), StoreOptions::default())?;
            bring_up_to_date(self.database(), &transaction)?;
            if let Some(margin) = &margin {
                margin.put_into_journal(&transaction)?;
            }
            transaction.commit().map_err(store_fault)
        });
        let damaged = |detail| Fault::Damaged { table: "pages", detail };
        done.unwrap_or_else(|panic| Err(panic.damage().map_or_else(|defect| defect, damaged)))?;
        (self.format, self.margin_damage) = (schema::FORMAT, damage);
        Ok(self)
    }

    /// What is wrong with the margin of an upgraded file. What is in it is left out then.
    pub(crate) fn margin_damage(&self) -> Option<&Fault> {
        self.margin_damage.as_ref()
    }

    /// Reads every page and compares its checksum; says what is wrong. To be called on a file just opened, and last:
    /// what redb cannot verify it drops from what it shows afterwards.
    pub(crate) fn check_pages(mut self) -> Result<Option<String>, Fault> {
        let Some(database) = &mut self.database else { return Ok(None) };
        let problem = page_damage(database)?;
        Ok(problem.map(|problem| with_place(&self.path, &problem)))
    }

    /// Checks that nothing is missing without which it would not be opened.
    ///
    /// # Errors
    /// [`Fault::Damaged`] says what is.
    pub(crate) fn check_whole(&self) -> Result<(), Fault> {
        missing::check_whole(self.database(), self.format)
    }

    /// What was last committed.
    pub(crate) fn transaction(&self) -> Result<ReadTransaction, Fault> {
        self.database().begin_read().map_err(store_fault)
    }

    /// Whether an engine has had it open, or what it is a copy of.
    pub(crate) fn has_epoch(&self) -> Result<bool, Fault> {
        let meta = self.transaction()?.open_table(definition::META).map_err(store_fault)?;
        Ok(meta.get(name_key(EPOCH_ROW).as_slice()).map_err(store_fault)?.is_some())
    }

    fn database(&self) -> &Database {
        self.database.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Inspection {
    /// A database that has panicked once may panic when it is closed, which would end the process.
    fn drop(&mut self) {
        let database = self.database.take();
        let _ = guarded(|| drop(database));
    }
}

/// Reads every page and compares its checksum; says what is wrong.
pub(crate) fn page_damage(database: &mut Database) -> Result<Option<String>, Fault> {
    match guarded(|| database.check_integrity()) {
        Ok(Ok(true)) => Ok(None),
        Ok(Ok(false)) => Ok(Some("a checksum of a page or the list of free pages does not fit".to_owned())),
        Ok(Err(DatabaseError::Storage(StorageError::Io(error)))) => Err(store_fault(StorageError::Io(error))),
        Ok(Err(_)) => Ok(Some(LAST_COMMIT_LEADS_ASTRAY.to_owned())),
        Err(panic) => panic.damage().map(Some),
    }
}

/// In which tables of a damaged file something cannot be read, as a fragment that follows what is wrong; empty when all
/// that is stored can be read.
pub(crate) fn damaged_tables(path: &Path) -> String {
    let Ok(inspection) = Inspection::open(path) else { return String::new() };
    let is_damaged = |definition: &RawTableDefinition| {
        let read = guarded(|| read_table(&inspection.transaction()?, definition));
        !matches!(read, Ok(Ok(())))
    };
    let names: Vec<_> = schema::all().filter(is_damaged).map(|table| table.name().to_owned()).collect();
    match &names[..] {
        [] => String::new(),
        [name] => format!("; table {name} cannot be read whole"),
        names => format!("; tables {} cannot be read whole", names.join(", ")),
    }
}

fn read_table(transaction: &ReadTransaction, definition: &RawTableDefinition) -> Result<(), Fault> {
    let table = match transaction.open_table(*definition) {
        Ok(table) => table,
        // A file of an older format has fewer.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(store_fault(error)),
    };
    for row in table.iter().map_err(store_fault)? {
        let (key, value) = row.map_err(store_fault)?;
        if definition.name() != definition::JOURNAL.name() {
            verify_checksum(definition, key.value(), value.value())?;
        }
    }
    Ok(())
}
