//! The data folder: where the store is, and what the daemon remembers beside it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::daemon::state_file::StateFile;
use crate::error::Misuse;
use crate::id::check_plain_name;
use crate::limits;

/// Name of the store's file in the data folder.
pub(crate) const STORE_FILE: &str = "seriatim.redb";

/// Name of the folder of a node's partitions in the data folder.
pub(crate) const PARTITIONS: &str = "partitions";

/// Name of the folder of backups in the data folder.
const BACKUPS: &str = "backups";

/// The data folder, once its store is open.
#[derive(Clone)]
pub(crate) struct DataDir {
    folder: PathBuf,
    state_file: Arc<StateFile>,
    /// The cluster of which the daemon is a node.
    cluster: Option<String>,
}

impl DataDir {
    /// Finds the folder, or makes it.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn find(folder: &Path) -> io::Result<PathBuf> {
        make_folder(folder)?;
        folder.canonicalize()
    }

    /// Reads what is remembered; a store that has no ID yet gets this one. Whoever calls this holds the store's lock, and says of which
    /// cluster it is.
    ///
    /// # Errors
    /// As [`StateFile::open`].
    pub(crate) fn open(folder: PathBuf, fresh_id: String, cluster: Option<String>) -> io::Result<DataDir> {
        let state_file = Arc::new(StateFile::open(&folder, fresh_id)?);
        Ok(DataDir { folder, state_file, cluster })
    }

    /// Who the daemon is for others to which it sends: its store, or the cluster, any node of which sends again what one has sent.
    pub(crate) fn sender_id(&self) -> String {
        self.cluster.clone().unwrap_or_else(|| self.state_file.store_id())
    }

    /// The store's file, or the folder of a node's partitions.
    pub(crate) fn store(&self) -> PathBuf {
        let partitions = self.folder.join(PARTITIONS);
        if partitions.is_dir() { partitions } else { self.folder.join(STORE_FILE) }
    }

    /// Where a backup of this name is written.
    ///
    /// # Errors
    /// [`Misuse`] when it is no plain name of a file, when there is one of this name, or the folder of backups cannot be made.
    pub(crate) fn backup(&self, name: &str) -> Result<PathBuf, Misuse> {
        check_plain_name(name, limits::QUEUE_NAME_BYTES_MAX).map_err(|problem| {
            Misuse::new(
                "path",
                format!("is the name of a file in the daemon's folder for backups: {name:?} {problem}"),
            )
        })?;
        let folder = self.folder.join(BACKUPS);
        make_folder(&folder).map_err(|error| Misuse::new("path", format!("cannot be used: {error}")))?;
        let path = folder.join(name);
        match path.exists() {
            true => Err(Misuse::new("path", format!("is taken: {} is there already", path.display()))),
            false => Ok(path),
        }
    }

    /// What is remembered beside the store.
    pub(crate) fn state_file(&self) -> &StateFile {
        &self.state_file
    }

    /// Size of the store's file, or of the files of a node's partitions; zero when it cannot be told.
    pub(crate) fn store_bytes(&self) -> u64 {
        let store = self.store();
        match store.is_dir() {
            true => std::fs::read_dir(store).map_or(0, |files| {
                files.flatten().filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum()
            }),
            false => store.metadata().map_or(0, |about| about.len()),
        }
    }
}

/// Makes a folder where none is, and its name durable: a power cut would take what is in it with the name.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    match folder.canonicalize()?.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Lets a moment pass before something is looked at again that gives no sign: a lock of another process, or a partition.
#[expect(clippy::disallowed_methods, reason = "nothing else tells when to look again")]
pub(crate) async fn pause() {
    tokio::time::sleep(limits::LOCK_LOOK_EVERY).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_cluster_send_to_others_as_one() {
        let open = |id: &str, cluster: Option<&str>| {
            let folder = tempfile::tempdir().unwrap();
            DataDir::open(folder.path().to_owned(), id.to_owned(), cluster.map(str::to_owned)).unwrap()
        };
        assert_eq!(open("a", Some("c")).sender_id(), open("b", Some("c")).sender_id());
        assert_ne!(open("a", None).sender_id(), open("b", None).sender_id());
    }

    #[test]
    fn a_backup_that_is_named_by_a_path_is_refused_as_no_name_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(folder.path().to_owned(), "id".to_owned(), None).unwrap();
        for name in ["../x", "a/b", "/x", "orders/subscriptions/a", ".hidden", ""] {
            let refused = data_dir.backup(name).unwrap_err();
            assert_eq!(refused.field(), "path");
            let text = refused.to_string();
            assert!(text.contains("a file in the daemon's folder for backups"), "{text}");
            assert!(!text.contains("queue name"), "{text}");
        }
        assert!(!folder.path().join(BACKUPS).exists(), "nothing is made for a wrong name");
        assert!(data_dir.backup("monday.redb").unwrap().ends_with("backups/monday.redb"));
    }
}
