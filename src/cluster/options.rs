//! What a node has to know of its cluster.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::access::NatsAccess;
use crate::cluster::entry_version;
use crate::cluster::error::ClusterError;
use crate::cluster::snapshot_pace::SnapshotPace;
use crate::limits;

/// What a node has to know of its cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterOptions {
    /// The name of the cluster: letters, digits, `-` and `_`. Streams and buckets begin with it.
    pub cluster: String,
    /// The name of this node, which no other node of the cluster has: letters, digits, `-` and `_`.
    pub node: String,
    /// Addresses of NATS servers, as `nats://host:port`. One with a name or a password is refused: [`ClusterOptions::access`] has those.
    pub servers: Vec<String>,
    /// The monitoring addresses of *all* NATS servers, as `http://host:port`. Each is asked at start whether it syncs what
    /// it acknowledges.
    pub monitors: Vec<String>,
    /// The folder of this node's files.
    pub folder: PathBuf,
    /// How many partitions there are; fixed when the cluster is created. 16 by default, at most 1,024. JavaScript rounds the sequence
    /// numbers of more than 32.
    pub partitions: u16,
    /// On how many NATS servers each entry is before it is acknowledged: 1, 3 (the default) or 5.
    pub replicas: usize,
    /// How long an owner may be silent before others take over; 1 s by default, at least 200 ms.
    pub lease: Duration,
    /// How the node shows the servers who it is, and whom it trusts.
    pub access: NatsAccess,
    /// How often snapshots are taken.
    pub(crate) snapshots: SnapshotPace,
    /// For how long servers are asked again that do not answer at start; another one only in tests.
    pub(crate) start_wait: Duration,
    /// Where its engines read the time.
    pub(crate) clock: NodeClock,
    /// The newest version of entries that it reads; another one only in tests.
    pub(crate) entry_version: u32,
}

/// Where the engines of a node read the time.
#[derive(Clone)]
pub(crate) struct NodeClock(pub(crate) Arc<dyn Clock>);

impl Default for NodeClock {
    fn default() -> NodeClock {
        NodeClock(Arc::new(SystemClock::default()))
    }
}

impl fmt::Debug for NodeClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeClock({})", self.0.now())
    }
}

impl ClusterOptions {
    /// The options of a node with everything else as it is by default.
    pub fn new(
        cluster: impl Into<String>,
        node: impl Into<String>,
        folder: impl Into<PathBuf>,
    ) -> ClusterOptions {
        ClusterOptions {
            cluster: cluster.into(),
            node: node.into(),
            servers: Vec::new(),
            monitors: Vec::new(),
            folder: folder.into(),
            partitions: limits::PARTITIONS,
            replicas: 3,
            lease: limits::LEASE,
            access: NatsAccess::default(),
            snapshots: SnapshotPace::default(),
            start_wait: limits::NODE_START_WAIT,
            clock: NodeClock::default(),
            entry_version: entry_version::NEWEST,
        }
    }

    /// Names a NATS server: its address for clients, and the one where it can be monitored.
    #[must_use]
    pub fn server(mut self, address: impl Into<String>, monitor: impl Into<String>) -> ClusterOptions {
        self.servers.push(address.into());
        self.monitors.push(monitor.into());
        self
    }

    /// Shows the servers a file of credentials, as `nsc` writes it.
    #[must_use]
    pub fn credentials(mut self, file: impl Into<PathBuf>) -> ClusterOptions {
        self.access.credentials = Some(file.into());
        self
    }

    /// Shows the servers a user and a password.
    #[must_use]
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> ClusterOptions {
        self.access.login = Some((user.into(), password.into()));
        self
    }

    /// Encrypts the connections, and trusts the certificates in a file beside those of the system.
    #[must_use]
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> ClusterOptions {
        self.access.ca_file = Some(file.into());
        self
    }

    /// Encrypts the connections, and shows the servers a certificate, with the key in another file.
    #[must_use]
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> ClusterOptions {
        self.access.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Sets how many partitions a new cluster has.
    #[must_use]
    pub fn partitions(mut self, partitions: u16) -> ClusterOptions {
        self.partitions = partitions;
        self
    }

    /// Sets on how many NATS servers each entry is.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> ClusterOptions {
        self.replicas = replicas;
        self
    }

    /// Sets how long an owner may be silent before others take over.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> ClusterOptions {
        self.lease = lease;
        self
    }

    /// Whether a cluster or a node can have this name.
    ///
    /// # Errors
    /// What a name has to be.
    pub fn check_name(name: &str) -> Result<(), String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let bytes_max = limits::CLUSTER_NAME_BYTES_MAX;
        match (1..=bytes_max).contains(&name.len()) && name.chars().all(is_name) {
            true => Ok(()),
            false => Err(format!("it has to be 1 to {bytes_max} letters, digits, '-' or '_'")),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ClusterError> {
        let refuse = |what: String| Err(ClusterError::Options(what));
        for (what, name) in [("cluster", &self.cluster), ("node", &self.node)] {
            if let Err(why) = ClusterOptions::check_name(name) {
                return refuse(format!("the name of the {what} is {name:?}; {why}"));
            }
        }
        if self.servers.is_empty() || self.monitors.is_empty() {
            return refuse("a NATS server and its monitoring address are needed".to_owned());
        }
        // What is said of a server in the log names its address.
        for (what, addresses) in [("servers", &self.servers), ("monitors", &self.monitors)] {
            if addresses.iter().any(|address| address.contains('@')) {
                return refuse(format!(
                    "an address among the {what} holds a name or a password; give the NATS servers those by `login` or `credentials`"
                ));
            }
        }
        if !(1..=limits::PARTITIONS_MAX).contains(&self.partitions) {
            let max = limits::PARTITIONS_MAX;
            return refuse(format!("{} partitions; there can be 1 to {max}", self.partitions));
        }
        if ![1, 3, 5].contains(&self.replicas) {
            return refuse(format!("{} replicas; there can be 1, 3 or 5", self.replicas));
        }
        if self.lease < limits::LEASE_MIN {
            return refuse(format!(
                "a lease of {:?}; it has to last {:?} at least",
                self.lease,
                limits::LEASE_MIN
            ));
        }
        Ok(())
    }

    /// The name of a partition's stream.
    pub(crate) fn stream(&self, partition: u16) -> String {
        format!("seriatim-{}-{partition}", self.cluster)
    }

    /// The subject of a partition's entries.
    pub(crate) fn subject(&self, partition: u16) -> String {
        format!("seriatim.{}.log.{partition}", self.cluster)
    }

    /// The name of the object store with the snapshots.
    pub(crate) fn snapshots_bucket(&self) -> String {
        format!("seriatim-{}-snapshots", self.cluster)
    }

    /// The name of the bucket with what nodes have to tell each other.
    pub(crate) fn bucket(&self) -> String {
        format!("seriatim-{}", self.cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_password_is_refused_and_not_shown() {
        let options = |server: &str, monitor: &str| {
            ClusterOptions::new("orders", "first", "folder").server(server, monitor).check()
        };
        options("nats://a:1", "http://a:2").unwrap();
        for (server, monitor, what) in [
            ("nats://ada:hunter2@a:1", "http://a:2", "servers"),
            ("nats://a:1", "http://ada:hunter2@a:2", "monitors"),
        ] {
            let refused = options(server, monitor).unwrap_err().to_string();
            assert!(refused.contains(what) && refused.contains("`login`"), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
