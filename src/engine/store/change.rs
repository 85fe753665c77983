//! How a row of the window changes: put or deleted in a turn, then written to the journal by its commit.

use crate::engine::rules::record::QueueId;
use crate::engine::store::base::Base;
use crate::engine::store::key::KeyPart;
use crate::engine::store::rows::RowMap;
use crate::engine::store::schema::Table;
use crate::engine::store::shelf::Group;
use crate::engine::store::shelf::Shelf;
use crate::engine::store::shelf::Slot;
use crate::engine::store::shelf::Stamp;
use crate::error::Fault;

impl<T: Table> Shelf<T> {
    /// Puts or deletes a row.
    pub(crate) fn set(
        &mut self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: T::Key,
        value: Option<T::Value>,
    ) -> Result<(), Fault> {
        let known = || self.groups.get(prefix).is_some_and(|group| group.shadows(&key));
        let based = self.folded.any() && !known() && self.folded.shadow(base, prefix, &key)?;
        self.place(prefix, key, value, based);
        Ok(())
    }

    /// Puts or deletes a row; `based` says whether one is folded, for a key of which the window knows nothing.
    pub(crate) fn place(&mut self, prefix: &T::Prefix, key: T::Key, value: Option<T::Value>, based: bool) {
        // Two look-ups for a new prefix, so that a known one costs no copy of it.
        let group = match self.groups.get_mut(prefix) {
            Some(group) => group,
            None => self.groups.entry(prefix.clone()).or_default(),
        };
        let fresh = Stamp { generation: 0, based, journaled: false, touched: false };
        let is_first = match value {
            Some(value) => group.put(&key, value, fresh),
            None => group.delete(&key, fresh),
        };
        if is_first {
            self.touched.push((prefix.clone(), key));
        }
    }

    /// Ends a turn: hands each changed row to the journal, once, as it is now, and notes the generation it is in.
    pub(crate) fn settle_touched(
        &mut self,
        generation: u32,
        mut journal: impl FnMut(&T::Prefix, &T::Key, Option<&T::Value>),
    ) {
        let mut touched = std::mem::take(&mut self.touched);
        for (prefix, key) in touched.drain(..) {
            let Some(group) = self.groups.get_mut(&prefix) else { continue };
            if let Some(slot) = group.rows.get_mut(&key) {
                if std::mem::take(&mut slot.stamp.touched) {
                    journal(&prefix, &key, Some(&slot.value));
                    slot.stamp.journaled = true;
                    self.changed.note(&mut slot.stamp, generation, (prefix, key));
                }
                continue;
            }
            let Some(stamp) = group.gone.get_mut(&key).filter(|stamp| stamp.touched) else { continue };
            journal(&prefix, &key, None);
            (stamp.touched, stamp.journaled) = (false, true);
            if stamp.based {
                self.changed.note(stamp, generation, (prefix, key));
            } else {
                group.gone.remove(&key);
            }
        }
        self.touched = touched;
    }

    /// Forgets every row of a queue.
    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        self.groups.retain(|prefix, _| prefix.of_queue() != Some(queue));
        self.folded.retain(|prefix| prefix.of_queue() != Some(queue));
    }

    /// Forgets every row of a queue that is not wanted.
    pub(crate) fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.groups.retain(|prefix, _| prefix.of_queue().is_none_or(wanted));
    }
}

impl<T: Table> Group<T> {
    pub(crate) fn stamp(&self, key: &T::Key) -> Option<&Stamp> {
        match self.rows.get(key) {
            Some(slot) => Some(&slot.stamp),
            None if self.gone.is_empty() => None,
            None => self.gone.get(key),
        }
    }

    /// Puts a row; true when this turn has not changed it before.
    fn put(&mut self, key: &T::Key, value: T::Value, fresh: Stamp) -> bool {
        if let Some(slot) = self.rows.get_mut(key) {
            slot.value = value;
            return slot.stamp.touch();
        }
        let gone = if self.gone.is_empty() { None } else { self.gone.remove(key) };
        let mut stamp = gone.unwrap_or(fresh);
        let is_first = stamp.touch();
        self.rows.insert(key.clone(), Slot { stamp, value });
        is_first
    }

    /// Deletes a row; true when this turn has not changed it before, and something is to be written of it.
    fn delete(&mut self, key: &T::Key, fresh: Stamp) -> bool {
        let mut stamp = match self.rows.remove(key) {
            Some(slot) => slot.stamp,
            None if self.is_gone(key) => return false,
            None => fresh,
        };
        if !stamp.based && !stamp.journaled {
            return false;
        }
        let is_first = stamp.touch();
        self.gone.insert(key.clone(), stamp);
        is_first
    }
}

impl Stamp {
    /// Notes that this turn has changed the row; true when it had not before.
    fn touch(&mut self) -> bool {
        !std::mem::replace(&mut self.touched, true)
    }
}
