//! One table: its rows of the window in memory, before the rows that are folded.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ops::Bound;

use foldhash::fast::RandomState;

use crate::engine::store::base::Base;
use crate::engine::store::fold::Changed;
use crate::engine::store::key::key_of;
use crate::engine::store::key::prefix_of;
use crate::engine::store::schema::Table;
use crate::error::Fault;
use crate::limits;

/// Where a row of the window stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// The generation whose journal rows have its last change.
    pub(crate) generation: u32,
    /// Whether a row with this key may be folded, so that deleting it is worth remembering.
    pub(crate) based: bool,
    /// Whether an earlier commit has put it into the journal.
    pub(crate) journaled: bool,
    /// Whether this turn has changed it.
    pub(crate) touched: bool,
}

/// A row of the window.
pub(crate) struct Slot<V> {
    pub(crate) stamp: Stamp,
    pub(crate) value: V,
}

/// The rows of one prefix: those that are there, and those that are deleted but may still be folded.
pub(crate) struct Group<T: Table> {
    pub(crate) rows: BTreeMap<T::Key, Slot<T::Value>>,
    pub(crate) gone: BTreeMap<T::Key, Stamp>,
}

impl<T: Table> Default for Group<T> {
    fn default() -> Group<T> {
        Group { rows: BTreeMap::new(), gone: BTreeMap::new() }
    }
}

impl<T: Table> Group<T> {
    /// Whether the window has its own word on this key, so that a folded row does not count.
    pub(crate) fn shadows(&self, key: &T::Key) -> bool {
        self.rows.contains_key(key) || self.is_gone(key)
    }

    pub(crate) fn is_gone(&self, key: &T::Key) -> bool {
        !self.gone.is_empty() && self.gone.contains_key(key)
    }
}

/// What is known of the folded rows of a prefix: none that counts is in `from..to`, one is at `to` if there is a `to`.
/// So a long run of deleted rows is passed once, and a workflow that has nothing folded never asks the disk.
struct Gap<K> {
    from: K,
    to: Option<K>,
}

type Groups<T> = HashMap<<T as Table>::Prefix, Group<T>, RandomState>;
type Gaps<T> = HashMap<<T as Table>::Prefix, Gap<<T as Table>::Key>, RandomState>;

/// A key with its prefix.
pub(crate) type Place<T> = (<T as Table>::Prefix, <T as Table>::Key);

/// A row as a look-up returns it.
pub(crate) type Row<T> = (<T as Table>::Key, <T as Table>::Value);

/// One table.
pub(crate) struct Shelf<T: Table> {
    pub(crate) groups: Groups<T>,
    gaps: RefCell<Gaps<T>>,
    /// Whether any row may be folded.
    pub(crate) stored: bool,
    /// What this turn has changed, in that order; a key may come twice.
    pub(crate) touched: Vec<Place<T>>,
    pub(crate) changed: Changed<T>,
}

impl<T: Table> Shelf<T> {
    pub(crate) fn new(base: &Base<'_>) -> Result<Shelf<T>, Fault> {
        Ok(Shelf {
            groups: HashMap::default(),
            gaps: RefCell::default(),
            stored: base.has_rows::<T>()?,
            touched: Vec::new(),
            changed: Changed::default(),
        })
    }

    pub(crate) fn get(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
    ) -> Result<Option<T::Value>, Fault> {
        self.read(base, prefix, key, T::Value::clone)
    }

    /// What `read` makes of a row, if it is there.
    pub(crate) fn read<R>(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        key: &T::Key,
        read: impl FnOnce(&T::Value) -> R,
    ) -> Result<Option<R>, Fault> {
        if let Some(group) = self.groups.get(prefix) {
            if let Some(slot) = group.rows.get(key) {
                return Ok(Some(read(&slot.value)));
            }
            if group.is_gone(key) {
                return Ok(None);
            }
        }
        if !self.stored || self.is_in_gap(prefix, key) {
            return Ok(None);
        }
        Ok(base.get::<T>(&key_of(prefix, key))?.as_ref().map(read))
    }

    /// The first row of the prefix with at least this key.
    pub(crate) fn first(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = self.groups.get(prefix);
        let own = group.and_then(|group| group.rows.range(from..).next());
        let folded = if self.stored { self.folded_from(base, prefix, from)? } else { None };
        self.nearer(base, prefix, own, folded, |own, folded| own < folded)
    }

    /// The last row of the prefix with at most this key.
    pub(crate) fn last(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        to: &T::Key,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = self.groups.get(prefix);
        let own = group.and_then(|group| group.rows.range(..=to).next_back());
        let folded = match self.stored {
            true => base.last_key::<T>(&prefix_of(prefix), &key_of(prefix, to), |key| counts(group, key))?,
            false => None,
        };
        self.nearer(base, prefix, own, folded, |own, folded| own > folded)
    }

    /// Up to `limit` rows of the prefix from a bound on.
    pub(crate) fn page(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
        limit: usize,
    ) -> Result<Vec<Row<T>>, Fault> {
        let mut page: Vec<Row<T>> = Vec::new();
        while page.len() < limit {
            let from = page.last().map_or(from, |(last, _)| Bound::Excluded(last));
            let Some(row) = self.next(base, prefix, from)? else { break };
            page.push(row);
        }
        Ok(page)
    }

    fn next(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: Bound<&T::Key>,
    ) -> Result<Option<Row<T>>, Fault> {
        let group = self.groups.get(prefix);
        let own = group.and_then(|group| group.rows.range((from, Bound::Unbounded)).next());
        let folded = match self.stored {
            true => {
                let start = prefix_of(prefix);
                let key = from.map(|key| key_of(prefix, key));
                let from = match &key {
                    Bound::Unbounded => Bound::Included(start.as_slice()),
                    bound => bound.as_ref().map(Vec::as_slice),
                };
                base.first_key::<T>(&start, from, |key| counts(group, key))?
            }
            false => None,
        };
        self.nearer(base, prefix, own, folded, |own, folded| own < folded)
    }

    /// Which of a row of the window and a folded one comes first.
    fn nearer(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        own: Option<(&T::Key, &Slot<T::Value>)>,
        folded: Option<T::Key>,
        is_nearer: impl Fn(&T::Key, &T::Key) -> bool,
    ) -> Result<Option<Row<T>>, Fault> {
        match (own, folded) {
            (Some((key, slot)), folded) if folded.as_ref().is_none_or(|folded| is_nearer(key, folded)) => {
                Ok(Some((key.clone(), slot.value.clone())))
            }
            (_, Some(key)) => Ok(base.get::<T>(&key_of(prefix, &key))?.map(|value| (key, value))),
            _ => Ok(None),
        }
    }

    /// The first folded key from `from` on that the window does not shadow.
    fn folded_from(
        &self,
        base: &Base<'_>,
        prefix: &T::Prefix,
        from: &T::Key,
    ) -> Result<Option<T::Key>, Fault> {
        let group = self.groups.get(prefix);
        let mut gaps = self.gaps.borrow_mut();
        let known = gaps.get_mut(prefix).filter(|gap| gap.covers(from));
        if let Some(gap) = known {
            let Some(to) = &gap.to else { return Ok(None) };
            if counts(group, to) {
                return Ok(Some(to.clone()));
            }
            gap.to = find(base, group, prefix, to)?;
            return Ok(gap.to.clone());
        }
        let to = find(base, group, prefix, from)?;
        if gaps.len() >= limits::GAPS_MAX {
            gaps.clear();
        }
        gaps.insert(prefix.clone(), Gap { from: from.clone(), to: to.clone() });
        Ok(to)
    }

    fn is_in_gap(&self, prefix: &T::Prefix, key: &T::Key) -> bool {
        self.gaps.borrow().get(prefix).is_some_and(|gap| gap.covers(key) && gap.to.as_ref() != Some(key))
    }

    /// Whether a row with this key is folded that the window does not shadow.
    pub(crate) fn is_folded(&self, base: &Base<'_>, prefix: &T::Prefix, key: &T::Key) -> Result<bool, Fault> {
        Ok(self.folded_from(base, prefix, key)?.as_ref() == Some(key))
    }

    /// Notes that a row has been folded.
    pub(crate) fn note_folded(&mut self, prefix: &T::Prefix, key: &T::Key) {
        self.stored = true;
        if let Some(gap) = self.gaps.get_mut().get_mut(prefix)
            && gap.covers(key)
        {
            gap.to = Some(key.clone());
        }
    }

    /// Drops what is known of the folded rows of every prefix that is not wanted.
    pub(crate) fn retain_gaps(&mut self, wanted: impl Fn(&T::Prefix) -> bool) {
        self.gaps.get_mut().retain(|prefix, _| wanted(prefix));
    }
}

impl<K: Ord> Gap<K> {
    /// Whether a look-up from this key is answered by it.
    fn covers(&self, key: &K) -> bool {
        *key >= self.from && self.to.as_ref().is_none_or(|to| key <= to)
    }
}

fn counts<T: Table>(group: Option<&Group<T>>, key: &T::Key) -> bool {
    group.is_none_or(|group| !group.shadows(key))
}

fn find<T: Table>(
    base: &Base<'_>,
    group: Option<&Group<T>>,
    prefix: &T::Prefix,
    from: &T::Key,
) -> Result<Option<T::Key>, Fault> {
    let from = key_of(prefix, from);
    base.first_key::<T>(&prefix_of(prefix), Bound::Included(from.as_slice()), |key| counts(group, key))
}
