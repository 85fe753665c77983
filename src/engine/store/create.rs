//! Creation that survives a crash at any point: made under another name, synced, then renamed.

use std::fs::File;
use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use redb::Builder;
use redb::Database;
use redb::WriteTransaction;
use redb::backends::FileBackend;

use crate::engine::store::caught::store_fault;
use crate::engine::store::lock_file::NEW;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::file_fault;
use crate::engine::store::lock_file::folder_of;
use crate::engine::store::lock_file::private;
use crate::engine::store::lock_file::sibling;
use crate::engine::store::margin::write_empty_with_margin;
use crate::engine::store::meta::put_format;
use crate::engine::store::options::StoreOptions;
use crate::engine::store::schema;
use crate::engine::store::transaction::begin;
use crate::engine::store::watch::identity_of;
use crate::error::Fault;

/// How an empty database is made in a file that is empty.
pub(crate) type MakeDatabase = fn(&mut Builder, File) -> Result<Database, Fault>;

/// Creates an empty store at `path`. A crash leaves either nothing there or a whole store.
pub(crate) fn create(path: &Path, options: StoreOptions, make: MakeDatabase) -> Result<(), Fault> {
    let (new, file) = new_file(path)?;
    let database = make(&mut Database::builder(), file)?;
    let transaction = begin(&database, options)?;
    write_format(&transaction)?;
    transaction.commit().map_err(store_fault)?;
    drop(database);
    put_in_place(&new, path)
}

/// Makes a database without a margin: for a file behind a log, which is not synced with each commit.
pub(crate) fn plain_database(builder: &mut Builder, file: File) -> Result<Database, Fault> {
    builder.create_file(file).map_err(store_fault)
}

/// Makes a database with a margin.
pub(crate) fn database_with_margin(builder: &mut Builder, file: File) -> Result<Database, Fault> {
    let file = FileBackend::new(file).map_err(store_fault)?;
    write_empty_with_margin(&file)?;
    builder.create_with_backend(file).map_err(store_fault)
}

/// A new file under the name under which it is made, instead of what an earlier crash has left there. It is locked: somebody else
/// who is making it is not disturbed.
pub(crate) fn new_file(path: &Path) -> Result<(PathBuf, File), Fault> {
    let new = sibling(path, NEW);
    let is_file = std::fs::symlink_metadata(&new).is_ok_and(|about| about.is_file());
    // Kept until it is removed, so that nobody takes it up in between. On a network it is locked only if it is open for writing.
    let left = if is_file { File::options().read(true).write(true).open(&new).ok() } else { None };
    if let Some(left) = &left {
        claim(&new, left)?;
    }
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault_of(&new, &error)),
        _ => {}
    }
    let made = private().read(true).create_new(true).open(&new);
    let file = made.map_err(|error| fault_of(&new, &error))?;
    claim(&new, &file)?;
    Ok((new, file))
}

/// Locks a file that is being made, and sees that it still has its name.
///
/// # Errors
/// [`Fault::File`] when somebody else is making a file of that name.
pub(crate) fn claim(new: &Path, file: &File) -> Result<(), Fault> {
    let others = || {
        let error = io::Error::new(io::ErrorKind::ResourceBusy, "somebody else is writing this file");
        fault_of(new, &error)
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(others()),
        // Where there are no locks, nobody else can be told from a crash.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(fault_of(new, &error)),
    }
    let ours = file.metadata().map_err(|error| fault_of(new, &error))?;
    let there = std::fs::symlink_metadata(new);
    match there.is_ok_and(|there| identity_of(&there) == identity_of(&ours)) {
        true => Ok(()),
        false => Err(others()),
    }
}

/// Writes what tells a store from any other redb file, and makes the tables that are not there.
pub(crate) fn write_format(transaction: &WriteTransaction) -> Result<(), Fault> {
    put_format(transaction, schema::FORMAT)?;
    for definition in schema::all() {
        drop(transaction.open_table(definition).map_err(store_fault)?);
    }
    Ok(())
}

/// What is asked of a file system to put a file in its place; the tests ask one that forgets what was not synced.
trait FileNames {
    /// Makes the content of a file durable.
    fn sync_file(&self, file: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

struct FileSystem;

impl FileNames for FileSystem {
    fn sync_file(&self, file: &Path) -> io::Result<()> {
        File::open(file)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

/// Syncs a file that was made under another name, and renames it.
pub(crate) fn put_in_place(new: &Path, path: &Path) -> Result<(), Fault> {
    put_by(&FileSystem, new, path).map_err(file_fault)
}

fn put_by(names: &impl FileNames, new: &Path, path: &Path) -> io::Result<()> {
    names.sync_file(new)?;
    names.rename(new, path)?;
    // Without this the name itself may be lost in a power failure; redb never does it.
    names.sync_folder(folder_of(path))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    /// The names of a folder, and whether the content of each is durable.
    type Entries = BTreeMap<PathBuf, bool>;

    /// A folder that forgets in a power cut what was not synced: names as well as contents.
    #[derive(Default)]
    struct Forgetful {
        now: RefCell<Entries>,
        /// The names that a power cut leaves for certain.
        durable: RefCell<Entries>,
        /// What a power cut may have left, after each operation.
        left: RefCell<Vec<Entries>>,
    }

    impl Forgetful {
        /// A power cut may leave the new names, or the old ones.
        fn note(&self) -> io::Result<()> {
            let both = [self.now.borrow().clone(), self.durable.borrow().clone()];
            self.left.borrow_mut().extend(both);
            Ok(())
        }
    }

    impl FileNames for Forgetful {
        fn sync_file(&self, file: &Path) -> io::Result<()> {
            self.now.borrow_mut().insert(file.to_owned(), true);
            self.note()
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            let content = self.now.borrow_mut().remove(from).expect("it was made");
            self.now.borrow_mut().insert(to.to_owned(), content);
            self.note()
        }

        fn sync_folder(&self, folder: &Path) -> io::Result<()> {
            assert_eq!(folder, Path::new("data"));
            *self.durable.borrow_mut() = self.now.borrow().clone();
            self.note()
        }
    }

    #[test]
    fn a_power_cut_leaves_nothing_or_a_whole_file_and_its_name_stays_once_it_is_in_place() {
        let (names, new, path) = (Forgetful::default(), Path::new("data/a.new"), Path::new("data/a"));
        names.now.borrow_mut().insert(new.to_owned(), false);
        put_by(&names, new, path).unwrap();
        for left in names.left.borrow().iter() {
            assert_ne!(left.get(path), Some(&false), "its name is there, its content is not: {left:?}");
        }
        assert_eq!(names.durable.borrow().get(path), Some(&true), "its name is lost in a power cut");
    }
}
