//! A partition on one node: a thread that follows its log, takes over when nobody has it, and then is the engine's writer until
//! the partition is lost or given up.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::MutexGuard;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::enforcing::EnforcedDefinitions;
use crate::cluster::failure_pause::FailurePause;
use crate::cluster::jet_stream::JetStreamLog;
use crate::cluster::metering::PartitionMeter;
use crate::cluster::node_means::NodeMeans;
use crate::cluster::partition_file::PartitionFile;
use crate::cluster::random::random;
use crate::cluster::reasons::is_deposed;
use crate::cluster::reasons::may_pass;
use crate::cluster::snapshot_list::PartitionSnapshot;
use crate::cluster::snapshot_list::SnapshotList;
use crate::cluster::snapshot_list::SnapshotRecord;
use crate::cluster::snapshots::SnapshotError;
use crate::cluster::stop::STOPPED;
use crate::cluster::watched_log::WatchedLog;
use crate::engine::Client;
use crate::engine::log::Follower;
use crate::engine::log::Log;
use crate::engine::log::SharedLog;
use crate::engine::log::SnapshotFile;
use crate::engine::log::guarded;
use crate::error::Fault;
use crate::error::OpenError;
use crate::limits;
use crate::mutex::Mutex;

/// What a node does with a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartitionState {
    /// It reads what the owner writes.
    Following,
    /// It decides, and answers.
    Owner,
    /// It cannot go on with it, for this reason.
    Stopped(String),
}

/// A partition as a node sees it.
///
/// It is written as a JSON object with these names; `state` is `"following"`, `"owner"` or `{"stopped": "why"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartitionStatus {
    /// Its number; the first is 0.
    pub partition: u16,
    /// What this node does with it.
    pub state: PartitionState,
    /// The node that has it, if that is alive.
    pub owner: Option<String>,
    /// The position of the last entry of its log that this node has. The first is 1.
    pub position: u64,
    /// How many entries behind that this node knows to be there already: what it has to read before it could take over.
    pub lag: u64,
    /// How many times somebody has taken it over, as far as this node has read.
    pub epoch: u32,
    /// The snapshots from which a node can begin, the newest first; at most two.
    pub snapshots: Vec<PartitionSnapshot>,
}

/// How often in the time of a lease it is looked whether there is something to do.
pub(crate) const LOOKS_A_LEASE: u32 = 8;

/// After so many leases in which nothing was heard, it is looked up who has the partition.
const QUIET_LEASES: u32 = 4;

/// What a follower has waited for.
enum FollowerNews {
    /// There are entries to read.
    Entries,
    /// Nothing was heard for the time of a lease.
    Nothing,
    /// The partition is this node's now.
    Claimed,
    /// The node is stopped.
    Stopped,
}

/// What others may know of it.
pub(crate) struct SharedPartition {
    pub(crate) state: PartitionState,
    pub(crate) client: Option<Client>,
}

/// A partition on this node.
pub(crate) struct Partition {
    pub(crate) number: u16,
    file: PartitionFile,
    log: Arc<SharedLog<JetStreamLog>>,
    /// The same, for whoever follows and appends.
    watched: Arc<WatchedLog<SharedLog<JetStreamLog>>>,
    pub(crate) epoch: AtomicU32,
    published: Mutex<SharedPartition>,
    meter: PartitionMeter,
    /// Which queues its engine has.
    pub(crate) enforced: EnforcedDefinitions,
    pub(crate) node: NodeMeans,
    /// Whether it is being given to another node, and hands out nothing more.
    pub(crate) gives_away: AtomicBool,
    /// Whether it is known to have an outbox, whoever owns it.
    pub(crate) has_outbox: AtomicBool,
}

impl Partition {
    pub(crate) fn new(number: u16, path: PathBuf, log: JetStreamLog, node: NodeMeans) -> Partition {
        let log = Arc::new(SharedLog::new(log));
        let published = SharedPartition { state: PartitionState::Following, client: None };
        Partition {
            number,
            file: PartitionFile::new(path),
            watched: Arc::new(WatchedLog::new(log.clone(), node.clock.0.clone())),
            log,
            epoch: AtomicU32::new(0),
            published: Mutex::new(published),
            meter: PartitionMeter::default(),
            enforced: EnforcedDefinitions::new(node.definitions.clone()),
            node,
            gives_away: AtomicBool::new(false),
            has_outbox: AtomicBool::new(false),
        }
    }

    pub(crate) fn published(&self) -> MutexGuard<'_, SharedPartition> {
        self.published.lock()
    }

    /// The engine, if this node is the owner.
    pub(crate) fn client(&self) -> Option<Client> {
        self.published().client.clone()
    }

    /// The engine and its epoch, if this node is the owner.
    pub(crate) fn owned(&self) -> Option<(Client, u32)> {
        // It is another only after the client is gone.
        let published = self.published();
        Some((published.client.clone()?, self.epoch.load(Ordering::Relaxed)))
    }

    pub(crate) fn status(&self) -> PartitionStatus {
        let (position, end) = self.log.ends();
        PartitionStatus {
            partition: self.number,
            state: self.published().state.clone(),
            owner: self.node.leases.owner(self.number),
            position,
            lag: end - position,
            epoch: self.epoch.load(Ordering::Relaxed),
            snapshots: self.node.snapshots.known(self.number).0.iter().map(SnapshotRecord::status).collect(),
        }
    }

    pub(crate) fn meter(&self) -> &PartitionMeter {
        &self.meter
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Notes that its log reaches to a position.
    pub(crate) fn hear_of(&self, position: u64) {
        self.log.hear_of(position);
    }

    pub(crate) fn log(&self) -> &SharedLog<JetStreamLog> {
        &self.log
    }

    /// The same, with what its owner has offered to it.
    pub(crate) fn watched(&self) -> &WatchedLog<SharedLog<JetStreamLog>> {
        &self.watched
    }

    /// The engine, if this node is the owner and it answers: one that waits for its log does not, and whoever asks waits with it.
    pub(crate) fn client_that_answers(&self) -> Option<Client> {
        self.client().filter(|_| self.trouble().is_none())
    }

    /// The engine, if receivers may be handed out of it: it answers, and is not being given to another node.
    pub(crate) fn client_that_hands_out(&self) -> Option<Client> {
        self.client_that_answers().filter(|_| !self.gives_away.load(Ordering::Relaxed))
    }

    /// Whether this node is the owner, and waits for the log: what is asked of the engine is done once that takes something again.
    pub(crate) fn is_stuck(&self) -> bool {
        self.client().is_some() && self.trouble().is_some()
    }

    /// Why it waits for its log, if it has for some time.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.log.server().trouble()
    }

    /// Gives up the log up to a position.
    ///
    /// # Errors
    /// [`Fault::Log`] when no answer came to a few attempts.
    pub(crate) fn trim(&self, through: u64) -> Result<(), Fault> {
        self.log.trim(through)
    }

    /// Its file on this node.
    pub(crate) fn file(&self) -> &PartitionFile {
        &self.file
    }

    /// Its snapshots, as the servers say.
    pub(crate) fn snapshot_list(&self) -> Result<SnapshotList, String> {
        let listed = self.node.stop.before(self.node.snapshots.list(self.number));
        let (_, list) = self.node.runtime.block_on(listed).ok_or(STOPPED)??;
        Ok(list)
    }

    /// Reads a snapshot.
    pub(crate) fn fetch(&self, record: &SnapshotRecord) -> Result<SnapshotFile, SnapshotError> {
        self.node.snapshots.fetch(&self.node.runtime, record, self.file.path())
    }

    /// Puts a snapshot in place of its file, which is not open.
    pub(crate) fn put_in_place(&self, snapshot: SnapshotFile) -> Result<(), OpenError> {
        snapshot.replace(self.file.path())
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// [`Fault::Log`] when the node is stopped.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), Fault> {
        match self.node.stop.wait(time) {
            true => Err(Fault::Log(STOPPED.to_owned())),
            false => Ok(()),
        }
    }

    /// Follows and serves until the node is stopped, or the partition cannot go on. A disk that was full may have room later, a log that
    /// has failed or lost something may go on, and a file that somebody else has open may be closed: it is tried again then, each time
    /// after twice as long, and is stopped meanwhile.
    pub(crate) fn run(self: Arc<Partition>) {
        let (clock, mut pause) = (SystemClock::default(), FailurePause::new(self.node.leases.lease()));
        while !self.node.stop.is_said() {
            pause.begin();
            let ended = match guarded(|| self.follow_and_serve(&mut || pause.note_going_on(clock.elapsed())))
            {
                // Another goes on with it, and this node follows.
                Ok(Err(error)) if is_deposed(&error) => Ok(None),
                Ok(ended) => ended,
                // As long as this node has the lease, no other would take it.
                Err(panic) => Err(panic.into_defect().into()),
            };
            self.published().client = None;
            self.node.leases.set_stopped(self.number, ended.is_err());
            self.release();
            // Last: a snapshot that is being written holds the file, and is to keep nobody from the partition.
            self.file.set_closed();
            match ended {
                Ok(fault) => {
                    self.published().state = PartitionState::Following;
                    if let Some(fault) = fault.filter(|_| !self.node.stop.is_said()) {
                        tracing::warn!(partition = self.number, %fault, "a partition is followed anew");
                        // Others may have it meanwhile.
                        self.node.leases.note_behind(self.number);
                        self.node.stop.wait(pause.after(clock.elapsed()));
                    }
                }
                Err(_) if self.node.stop.is_said() => {}
                Err(error) => {
                    let stopped = PartitionState::Stopped(error.to_string());
                    let before = std::mem::replace(&mut self.published().state, stopped.clone());
                    if before != stopped {
                        tracing::error!(partition = self.number, %error, "a partition is stopped on this node");
                    }
                    if !may_pass(&error) {
                        return;
                    }
                    self.node.stop.wait(pause.after(clock.elapsed()));
                }
            }
        }
    }

    /// Gives up the lease, however often the servers have to be asked: as long as this node has it, no other takes the partition.
    fn release(&self) {
        while self.node.leases.has(self.number) {
            self.node.runtime.block_on(self.node.leases.release(self.number));
            if self.node.leases.has(self.number)
                && self.node.stop.wait(self.node.leases.lease() / LOOKS_A_LEASE)
            {
                return;
            }
        }
    }

    /// Opens the file; without one, it begins with a snapshot if there is one.
    fn open(&self) -> Result<Follower, OpenError> {
        if !self.file.path().exists() {
            self.restore(0)?;
        }
        let follower = Follower::open(self.file.path(), self.node.options, self.watched.clone())?;
        self.file.set_open(follower.snapshots());
        Ok(follower)
    }

    /// Reads the log to its end. A file that ends before the log begins makes way for a snapshot.
    fn catch_up(&self, mut follower: Follower) -> Result<Follower, OpenError> {
        loop {
            let Err(fault) = follower.catch_up() else { return Ok(follower) };
            let position = follower.position();
            if !matches!(fault, Fault::Log(_)) || self.log.first()? <= position + 1 {
                return Err(fault.into());
            }
            tracing::warn!(partition = self.number, position, "the file ends before its log begins");
            self.node.leases.note_behind(self.number);
            self.file.set_closed();
            drop(follower);
            if !self.restore(position)? {
                return Err(fault.into());
            }
            follower = self.open()?;
        }
    }

    /// Follows until this node is to take over, and serves then until that is over; tells the fault of the log that has ended it, if one
    /// has. It is noted whenever it goes on, with all that there is.
    fn follow_and_serve(
        self: &Arc<Partition>,
        note_going_on: &mut dyn FnMut(),
    ) -> Result<Option<Fault>, OpenError> {
        self.node.leases.note_behind(self.number);
        let (mut follower, mut quiet, mut is_first) = (self.open()?, 0_u32, true);
        loop {
            let before = follower.position();
            follower = self.catch_up(follower)?;
            // What was there before this node came may be old.
            if !std::mem::take(&mut is_first) && follower.position() > before {
                self.node.leases.note_entries(self.number);
            }
            self.node.leases.note_read_up(self.number);
            self.goes_on();
            note_going_on();
            self.epoch.store(follower.epoch(), Ordering::Relaxed);
            match self.wait_for_news() {
                FollowerNews::Stopped => return Ok(None),
                FollowerNews::Entries => {}
                FollowerNews::Nothing => {
                    quiet += 1;
                    if quiet % QUIET_LEASES == 0 {
                        self.node.runtime.block_on(self.node.leases.look_up(self.number));
                    }
                }
                FollowerNews::Claimed => break,
            }
        }
        let follower = self.catch_up(follower)?;
        let (clock, passed) = (self.node.clock.0.clone(), self.watched.passed_since(follower.position()));
        let begun = |engine, epoch| self.publish(engine, epoch);
        follower.serve(random(), first_number(self.number), clock, passed, begun)
    }

    /// Notes that it has its log again, if it was stopped.
    fn goes_on(&self) {
        let mut published = self.published();
        if matches!(published.state, PartitionState::Stopped(_)) {
            published.state = PartitionState::Following;
            self.node.leases.set_stopped(self.number, false);
        }
    }

    /// Waits until there is something to read or to take over. That there may be entries of which nothing was heard is thought
    /// of once a lease: to look costs the servers more than to tell.
    fn wait_for_news(&self) -> FollowerNews {
        for _ in 0..LOOKS_A_LEASE {
            if self.node.stop.wait(self.node.leases.lease() / LOOKS_A_LEASE) {
                return FollowerNews::Stopped;
            }
            // It was claimed after all, though the answer was lost.
            self.release();
            if let Some(revision) = self.node.leases.may_claim(self.number)
                && self.node.runtime.block_on(self.node.leases.claim(self.number, revision))
            {
                return FollowerNews::Claimed;
            }
            let (at, end) = self.log.ends();
            if end > at {
                return FollowerNews::Entries;
            }
            self.node.leases.note_read_up(self.number);
        }
        FollowerNews::Nothing
    }
}

/// The first number of a message in a partition: which partition it is stands above the 48 bits in which messages are counted.
pub(crate) fn first_number(partition: u16) -> u64 {
    u64::from(partition) * limits::NUMBER_END + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_partitions_as_are_said_to_be_exact_are_below_2_to_the_53() {
        assert_eq!(first_number(limits::PARTITIONS_EXACT) - 1, 1 << 53);
    }
}
