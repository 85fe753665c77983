//! Where the window keeps the rows of a table's prefixes.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::engine::rules::record::QueueId;
use crate::engine::store::key::KeyPart;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::table::Table;

/// The rows of the window, by prefix.
pub(crate) trait Groups<T: Table> {
    fn group(&self, prefix: &T::Prefix) -> Option<&PrefixGroup<T>>;
    fn group_mut(&mut self, prefix: &T::Prefix) -> Option<&mut PrefixGroup<T>>;
    /// The group of a prefix in which a row is about to change, made if it is not there, and its place.
    fn group_to_change(&mut self, prefix: &T::Prefix) -> (T::Place, &mut PrefixGroup<T>);
    /// The group at a place: of another prefix than before, if that was given up since.
    fn group_at(&self, place: &T::Place) -> Option<&PrefixGroup<T>>;
    /// Whose place it is; the same holds.
    fn prefix_at<'p>(&'p self, place: &'p T::Place) -> Option<&'p T::Prefix>;
    /// Gives up the group of a prefix whose last row was just deleted, if it is not kept for the next.
    fn give_up(&mut self, _prefix: &T::Prefix) {}
    /// Gives up what is empty, and room that is not needed. Slots are of several tables, and tidied up once for all of them.
    fn tidy(&mut self) {}
    /// Forgets every row of a queue that is not wanted.
    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool);
    /// Every group, in no order.
    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g T::Prefix, &'g PrefixGroup<T>));
}

/// Groups of one table, found by hash.
pub(crate) type PrefixGroups<T> = HashMap<<T as Table>::Prefix, PrefixGroup<T>, RandomState>;

impl<T: Table<Place = <T as Table>::Prefix>> Groups<T> for PrefixGroups<T> {
    fn group(&self, prefix: &T::Prefix) -> Option<&PrefixGroup<T>> {
        self.get(prefix)
    }

    fn group_mut(&mut self, prefix: &T::Prefix) -> Option<&mut PrefixGroup<T>> {
        self.get_mut(prefix)
    }

    fn group_to_change(&mut self, prefix: &T::Prefix) -> (T::Prefix, &mut PrefixGroup<T>) {
        (prefix.clone(), self.entry(prefix.clone()).or_default())
    }

    fn group_at(&self, place: &T::Prefix) -> Option<&PrefixGroup<T>> {
        self.get(place)
    }

    fn prefix_at<'p>(&'p self, place: &'p T::Prefix) -> Option<&'p T::Prefix> {
        Some(place)
    }

    fn tidy(&mut self) {
        // An empty group is kept until here, because some run empty again and again.
        self.retain(|_, group| !group.is_empty());
        for group in self.values_mut() {
            group.rows.trim();
            group.gone.trim();
        }
    }

    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.retain(|prefix, _| prefix.of_queue().is_none_or(wanted));
    }

    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g T::Prefix, &'g PrefixGroup<T>)) {
        self.iter().for_each(|(prefix, group)| with(prefix, group));
    }
}
