//! What a node has heard last of the others, and of who has which partition.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::cluster::signals::Beat;

/// Who has a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartitionHolder {
    pub(crate) node: String,
    pub(crate) incarnation: u64,
    /// Whether it has given it up in good order.
    pub(crate) released: bool,
}

/// A node as it was last heard of.
#[derive(Clone, Debug)]
pub(crate) struct NodePulse {
    pub(crate) beat: Beat,
    /// The partitions that it cannot have.
    pub(crate) stopped: Vec<u16>,
    /// The partitions of which it is still reading what there is.
    pub(crate) behind: Vec<u16>,
    /// When the first beat was heard after a silence, and the last, by this node's own clock.
    pub(crate) since: Duration,
    pub(crate) at: Duration,
}

impl NodePulse {
    /// Whether it was heard so lately.
    pub(crate) fn is_within(&self, span: Duration, now: Duration) -> bool {
        now.saturating_sub(self.at) <= span
    }
}

/// How often in short succession a partition was taken away, or given in vain, and when it was the last time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionLoss {
    pub(crate) times: u32,
    pub(crate) at: Duration,
}

impl PartitionLoss {
    /// Counts another of a partition. Those before do not count if they are longer ago than it is quiet after them.
    pub(crate) fn count(
        losses: &mut BTreeMap<u16, PartitionLoss>,
        partition: u16,
        now: Duration,
        quiet: Duration,
    ) -> &mut PartitionLoss {
        let loss = losses.entry(partition).or_insert(PartitionLoss { times: 0, at: now });
        let before = if now.saturating_sub(loss.at) <= quiet { loss.times } else { 0 };
        *loss = PartitionLoss { times: before.saturating_add(1), at: now };
        loss
    }
}

/// What was last heard.
#[derive(Default)]
pub(crate) struct ClusterState {
    pub(crate) nodes: BTreeMap<String, NodePulse>,
    pub(crate) partitions: BTreeMap<u16, (u64, PartitionHolder)>,
    /// When the leader of the bucket was asked last who has a partition, and has named this node.
    pub(crate) confirmed: BTreeMap<u16, Duration>,
    /// Since when a partition could be had.
    pub(crate) free_since: BTreeMap<u16, Duration>,
    /// When it was last seen in the bucket or in the log that somebody else has a partition, and does something.
    pub(crate) seen: BTreeMap<u16, Duration>,
    /// The partitions that were taken away from this node while it was alive.
    pub(crate) losses: BTreeMap<u16, PartitionLoss>,
    /// The partitions that this node has given up and taken back, as whoever should have had them did not take them.
    pub(crate) takebacks: BTreeMap<u16, PartitionLoss>,
    /// When this node had read all that there is of a partition the last time.
    pub(crate) read_up_at: BTreeMap<u16, Duration>,
    /// The nodes to which partitions were moved.
    pub(crate) pins: BTreeMap<u16, String>,
    /// The partitions that this node cannot have.
    pub(crate) own_stopped: BTreeSet<u16>,
    /// The partitions of which this node is still reading what there is.
    pub(crate) own_behind: BTreeSet<u16>,
    /// Whether it was asked to be written down that this node is there.
    pub(crate) enters: bool,
    /// The revision at which it was written down that this node is there.
    pub(crate) entered: Option<u64>,
    /// The newest revisions at which it was read that nodes have come or gone.
    pub(crate) comings: BTreeMap<String, u64>,
}

/// Notes who has a partition, unless something newer is known.
pub(crate) fn note_holder(state: &mut ClusterState, partition: u16, revision: u64, holder: PartitionHolder) {
    let known = state.partitions.get(&partition).map_or(0, |(revision, _)| *revision);
    if revision > known {
        state.partitions.insert(partition, (revision, holder));
    }
}
