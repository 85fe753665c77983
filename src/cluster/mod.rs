//! More than one machine: each partition of a cluster is an engine whose log is a stream of NATS JetStream.
//!
//! A workflow belongs to one partition for good (`hashing`). A partition has one owner at a time, which has the lease of it
//! (`leases`) and has begun an epoch in its log; every other node follows the log in a file of its own (`partition`), so
//! that it can take over. Safety is in the log alone: an append says which entry it expects to be the last, and whoever was
//! deposed is refused. Leases only decide who tries.
//!
//! What passes between two owners is counted by the clock of whoever has seen the last entry come (`watched_log`).
//!
//! Snapshots (`snapshot_taker`) let a log be given up; a node without a file begins with one (`restoring`). What a completion
//! sends to another partition goes through an outbox (`outbox`, `handing_over`).

mod access;
mod answering;
mod asking;
mod cluster_state;
mod connection;
mod defining;
mod defining_topics;
mod definition_change;
mod definitions;
mod enforcing;
mod entry_version;
mod error;
mod failure_pause;
mod handing_over;
mod handle;
mod handover;
mod handover_ledger;
mod hashing;
mod hearing;
mod jet_stream;
mod lane;
mod lease_proof;
mod leases;
mod left;
mod local_nats;
mod looking;
mod metering;
mod node;
mod node_means;
mod node_overview;
mod nodes;
mod options;
mod outbox;
mod overview;
mod paging;
mod partition;
mod partition_file;
mod placing;
mod publishing;
mod random;
mod reasons;
mod receiving;
mod request_places;
mod restoring;
mod routed_request;
mod router;
mod server_health;
mod server_identity;
mod servers;
mod serving;
mod shape;
mod shifting;
mod signals;
mod snapshot_list;
mod snapshot_pace;
mod snapshot_taker;
mod snapshots;
mod source_notes;
mod splitting;
mod stop;
mod taking_over;
#[cfg(test)]
mod tests;
mod topic_ask;
mod topic_changes;
mod watched_log;
mod watching;
mod wire;
mod wrapping;

pub use crate::cluster::access::NatsAccess;
pub use crate::cluster::error::ClusterError;
pub use crate::cluster::handle::ClusterHandle;
pub use crate::cluster::local_nats::LocalNats;
pub use crate::cluster::metering::ClusterMeters;
pub use crate::cluster::node::ClusterNode;
pub use crate::cluster::node::NodeRoute;
pub use crate::cluster::node_overview::NodeOverview;
pub use crate::cluster::options::ClusterOptions;
pub use crate::cluster::overview::ClusterOverview;
pub use crate::cluster::overview::PartitionOverview;
pub use crate::cluster::partition::PartitionState;
pub use crate::cluster::partition::PartitionStatus;
pub use crate::cluster::snapshot_list::PartitionSnapshot;
