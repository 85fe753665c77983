//! Whether this node has a lease for certain. What it has heard last may be old, and what needs no entry in the log is not refused
//! there: a lock that a deposed node renews would keep its handler at work beside that of another node, and what it finds or
//! refuses may be otherwise by now.

use futures_util::FutureExt;

use crate::clock::Clock;
use crate::cluster::cluster_state::PartitionHolder;
use crate::cluster::leases::Leases;
use crate::cluster::leases::PARTITION_PREFIX;
use crate::cluster::stop::pause;
use crate::cluster::watched_log::WatchedLog;
use crate::engine::Client;
use crate::engine::log::Log;
use crate::limits;

impl Leases {
    /// Waits until the bucket has named this node as the holder of a partition less than a lease ago, by the clock of this node; false
    /// once it has not got it any more.
    pub(crate) async fn surely_has(&self, partition: u16) -> bool {
        while self.has(partition) {
            if self.is_confirmed(partition) {
                return true;
            }
            // Many want to know it at once when the last answer is that old, and one of them asks for all.
            let asks = self.asking[usize::from(partition)].lock().await;
            if self.is_confirmed(partition) {
                continue;
            }
            let asked = self.clock.elapsed();
            let said = tokio::time::timeout(limits::STREAM_ANSWER, self.ask_for_holder(partition)).await;
            if let Ok(Some((revision, holder))) = said {
                if self.is_own(&holder) {
                    self.state().confirmed.insert(partition, asked);
                }
                self.note_holder(partition, revision, holder);
            }
            // The servers may be electing who leads the bucket, or one that led it before has answered.
            if self.has(partition) && !self.is_confirmed(partition) {
                drop(asks);
                pause(limits::ROUTE_PAUSE * 10).await;
            }
        }
        false
    }

    /// Waits until the log has taken an entry of this node less than a lease ago, by the clock of this node: what the bucket says may come
    /// from a server that led it before. False once the node has not got the partition any more, or its engine ends.
    pub(crate) async fn surely_writes<L: Log>(
        &self,
        partition: u16,
        log: &WatchedLog<L>,
        client: &Client,
    ) -> bool {
        // An entry that is offered from now on is young enough, however long the log takes for it.
        let mut taken = std::pin::pin!(log.taken_within(self.lease()));
        if taken.as_mut().now_or_never().is_some() {
            return true;
        }
        // It also learns from the bucket who has it instead.
        while self.surely_has(partition).await {
            client.note_time();
            let taken = tokio::time::timeout(self.lease(), taken.as_mut());
            tokio::select! {
                taken = taken => if taken.is_ok() {
                    return true;
                },
                _ = client.ended() => return false,
            }
        }
        false
    }

    fn is_confirmed(&self, partition: u16) -> bool {
        let confirmed = self.state().confirmed.get(&partition).copied();
        confirmed.is_some_and(|at| self.clock.elapsed().saturating_sub(at) <= self.lease())
    }

    /// Who has a partition, as the leader of the bucket says: a replica may be cut off from the others.
    async fn ask_for_holder(&self, partition: u16) -> Option<(u64, PartitionHolder)> {
        let subject = format!("{}{PARTITION_PREFIX}{partition}", self.bucket.prefix);
        let message = self.bucket.stream.get_last_raw_message_by_subject(&subject).await.ok()?;
        Some((message.sequence, serde_json::from_slice(&message.payload).ok()?))
    }
}
