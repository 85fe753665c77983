//! Following a log: its entries are applied to a file of one's own, one after the other, and no rule is asked.
//!
//! Entries say what is, so that whoever has applied all of them is where their author was. The rows of the window are in
//! memory, as with whoever decides, and flushed as they are there: what it takes does not depend on how much is stored.

use crate::engine::store::base::Base;
use crate::engine::store::checksum::damaged;
use crate::engine::store::definition::JOURNAL;
use crate::engine::store::in_place::Epoch;
use crate::engine::store::in_place::InPlace;
use crate::engine::store::job::Job;
use crate::engine::store::journal_row::JournalHeader;
use crate::engine::store::journal_row::RowReader;
use crate::engine::store::log::Entry;
use crate::engine::store::meta::BatchRecord;
use crate::engine::store::meta::QueueChange;
use crate::engine::store::open::next_epoch;
use crate::engine::store::store::Store;
use crate::error::Fault;

impl Store {
    /// Reads the log from where this file is to its end. Returns how many entries that were.
    ///
    /// # Errors
    /// [`Fault::Log`] when the log is not the one that this file has followed so far, or has a hole.
    pub(crate) fn catch_up(&mut self) -> Result<u64, Fault> {
        self.guard(Store::read_log)
    }

    fn read_log(&mut self) -> Result<u64, Fault> {
        let Some(log) = self.log.clone() else { return Ok(0) };
        let from = self.place().0;
        let mut is_known = from == 0;
        let read = log.read_from(from, &mut |entry| {
            self.check_place(entry)?;
            is_known = true;
            if entry.position == self.place().0 {
                return Ok(());
            }
            self.follow(entry)
        });
        read.and_then(|()| match is_known {
            true => Ok(self.place().0 - from),
            false => Err(Fault::Log(format!("it ends before entry {from}, which this file has from it"))),
        })
    }

    /// Checks that an entry is the last that this file has, or the one behind it.
    fn check_place(&self, entry: Entry<'_>) -> Result<(), Fault> {
        let (position, checksum) = self.place();
        match entry.position {
            at if at == position + 1 => Ok(()),
            at if at == position && RowReader::open(entry.bytes)?.1 == checksum => Ok(()),
            at if at == position => {
                Err(Fault::Log(format!("its entry {at} is not the one that this file has from it")))
            }
            at => Err(Fault::Log(format!("entry {at} comes behind entry {position}: others are missing"))),
        }
    }

    /// Applies the next entry, and commits it.
    ///
    /// # Errors
    /// [`Fault::Damaged`] when the entry makes no sense, [`Fault::Log`] when it does not follow the last one, or the fault that
    /// stopped the store.
    pub(crate) fn follow(&mut self, entry: Entry<'_>) -> Result<(), Fault> {
        let job = self.guard(|store| store.prepare_to_follow(entry))?;
        self.commit(&[job])
    }

    fn prepare_to_follow(&mut self, entry: Entry<'_>) -> Result<Job, Fault> {
        let (header, checksum, in_place, mut row) = RowReader::open_whole(entry.bytes)?;
        self.check_follows(entry.position, &header, &in_place)?;
        let base = Base::new(&self.database);
        while let Some(number) = row.next_table()? {
            let followed =
                self.memtables.numbered(number, |memtable| memtable.follow(&base, &mut row, header.position));
            followed.ok_or_else(|| damaged(&JOURNAL, "a row names no table"))??;
        }
        self.memtables.each(&mut |memtable| memtable.trim());
        let InPlace { epoch, queue_changes } = in_place;
        self.change_queues(&queue_changes);
        let JournalHeader { time, numbers, counters, wall, .. } = header;
        self.meta.numbers = numbers;
        self.meta.counters.extend(counters);
        self.meta.batch = BatchRecord { position: entry.position, hash: checksum, time, wall };
        let epoch = epoch.unwrap_or(self.epoch);
        let begins_epoch = (epoch.number > self.epoch.number).then_some(epoch.number);
        self.epoch = epoch;
        let job = Job::new(entry.position, self.room_for_rows.filled(entry.bytes.to_vec()), queue_changes);
        Ok(self.with_flush(Job { is_followed: true, begins_epoch, ..job }))
    }

    fn check_follows(&self, position: u64, header: &JournalHeader, in_place: &InPlace) -> Result<(), Fault> {
        let (last, checksum) = self.place();
        if header.position != position || position != last + 1 || header.previous != checksum {
            return Err(Fault::Log(format!("entry {position} does not follow entry {last}")));
        }
        match in_place.epoch {
            Some(epoch) if epoch.number < self.epoch.number => Err(Fault::Log(format!(
                "entry {position} is of epoch {}, and the one before it of epoch {}",
                epoch.number, self.epoch.number
            ))),
            _ => Ok(()),
        }
    }

    fn change_queues(&mut self, changes: &[QueueChange]) {
        for change in changes {
            match change {
                QueueChange::Put(record) => self.meta.keep_queue(record.as_ref().clone()),
                QueueChange::Gone(queue) => {
                    self.memtables.each(&mut |memtable| memtable.forget_queue(*queue));
                    self.meta.forget_queue(*queue);
                }
            }
        }
    }

    /// Begins to number messages with this number, unless some have been numbered: those of other files have others.
    #[cfg(feature = "cluster")]
    pub(crate) fn begin_numbers(&mut self, first: u64) {
        let next = &mut self.meta.numbers.next_sequence;
        *next = first.max(*next);
    }

    /// Begins an epoch of one's own with an entry that says so. From then on whoever has written before is refused by the
    /// log, and this store decides.
    ///
    /// # Errors
    /// [`Fault::Deposed`] when somebody else was faster: the file is to be opened again then, to follow.
    pub(crate) fn take_over(&mut self, holder: u64) -> Result<(), Fault> {
        self.epoch = Epoch { number: next_epoch(self.epoch.number)?, holder };
        let mut job = self.job(Vec::new());
        job.begins_epoch = Some(self.epoch.number);
        self.commit(&[job])
    }
}
