//! What the daemon remembers beside its store, in a file of the data folder: the store's ID, and by which sources the
//! messages of each queue were placed.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use crate::mutex::Mutex;

/// Name of the file in the data folder.
const FILE: &str = "seriatim.json";

/// What the daemon remembers.
pub(crate) struct StateFile {
    folder: PathBuf,
    contents: Mutex<StateFileContents>,
}

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct StateFileContents {
    store_id: String,
    /// Where the folder was when it was last used, so that a copy of it is told from the folder that was moved.
    folder: PathBuf,
    /// Queues whose handlers an operator has told to pause, of a daemon that kept them here: the store does now.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    paused: BTreeSet<String>,
    /// Where workflow, place and ID of each queue's messages were read.
    #[serde(default)]
    sources: BTreeMap<String, String>,
}

impl StateFile {
    /// Reads the file, or begins one with `fresh_id`. Whoever calls this holds the store's lock.
    ///
    /// The folder keeps its ID wherever it is moved. A copy of it gets another: the daemon of the one must not end the
    /// handlers of the other.
    ///
    /// # Errors
    /// Of the file system, or that the file is not one of ours.
    pub(crate) fn open(folder: &Path, fresh_id: String) -> io::Result<StateFile> {
        let mut contents = read(folder)?.unwrap_or_default();
        if contents.store_id.is_empty() || is_copy(folder, &contents)? {
            contents.store_id = fresh_id;
        }
        let state_file = StateFile { folder: folder.to_owned(), contents: Mutex::new(contents) };
        state_file.change(|contents| folder.clone_into(&mut contents.folder))?;
        Ok(state_file)
    }

    /// What every child of a daemon on this folder carries.
    pub(crate) fn store_id(&self) -> String {
        self.contents.lock().store_id.clone()
    }

    /// The pauses that a daemon before this one has kept here and not in the store.
    pub(crate) fn paused_before(&self) -> BTreeSet<String> {
        self.contents.lock().paused.clone()
    }

    /// Forgets them, now that the store has them.
    pub(crate) fn forget_paused(&self) -> io::Result<()> {
        self.change(|contents| contents.paused.clear())
    }

    /// By which sources the messages of each queue were placed, as far as it is known.
    pub(crate) fn sources(&self) -> BTreeMap<String, String> {
        self.contents.lock().sources.clone()
    }

    /// Notes by which sources messages are placed from now on.
    pub(crate) fn set_sources(&self, sources: BTreeMap<String, String>) -> io::Result<()> {
        self.change(|contents| contents.sources = sources)
    }

    /// Forgets every queue but these.
    pub(crate) fn keep_only(&self, queues: &BTreeSet<String>) -> io::Result<()> {
        self.change(|contents| contents.sources.retain(|queue, _| queues.contains(queue)))
    }

    /// Changes the file as a whole, or not at all.
    fn change(&self, change: impl FnOnce(&mut StateFileContents)) -> io::Result<()> {
        let mut contents = self.contents.lock();
        let mut changed = contents.clone();
        change(&mut changed);
        if changed != *contents || !self.folder.join(FILE).exists() {
            write(&self.folder, &changed)?;
            *contents = changed;
        }
        Ok(())
    }
}

fn read(folder: &Path) -> io::Result<Option<StateFileContents>> {
    let path = folder.join(FILE);
    // Who opens a pipe waits for its other end, for ever perhaps.
    if std::fs::metadata(&path).is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other(format!("{} is no file", path.display())));
    }
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            io::Error::other(format!("{} is not as it was written: {error}", path.display()))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(folder: &Path, contents: &StateFileContents) -> io::Result<()> {
    let part = folder.join(format!("{FILE}.part"));
    // What is in the data folder is for nobody else on this machine.
    let _ = std::fs::remove_file(&part);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    serde_json::to_writer_pretty(&mut file, contents)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&part, folder.join(FILE))?;
    File::open(folder)?.sync_all()
}

/// Whether the folder in which the ID was last used is another one that uses it still.
fn is_copy(folder: &Path, contents: &StateFileContents) -> io::Result<bool> {
    let Ok(before) = contents.folder.metadata() else { return Ok(false) };
    let here = folder.metadata()?;
    let is_same = (before.dev(), before.ino()) == (here.dev(), here.ino());
    // One that cannot be read any more is not in use.
    let uses_it =
        read(&contents.folder).ok().flatten().is_some_and(|other| other.store_id == contents.store_id);
    Ok(!is_same && uses_it)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn open(folder: &Path, fresh_id: &str) -> StateFile {
        StateFile::open(folder, fresh_id.to_owned()).unwrap()
    }

    #[test]
    fn a_folder_that_is_moved_keeps_its_id_and_a_copy_gets_its_own() {
        let around = TempDir::new().unwrap();
        let [data_dir, moved, copy] = ["home", "moved", "copy"].map(|name| around.path().join(name));
        std::fs::create_dir(&data_dir).unwrap();
        assert_eq!(open(&data_dir, "a").store_id(), "a");
        assert_eq!(open(&data_dir, "b").store_id(), "a");
        std::fs::rename(&data_dir, &moved).unwrap();
        assert_eq!(open(&moved, "c").store_id(), "a");
        std::fs::create_dir(&copy).unwrap();
        std::fs::copy(moved.join(FILE), copy.join(FILE)).unwrap();
        assert_eq!(open(&copy, "d").store_id(), "d");
        assert_eq!(open(&moved, "e").store_id(), "a");
        assert_eq!(open(&copy, "f").store_id(), "d");
    }

    #[test]
    fn a_pipe_in_the_place_of_the_file_is_refused_at_once() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(FILE);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = StateFile::open(folder.path(), "a".to_owned()).err().unwrap();
        assert!(error.to_string().ends_with("seriatim.json is no file"), "{error}");
    }

    #[test]
    fn what_is_noted_is_there_after_a_restart() {
        let folder = TempDir::new().unwrap();
        let state_file = open(folder.path(), "a");
        let sources = ["bills", "orders"].map(|queue| (queue.to_owned(), "key from /id".to_owned()));
        state_file.set_sources(BTreeMap::from(sources)).unwrap();
        let state_file = open(folder.path(), "b");
        assert_eq!(state_file.sources().get("bills").map(String::as_str), Some("key from /id"));
        state_file.keep_only(&BTreeSet::from(["bills".to_owned()])).unwrap();
        assert_eq!(open(folder.path(), "c").sources().len(), 1);
    }

    #[test]
    fn pauses_of_an_older_daemon_are_handed_over_once() {
        let folder = TempDir::new().unwrap();
        let before = r#"{ "store_id": "a", "folder": "", "paused": ["orders"] }"#;
        std::fs::write(folder.path().join(FILE), before).unwrap();
        let state_file = open(folder.path(), "b");
        assert_eq!(state_file.paused_before(), BTreeSet::from(["orders".to_owned()]));
        state_file.forget_paused().unwrap();
        assert!(open(folder.path(), "c").paused_before().is_empty());
        assert!(!std::fs::read_to_string(folder.path().join(FILE)).unwrap().contains("paused"));
    }

    #[test]
    fn a_file_that_is_damaged_is_not_passed_over() {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let Err(error) = StateFile::open(folder.path(), "a".to_owned()) else { panic!("it was taken") };
        assert!(error.to_string().contains("is not as it was written"), "{error}");
    }
}
