//! Who owns which partition is in a key-value bucket; who is alive is heard (`signals`), on each node's own monotonic clock.
//!
//! All of this only decides who tries to take over, and when. That two nodes believe that they own a partition does no harm: the
//! log takes the entries of one of them.

use std::sync::Arc;
use std::sync::MutexGuard;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::kv;
use async_nats::jetstream::kv::Operation;
use serde::Deserialize;
use tokio::sync::SetOnce;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::cluster_state::ClusterState;
use crate::cluster::cluster_state::NodePulse;
use crate::cluster::cluster_state::PartitionHolder;
use crate::cluster::connection::in_time;
use crate::cluster::connection::put_unless_changed;
use crate::cluster::entry_version::EntryVersion;
use crate::cluster::error::ClusterError;
use crate::cluster::hashing::preferred;
use crate::cluster::options::ClusterOptions;
use crate::cluster::shape::open_bucket;
use crate::cluster::signals::Beat;
use crate::cluster::signals::NodeSignal;
use crate::cluster::signals::NodeSignals;
use crate::cluster::signals::bytes_of;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::cluster::watching::BucketWatch;
use crate::limits;
use crate::mutex::Mutex;

const NODE_PREFIX: &str = "node.";
pub(crate) const PARTITION_PREFIX: &str = "partition.";
/// Of the keys that say to which node an operator has moved a partition.
const PIN_PREFIX: &str = "pin.";

/// How long nothing has to be heard of the bucket before it is listened anew, in case the watch hangs.
const SILENCE: Duration = Duration::from_secs(10);

/// The leases as a node sees them.
pub(crate) struct Leases {
    pub(crate) bucket: kv::Store,
    signals: NodeSignals,
    node: String,
    pub(crate) incarnation: u64,
    lease: Duration,
    pub(crate) entry_version: EntryVersion,
    pub(crate) clock: SystemClock,
    state: Mutex<ClusterState>,
    /// By partition, held by whoever asks the leader of the bucket who has it.
    pub(crate) asking: Vec<tokio::sync::Mutex<()>>,
    drains: AtomicBool,
    /// Set when another process has begun to run as this node.
    namesake: SetOnce<()>,
    /// Whether it says nothing any more, in tests.
    is_silent: AtomicBool,
    /// Whether it hears nothing of who has what, in tests.
    #[cfg(test)]
    pub(crate) is_deaf: AtomicBool,
    /// Whether it hears nothing of what other nodes tell, in tests.
    #[cfg(test)]
    pub(crate) is_deaf_to_others: AtomicBool,
}

impl Leases {
    /// Opens the bucket of the cluster, or makes it.
    ///
    /// # Errors
    /// [`ClusterError::Different`] when the cluster was created with another number of partitions, or with fewer replicas.
    pub(crate) async fn open(
        context: &Context,
        signals: NodeSignals,
        options: &ClusterOptions,
        incarnation: u64,
    ) -> Result<Leases, ClusterError> {
        let bucket = open_bucket(context, options).await?;
        Ok(Leases {
            bucket,
            signals,
            node: options.node.clone(),
            incarnation,
            lease: options.lease,
            entry_version: EntryVersion::new(options.entry_version),
            clock: SystemClock::default(),
            state: Mutex::default(),
            asking: (0..options.partitions).map(|_| tokio::sync::Mutex::default()).collect(),
            drains: AtomicBool::new(false),
            namesake: SetOnce::new(),
            is_silent: AtomicBool::new(false),
            #[cfg(test)]
            is_deaf: AtomicBool::new(false),
            #[cfg(test)]
            is_deaf_to_others: AtomicBool::new(false),
        })
    }

    /// The name of this node.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Where nodes tell each other what is to last.
    pub(crate) fn bucket(&self) -> kv::Store {
        self.bucket.clone()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ClusterState> {
        self.state.lock()
    }

    fn own_beat(&self, drains: bool) -> Beat {
        Beat { incarnation: self.incarnation, drains, entry_version: self.entry_version.newest() }
    }

    /// Says that this node is alive until it is stopped.
    pub(crate) async fn beat(self: Arc<Leases>, stop: ClusterStop) {
        let mut ticks = tokio::time::interval(self.lease / 4);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !stop.is_said() {
            ticks.tick().await;
            if self.is_silent.load(Ordering::Relaxed) {
                continue;
            }
            let beat = self.own_beat(self.is_draining());
            let stopped = self.state().own_stopped.iter().copied().collect();
            let behind = self.behind();
            self.signals.tell(&NodeSignal::Alive { node: self.node.clone(), beat, stopped, behind }).await;
        }
    }

    /// Writes down that this node is there, so that whoever comes does not take for free what it has before it is heard.
    pub(crate) async fn enter(self: Arc<Leases>, stop: ClusterStop) {
        let beat = self.own_beat(false);
        self.state().enters = true;
        while !stop.is_said() {
            match self.bucket.put(format!("{NODE_PREFIX}{}", self.node), bytes_of(&beat)).await {
                Ok(revision) => return self.state().entered = Some(revision),
                Err(error) => {
                    tracing::warn!(%error, "it could not be written down that the node is there");
                    pause(self.lease / 4).await;
                }
            }
        }
    }

    /// Waits until another process has begun to run as this node.
    pub(crate) async fn has_namesake(&self) {
        self.namesake.wait().await;
    }

    /// Whether what a node says of itself comes from another process that runs as this node.
    pub(crate) fn is_of_namesake(&self, node: &str, beat: Beat) -> bool {
        node == self.node && beat.incarnation != self.incarnation
    }

    /// Looks which process has begun to run as this node.
    pub(crate) async fn look_up_namesake(&self) {
        self.look_at(&format!("{NODE_PREFIX}{}", self.node)).await;
    }

    /// Says that this node is gone, so that others need not wait for it. What another process has written as this node meanwhile
    /// stays, though nobody listens for it any more.
    pub(crate) async fn leave(&self) {
        let key = format!("{NODE_PREFIX}{}", self.node);
        let (enters, entered) = {
            let state = self.state();
            (state.enters, state.entered)
        };
        let going = async {
            let revision = match entered {
                None if enters => self.unanswered_entry(&key).await,
                known => known,
            };
            if let Some(revision) = revision {
                let _ = self.bucket.delete_expect_revision(&key, Some(revision)).await;
            }
        };
        let _ = tokio::time::timeout(limits::NATS_ANSWER, going).await;
    }

    /// The revision of what this node has written of itself without hearing that it was done.
    async fn unanswered_entry(&self, key: &str) -> Option<u64> {
        let entry = self.bucket.entry(key).await.ok()??;
        let beat = read::<Beat>(&entry)?;
        (beat.incarnation == self.incarnation).then_some(entry.revision)
    }

    /// Follows what all nodes say until this one is stopped.
    pub(crate) async fn watch(self: Arc<Leases>, stop: ClusterStop) {
        self.bucket_watch().follow(&self.bucket, &stop, |entry| self.note(entry)).await;
    }

    /// What of the bucket is watched: what queues there are stands there, too, and may be a thousand times as much.
    pub(crate) fn bucket_watch(&self) -> BucketWatch {
        let keys = [NODE_PREFIX, PARTITION_PREFIX, PIN_PREFIX].map(|prefix| format!("{prefix}>")).to_vec();
        let what = "who has which partition";
        BucketWatch { keys, what, silence: SILENCE, pause: self.lease / 4 }
    }

    fn note(&self, entry: &kv::Entry) {
        #[cfg(test)]
        if self.is_deaf.load(Ordering::Relaxed) {
            return;
        }
        if let Some(node) = entry.key.strip_prefix(NODE_PREFIX) {
            match read::<Beat>(entry) {
                Some(beat) if self.is_of_namesake(node, beat) => {
                    // What is older was written by a process before this one.
                    if self.state().entered.is_some_and(|revision| revision < entry.revision) {
                        let _ = self.namesake.set(());
                    }
                }
                beat => self.note_coming(node, beat, entry.revision),
            }
        } else if let Some(partition) = entry.key.strip_prefix(PARTITION_PREFIX)
            && let (Ok(partition), Some(holder)) = (partition.parse(), read::<PartitionHolder>(entry))
        {
            self.note_holder(partition, entry.revision, holder);
        } else if let Some(partition) = entry.key.strip_prefix(PIN_PREFIX)
            && let Ok(partition) = partition.parse::<u16>()
        {
            let pins = &mut self.state().pins;
            match read::<String>(entry) {
                Some(node) => pins.insert(partition, node),
                None => pins.remove(&partition),
            };
        }
    }

    /// Notes that a node has come, or gone. A watch that is begun anew tells it again of nodes that may be dead by now, and what
    /// a node that is heard says of itself is newer than what it has written down.
    fn note_coming(&self, node: &str, beat: Option<Beat>, revision: u64) {
        let mut state = self.state();
        if state.comings.get(node).is_some_and(|known| *known >= revision) {
            return;
        }
        state.comings.insert(node.to_owned(), revision);
        let is_heard = self.is_alive(&state, self.clock.elapsed(), node);
        match beat {
            None => drop(state.nodes.remove(node)),
            Some(_) if is_heard => {}
            Some(beat) => {
                drop(state);
                self.hear(node, beat, (Vec::new(), Vec::new()));
            }
        }
    }

    /// Notes what a node says of itself, of partitions that it cannot have, and of those that it cannot have yet.
    pub(crate) fn hear(&self, node: &str, beat: Beat, (stopped, behind): (Vec<u16>, Vec<u16>)) {
        #[cfg(test)]
        if self.is_deaf_to(node) {
            return;
        }
        let (now, mut state) = (self.clock.elapsed(), self.state());
        let before = state.nodes.get(node).filter(|heard| heard.is_within(self.lease, now));
        // A process that was started again is another, though nobody has missed it.
        let is_same = |heard: &&NodePulse| heard.beat.incarnation == beat.incarnation;
        let since = before.filter(is_same).map_or(now, |heard| heard.since);
        state.nodes.insert(node.to_owned(), NodePulse { beat, stopped, behind, since, at: now });
        self.note_versions(&state, now);
    }

    /// Notes which version of entries is read by all nodes that were heard lately: one that is just started again counts, too.
    fn note_versions(&self, state: &ClusterState, now: Duration) {
        let lately = self.lease * limits::ENTRY_VERSION_LEASES;
        let heard = state.nodes.values().filter(|heard| heard.is_within(lately, now));
        let Some(read_by_all) = heard.map(|heard| heard.beat.entry_version).min() else { return };
        let own = state.nodes.get(&self.node);
        let is_all = own.is_some_and(|own| own.at.saturating_sub(own.since) >= lately);
        self.entry_version.note(read_by_all, is_all);
    }

    /// Notes that a node has done something: so it is alive.
    pub(crate) fn hear_of(&self, node: &str) {
        #[cfg(test)]
        if self.is_deaf_to(node) {
            return;
        }
        let (now, mut state) = (self.clock.elapsed(), self.state());
        if let Some(heard) = state.nodes.get_mut(node).filter(|heard| heard.is_within(self.lease, now)) {
            heard.at = now;
        }
    }

    /// Whether this node hears at all: what it says itself comes back to it.
    pub(crate) fn hears(&self, state: &ClusterState, now: Duration) -> bool {
        self.is_alive(state, now, &self.node)
    }

    /// The same as it is now.
    pub(crate) fn hears_itself(&self) -> bool {
        self.hears(&self.state(), self.clock.elapsed())
    }

    pub(crate) fn is_alive(&self, state: &ClusterState, now: Duration, node: &str) -> bool {
        state.nodes.get(node).is_some_and(|heard| heard.is_within(self.lease, now))
    }

    /// Says whether this node cannot have a partition.
    pub(crate) fn set_stopped(&self, partition: u16, is_stopped: bool) {
        let stopped = &mut self.state().own_stopped;
        match is_stopped {
            true => stopped.insert(partition),
            false => stopped.remove(&partition),
        };
    }

    /// The node to which a partition was moved, if it was.
    pub(crate) fn pinned(&self, partition: u16) -> Option<String> {
        self.state().pins.get(&partition).cloned()
    }

    /// Moves a partition to a node, or leaves it to the hash again.
    ///
    /// # Errors
    /// What the servers say.
    pub(crate) async fn pin(&self, partition: u16, node: Option<&str>) -> Result<(), String> {
        let key = format!("{PIN_PREFIX}{partition}");
        match node {
            Some(node) => {
                in_time(limits::NATS_ANSWER, self.bucket.put(&key, bytes_of(&node))).await?;
                self.state().pins.insert(partition, node.to_owned());
            }
            None => {
                in_time(limits::NATS_ANSWER, self.bucket.delete(&key)).await?;
                self.state().pins.remove(&partition);
            }
        }
        Ok(())
    }

    /// Tries to become the holder of a partition.
    pub(crate) async fn claim(&self, partition: u16, revision: u64) -> bool {
        let before = self.state().partitions.get(&partition).map(|(_, holder)| holder.clone());
        let is_had = self.put_holder(partition, revision, false).await;
        if is_had {
            if before.is_some_and(|holder| self.is_own_process(&holder)) {
                self.note_takeback(partition);
            }
            // Once it is given up, whoever should have it is given time anew.
            self.state().free_since.remove(&partition);
        }
        is_had
    }

    /// Gives up a partition, if this node has it.
    pub(crate) async fn release(&self, partition: u16) {
        let held = self.state().partitions.get(&partition).cloned();
        if let Some((revision, holder)) = held
            && self.is_own(&holder)
        {
            self.put_holder(partition, revision, true).await;
        }
    }

    async fn put_holder(&self, partition: u16, revision: u64, released: bool) -> bool {
        if !self.signals.is_connected() {
            return false;
        }
        let holder = PartitionHolder { node: self.node.clone(), incarnation: self.incarnation, released };
        let key = format!("{PARTITION_PREFIX}{partition}");
        match put_unless_changed(&self.bucket, &key, bytes_of(&holder), revision).await {
            Ok(revision) => {
                self.note_holder(partition, revision, holder);
                true
            }
            Err(why) => {
                tracing::debug!(partition, why, "the lease of a partition was not to be had");
                // Somebody was faster, and the watch may be behind.
                self.look_up(partition).await;
                false
            }
        }
    }

    /// Looks who has a partition, as the watch may hang for a while when a server has died.
    pub(crate) async fn look_up(&self, partition: u16) {
        self.look_at(&format!("{PARTITION_PREFIX}{partition}")).await;
    }

    async fn look_at(&self, key: &str) {
        if self.signals.is_connected()
            && let Ok(Some(entry)) = in_time(limits::NATS_ANSWER, self.bucket.entry(key)).await
        {
            self.note(&entry);
        }
    }

    pub(crate) fn is_own(&self, holder: &PartitionHolder) -> bool {
        holder.node == self.node && holder.incarnation == self.incarnation && !holder.released
    }

    /// Whether this node has the lease of a partition, as far as it has heard.
    pub(crate) fn has(&self, partition: u16) -> bool {
        self.has_by(&self.state(), partition)
    }

    /// The same by what is known.
    pub(crate) fn has_by(&self, state: &ClusterState, partition: u16) -> bool {
        state.partitions.get(&partition).is_some_and(|(_, holder)| self.is_own(holder))
    }

    /// Whether this node is the one that is to take snapshots of a partition: one that follows, if there is one, as its disk
    /// has less to do.
    pub(crate) fn takes_snapshots(&self, partition: u16) -> bool {
        let owner = self.owner(partition);
        let (now, state) = (self.clock.elapsed(), self.state());
        let candidates = self.candidates(partition, &state, now);
        let following = candidates.filter(|node| owner.as_deref() != Some(*node));
        preferred(partition, following).or(owner.as_deref()) == Some(&*self.node)
    }

    /// Whether a node has said that it cannot go on with a partition.
    pub(crate) fn is_stopped_at(&self, partition: u16, node: &str) -> bool {
        self.state().nodes.get(node).is_some_and(|heard| heard.stopped.contains(&partition))
    }

    /// Whether nodes are alive, and none of them goes on with a partition.
    pub(crate) fn is_stopped_everywhere(&self, partition: u16) -> bool {
        let (now, state) = (self.clock.elapsed(), self.state());
        let mut alive = state.nodes.iter().filter(|(node, _)| self.is_alive(&state, now, node)).peekable();
        alive.peek().is_some() && alive.all(|(_, heard)| heard.stopped.contains(&partition))
    }

    /// The node that has a partition, if it is alive.
    pub(crate) fn owner(&self, partition: u16) -> Option<String> {
        let (now, state) = (self.clock.elapsed(), self.state());
        let (_, holder) = state.partitions.get(&partition)?;
        (!holder.released && self.is_alive(&state, now, &holder.node)).then(|| holder.node.clone())
    }

    /// The process that runs as a node, if that is alive as far as this one hears at all.
    pub(crate) fn incarnation(&self, node: &str) -> Option<u64> {
        let (now, state) = (self.clock.elapsed(), self.state());
        let is_there = !self.hears(&state, now) || self.is_alive(&state, now, node);
        state.nodes.get(node).filter(|_| is_there).map(|heard| heard.beat.incarnation)
    }

    #[cfg(test)]
    fn is_deaf_to(&self, node: &str) -> bool {
        node != self.node && self.is_deaf_to_others.load(Ordering::Relaxed)
    }

    /// Says nothing any more, as if the process hung.
    #[cfg(test)]
    pub(crate) fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// The nodes that are alive.
    pub(crate) fn nodes(&self) -> Vec<String> {
        self.heard().into_iter().map(|(node, _)| node).collect()
    }

    /// The nodes that are alive, and for how long they are heard without a pause.
    pub(crate) fn heard(&self) -> Vec<(String, Duration)> {
        let (now, state) = (self.clock.elapsed(), self.state());
        let alive = state.nodes.iter().filter(|(node, _)| self.is_alive(&state, now, node));
        alive.map(|(node, heard)| (node.clone(), now.saturating_sub(heard.since))).collect()
    }

    /// Lets others have what this node has, and takes nothing any more; or takes some again.
    pub(crate) fn set_draining(&self, drains: bool) {
        self.drains.store(drains, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drains.load(Ordering::Relaxed)
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }
}

fn read<T: for<'de> Deserialize<'de>>(entry: &kv::Entry) -> Option<T> {
    match entry.operation {
        Operation::Put => serde_json::from_slice(&entry.value).ok(),
        Operation::Delete | Operation::Purge => None,
    }
}
