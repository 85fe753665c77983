//! What a partition's engines have cost on this node, each as long as it was the owner's: counters that never go back.

use crate::engine::Client;
use crate::engine::CommitStats;
use crate::mutex::Mutex;

/// What a node has counted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClusterMeters {
    /// How many nodes it hears, itself among them.
    pub nodes: u64,
    /// How many partitions it owns.
    pub owned: u64,
    /// How many it cannot go on with.
    pub stopped: u64,
    /// How often it has become the owner of a partition.
    pub takeovers: u64,
    /// How many entries of the logs that it follows it has still to read, as far as it knows.
    pub lag: u64,
    /// What commits of its engines have cost, with the append to the log.
    pub commits: CommitStats,
    /// What the appends alone have cost, each attempt for itself.
    pub appends: CommitStats,
}

/// What a partition has counted on this node.
#[derive(Default)]
pub(crate) struct PartitionMeter(Mutex<PartitionCounts>);

/// In numbers.
#[derive(Default)]
struct PartitionCounts {
    takeovers: u64,
    /// Of engines that have ended.
    past: CommitStats,
    serving: Option<Client>,
}

impl PartitionMeter {
    /// Notes that an engine begins.
    pub(crate) fn begin(&self, client: &Client) {
        let mut counted = self.0.lock();
        counted.takeovers += 1;
        counted.serving = Some(client.clone());
    }

    /// Notes that it has ended.
    pub(crate) fn end(&self) {
        let mut counted = self.0.lock();
        if let Some(client) = counted.serving.take() {
            counted.past.add(&client.commit_stats());
        }
    }

    /// How often an engine has begun, and what all of them have cost.
    pub(crate) fn read(&self) -> (u64, CommitStats) {
        let counted = self.0.lock();
        let mut commits = counted.past.clone();
        if let Some(client) = &counted.serving {
            commits.add(&client.commit_stats());
        }
        (counted.takeovers, commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueOptions;

    #[tokio::test]
    async fn what_an_engine_has_cost_still_counts_when_it_has_ended() {
        let meter = PartitionMeter::default();
        for number in 1..=2 {
            let (engine, _clock) = crate::testing::engine().await.unwrap();
            meter.begin(engine.client());
            engine.client().create_queue("q", QueueOptions::default()).await.unwrap();
            let (takeovers, commits) = meter.read();
            assert_eq!((takeovers, commits.answers), (number, number));
            engine.close().await;
            meter.end();
            assert_eq!(meter.read().1.answers, number);
        }
    }
}
