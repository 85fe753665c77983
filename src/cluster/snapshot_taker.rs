//! Who takes snapshots, when, and what follows from one: the log is given up as far as two snapshots do without it.
//!
//! Every step leaves what a crash may find: until a snapshot is listed nobody knows of it, and what is given up afterwards is
//! known from the list alone, so that whoever is next does what is left. Two that are at it at once do each other no harm.

use std::io::sink;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::failure_pause::FailurePause;
use crate::cluster::node_means::NodeMeans;
use crate::cluster::partition::Partition;
use crate::cluster::partition_file::READ_BACK;
use crate::cluster::random::random;
use crate::cluster::snapshot_list::SnapshotList;
use crate::cluster::snapshot_list::SnapshotRecord;
use crate::cluster::snapshot_pace::SnapshotPace;
use crate::cluster::snapshot_pace::SnapshotStep;
use crate::cluster::snapshots::ObjectSum;
use crate::cluster::snapshots::object_of;
use crate::cluster::stop::STOPPED;
use crate::engine::log::LogPlace;
use crate::engine::log::SnapshotFile;

/// Takes the snapshots of a node: one at a time, so that a disk needs room for one.
pub(crate) struct SnapshotTaker {
    pace: SnapshotPace,
    partitions: Vec<Arc<Partition>>,
    node: NodeMeans,
    clock: SystemClock,
}

/// What attempts that failed leave to the next one of a partition.
struct SnapshotRetry {
    pause: FailurePause,
    /// Until then, by the time that has passed, there is none: each copies the whole file, or waits for servers that do not answer.
    not_before: Duration,
    /// An object that nobody lists, and that could not be removed.
    left: Option<String>,
    /// A snapshot of which it is not known whether it was listed: it may not be removed, and is listed before another is taken.
    unlisted: Option<SnapshotRecord>,
}

impl SnapshotTaker {
    pub(crate) fn new(pace: SnapshotPace, partitions: Vec<Arc<Partition>>, node: NodeMeans) -> SnapshotTaker {
        SnapshotTaker { pace, partitions, node, clock: SystemClock::default() }
    }

    /// Waits for the servers, as long as the node is not stopped.
    fn wait_for<T>(&self, asked: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        self.node.runtime.block_on(self.node.stop.before(asked)).ok_or(STOPPED)?
    }

    /// Takes what is due until the node is stopped.
    pub(crate) fn run(&self) {
        let retry = |_| SnapshotRetry {
            pause: FailurePause::new(self.pace.look),
            not_before: Duration::ZERO,
            left: None,
            unlisted: None,
        };
        let mut retries: Vec<SnapshotRetry> = self.partitions.iter().map(retry).collect();
        while !self.node.stop.wait(self.pace.look) {
            for (partition, retry) in self.partitions.iter().zip(&mut retries) {
                if self.node.stop.is_said() {
                    return;
                }
                if let Err(why) = self.look_after(partition, retry) {
                    let number = partition.number();
                    tracing::warn!(
                        partition = number,
                        why,
                        "a snapshot was not taken, or nothing was given up for it"
                    );
                }
            }
        }
    }

    /// Takes a snapshot of a partition if one is due, unless that has failed just before: one whose servers do not answer would keep
    /// the others waiting.
    fn look_after(&self, partition: &Partition, retry: &mut SnapshotRetry) -> Result<(), String> {
        if self.clock.elapsed() < retry.not_before {
            return Ok(());
        }
        let looked = self.take_if_due(partition, retry);
        match &looked {
            Ok(()) => retry.pause = FailurePause::new(self.pace.look),
            Err(_) => {
                let now = self.clock.elapsed();
                retry.not_before = now + retry.pause.after(now);
            }
        }
        looked
    }

    /// Takes one if so much was appended by what this node knows, and by what the servers say.
    fn take_if_due(&self, partition: &Partition, retry: &mut SnapshotRetry) -> Result<(), String> {
        let number = partition.number();
        if !self.is_due(partition, &self.node.snapshots.known(number))? {
            return Ok(());
        }
        let (_, list) = self.wait_for(self.node.snapshots.list(number))?;
        match self.is_due(partition, &list)? {
            true => self.take(partition, retry),
            false => Ok(()),
        }
    }

    /// Whether so much was appended since the newest snapshot that this node should take another. Those who are not meant to
    /// wait twice as long, in case whoever is cannot.
    fn is_due(&self, partition: &Partition, list: &SnapshotList) -> Result<bool, String> {
        let since = partition.log().ends().0.saturating_sub(list.newest());
        if since == 0 {
            return Ok(false);
        }
        let factor = if self.node.leases.takes_snapshots(partition.number()) { 1 } else { 2 };
        if since >= self.pace.entries * factor {
            return Ok(true);
        }
        let (entries, bytes) = self.wait_for(partition.log().server().size())?;
        let about = u128::from(since) * u128::from(bytes) / u128::from(entries.max(1));
        // As much as the last one has, or more would be written for snapshots than for the log.
        let least = self.pace.bytes.max(list.0.first().map_or(0, |newest| newest.bytes));
        Ok(about >= u128::from(least) * u128::from(factor))
    }

    fn reach(&self, step: SnapshotStep) {
        tracing::trace!(?step, "a snapshot is taken");
        #[cfg(test)]
        if let Some(hook) = self.pace.hook {
            hook.0(step);
        }
    }

    /// Takes a snapshot, and gives up what is not needed any more once it is listed.
    fn take(&self, partition: &Partition, retry: &mut SnapshotRetry) -> Result<(), String> {
        self.remove_left(retry)?;
        let record = match retry.unlisted.clone() {
            Some(record) => record,
            None => {
                self.reach(SnapshotStep::Write);
                let Some(record) = self.put(partition, retry)? else { return Ok(()) };
                tracing::debug!(object = record.object, "a snapshot was put on the servers");
                retry.unlisted.insert(record).clone()
            }
        };
        self.reach(SnapshotStep::List);
        let list = self.list(partition, record)?;
        retry.unlisted = None;
        self.reach(SnapshotStep::Trim);
        self.trim(partition, &list)?;
        self.reach(SnapshotStep::Remove);
        self.wait_for(self.node.snapshots.remove_beyond(partition.number(), &list))?;
        Ok(())
    }

    /// Writes a snapshot, puts it on the servers, and reads it back. What fails leaves nothing there.
    fn put(
        &self,
        partition: &Partition,
        retry: &mut SnapshotRetry,
    ) -> Result<Option<SnapshotRecord>, String> {
        let written = partition.file().write_snapshot(&self.node.stop).map_err(|fault| fault.to_string())?;
        let Some(file) = written else { return Ok(None) };
        let place = file.check().map_err(|error| error.to_string())?;
        self.reach(SnapshotStep::Put);
        let object = object_of(partition.number(), place.position, random());
        let put = self.put_object(partition, &object, (file, place));
        if put.is_err() {
            // Nobody lists it, and the next has another name.
            retry.left = Some(object);
            if let Err(why) = self.remove_left(retry) {
                tracing::debug!(why, "what is left of a snapshot is removed before the next");
            }
        }
        put.map(Some)
    }

    /// Puts the file of a snapshot into an object, and sees to it that it can be begun from.
    fn put_object(
        &self,
        partition: &Partition,
        object: &str,
        (file, place): (SnapshotFile, LogPlace),
    ) -> Result<SnapshotRecord, String> {
        let mut bytes = std::fs::File::open(file.path()).map_err(|error| error.to_string())?;
        let sum = self.wait_for(self.node.snapshots.put(object, &mut bytes))?;
        drop(file);
        let ObjectSum { bytes, digest } = sum;
        let (node, taken_at) = (self.node.leases.node().to_owned(), self.clock.now());
        let record = SnapshotRecord { object: object.to_owned(), place, bytes, digest, node, taken_at };
        self.reach(SnapshotStep::ReadBack);
        let read =
            self.node.snapshots.fetch(&self.node.runtime, &record, &partition.file().beside(READ_BACK));
        read.map_err(|error| format!("the snapshot {object} was read back: {error:?}"))?;
        if !partition.log().has(place).map_err(|fault| fault.to_string())? {
            return Err(format!("the log has not got the last entry of the snapshot {object}"));
        }
        Ok(record)
    }

    /// Removes what an attempt that failed has left on the servers.
    fn remove_left(&self, retry: &mut SnapshotRetry) -> Result<(), String> {
        if let Some(object) = &retry.left {
            self.wait_for(self.node.snapshots.remove(object))?;
            retry.left = None;
        }
        Ok(())
    }

    /// Lists a snapshot; another that is newer may have come first.
    fn list(&self, partition: &Partition, record: SnapshotRecord) -> Result<SnapshotList, String> {
        let number = partition.number();
        let (revision, list) = self.wait_for(self.node.snapshots.list(number))?;
        let Some(longer) = list.with(record) else { return Ok(list) };
        self.wait_for(self.node.snapshots.put_list(number, &longer, revision))?;
        let position = longer.newest();
        tracing::info!(partition = number, position, "a snapshot was taken");
        Ok(longer)
    }

    /// Gives up the log below the older of two snapshots, if that is still what it was: a node that finds the newer one
    /// damaged begins with it, and reads the log from there.
    pub(crate) fn trim(&self, partition: &Partition, list: &SnapshotList) -> Result<(), String> {
        let Some(oldest) = list.oldest_kept() else { return Ok(()) };
        let wanted = ObjectSum { bytes: oldest.bytes, digest: oldest.digest };
        let read = self.node.runtime.block_on(self.node.snapshots.read(&oldest.object, wanted, &mut sink()));
        read.map_err(|error| {
            format!("the log is not trimmed for the snapshot {}: {error:?}", oldest.object)
        })?;
        if !partition.log().has(oldest.place).map_err(|fault| fault.to_string())? {
            return Err(format!("the log has not got the last entry of the snapshot {}", oldest.object));
        }
        partition.trim(oldest.place.position - 1).map_err(|fault| fault.to_string())
    }
}
