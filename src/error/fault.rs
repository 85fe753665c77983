//! What stops an engine, and why a stopped one cannot answer.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

/// The disk, or what is on it, failed: the engine stops, and opening it again is the recovery.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A record's checksum is wrong, or its bytes make no sense.
    #[error("a record in table {table} is damaged: {detail}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The store could not read or write.
    #[error("the store failed: {0}")]
    Store(#[source] Arc<redb::Error>),
    /// The operating system refused a file operation.
    #[error("a file operation failed: {0}")]
    File(#[source] Arc<std::io::Error>),
    /// The file was deleted, moved or replaced while it was open: what is written to it now would be gone with it.
    #[error("the file {path} is not where it was opened: {what}")]
    Lost {
        /// Where the file was.
        path: PathBuf,
        /// What happened to it.
        what: &'static str,
    },
    /// The engine appends to a log that several can write, and another writer has taken over: what was not acknowledged is not
    /// in it.
    #[error("another node has taken over the partition")]
    Deposed,
    /// The same, so long ago that what stood in the place of the last entry was given up: whether it was that is not known.
    #[error(
        "another node has taken over the partition, and whether what was done last is in its log is not known"
    )]
    Replaced,
    /// Another process has begun to run as the same node of a cluster, so that this one has to stop.
    #[error(
        "another process has begun to run as node {node} of the cluster, and this one stops: each node needs a name of its own"
    )]
    Namesake {
        /// The name of both.
        node: String,
    },
    /// A NATS server of the cluster has come back, and is too old or not configured so that what it acknowledges is on its disk.
    #[error("the NATS server {server} cannot keep a log: {what}")]
    Server {
        /// The server's name.
        server: String,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The log before the file cannot be followed or appended to.
    #[error("the log of the partition cannot be used: {0}")]
    Log(String),
    /// An assertion of the engine did not hold; nothing of that turn was written.
    #[error("a defect of seriatim: {0}")]
    Defect(String),
}

/// Why an engine cannot answer at all.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// The engine stopped after a fault; open it again.
    #[error("the engine has stopped, open it again: {0}")]
    Stopped(#[source] Fault),
    /// On a cluster, no node has the partition at the moment, or none that could be reached: nothing was done, and the same
    /// can be asked again. Not returned on one machine.
    #[error("no node has the partition of the workflow at the moment; nothing was done, ask again")]
    NotOwner,
    /// On a cluster, no node goes on with this partition: nothing was done.
    #[error("partition {partition} of the cluster is stopped on every node, and nothing was done: {why}")]
    PartitionStopped {
        /// Its number.
        partition: u16,
        /// Why the node that was asked does not go on with it.
        why: String,
    },
    /// On a cluster, too many requests for one partition are under way: nothing was done, and the same can be asked again.
    #[error("too many requests for the same partition are under way; nothing was done, ask again")]
    Busy,
    /// On a cluster, the node that has the partition has not answered as it should: whether it was done is not known.
    #[error("it was asked of the cluster, and whether it was done is not known: {0}")]
    Unanswered(String),
    /// It cannot be done on a cluster; nothing was done.
    #[error("on a cluster {0}")]
    Unsupported(&'static str),
    /// The request is larger than one entry of the partition's log may be, or an answer that comes whole or not at all than the NATS
    /// servers take at once; nothing was done.
    #[error(
        "the request, or its answer, has {bytes} bytes; at most {bytes_max} are allowed together on a cluster"
    )]
    TooLarge {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        bytes_max: usize,
    },
}

impl Unavailable {
    /// Why nothing is known of what was asked, when what came for an answer is none.
    pub(crate) fn nonsense() -> Unavailable {
        Unavailable::Unanswered("its answer makes no sense".to_owned())
    }

    /// Whether nothing is answered any more: on a cluster others only say that one request was not, or not for sure.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Unavailable::Closed | Unavailable::Stopped(_))
    }

    /// Whether it lies in what was asked: it was not done, and never will be.
    pub(crate) fn is_of_request(&self) -> bool {
        matches!(self, Unavailable::Unsupported(_) | Unavailable::TooLarge { .. })
    }

    /// Whether what was asked may have been done all the same.
    pub(crate) fn may_be_done(&self) -> bool {
        !matches!(
            self,
            Unavailable::NotOwner
                | Unavailable::PartitionStopped { .. }
                | Unavailable::Busy
                | Unavailable::TooLarge { .. }
                | Unavailable::Unsupported(_)
        )
    }
}
