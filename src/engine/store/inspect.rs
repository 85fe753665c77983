//! Looking at a file without changing it: read only, behind a gate that never opens.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::path::Path;

use redb::Database;
use redb::DatabaseError;
use redb::ReadTransaction;
use redb::ReadableDatabase;
use redb::StorageError;
use redb::backends::FileBackend;

use crate::engine::store::base::store_fault;
use crate::engine::store::gate::Gate;
use crate::engine::store::job::panic_text;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::held_by_another;
use crate::engine::store::open::check_format;
use crate::engine::store::open::check_magic;
use crate::engine::store::open::foreign;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;

/// A file that is looked at. Whatever redb wants to write, be it a repair, stays in memory.
pub(crate) struct Inspection {
    database: Option<Database>,
}

impl Inspection {
    /// Opens a file to look at it.
    ///
    /// # Errors
    /// [`OpenError`] as for an engine: somebody has it open, or it is not an engine's file.
    pub(crate) fn open(path: &Path) -> Result<Inspection, OpenError> {
        let mut file = File::open(path).map_err(|error| fault_of(path, &error))?;
        check_magic(path, &mut file)?;
        let gate = Gate::for_looking(FileBackend::new(file).map_err(store_fault)?);
        let mut builder = Database::builder();
        builder.set_cache_size(limits::STORE_CACHE_BYTES);
        let database = match guarded(|| builder.create_with_backend(gate)) {
            Ok(Ok(database)) => database,
            Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => return Err(held_by_another(path)),
            Ok(Err(error)) => return Err(foreign(path, error.to_string())),
            Err(panic) => return Err(foreign(path, panic)),
        };
        let inspection = Inspection { database: Some(database) };
        match guarded(|| check_format(path, inspection.database())) {
            Ok(checked) => checked.map(|()| inspection),
            Err(panic) => Err(foreign(path, panic)),
        }
    }

    /// Reads every page and compares its checksum; says what is wrong. To be called on a file just opened, and last:
    /// what redb cannot verify it drops from what it shows afterwards.
    pub(crate) fn check_pages(mut self) -> Result<Option<String>, Fault> {
        let Some(database) = &mut self.database else { return Ok(None) };
        page_damage(database)
    }

    /// What was last committed.
    pub(crate) fn transaction(&self) -> Result<ReadTransaction, Fault> {
        self.database().begin_read().map_err(store_fault)
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

/// Does something that may panic on a damaged file; the panic's text if it did.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(&*panic))
}

/// Reads every page and compares its checksum; says what is wrong.
pub(crate) fn page_damage(database: &mut Database) -> Result<Option<String>, Fault> {
    match guarded(|| database.check_integrity()) {
        Ok(Ok(true)) => Ok(None),
        Ok(Ok(false)) => Ok(Some("a checksum of a page or the list of free pages does not fit".to_owned())),
        Ok(Err(DatabaseError::Storage(StorageError::Io(error)))) => Err(store_fault(StorageError::Io(error))),
        Ok(Err(error)) => Ok(Some(error.to_string())),
        Err(panic) => Ok(Some(panic)),
    }
}
