//! A prefix that has one row at most.

use std::ops::Bound;

use crate::engine::store::rows::RowMap;

/// The row, if it is there.
pub(crate) struct OneRow<V>(Option<V>);

impl<V> Default for OneRow<V> {
    fn default() -> OneRow<V> {
        OneRow(None)
    }
}

impl<V> RowMap<(), V> for OneRow<V> {
    #[inline]
    fn get(&self, (): &()) -> Option<&V> {
        self.0.as_ref()
    }

    #[inline]
    fn get_mut(&mut self, (): &()) -> Option<&mut V> {
        self.0.as_mut()
    }

    #[inline]
    fn insert(&mut self, (): (), value: V) {
        self.0 = Some(value);
    }

    #[inline]
    fn remove(&mut self, (): &()) -> Option<V> {
        self.0.take()
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.0.is_some())
    }

    fn first(&self, from: Bound<&()>) -> Option<(&(), &V)> {
        let value = self.0.as_ref().filter(|_| !matches!(from, Bound::Excluded(())))?;
        Some((&(), value))
    }

    fn last(&self, (): &()) -> Option<(&(), &V)> {
        self.first(Bound::Unbounded)
    }

    #[cfg(test)]
    fn each<'a>(&'a self, with: &mut dyn FnMut(&'a (), &'a V)) {
        self.0.iter().for_each(|value| with(&(), value));
    }
}
