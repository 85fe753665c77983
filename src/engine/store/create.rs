//! Creation that survives a crash at any point: made under another name, synced, then renamed.

use std::fs::File;
use std::path::Path;

use redb::Database;
use redb::WriteTransaction;

use crate::engine::store::base::store_fault;
use crate::engine::store::job::begin;
use crate::engine::store::key::name_key;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::lock_file::sibling;
use crate::engine::store::meta::FORMAT_ROW;
use crate::engine::store::meta::Sheet;
use crate::engine::store::open::StoreOptions;
use crate::engine::store::schema;
use crate::error::Fault;

/// Creates an empty store at `path`. A crash leaves either nothing there or a whole store.
pub(crate) fn create(path: &Path, options: StoreOptions) -> Result<(), Fault> {
    let new = new_file(path)?;
    let database = Database::builder().create(&new).map_err(store_fault)?;
    let transaction = begin(&database, options)?;
    write_format(&transaction)?;
    transaction.commit().map_err(store_fault)?;
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

/// Writes what tells a store from any other redb file, and makes the tables. Of an older format, which has some of the
/// same tables, it makes this one.
pub(crate) fn write_format(transaction: &WriteTransaction) -> Result<(), Fault> {
    Sheet::open(transaction, schema::META)?.put(&name_key(FORMAT_ROW), &schema::FORMAT)?;
    for definition in schema::all() {
        drop(transaction.open_table(definition).map_err(store_fault)?);
    }
    Ok(())
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
