//! Whether a file is one of ours, and how it is refused when it is not, or is damaged.

use std::fs::File;
use std::io::ErrorKind;
use std::io::Read;
use std::path::Path;

use redb::Database;
use redb::DatabaseError;
use redb::ReadableDatabase;
use redb::StorageError;
use redb::TableError;

use crate::engine::store::caught::PanicReport;
use crate::engine::store::caught::store_fault;
use crate::engine::store::checksum::LAST_COMMIT_LEADS_ASTRAY;
use crate::engine::store::definition;
use crate::engine::store::flushed_row::record;
use crate::engine::store::header::MAGIC;
use crate::engine::store::header::header_damage;
use crate::engine::store::key::name_key;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::meta::FORMAT_ROW;
use crate::engine::store::pages::with_place;
use crate::engine::store::schema;
use crate::error::OpenError;

/// Refuses a file that redb has not begun.
pub(crate) fn check_magic(path: &Path, file: &mut File) -> Result<(), OpenError> {
    let mut magic = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(file_fault)?;
    if magic != MAGIC {
        return Err(foreign(path, "it does not begin as one".to_owned()));
    }
    Ok(())
}

/// The format of a file that this version can open, whether its margin is in use or not.
pub(crate) fn check_format(path: &Path, database: &Database) -> Result<u32, OpenError> {
    let transaction = database.begin_read().map_err(store_fault)?;
    let meta = match transaction.open_table(definition::META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(store_fault(error).into()),
        Err(error) => return Err(foreign(path, error.to_string())),
    };
    let key = name_key(FORMAT_ROW);
    let Some(checksummed) = meta.get(key.as_slice()).map_err(store_fault)? else {
        return Err(foreign(path, "it has no format number".to_owned()));
    };
    match record::<u32>(&definition::META, &key, checksummed.value())? {
        found @ schema::FORMAT_BEFORE_JOURNAL..=schema::FORMAT => Ok(found),
        schema::FORMAT_WITH_MARGIN => Ok(schema::FORMAT),
        found => Err(OpenError::Newer { path: path.to_owned(), found, known: schema::FORMAT_WITH_MARGIN }),
    }
}

/// Why redb does not open a file that begins as one of its own.
pub(crate) fn refusal(path: &Path, error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            OpenError::Held { path: path.to_owned(), holder: "another process".to_owned() }
        }
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() != ErrorKind::UnexpectedEof => {
            store_fault(StorageError::Io(error)).into()
        }
        _ => damaged_file(path, LAST_COMMIT_LEADS_ASTRAY),
    }
}

/// The refusal of a file that was ours: what is wrong with its first bytes says more than what was met behind them.
pub(crate) fn damaged_file(path: &Path, met: &str) -> OpenError {
    let in_header = File::open(path).ok().and_then(|mut file| header_damage(&mut file));
    OpenError::Damaged { path: path.to_owned(), detail: in_header.unwrap_or_else(|| with_place(path, met)) }
}

/// Why a file is not opened on which what reads it has panicked.
pub(crate) fn refusal_of_panic(path: &Path, panic: PanicReport) -> OpenError {
    panic.damage().map_or_else(OpenError::Fault, |detail| damaged_file(path, &detail))
}

/// The refusal of a file that is not ours.
pub(crate) fn foreign(path: &Path, detail: String) -> OpenError {
    OpenError::Foreign { path: path.to_owned(), detail }
}
