//! A turn that is tried out: applied in memory, answered, and taken back.

use crate::engine::store::store::Store;
use crate::engine::store::turn::Turn;
use crate::error::Fault;

impl Store {
    /// Runs one turn in memory and takes it back.
    ///
    /// # Errors
    /// The fault that stopped the store, now or before.
    pub(crate) fn try_out<T>(
        &mut self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (numbers, tallies) = (self.kept.numbers, self.kept.tallies.clone());
        self.memtables.each().into_iter().for_each(|memtable| memtable.begin_trial());
        let (done, job) = self.prepare(|turn| {
            let done = work(turn)?;
            assert!(turn.queue_changes.is_empty(), "a trial changes no queue");
            turn.changed = false;
            Ok(done)
        })?;
        assert!(job.is_none(), "nothing of a trial is written");
        self.memtables.each().into_iter().for_each(|memtable| memtable.roll_back());
        (self.kept.numbers, self.kept.tallies) = (numbers, tallies);
        self.kept.touched_tallies.clear();
        Ok(done)
    }
}
