//! Opening a file: locked first, looked at before anything is written, refused untouched if it is not ours.

use std::fs::File;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use redb::Builder;
use redb::Database;
use redb::ReadableDatabase;
#[cfg(test)]
use redb::StorageBackend;
use redb::WriteTransaction;
use redb::backends::FileBackend;
use redb::backends::InMemoryBackend;

use crate::engine::store::definition;
use crate::engine::store::options::StoreOptions;

#[cfg(feature = "head-room")]
use crate::engine::store::ballast::Volume;
use crate::engine::store::base::Base;
use crate::engine::store::caught::guarded;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::damaged;
use crate::engine::store::create::MakeDatabase;
use crate::engine::store::create::create;
use crate::engine::store::create::database_with_margin;
use crate::engine::store::create::plain_database;
#[cfg(test)]
use crate::engine::store::create::write_format;
#[cfg(test)]
use crate::engine::store::header::MAGIC;
use crate::engine::store::in_place::Epoch;
use crate::engine::store::inspect::damaged_tables;
use crate::engine::store::inspect::page_damage;
use crate::engine::store::journal;
use crate::engine::store::key::name_key;
use crate::engine::store::leftover::check_no_store;
use crate::engine::store::lock_file::LockFile;
use crate::engine::store::lock_file::check_is_file;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::file_fault;
#[cfg(any(test, feature = "cluster"))]
use crate::engine::store::log::Log;
use crate::engine::store::margin::Margin;
#[cfg(test)]
use crate::engine::store::margin::write_empty_with_margin;
use crate::engine::store::memtables::Memtables;
use crate::engine::store::meta::ChecksummedTable;
use crate::engine::store::meta::EPOCH_ROW;
use crate::engine::store::meta::StoreMeta;
use crate::engine::store::meta::write_epoch;
use crate::engine::store::missing::check_whole;
use crate::engine::store::recognize::check_format;
use crate::engine::store::recognize::check_magic;
use crate::engine::store::recognize::damaged_file;
#[cfg(test)]
use crate::engine::store::recognize::foreign;
use crate::engine::store::recognize::refusal;
use crate::engine::store::recognize::refusal_of_panic;
use crate::engine::store::room::DiskRoom;
use crate::engine::store::row_room::RowRoom;
use crate::engine::store::schema::Handovers;
use crate::engine::store::schema::Topics;
use crate::engine::store::shared_file::SharedFile;
use crate::engine::store::store::Store;
use crate::engine::store::table::Table;
use crate::engine::store::transaction::begin;
use crate::engine::store::upgrade::bring_up_to_date_for_good;
use crate::engine::store::watch::Watch;
use crate::engine::store::window::JournalWindow;
use crate::engine::store::write_barrier::GatedFile;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;

impl Store {
    /// Opens the store of a file, or creates it.
    pub(crate) fn open(path: &Path, options: StoreOptions) -> Result<Store, OpenError> {
        let store = Store::open_by(path, options, database_with_margin, Store::begin_epoch)?;
        if options.head_room_bytes == 0 {
            give_up_ballast(path);
        }
        Ok(store)
    }

    /// Opens the file of a store that follows a log, or creates it: whose epoch it is, the log says.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn open_behind(
        path: &Path,
        options: StoreOptions,
        log: Arc<dyn Log>,
    ) -> Result<Store, OpenError> {
        let mut store = Store::open_within_epoch(path, options)?;
        store.log = Some(log);
        Ok(store)
    }

    /// Opens the store of a file, or creates it, and begins no epoch.
    pub(crate) fn open_within_epoch(path: &Path, options: StoreOptions) -> Result<Store, OpenError> {
        Store::open_by(path, options, plain_database, |file, options, lock| {
            let transaction = begin(&file.database, options)?;
            bring_up_to_date_for_good(&file.database, &transaction)?;
            let epoch = last_epoch(&transaction)?;
            Store::load(file, transaction, epoch, options, lock)
        })
    }

    fn open_by(
        path: &Path,
        options: StoreOptions,
        make: MakeDatabase,
        load: impl FnOnce(OpenFile, StoreOptions, Option<LockFile>) -> Result<Store, Fault>,
    ) -> Result<Store, OpenError> {
        check_is_file(path)?;
        check_begins(path)?;
        let lock = LockFile::take(path)?;
        // Before anything is written to the store: the ballast may have to make way for it.
        let written = Arc::default();
        let room = room_of(path, options, &written)?;
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => {
                check_no_store(path)?;
                create(path, options, make)?;
            }
            Err(error) => return Err(fault_of(path, &error).into()),
        }
        let opened = guarded(|| {
            let (file, watch) = open_file(path, options, (written, room.clone()))?;
            Ok((load(file, options, Some(lock))?, watch))
        });
        let opened = opened.unwrap_or_else(|panic| Err(refusal_of_panic(path, panic)));
        let (mut store, watch) = opened.map_err(|error| match error {
            OpenError::Fault(Fault::Damaged { table, detail }) => {
                OpenError::Damaged { path: path.to_owned(), detail: format!("table {table}: {detail}") }
            }
            error => error,
        })?;
        if let Some(room) = &room {
            room.make_ballast();
        }
        (store.watch, store.room) = (Some(Arc::new(watch)), room);
        Ok(store)
    }

    /// A store that keeps its state in memory only.
    pub(crate) fn in_memory(options: StoreOptions) -> Result<Store, OpenError> {
        let database = builder(options).create_with_backend(InMemoryBackend::new()).map_err(store_fault)?;
        Ok(Store::begin_epoch(OpenFile { database, margin: None }, options, None)?)
    }

    /// A new store on any backend.
    #[cfg(test)]
    pub(crate) fn with_backend(
        backend: impl StorageBackend,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        write_empty_with_margin(&backend)?;
        let file = SharedFile::new(backend);
        let database = builder(options).create_with_backend(file.clone()).map_err(store_fault)?;
        let transaction = begin(&database, options)?;
        write_format(&transaction)?;
        transaction.commit().map_err(store_fault)?;
        Ok(Store::begin_epoch(OpenFile::new(database, file)?, options, None)?)
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
        let (path, file) = (Path::new("backend"), SharedFile::new(backend));
        let opened = guarded(|| {
            let mut magic = [0; MAGIC.len()];
            if file.read(0, &mut magic).is_err() || magic != *MAGIC {
                return Err(foreign(path, "it does not begin as one".to_owned()));
            }
            let database = builder(options).create_with_backend(file.clone());
            let mut database = database.map_err(|error| foreign(path, error.to_string()))?;
            if verify && !database.check_integrity().map_err(|error| foreign(path, error.to_string()))? {
                return Err(damaged(&definition::META, "a page is not what was written").into());
            }
            check_whole(&database, check_format(path, &database)?)?;
            Ok(database)
        });
        let database = opened.unwrap_or_else(|panic| Err(foreign(path, panic.told())))?;
        Ok(Store::begin_epoch(OpenFile::new(database, file)?, options, None)?)
    }

    /// Raises the epoch, durably, and loads what is kept in memory: the journal is read again, row after row.
    fn begin_epoch(file: OpenFile, options: StoreOptions, lock: Option<LockFile>) -> Result<Store, Fault> {
        let transaction = begin(&file.database, options)?;
        bring_up_to_date_for_good(&file.database, &transaction)?;
        let epoch = next_epoch(last_epoch(&transaction)?)?;
        write_epoch(&transaction, epoch)?;
        Store::load(file, transaction, epoch, options, lock)
    }

    fn load(
        OpenFile { database, margin }: OpenFile,
        transaction: WriteTransaction,
        epoch: u32,
        options: StoreOptions,
        lock: Option<LockFile>,
    ) -> Result<Store, Fault> {
        // A file from before there were topics, or handovers, has no table of them.
        for table in [<Topics as Table>::DEFINITION, <Handovers as Table>::DEFINITION] {
            drop(transaction.open_table(table).map_err(store_fault)?);
        }
        let meta = StoreMeta::load(&transaction)?;
        if let Some(margin) = &margin {
            margin.put_into_journal(&transaction)?;
        }
        transaction.commit().map_err(store_fault)?;
        let memtables = Memtables::new(&Base::new(&database))?;
        let window = JournalWindow::new(generation_bytes(options), options.generations);
        let database = Arc::new(database);
        let mut store = Store {
            database,
            options,
            epoch: Epoch { number: epoch, holder: 0 },
            memtables,
            meta,
            window,
            flushing: None,
            room_for_rows: RowRoom::default(),
            margin: None,
            log: None,
            unsynced: Arc::default(),
            failed: None,
            watch: None,
            room: None,
            _lock: lock,
        };
        store.replay()?;
        // What is strict must not lose its last commit to a flipped bit, which the margin takes for a row that a crash has cut.
        let margin = margin.filter(|_| !options.strict);
        store.margin = margin.map(Margin::shared);
        Ok(store)
    }
}

/// A file that is open, of which nothing was read but what it is, and what was left in its margin.
pub(crate) struct OpenFile {
    database: Database,
    margin: Option<Margin>,
}

impl OpenFile {
    fn new(database: Database, file: SharedFile) -> Result<OpenFile, Fault> {
        let mut margin = Margin::of(file)?;
        if let Some(margin) = &mut margin {
            margin.find_left(journal::last_entry(&database.begin_read().map_err(store_fault)?)?)?;
        }
        Ok(OpenFile { database, margin })
    }
}

fn last_epoch(transaction: &WriteTransaction) -> Result<u32, Fault> {
    Ok(ChecksummedTable::open(transaction, definition::META)?.get(&name_key(EPOCH_ROW))?.unwrap_or(0))
}

/// The epoch after another.
pub(crate) fn next_epoch(epoch: u32) -> Result<u32, Fault> {
    epoch.checked_add(1).ok_or_else(|| damaged(&definition::META, "the epochs are used up"))
}

/// How many bytes fill a generation: what the head room has to hold while a backlog is drained stays below it.
fn generation_bytes(options: StoreOptions) -> u64 {
    match options.head_room_bytes / limits::GENERATIONS as u64 {
        0 => options.generation_bytes,
        share => options.generation_bytes.min(share),
    }
}

/// The room on the disk of a file, if that is to be looked after.
#[cfg(feature = "head-room")]
fn room_of(path: &Path, options: StoreOptions, written: &Arc<AtomicU64>) -> Result<Option<DiskRoom>, Fault> {
    if options.head_room_bytes == 0 {
        return Ok(None);
    }
    let begun = Volume::of_store(path)
        .and_then(|volume| DiskRoom::begin(volume, options.head_room_bytes, written.clone()));
    begun.map(Some).map_err(|error| fault_of(path, &error))
}

#[cfg(not(feature = "head-room"))]
fn room_of(_: &Path, _: StoreOptions, _: &Arc<AtomicU64>) -> Result<Option<DiskRoom>, Fault> {
    Ok(None)
}

/// Gives back what was set aside when there was head room. It is no more than room that is lost if that fails.
#[cfg(feature = "head-room")]
fn give_up_ballast(path: &Path) {
    if let Err(error) = Volume::of_store(path).and_then(|volume| volume.give_up_ballast()) {
        tracing::warn!(%error, "the ballast file, for which there is no use, cannot be deleted");
    }
}

#[cfg(not(feature = "head-room"))]
fn give_up_ballast(_: &Path) {}

fn builder(options: StoreOptions) -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache_bytes);
    builder
}

/// Refuses a file that is not ours as long as nothing has been made beside it, not even a lock.
fn check_begins(path: &Path) -> Result<(), OpenError> {
    match File::open(path) {
        Ok(mut file) => check_magic(path, &mut file),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fault_of(path, &error).into()),
    }
}

/// Opens a file that is there, behind a gate that opens only when the file is ours.
fn open_file(
    path: &Path,
    options: StoreOptions,
    (written, room): (Arc<AtomicU64>, Option<DiskRoom>),
) -> Result<(OpenFile, Watch), OpenError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let mut file = file.map_err(|error| fault_of(path, &error))?;
    check_magic(path, &mut file)?;
    let bytes = file.metadata().map_err(file_fault)?.len();
    let watch = Watch::begin(path, &file)?;
    let write_barrier =
        GatedFile::closed(FileBackend::new(file).map_err(store_fault)?, options.sync_delay, written, room);
    // A repair has looked at every page already.
    let repaired = Arc::new(AtomicBool::new(false));
    let mut builder = builder(options);
    let note_repair = repaired.clone();
    builder.set_repair_callback(move |_| note_repair.store(true, Ordering::Relaxed));
    let file = SharedFile::new(write_barrier.clone());
    let mut database = match builder.create_with_backend(file.clone()) {
        Ok(database) => database,
        Err(error) => return Err(refusal(path, error)),
    };
    let found = check_format(path, &database)?;
    let checks = bytes <= options.check_bytes_max && !repaired.load(Ordering::Relaxed);
    if checks && let Some(problem) = page_damage(&mut database)? {
        // Both hold the file.
        drop((database, write_barrier, file));
        return Err(damaged_file(path, &format!("{problem}{}", damaged_tables(path))));
    }
    check_whole(&database, found)?;
    let file = OpenFile::new(database, file)?;
    write_barrier.open().map_err(file_fault)?;
    Ok((file, watch))
}
