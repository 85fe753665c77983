//! What is there already under the name under which a file is made: what a process that was ended has left, or a store.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use crate::engine::store::caught::guarded;
use crate::engine::store::create::claim;
use crate::engine::store::header::was_left_open;
use crate::engine::store::inspect::Inspection;
use crate::engine::store::lock_file::NEW;
use crate::engine::store::lock_file::fault_of;
use crate::engine::store::lock_file::folder_of;
use crate::engine::store::lock_file::sibling;
use crate::engine::store::margin::has_unused_margin;
use crate::error::Fault;
use crate::error::OpenError;

/// Refuses to make a file if a store has the name under which it would be made: it would be taken for what a crash has left.
pub(crate) fn check_no_store(path: &Path) -> Result<(), Fault> {
    let new = sibling(path, NEW);
    if !is_file(&new) {
        return Ok(());
    }
    let is_store = match Inspection::open(&new) {
        // Whatever was begun by an engine has an epoch, and so has each copy of it.
        Ok(inspection) => guarded(|| inspection.has_epoch()).unwrap_or(Ok(true))?,
        Err(OpenError::Held { .. }) => has_lock_file(&new),
        Err(OpenError::Foreign { .. }) => false,
        Err(OpenError::Fault(fault)) => return Err(fault),
        Err(_) => true,
    };
    let why = || {
        std::io::Error::new(
            ErrorKind::AlreadyExists,
            "it is a store, in whose place a file would be made: move it away, or delete it if it is a copy that nobody finished",
        )
    };
    if is_store { Err(fault_of(&new, &why())) } else { Ok(()) }
}

/// Removes what processes that were ended have left of copies into the folder of this one.
pub(crate) fn remove_unfinished_copies(target: &Path) {
    let Ok(files) = std::fs::read_dir(folder_of(target)) else { return };
    for path in files.flatten().map(|file| file.path()) {
        let is_new = path.as_os_str().as_encoded_bytes().ends_with(NEW.as_bytes());
        if is_new && is_file(&path) && !has_lock_file(&path) && is_unfinished(&path) {
            match std::fs::remove_file(&path) {
                Ok(()) => tracing::info!(path = %path.display(), "what was left of a copy is removed"),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "what was left of a copy cannot be removed");
                }
            }
        }
    }
}

/// Whether it is a copy that was not closed, and nobody writes it. No copy has had a row in its margin, and nearly every store that was
/// open; files of others have no margin.
fn is_unfinished(path: &Path) -> bool {
    // On a network it is locked only if it is open for writing.
    let Ok(mut file) = File::options().read(true).write(true).open(path) else { return false };
    // Where files cannot be locked, one that is being written cannot be told from one that was left.
    file.try_lock().is_ok()
        && claim(path, &file).is_ok()
        && was_left_open(&mut file)
        && has_unused_margin(&mut file).unwrap_or(false)
}

fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

/// Whether an engine has had it open: nobody else makes such a file.
fn has_lock_file(path: &Path) -> bool {
    std::fs::symlink_metadata(sibling(path, ".lock")).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::engine::store::Store;
    use crate::engine::store::StoreOptions;
    use crate::engine::store::create::create;
    use crate::engine::store::create::plain_database;

    fn names() -> (tempfile::TempDir, [PathBuf; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "a.new"].map(|name| folder.path().join(name));
        (folder, paths)
    }

    fn open(path: &Path) -> Result<Store, OpenError> {
        Store::open(path, StoreOptions::default())
    }

    #[test]
    fn a_store_is_not_taken_for_what_a_crash_has_left_of_another() {
        let (_folder, [path, new]) = names();
        open(&new).unwrap().close().unwrap();
        let bytes = std::fs::read(&new).unwrap();
        let refused = open(&path).err().unwrap().to_string();
        assert!(refused.contains("it is a store"), "{refused}");
        assert!(std::fs::read(&new).unwrap() == bytes && !path.exists());
        let held = open(&new).unwrap();
        assert!(open(&path).is_err());
        drop(held);
        open(&new).unwrap();
    }

    #[test]
    fn what_a_crash_has_left_of_a_store_is_made_anew() {
        let (_folder, [path, new]) = names();
        create(&path, StoreOptions::default(), plain_database).unwrap();
        std::fs::rename(&path, &new).unwrap();
        open(&path).unwrap();
        assert!(!new.exists());
    }

    #[test]
    fn a_copy_into_a_folder_removes_what_is_left_of_others_and_nothing_else() {
        let (folder, [path, left]) = names();
        let store = open(&folder.path().join("store")).unwrap();
        let copy = |target: &Path, progress: &dyn Fn(u64) -> Result<(), Fault>| {
            store.committer().snapshot().unwrap().back_up_to(target, progress)
        };
        let [target, whole, text] = ["b", "whole.new", "text.new"].map(|name| folder.path().join(name));
        copy(&whole, &|_| Ok(())).unwrap();
        std::fs::write(&text, "kept").unwrap();
        // As a process of somebody else leaves it.
        let [open, of_others] = ["open", "others.new"].map(|name| folder.path().join(name));
        let database = redb::Database::create(&open).unwrap();
        std::fs::copy(&open, &of_others).unwrap();
        drop(database);
        let under_way = |_| {
            // As a process leaves it that is ended now.
            std::fs::copy(&left, folder.path().join("ended.new")).unwrap();
            remove_unfinished_copies(&target);
            assert!(left.exists(), "it is being written");
            Ok(())
        };
        copy(&path, &under_way).unwrap();
        assert!(!folder.path().join("ended.new").exists());
        assert!(whole.exists() && text.exists() && of_others.exists());
    }
}
