//! What a node says of itself to others.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

/// A node, as it says itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeOverview {
    /// Its name.
    pub node: String,
    /// Whether it gives its partitions to others.
    pub drains: bool,
    /// Why it has not answered, if it has not: what follows is not known then.
    pub problem: Option<String>,
    /// For how long whoever has asked hears it without a pause.
    pub heard_for: Duration,
    /// How many partitions it owns.
    pub owned: usize,
    /// Of each partition, the position of the last entry of its log that it has.
    pub positions: Vec<u64>,
    /// Of each partition, how many times somebody has taken it over, as far as the node has read.
    pub epochs: Vec<u32>,
    /// Of each partition, how many entries behind that it knows to be there.
    pub lags: Vec<u64>,
    /// The partitions that it cannot go on with, and why; also those that it owns and whose log takes nothing at the moment.
    pub stopped: Vec<(u16, String)>,
}
