//! Where the window keeps the rows of a table's prefixes.

use crate::engine::rules::record::QueueId;
use crate::engine::store::key::KeyPart;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::rows::RowMap;
use crate::engine::store::table::Table;
use crate::lookup::RecentKey;
use crate::lookup::SlotLookup;
use crate::lookup::SlotNumber;

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
    #[inline]
    fn give_up(&mut self, _prefix: &T::Prefix) {}
    /// Gives up what is empty, and room that is not needed. Slots are of several tables, and tidied up once for all of them.
    fn tidy(&mut self) {}
    /// Forgets every row of a queue that is not wanted.
    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool);
    /// Every group, in no order.
    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g T::Prefix, &'g PrefixGroup<T>));
}

/// Groups of one table.
pub(crate) type PrefixGroups<T> = SlotLookup<<T as Table>::Prefix, PrefixGroup<T>>;

impl<T: Table<Place = SlotNumber, Prefix: RecentKey>> Groups<T> for PrefixGroups<T> {
    #[inline]
    fn group(&self, prefix: &T::Prefix) -> Option<&PrefixGroup<T>> {
        self.get(prefix)
    }

    #[inline]
    fn group_mut(&mut self, prefix: &T::Prefix) -> Option<&mut PrefixGroup<T>> {
        self.get_mut(prefix)
    }

    #[inline]
    fn group_to_change(&mut self, prefix: &T::Prefix) -> (SlotNumber, &mut PrefixGroup<T>) {
        self.get_or_insert_with(prefix, PrefixGroup::default)
    }

    #[inline]
    fn group_at(&self, slot: &SlotNumber) -> Option<&PrefixGroup<T>> {
        self.at(*slot).map(|(_, group)| group)
    }

    #[inline]
    fn prefix_at<'p>(&'p self, slot: &'p SlotNumber) -> Option<&'p T::Prefix> {
        self.at(*slot).map(|(prefix, _)| prefix)
    }

    fn tidy(&mut self) {
        // An empty group is kept until here, because some run empty again and again.
        self.retain(|_, group| {
            group.rows.trim();
            group.gone.trim();
            !group.is_empty()
        });
    }

    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.retain(|prefix, _| prefix.of_queue().is_none_or(wanted));
    }

    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g T::Prefix, &'g PrefixGroup<T>)) {
        self.iter().for_each(|(prefix, group)| with(prefix, group));
    }
}
