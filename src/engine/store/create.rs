//! Creation that survives a crash at any point: made under another name, synced, then renamed.

use std::fs::File;
use std::path::Path;

use redb::Database;

use crate::engine::store::key::Key;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::lock_file::sibling;
use crate::engine::store::open::StoreOptions;
use crate::engine::store::schema;
use crate::engine::store::shelf::Shelf;
use crate::engine::store::shelf::store_fault;
use crate::engine::store::store::BATCH_ROW;
use crate::engine::store::store::BatchRecord;
use crate::engine::store::store::FORMAT_ROW;
use crate::engine::store::store::begin;
use crate::error::Fault;

/// Creates an empty store at `path`. A crash leaves either nothing there or a whole store.
pub(crate) fn create(path: &Path, options: StoreOptions) -> Result<(), Fault> {
    let new = new_file(path)?;
    let database = Database::builder().create(&new).map_err(store_fault)?;
    write_format(&database, options)?;
    drop(database);
    put_in_place(&new, path)
}

/// The name under which a file is made, free of what an earlier crash has left there.
pub(crate) fn new_file(path: &Path) -> Result<std::path::PathBuf, Fault> {
    let new = sibling(path, ".new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file_fault(error)),
        _ => Ok(new),
    }
}

/// Writes what tells a store from any other redb file.
pub(crate) fn write_format(database: &Database, options: StoreOptions) -> Result<(), Fault> {
    let transaction = begin(database, options)?;
    let meta = Shelf::new(&transaction, schema::META);
    meta.set(&Key::default().text(FORMAT_ROW), Some(&schema::FORMAT))?;
    meta.set(&Key::default().text(BATCH_ROW), Some(&BatchRecord::default()))?;
    drop(meta);
    for definition in schema::all() {
        drop(transaction.open_table(definition).map_err(store_fault)?);
    }
    transaction.commit().map_err(store_fault)
}

/// Syncs a file that was made under another name, and renames it.
pub(crate) fn put_in_place(new: &Path, path: &Path) -> Result<(), Fault> {
    File::open(new).and_then(|file| file.sync_all()).map_err(file_fault)?;
    std::fs::rename(new, path).map_err(file_fault)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Without this the name itself may be lost in a power failure; redb never does it.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(file_fault)
}
