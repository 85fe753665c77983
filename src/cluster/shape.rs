//! What is fixed when a cluster is created.

use std::io::ErrorKind;

use async_nats::jetstream::Context;
use async_nats::jetstream::kv;
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::cluster::error::ClusterError;
use crate::cluster::options::ClusterOptions;
use crate::cluster::stop::pause;
use crate::limits;

/// The key of it in the bucket.
const CLUSTER_KEY: &str = "cluster";

/// What is fixed when a cluster is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ClusterShape {
    partitions: u16,
}

/// Opens the bucket of a cluster, or makes it; one that is there stays as it is.
///
/// # Errors
/// [`ClusterError::Different`] when the cluster was created otherwise, [`ClusterError::Servers`] when the servers refuse.
pub(crate) async fn open_bucket(
    context: &Context,
    options: &ClusterOptions,
) -> Result<kv::Store, ClusterError> {
    let config = kv::Config {
        bucket: options.bucket(),
        history: 1,
        storage: StorageType::File,
        num_replicas: options.replicas,
        ..kv::Config::default()
    };
    let bucket = match context.get_key_value(&config.bucket).await {
        Ok(found) => found,
        Err(_) => context.create_key_value(config).await.map_err(refused)?,
    };
    check_kept(&bucket.stream, options)?;
    check_fixed(&bucket, options).await?;
    Ok(bucket)
}

/// The file in a node's folder that says of which cluster it is.
const FOLDER_FILE: &str = "cluster";

/// Sees to it that the folder of a node is of no other cluster: what is in it would differ from every log.
///
/// # Errors
/// [`ClusterError::Options`] when it is, [`ClusterError::System`] when it cannot be read or written.
pub(crate) fn check_folder(options: &ClusterOptions) -> Result<(), ClusterError> {
    let path = options.folder.join(FOLDER_FILE);
    match std::fs::read_to_string(&path) {
        Ok(found) if found == options.cluster => Ok(()),
        // A power cut may leave the file without what was written to it.
        Ok(found) if found.is_empty() => Ok(std::fs::write(&path, &options.cluster)?),
        Ok(found) => Err(ClusterError::Options(format!(
            "the folder {} belongs to a node of the cluster {found}; a node of {} needs one of its own",
            options.folder.display(),
            options.cluster
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(std::fs::write(&path, &options.cluster)?),
        Err(error) => Err(error.into()),
    }
}

/// Compares what is fixed, or fixes it.
async fn check_fixed(bucket: &kv::Store, options: &ClusterOptions) -> Result<(), ClusterError> {
    let wanted = ClusterShape { partitions: options.partitions };
    let wanted_bytes = serde_json::to_vec(&wanted).map_err(refused)?;
    // Whoever is second finds what the first has written.
    let _ = bucket.create(CLUSTER_KEY, wanted_bytes.into()).await;
    let found = read_fixed(bucket).await?;
    let found = serde_json::from_slice::<ClusterShape>(&found).ok();
    let different = |what| ClusterError::Different { cluster: options.cluster.clone(), what };
    match found {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(different(format!(
            "it has {} partitions, and {} are asked for; their number is fixed",
            found.partitions, wanted.partitions
        ))),
        None => Err(different("what is said of it in its bucket makes no sense".to_owned())),
    }
}

/// Reads what is fixed. Any replica answers, and may not have yet what another node has just written.
async fn read_fixed(bucket: &kv::Store) -> Result<Bytes, ClusterError> {
    for _ in 0..limits::LOG_LOOKS_MAX {
        if let Some(found) = bucket.get(CLUSTER_KEY).await.map_err(refused)? {
            return Ok(found);
        }
        pause(limits::ROUTE_PAUSE).await;
    }
    Err(refused("what is fixed of the cluster was not to be read"))
}

/// Compares a stream beside the logs, which may be there already, with what it has to be.
///
/// # Errors
/// [`ClusterError::Different`] when it would not keep what is written to it as long and as safely as is asked for.
pub(crate) fn check_kept(stream: &Stream, options: &ClusterOptions) -> Result<(), ClusterError> {
    let found = &stream.cached_info().config;
    let problems = [
        (found.storage != StorageType::File, "it is not stored in files"),
        (found.num_replicas < options.replicas, "it has fewer replicas than are asked for"),
        (!found.max_age.is_zero(), "it drops what it has by its age"),
    ];
    let Some((_, problem)) = problems.into_iter().find(|(is_so, _)| *is_so) else { return Ok(()) };
    let what = format!("of the stream {}, {problem}", found.name);
    Err(ClusterError::Different { cluster: options.cluster.clone(), what })
}

/// What the servers say.
pub(crate) fn refused(error: impl std::fmt::Display) -> ClusterError {
    ClusterError::Servers(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_power_was_cut_before_its_cluster_was_written_down_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FOLDER_FILE);
        std::fs::write(&path, "").unwrap();
        check_folder(&ClusterOptions::new("orders", "first", folder.path())).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "orders");
        check_folder(&ClusterOptions::new("payments", "first", folder.path())).unwrap_err();
    }
}
