//! How a row of the window changes: put or deleted in a turn, then written to the journal by its commit.

use crate::engine::rules::record::QueueId;
use crate::engine::store::base::Base;
use crate::engine::store::key::KeyPart;
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
        let known = self.groups.get(prefix).is_some_and(|group| group.stamp(&key).is_some());
        let based = !known && self.is_folded(base, prefix, &key)?;
        self.place(prefix, key, value, based);
        Ok(())
    }

    /// Puts or deletes a row; `based` says whether one is folded, for a key of which the window knows nothing.
    pub(crate) fn place(&mut self, prefix: &T::Prefix, key: T::Key, value: Option<T::Value>, based: bool) {
        if !self.groups.contains_key(prefix) {
            self.groups.insert(prefix.clone(), Group::default());
        }
        let group = self.groups.get_mut(prefix).expect("it was put there if it was not");
        let fresh = Stamp { generation: 0, based, journaled: false, touched: false };
        let stamp = match value {
            Some(value) => group.put(&key, value, fresh),
            None => group.delete(&key, fresh),
        };
        match stamp {
            Some(stamp) if !stamp.touched => {
                stamp.touched = true;
                self.touched.push((prefix.clone(), key));
            }
            Some(_) => {}
            None => self.drop_if_empty(prefix),
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
                self.drop_if_empty(&prefix);
            }
        }
        self.touched = touched;
    }

    /// Forgets every row of a queue.
    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        self.groups.retain(|prefix, _| prefix.of_queue() != Some(queue));
        self.retain_gaps(|prefix| prefix.of_queue() != Some(queue));
    }

    /// Forgets every row of a queue that is not wanted.
    pub(crate) fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.groups.retain(|prefix, _| prefix.of_queue().is_none_or(wanted));
    }

    pub(crate) fn drop_if_empty(&mut self, prefix: &T::Prefix) {
        if self.groups.get(prefix).is_some_and(|group| group.rows.is_empty() && group.gone.is_empty()) {
            self.groups.remove(prefix);
        }
    }
}

impl<T: Table> Group<T> {
    pub(crate) fn stamp(&self, key: &T::Key) -> Option<&Stamp> {
        self.rows.get(key).map(|slot| &slot.stamp).or_else(|| self.gone.get(key))
    }

    fn put(&mut self, key: &T::Key, value: T::Value, fresh: Stamp) -> Option<&mut Stamp> {
        // Two look-ups, because a borrow that is returned from one branch holds in the other.
        if self.rows.contains_key(key) {
            let slot = self.rows.get_mut(key)?;
            slot.value = value;
            return Some(&mut slot.stamp);
        }
        let stamp = self.gone.remove(key).unwrap_or(fresh);
        let slot = self.rows.entry(key.clone()).or_insert(Slot { stamp, value });
        Some(&mut slot.stamp)
    }

    /// Deletes a row; `None` when nothing is left to be written of it.
    fn delete(&mut self, key: &T::Key, fresh: Stamp) -> Option<&mut Stamp> {
        let stamp = match self.rows.remove(key) {
            Some(slot) => slot.stamp,
            None if self.gone.contains_key(key) => return None,
            None => fresh,
        };
        if !stamp.based && !stamp.journaled {
            return None;
        }
        Some(self.gone.entry(key.clone()).or_insert(stamp))
    }
}
