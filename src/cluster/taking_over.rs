//! Who takes a partition over, and when: whoever should have it, or else anybody, once nobody has it that is alive.
//!
//! Nodes that do not hear each other's signals may still reach the bucket and the log. What they read there of whoever has a partition
//! counts as hearing it; and whoever had one taken away while it was alive takes it back only after a while, twice as long each time.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::Clock;
use crate::cluster::cluster_state::ClusterState;
use crate::cluster::cluster_state::PartitionHolder;
use crate::cluster::cluster_state::PartitionLoss;
use crate::cluster::cluster_state::note_holder;
use crate::cluster::hashing::preferred;
use crate::cluster::leases::Leases;
use crate::limits;

impl Leases {
    /// The nodes that can own a partition now.
    pub(crate) fn candidates<'b>(
        &'b self,
        partition: u16,
        state: &'b ClusterState,
        now: Duration,
    ) -> impl Iterator<Item = &'b str> {
        state.nodes.iter().filter_map(move |(node, heard)| {
            let is_there = heard.is_within(self.lease(), now);
            // Of itself a node knows it sooner than it hears what it has said.
            let is_behind = match node == self.node() {
                true => self.is_behind(state, now, partition) || self.leaves_to_others(state, now, partition),
                false => heard.behind.contains(&partition),
            };
            let can = !heard.beat.drains && !heard.stopped.contains(&partition) && !is_behind;
            (is_there && can).then_some(node.as_str())
        })
    }

    /// The partitions that this node cannot take now, as it tells others: what it leaves to them they should not give it either.
    pub(crate) fn behind(&self) -> Vec<u16> {
        let (now, state) = (self.clock.elapsed(), self.state());
        let lost = state.losses.keys().filter(|number| self.leaves_to_others(&state, now, **number));
        let late = state.read_up_at.keys().filter(|number| self.is_behind(&state, now, **number));
        let behind: BTreeSet<u16> = lost.chain(late).chain(&state.own_behind).copied().collect();
        behind.into_iter().collect()
    }

    /// Whether this node has not read all that there is of a partition for a lease: its disk may be slow, or hang.
    fn is_behind(&self, state: &ClusterState, now: Duration, partition: u16) -> bool {
        let is_late = |at: &Duration| now.saturating_sub(*at) > self.lease();
        let is_late = !self.has_by(state, partition) && state.read_up_at.get(&partition).is_some_and(is_late);
        is_late || state.own_behind.contains(&partition)
    }

    /// Whether this node leaves a partition to others that was taken away from it while it was alive.
    fn leaves_to_others(&self, state: &ClusterState, now: Duration, partition: u16) -> bool {
        !self.has_by(state, partition) && self.wait_after_losses(state, now, partition) > self.lease()
    }

    /// Says that this node is still reading what there is of a partition, and could not take it yet.
    pub(crate) fn note_behind(&self, partition: u16) {
        self.state().own_behind.insert(partition);
    }

    /// Says that this node has read all that there is of a partition at this moment.
    pub(crate) fn note_read_up(&self, partition: u16) {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        state.own_behind.remove(&partition);
        state.read_up_at.insert(partition, now);
    }

    /// The node that should own a partition: the one to which it was moved, or else as the hash says.
    pub(crate) fn preferred<'b>(
        &'b self,
        partition: u16,
        state: &'b ClusterState,
        now: Duration,
    ) -> Option<&'b str> {
        let pin = state.pins.get(&partition);
        let mut candidates = self.candidates(partition, state, now);
        let pinned = candidates.find(|node| pin.is_some_and(|pin| pin == node));
        pinned.or_else(|| preferred(partition, self.candidates(partition, state, now)))
    }

    /// Whether this node should try to get a partition now, and behind which revision of its key.
    pub(crate) fn may_claim(&self, partition: u16) -> Option<u64> {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        if !self.hears(&state, now) || self.is_draining() {
            return None;
        }
        let held = state.partitions.get(&partition).cloned();
        let revision = held.as_ref().map_or(0, |(revision, _)| *revision);
        if !held.is_none_or(|(_, holder)| self.is_free(&state, now, partition, &holder)) {
            state.free_since.remove(&partition);
            return None;
        }
        let free_since = *state.free_since.entry(partition).or_insert(now);
        if now.saturating_sub(free_since) < self.wait_after_losses(&state, now, partition) {
            return None;
        }
        let is_preferred = self.preferred(partition, &state, now) == Some(self.node());
        // Whoever should have it may be unable to.
        (is_preferred || now.saturating_sub(free_since) > self.lease() * 2).then_some(revision)
    }

    /// Whether whoever has a partition has given it up, or is gone.
    fn is_free(&self, state: &ClusterState, now: Duration, partition: u16, holder: &PartitionHolder) -> bool {
        let is_own = holder.node == self.node() && !self.is_own_process(holder);
        // What was read while its signals came says nothing once they do not: whoever is dead was alive then.
        let heard_at = state.nodes.get(&holder.node).map_or(Duration::ZERO, |heard| heard.at);
        let is_seen = |at: &Duration| {
            at.saturating_sub(heard_at) > self.lease() / 2 && now.saturating_sub(*at) <= self.lease() * 2
        };
        let is_alive =
            self.is_alive(state, now, &holder.node) || state.seen.get(&partition).is_some_and(is_seen);
        let is_dead = !is_alive && self.hears_others(state, now);
        holder.released || is_own || is_dead || self.is_left(state, now, partition, holder)
    }

    /// Whether this node has heard itself for a lease, so that it would have heard all others meanwhile: once it is connected again, it may
    /// hear itself first.
    fn hears_others(&self, state: &ClusterState, now: Duration) -> bool {
        let own = state.nodes.get(self.node());
        self.hears(state, now) && own.is_some_and(|own| now.saturating_sub(own.since) > self.lease())
    }

    /// Whether the process that has a partition has said for a lease that it cannot go on with it, as one whose claim came late; or is gone,
    /// and another that runs as the same node does not take it, after a lease.
    fn is_left(&self, state: &ClusterState, now: Duration, partition: u16, holder: &PartitionHolder) -> bool {
        let Some(heard) = state.nodes.get(&holder.node) else { return false };
        let is_stopped = heard.stopped.contains(&partition);
        match heard.beat.incarnation == holder.incarnation {
            true => {
                let seen = state.seen.get(&partition);
                is_stopped && seen.is_none_or(|at| now.saturating_sub(*at) > self.lease())
            }
            false => {
                let is_late = now.saturating_sub(heard.since) > self.lease();
                is_late && (is_stopped || heard.beat.drains || heard.behind.contains(&partition))
            }
        }
    }

    /// How long a partition is left to others that was taken away from this node while it was alive.
    fn wait_after_losses(&self, state: &ClusterState, now: Duration, partition: u16) -> Duration {
        let Some(loss) = state.losses.get(&partition) else { return Duration::ZERO };
        match now.saturating_sub(loss.at) > self.quiet() {
            true => Duration::ZERO,
            false => self.lease() * limits::LOSS_WAIT_LEASES_MAX.min(2_u32.saturating_pow(loss.times - 1)),
        }
    }

    /// Notes who has a partition, unless something newer is known.
    pub(crate) fn note_holder(&self, partition: u16, revision: u64, holder: PartitionHolder) {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        let before = state.partitions.get(&partition).cloned();
        if before.as_ref().is_some_and(|(known, _)| *known >= revision) {
            return;
        }
        if !self.is_own_process(&holder) {
            // Whoever writes is there; what is heard first may have been written long ago.
            if before.is_some() {
                state.seen.insert(partition, now);
            }
            if before.is_some_and(|(_, before)| self.is_own(&before)) && !holder.released {
                PartitionLoss::count(&mut state.losses, partition, now, self.quiet());
            }
            // Somebody has taken it.
            state.takebacks.remove(&partition);
        }
        note_holder(&mut state, partition, revision, holder);
    }

    /// Leaves a partition to others for a while that this node could not let be used, as if it had been taken away.
    pub(crate) fn leave_to_others(&self, partition: u16) {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        let loss = PartitionLoss::count(&mut state.losses, partition, now, self.quiet());
        // Others are told from the second on.
        loss.times = loss.times.max(2);
    }

    /// How long nothing has to happen before what has happened does not count any more.
    fn quiet(&self) -> Duration {
        self.lease() * limits::LOSS_QUIET_LEASES
    }

    /// Notes that this node has a partition again that it has given up, as nobody else has taken it.
    pub(crate) fn note_takeback(&self, partition: u16) {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        PartitionLoss::count(&mut state.takebacks, partition, now, self.quiet());
    }

    /// How much longer a partition is kept that nobody has taken when it was given up; twice as long each time.
    fn wait_after_takebacks(&self, state: &ClusterState, now: Duration, partition: u16) -> Duration {
        let Some(takeback) = state.takebacks.get(&partition) else { return Duration::ZERO };
        // At first a little longer than it is kept in any case.
        let leases = limits::LOSS_WAIT_LEASES_MAX.min(2_u32.saturating_pow(takeback.times + 1));
        (self.lease() * leases).saturating_sub(now.saturating_sub(takeback.at))
    }

    /// Notes that whoever has a partition has appended to its log.
    pub(crate) fn note_entries(&self, partition: u16) {
        let now = self.clock.elapsed();
        self.state().seen.insert(partition, now);
    }

    pub(crate) fn is_own_process(&self, holder: &PartitionHolder) -> bool {
        holder.node == self.node() && holder.incarnation == self.incarnation
    }

    /// Whether another node should have a partition that this one has.
    pub(crate) fn should_move(&self, partition: u16) -> bool {
        let (now, state) = (self.clock.elapsed(), self.state());
        if !self.hears_others(&state, now) {
            return false;
        }
        // Of those by which it is also decided who takes a partition over, or it would be taken over and given up again and again.
        let Some(preferred) = self.preferred(partition, &state, now) else { return false };
        let is_given_time = state.pins.get(&partition).is_some_and(|pin| pin == preferred)
            || self.wait_after_takebacks(&state, now, partition).is_zero();
        preferred != self.node() && self.is_settled(&state, preferred) && is_given_time
    }

    /// Whether a node has been heard for some time.
    fn is_settled(&self, state: &ClusterState, node: &str) -> bool {
        let heard = state.nodes.get(node);
        heard.is_some_and(|heard| heard.at.saturating_sub(heard.since) >= self.lease() * 3)
    }

    /// Since when the last of the nodes that have been heard for some time is heard.
    pub(crate) fn newest_settled(&self) -> Option<Duration> {
        let state = self.state();
        let settled = state.nodes.iter().filter(|(node, _)| self.is_settled(&state, node));
        settled.map(|(_, heard)| heard.since).max()
    }
}
