//! Why a node cannot take part in a cluster.

use thiserror::Error;

use crate::error::OpenError;

/// Why a node cannot take part in a cluster.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An option makes no sense.
    #[error("the options of the cluster cannot be used: {0}")]
    Options(String),
    /// The NATS servers cannot be reached, or refuse what is asked of them.
    #[error("the NATS servers cannot be used: {0}")]
    Servers(String),
    /// A NATS server is too old, or is not configured so that what it acknowledges is on its disk.
    #[error("the NATS server {server} cannot keep a log: {what}")]
    Unsuitable {
        /// The server's name.
        server: String,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The cluster was created with other options, which are fixed.
    #[error("the cluster {cluster} was created otherwise: {what}")]
    Different {
        /// The name of the cluster.
        cluster: String,
        /// What differs.
        what: String,
    },
    /// A node of this name is alive.
    #[error(
        "a process that runs as node {node} of the cluster {cluster} is alive: each node needs a name of its own, and a node that \
         is started again has to have ended before"
    )]
    NameTaken {
        /// The name of the cluster.
        cluster: String,
        /// The name of the node.
        node: String,
    },
    /// No node of this name is heard.
    #[error("there is no node {node}; those that are heard are {known}")]
    UnknownNode {
        /// The name.
        node: String,
        /// The names of those that are.
        known: String,
    },
    /// The node gives its partitions to others, and takes none.
    #[error(
        "node {node} gives its partitions to others and takes none; `seriatim cluster drain {node} --undo` has it take some again"
    )]
    NodeDrains {
        /// The name.
        node: String,
    },
    /// The node cannot go on with the partition.
    #[error("node {node} cannot go on with partition {partition}; `seriatim cluster status` says why")]
    NodeStopped {
        /// The name of the node.
        node: String,
        /// The number of the partition.
        partition: u16,
    },
    /// There is no such partition.
    #[error("there is no partition {partition}; the last is {last}")]
    UnknownPartition {
        /// The number.
        partition: u16,
        /// The number of the last one.
        last: u16,
    },
    /// There is no `nats-server` to start.
    #[error(
        "there is no nats-server on the path: get 2.14.4 or newer at https://github.com/nats-io/nats-server/releases, or say \
         in NATS_SERVER where it is"
    )]
    NoProgram,
    /// The file of a partition cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The operating system refused something.
    #[error("a node cannot be started: {0}")]
    System(#[from] std::io::Error),
}
