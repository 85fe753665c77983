//! Opening a file: locked first, looked at before anything is written, refused untouched if it is not ours.

use std::fs::File;
use std::fs::OpenOptions;
use std::io::Read;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redb::Builder;
use redb::Database;
use redb::DatabaseError;
use redb::ReadableDatabase;
use redb::StorageBackend;
use redb::TableError;
use redb::backends::FileBackend;
use redb::backends::InMemoryBackend;

use crate::engine::store::base::Base;
use crate::engine::store::base::record;
use crate::engine::store::base::store_fault;
use crate::engine::store::create::create;
use crate::engine::store::create::write_format;
use crate::engine::store::gate::Gate;
use crate::engine::store::inspect::page_damage;
use crate::engine::store::job::begin;
use crate::engine::store::job::panic_text;
use crate::engine::store::key::name_key;
use crate::engine::store::lock_file::LockFile;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::meta::EPOCH_ROW;
use crate::engine::store::meta::FORMAT_ROW;
use crate::engine::store::meta::Kept;
use crate::engine::store::meta::Sheet;
use crate::engine::store::schema;
use crate::engine::store::schema::Shelves;
use crate::engine::store::seal::damaged;
use crate::engine::store::store::Store;
use crate::engine::store::window::Window;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;

/// The bytes every redb file begins with.
const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreOptions {
    pub(crate) cache_bytes: usize,
    /// Two-phase commit: bit rot cannot silently roll back the last commit.
    pub(crate) strict: bool,
    pub(crate) quick_repair: bool,
    /// How many bytes of journal rows fill a generation.
    pub(crate) generation_bytes: u64,
    /// By how much every sync of the file is made longer, to see what a slower disk would do.
    pub(crate) sync_delay: Duration,
    /// How many full generations are kept in the journal before the oldest is folded.
    pub(crate) generations: usize,
    /// How large a file may be to have every page of it checked when it is opened.
    pub(crate) check_bytes_max: u64,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            cache_bytes: limits::STORE_CACHE_BYTES,
            strict: false,
            quick_repair: false,
            generation_bytes: limits::GENERATION_BYTES,
            generations: limits::GENERATIONS,
            check_bytes_max: limits::CHECK_BYTES_MAX,
            sync_delay: Duration::ZERO,
        }
    }
}

impl Store {
    /// Opens the store of a file, or creates it.
    pub(crate) fn open(path: &Path, options: StoreOptions) -> Result<Store, OpenError> {
        let lock = LockFile::take(path)?;
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => create(path, options)?,
            Err(error) => return Err(file_fault(error).into()),
        }
        let opened = catch_unwind(|| open_file(path, options));
        let foreign = |panic: Box<dyn std::any::Any + Send>| foreign(path, panic_text(&*panic));
        let database = opened.unwrap_or_else(|panic| Err(foreign(panic)))?;
        Ok(Store::begin_epoch(database, options, Some(lock))?)
    }

    /// A store that keeps its state in memory only.
    pub(crate) fn in_memory(options: StoreOptions) -> Result<Store, OpenError> {
        Store::with_backend(InMemoryBackend::new(), options)
    }

    /// A new store on any backend.
    pub(crate) fn with_backend(
        backend: impl StorageBackend,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        let database = builder(options).create_with_backend(backend).map_err(store_fault)?;
        Ok(Store::begin_epoch(database, options, None)?)
    }

    /// Opens the store that a backend holds; nothing is created.
    #[cfg(test)]
    pub(crate) fn open_backend(
        backend: impl StorageBackend,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        Store::open_held(backend, options, false)
    }

    /// Opens the store that a backend holds once every page was checked: redb itself believes what it reads.
    #[cfg(test)]
    pub(crate) fn open_verified(
        backend: impl StorageBackend,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        Store::open_held(backend, options, true)
    }

    #[cfg(test)]
    fn open_held(
        backend: impl StorageBackend,
        options: StoreOptions,
        verify: bool,
    ) -> Result<Store, OpenError> {
        let path = Path::new("backend");
        let opened = catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut magic = [0; MAGIC.len()];
            if backend.read(0, &mut magic).is_err() || magic != *MAGIC {
                return Err(foreign(path, "it does not begin as one".to_owned()));
            }
            let database = builder(options).create_with_backend(backend);
            let mut database = database.map_err(|error| foreign(path, error.to_string()))?;
            if verify && !database.check_integrity().map_err(|error| foreign(path, error.to_string()))? {
                return Err(damaged(&schema::META, "a page is not what was written").into());
            }
            check_format(path, &database)?;
            Ok(database)
        }));
        let database = opened.unwrap_or_else(|panic| Err(foreign(path, panic_text(&*panic))))?;
        Ok(Store::begin_epoch(database, options, None)?)
    }

    /// Raises the epoch, durably, and loads what is kept in memory: the journal is read again, row after row.
    fn begin_epoch(
        database: Database,
        options: StoreOptions,
        lock: Option<LockFile>,
    ) -> Result<Store, Fault> {
        let transaction = begin(&database, options)?;
        write_format(&transaction)?;
        let mut meta = Sheet::open(&transaction, schema::META)?;
        let last_epoch: u32 = meta.get(&name_key(EPOCH_ROW))?.unwrap_or(0);
        let epoch =
            last_epoch.checked_add(1).ok_or_else(|| damaged(&schema::META, "the epochs are used up"))?;
        meta.put(&name_key(EPOCH_ROW), &epoch)?;
        drop(meta);
        let kept = Kept::load(&transaction)?;
        transaction.commit().map_err(store_fault)?;
        let shelves = Shelves::new(&Base::new(&database))?;
        let window = Window::new(options.generation_bytes, options.generations);
        let database = Arc::new(database);
        let seal = Arc::default();
        let mut store =
            Store { database, options, epoch, shelves, kept, window, seal, failed: None, _lock: lock };
        store.replay()?;
        Ok(store)
    }
}

fn builder(options: StoreOptions) -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache_bytes);
    builder
}

/// Opens a file that is there, behind a gate that opens only when the file is ours.
fn open_file(path: &Path, options: StoreOptions) -> Result<Database, OpenError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let mut file = file.map_err(|error| fault_of(path, &error))?;
    check_magic(path, &mut file)?;
    let bytes = file.metadata().map_err(file_fault)?.len();
    let gate = Gate::closed(FileBackend::new(file).map_err(store_fault)?, options.sync_delay);
    // A repair has looked at every page already.
    let repaired = Arc::new(AtomicBool::new(false));
    let mut builder = builder(options);
    let note_repair = repaired.clone();
    builder.set_repair_callback(move |_| note_repair.store(true, Ordering::Relaxed));
    let mut database = match builder.create_with_backend(gate.clone()) {
        Ok(database) => database,
        Err(DatabaseError::DatabaseAlreadyOpen) => {
            return Err(OpenError::Held { path: path.to_owned(), holder: "another process".to_owned() });
        }
        Err(error) => return Err(foreign(path, error.to_string())),
    };
    check_format(path, &database)?;
    let checks = bytes <= options.check_bytes_max && !repaired.load(Ordering::Relaxed);
    if checks && let Some(detail) = page_damage(&mut database)? {
        return Err(OpenError::Damaged { path: path.to_owned(), detail });
    }
    gate.open().map_err(file_fault)?;
    Ok(database)
}

pub(crate) fn check_magic(path: &Path, file: &mut File) -> Result<(), OpenError> {
    if file.metadata().map_err(file_fault)?.is_dir() {
        return Err(foreign(path, "it is a folder".to_owned()));
    }
    let mut magic = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(file_fault)?;
    if magic != MAGIC {
        return Err(foreign(path, "it does not begin as one".to_owned()));
    }
    Ok(())
}

pub(crate) fn check_format(path: &Path, database: &Database) -> Result<(), OpenError> {
    let transaction = database.begin_read().map_err(store_fault)?;
    let meta = match transaction.open_table(schema::META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(store_fault(error).into()),
        Err(error) => return Err(foreign(path, error.to_string())),
    };
    let key = name_key(FORMAT_ROW);
    let Some(sealed) = meta.get(key.as_slice()).map_err(store_fault)? else {
        return Err(foreign(path, "it has no format number".to_owned()));
    };
    match record::<u32>(&schema::META, &key, sealed.value())? {
        schema::FORMAT | schema::FORMAT_WITHOUT_ANSWERS | schema::FORMAT_BEFORE_JOURNAL => Ok(()),
        found => Err(OpenError::Newer { path: path.to_owned(), found, known: schema::FORMAT }),
    }
}

pub(crate) fn foreign(path: &Path, detail: String) -> OpenError {
    OpenError::Foreign { path: path.to_owned(), detail }
}
