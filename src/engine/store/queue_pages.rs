//! Rows of a queue in order, of tables whose rows in memory are in slots.

use std::ops::Bound;

use crate::engine::rules::record::QueueId;
use crate::engine::store::base::Base;
use crate::engine::store::slots::KeyInQueue;
use crate::engine::store::slots::RowInSlots;
use crate::engine::store::table::Row;
use crate::engine::store::table_book::TableBook;
use crate::engine::store::table_book::paged;
use crate::error::Fault;

impl<T: RowInSlots> TableBook<T> {
    /// The first row of the queue with at least this key.
    pub(crate) fn first_of_queue(
        &self,
        slots: &T::Slots,
        base: &Base<'_>,
        queue: QueueId,
        from: &KeyInQueue<T>,
    ) -> Result<Option<Row<T::Flushed>>, Fault> {
        let own = T::first_in_window(slots, queue, Bound::Included(from));
        let flushed = match self.flushed.any() {
            true => self.flushed.first(base, (&queue, from), |key| !T::is_shadowed(slots, queue, key))?,
            false => None,
        };
        self.nearer_of_queue(slots, base, queue, own, flushed)
    }

    /// Up to `limit` rows of the queue from a bound on.
    pub(crate) fn page_of_queue(
        &self,
        slots: &T::Slots,
        base: &Base<'_>,
        queue: QueueId,
        from: Bound<&KeyInQueue<T>>,
        limit: usize,
    ) -> Result<Vec<Row<T::Flushed>>, Fault> {
        paged(from, limit, |from| {
            let own = T::first_in_window(slots, queue, from);
            let flushed = match self.flushed.any() {
                true => {
                    base.next_key::<T::Flushed>(&queue, from, |key| !T::is_shadowed(slots, queue, key))?
                }
                false => None,
            };
            self.nearer_of_queue(slots, base, queue, own, flushed)
        })
    }

    /// The row of whichever key comes first.
    fn nearer_of_queue(
        &self,
        slots: &T::Slots,
        base: &Base<'_>,
        queue: QueueId,
        own: Option<KeyInQueue<T>>,
        flushed: Option<KeyInQueue<T>>,
    ) -> Result<Option<Row<T::Flushed>>, Fault> {
        let Some(key) = own.into_iter().chain(flushed).min() else { return Ok(None) };
        let value = self.get(slots, base, &T::slot_key(queue, &key), &())?;
        Ok(Some((key, value.expect("a key that was found has its row"))))
    }
}
