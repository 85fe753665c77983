//! A trial: changes that are taken back, so that nothing of them is seen later or reaches the disk.

use crate::engine::store::groups::Groups;
use crate::engine::store::rows::RowMap;
use crate::engine::store::slot::WindowSlot;
use crate::engine::store::table::Table;
use crate::engine::store::table_book::TableBook;
use crate::engine::store::table_trial::OldRow;
use crate::engine::store::table_trial::TableTrial;
use crate::engine::store::turn::Turn;
use crate::engine::store::turn::TurnTrial;

impl<T: Table> TableBook<T> {
    /// Begins a trial: every change from now on is taken back by [`TableBook::roll_back`].
    pub(crate) fn begin_trial(&mut self) {
        let touched = self.touched.mark();
        self.trial = Some(TableTrial { rows: Vec::new(), changed: self.changed.len(), touched });
    }

    /// Keeps a row that is about to change, if this is a trial.
    pub(crate) fn remember(&mut self, groups: &impl Groups<T>, prefix: &T::Prefix, key: &T::Key) {
        let Some(trial) = &mut self.trial else { return };
        let group = groups.group(prefix);
        let slot = |slot: &WindowSlot<T::Value>| WindowSlot { stamp: slot.stamp, value: slot.value.clone() };
        trial.rows.push(OldRow {
            prefix: prefix.clone(),
            key: key.clone(),
            row: group.and_then(|group| group.rows.get(key)).map(slot),
            gone: group.and_then(|group| group.gone.get(key)).copied(),
        });
    }

    /// Ends a trial: every row is as it was when it began. Returns how many were others.
    pub(crate) fn roll_back(&mut self, groups: &mut impl Groups<T>) -> usize {
        let Some(trial) = self.trial.take() else { return 0 };
        let taken_back = trial.rows.len();
        for OldRow { prefix, key, row, gone } in trial.rows.into_iter().rev() {
            let (_, group) = groups.group_to_change(&prefix);
            let is_flushed = group.stamp(&key).is_some_and(|stamp| stamp.is_based());
            group.rows.remove(&key);
            group.gone.remove(&key);
            match (row, gone) {
                (Some(slot), _) => group.rows.insert(key, slot),
                (None, Some(stamp)) => group.gone.insert(key, stamp),
                (None, None) if is_flushed => {
                    let (prefix, key) = T::flushed_key(&prefix, &key);
                    self.flushed.note_unshadowed(prefix, key);
                }
                (None, None) => {}
            }
            if group.is_empty() {
                groups.give_up(&prefix);
            }
        }
        self.changed.shorten(trial.changed);
        self.touched.shorten(trial.touched);
        taken_back
    }
}

impl Turn<'_> {
    /// Begins a trial: every change from now on is taken back by [`Turn::roll_back`].
    pub(crate) fn begin_trial(&mut self) {
        assert!(self.trial.is_none(), "there is one trial at a time");
        self.memtables.each(&mut |memtable| memtable.begin_trial());
        self.trial = Some(TurnTrial {
            numbers: self.meta.numbers,
            counters: self.meta.counters.clone(),
            touched_counters: self.meta.touched_counters.clone(),
            has_changed: self.changed,
            written: self.written,
        });
    }

    /// Ends a trial.
    pub(crate) fn roll_back(&mut self) {
        let before = self.trial.take().expect("only a trial that has begun can end");
        let mut taken_back = 0;
        self.memtables.each(&mut |memtable| taken_back += memtable.roll_back());
        self.memtables.taken_back += taken_back;
        self.meta.numbers = before.numbers;
        self.meta.counters = before.counters;
        self.meta.touched_counters = before.touched_counters;
        self.changed = before.has_changed;
        self.written = before.written;
    }
}
