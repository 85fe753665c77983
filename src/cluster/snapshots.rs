//! Snapshots of partitions on the NATS servers: an object store with their bytes, and a key for each partition that lists
//! those that were read back.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::kv;
use async_nats::jetstream::object_store;
use async_nats::jetstream::object_store::GetErrorKind;
use async_nats::jetstream::object_store::ObjectInfo;
use async_nats::jetstream::object_store::ObjectOptions;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::stream::Stream;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use futures_util::StreamExt;
use sha2::Digest;
use sha2::Sha256;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use xxhash_rust::xxh3::Xxh3;

use crate::cluster::connection::put_unless_changed;
use crate::cluster::error::ClusterError;
use crate::cluster::options::ClusterOptions;
use crate::cluster::reasons::is_fault_of_disk;
use crate::cluster::shape::check_kept;
use crate::cluster::snapshot_list::SnapshotList;
use crate::cluster::snapshot_list::SnapshotRecord;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::STOPPED;
use crate::cluster::watching::BucketWatch;
use crate::engine::log::SnapshotFile;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;
use crate::mutex::Mutex;

const LIST_PREFIX: &str = "snapshots.";

/// How long the next bytes of an object are waited for.
const PIECE: Duration = Duration::from_secs(5);

/// Why a snapshot cannot be read.
#[derive(Debug)]
pub(crate) enum SnapshotError {
    /// It is not there any more, or not yet.
    Missing,
    /// It is not what was written.
    Damaged(String),
    /// Nothing is known of it.
    Unread(String),
    /// The disk of this node does not take it, or does not give it back.
    Disk(Fault),
}

/// What was written of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectSum {
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
}

impl fmt::Display for ObjectSum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes with the checksum {:016x}", self.bytes, self.digest)
    }
}

/// The snapshots of all partitions.
pub(crate) struct Snapshots {
    lists: kv::Store,
    context: Context,
    objects: ObjectStore,
    stream: Stream,
    bucket: String,
    stop: ClusterStop,
    known: Mutex<BTreeMap<u16, (u64, SnapshotList)>>,
}

impl Snapshots {
    /// Opens the object store of the cluster, or makes it.
    ///
    /// # Errors
    /// [`ClusterError::Servers`] when the servers refuse, [`ClusterError::Different`] when it has fewer replicas.
    pub(crate) async fn open(
        context: &Context,
        options: &ClusterOptions,
        lists: kv::Store,
        stop: ClusterStop,
    ) -> Result<Snapshots, ClusterError> {
        let bucket = options.snapshots_bucket();
        let refused = |error: &dyn std::fmt::Display| {
            ClusterError::Servers(format!("the object store {bucket}: {error}"))
        };
        let config = object_store::Config {
            bucket: bucket.clone(),
            description: Some(format!("snapshots of the seriatim cluster {}", options.cluster)),
            max_bytes: -1,
            storage: StorageType::File,
            num_replicas: options.replicas,
            ..object_store::Config::default()
        };
        let objects = match context.get_object_store(&bucket).await {
            Ok(found) => found,
            Err(_) => context.create_object_store(config).await.map_err(|error| refused(&error))?,
        };
        let stream = context.get_stream(format!("OBJ_{bucket}")).await.map_err(|error| refused(&error))?;
        check_kept(&stream, options)?;
        let context = context.clone();
        Ok(Snapshots { lists, context, objects, stream, bucket, stop, known: Mutex::default() })
    }

    /// Hears which there are until the node is stopped.
    pub(crate) async fn watch(self: Arc<Snapshots>) {
        let watch = BucketWatch::seldom(LIST_PREFIX, "which snapshots there are");
        watch.follow(&self.lists, &self.stop, |entry| self.note(entry)).await;
    }

    fn note(&self, entry: &kv::Entry) {
        let partition = entry.key.strip_prefix(LIST_PREFIX).and_then(|number| number.parse().ok());
        if let (Some(partition), Ok(list)) = (partition, serde_json::from_slice(&entry.value)) {
            self.know(partition, entry.revision, list);
        }
    }

    fn know(&self, partition: u16, revision: u64, list: SnapshotList) {
        let mut known = self.known.lock();
        if known.get(&partition).is_none_or(|(before, _)| *before < revision) {
            known.insert(partition, (revision, list));
        }
    }

    /// Those of a partition, as far as was heard.
    pub(crate) fn known(&self, partition: u16) -> SnapshotList {
        self.known.lock().get(&partition).map(|(_, list)| list.clone()).unwrap_or_default()
    }

    /// Those of a partition, as the servers say, with the revision of the list; 0 without one.
    ///
    /// # Errors
    /// What the servers say, or that the list makes no sense.
    pub(crate) async fn list(&self, partition: u16) -> Result<(u64, SnapshotList), String> {
        let entry = self.lists.entry(key_of(partition)).await.map_err(|error| error.to_string())?;
        let Some(entry) = entry else { return Ok((0, SnapshotList::default())) };
        let list = serde_json::from_slice(&entry.value);
        let list: SnapshotList =
            list.map_err(|error| format!("the list of snapshots of partition {partition}: {error}"))?;
        self.know(partition, entry.revision, list.clone());
        Ok((entry.revision, list))
    }

    /// Puts another list behind a revision. An error says nothing of whether it was put.
    ///
    /// # Errors
    /// What the servers say; also that another was faster.
    pub(crate) async fn put_list(
        &self,
        partition: u16,
        list: &SnapshotList,
        behind: u64,
    ) -> Result<(), String> {
        let bytes = serde_json::to_vec(list).map_err(|error| error.to_string())?.into();
        let revision = put_unless_changed(&self.lists, &key_of(partition), bytes, behind).await?;
        self.know(partition, revision, list.clone());
        Ok(())
    }

    fn check_stop(&self) -> Result<(), String> {
        if self.stop.is_said() { Err(STOPPED.to_owned()) } else { Ok(()) }
    }

    /// Puts the bytes of a snapshot into an object, piece by piece. Says what was put.
    ///
    /// # Errors
    /// What the servers say; some of it may be there then.
    pub(crate) async fn put(&self, object: &str, bytes: &mut impl Read) -> Result<ObjectSum, String> {
        let pieces = format!("$O.{}.C.{object}", self.bucket);
        let (mut xxh3, mut sha256) = (Xxh3::new(), Sha256::new());
        let (mut size, mut chunks) = (0, 0);
        loop {
            let mut piece = Vec::with_capacity(limits::SNAPSHOT_PIECE_BYTES);
            let most = limits::SNAPSHOT_PIECE_BYTES as u64;
            bytes.by_ref().take(most).read_to_end(&mut piece).map_err(|error| error.to_string())?;
            if piece.is_empty() {
                break;
            }
            self.check_stop()?;
            xxh3.update(&piece);
            sha256.update(&piece);
            (size, chunks) = (size + piece.len(), chunks + 1);
            let sent = self.context.publish(pieces.clone(), piece.into()).await;
            sent.map_err(|error| error.to_string())?.await.map_err(|error| error.to_string())?;
        }
        let info = ObjectInfo {
            name: object.to_owned(),
            description: None,
            metadata: Default::default(),
            headers: None,
            options: Some(ObjectOptions { link: None, max_chunk_size: Some(limits::SNAPSHOT_PIECE_BYTES) }),
            bucket: self.bucket.clone(),
            nuid: object.to_owned(),
            size,
            chunks,
            modified: None,
            digest: Some(format!("SHA-256={}", URL_SAFE.encode(sha256.finalize()))),
            deleted: false,
        };
        let info = serde_json::to_vec(&info).map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "sub");
        let sent =
            self.context.publish_with_headers(self.subject_of_info(object), headers, info.into()).await;
        sent.map_err(|error| error.to_string())?.await.map_err(|error| error.to_string())?;
        Ok(ObjectSum { bytes: size as u64, digest: xxh3.digest() })
    }

    fn subject_of_info(&self, object: &str) -> String {
        format!("$O.{}.M.{}", self.bucket, URL_SAFE.encode(object))
    }

    /// Reads all bytes of a snapshot, and compares them with what was written.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub(crate) async fn read(
        &self,
        object: &str,
        wanted: ObjectSum,
        into: &mut impl Write,
    ) -> Result<(), SnapshotError> {
        let unread = |error: &dyn std::fmt::Display| SnapshotError::Unread(error.to_string());
        let found = self.stop.before(self.objects.get(object)).await;
        let mut reader = match found.ok_or(SnapshotError::Unread(STOPPED.to_owned()))? {
            Ok(reader) if self.has_pieces(&reader.info).await? => reader,
            Ok(_) => return Err(SnapshotError::Missing),
            Err(error) if error.kind() == GetErrorKind::NotFound => return Err(SnapshotError::Missing),
            Err(error) => return Err(unread(&error)),
        };
        let (mut piece, mut bytes, mut xxh3) = (vec![0; limits::SNAPSHOT_PIECE_BYTES], 0, Xxh3::new());
        loop {
            self.check_stop().map_err(SnapshotError::Unread)?;
            let read = match tokio::time::timeout(PIECE, reader.read(&mut piece)).await {
                Ok(Ok(0)) => break,
                Ok(Ok(read)) => read,
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                    return Err(SnapshotError::Damaged(
                        "its bytes are not those that were written".to_owned(),
                    ));
                }
                Ok(Err(error)) => return Err(unread(&error)),
                Err(_) => return Err(unread(&"its bytes did not come in time")),
            };
            xxh3.update(&piece[..read]);
            bytes += read as u64;
            let written = into.write_all(&piece[..read]);
            written.map_err(|error| SnapshotError::Disk(Fault::File(Arc::new(error))))?;
        }
        let found = ObjectSum { bytes, digest: xxh3.digest() };
        if found != wanted {
            return Err(SnapshotError::Damaged(format!("it has {found} and should have {wanted}")));
        }
        Ok(())
    }

    /// Reads a snapshot into a file of that name or a similar one, and checks that it is the one that was listed.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub(crate) fn fetch(
        &self,
        runtime: &Handle,
        record: &SnapshotRecord,
        path: &Path,
    ) -> Result<SnapshotFile, SnapshotError> {
        let (file, mut bytes) = SnapshotFile::create(path).map_err(SnapshotError::Disk)?;
        let wanted = ObjectSum { bytes: record.bytes, digest: record.digest };
        runtime.block_on(self.read(&record.object, wanted, &mut bytes))?;
        drop(bytes);
        let place = file.check().map_err(|error| match error {
            OpenError::Fault(fault) if is_fault_of_disk(&fault) => SnapshotError::Disk(fault),
            error => SnapshotError::Damaged(error.to_string()),
        })?;
        if place != record.place {
            let what = format!("it ends with {place} and should with {}", record.place);
            return Err(SnapshotError::Damaged(what));
        }
        Ok(file)
    }

    /// Whether an object has as many pieces as it had; who reads it would wait for them.
    async fn has_pieces(&self, info: &ObjectInfo) -> Result<bool, SnapshotError> {
        let unread = |error: &dyn std::fmt::Display| SnapshotError::Unread(error.to_string());
        let subject = format!("$O.{}.C.{}", self.bucket, info.nuid);
        let mut found = self.stream.info_with_subjects(subject).await.map_err(|error| unread(&error))?;
        match found.next().await {
            None => Ok(info.chunks == 0),
            Some(pieces) => Ok(pieces.map_err(|error| unread(&error))?.1 >= info.chunks),
        }
    }

    /// Removes the objects of a partition that no list can name any more. Returns how many.
    ///
    /// # Errors
    /// What the servers say; some may be left then.
    pub(crate) async fn remove_beyond(&self, partition: u16, list: &SnapshotList) -> Result<usize, String> {
        let prefix = format!("$O.{}.C.", self.bucket);
        let found = self.stream.info_with_subjects(format!("{prefix}>")).await;
        let mut found = found.map_err(|error| error.to_string())?;
        let mut beyond = Vec::new();
        while let Some(subject) = found.next().await {
            let (subject, _) = subject.map_err(|error| error.to_string())?;
            let Some(object) = subject.strip_prefix(&prefix) else { continue };
            if position_of(object, partition).is_some_and(|position| list.is_beyond(object, position)) {
                beyond.push(object.to_owned());
            }
        }
        for object in &beyond {
            self.remove(object).await?;
        }
        Ok(beyond.len())
    }

    /// Removes an object, or what there is of one.
    ///
    /// # Errors
    /// What the servers say; it may be left then, or some of it.
    pub(crate) async fn remove(&self, object: &str) -> Result<(), String> {
        // What says that it is there goes first: what is left of its bytes is found again.
        for subject in [self.subject_of_info(object), format!("$O.{}.C.{object}", self.bucket)] {
            self.stream.purge().filter(subject).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// The name of the object with a snapshot: it says of what it is, so that what nobody lists is known.
pub(crate) fn object_of(partition: u16, position: u64, number: u64) -> String {
    format!("{partition}-{position}-{number:016x}")
}

/// The position of a snapshot of a partition, by the name of its object.
fn position_of(object: &str, partition: u16) -> Option<u64> {
    let (of, rest) = object.split_once('-')?;
    let (position, _) = rest.split_once('-')?;
    (of.parse() == Ok(partition)).then(|| position.parse().ok())?
}

fn key_of(partition: u16) -> String {
    format!("{LIST_PREFIX}{partition}")
}
