//! Deadlines in order, many of which are at one instant, as locks are granted together and end together.

use std::collections::BTreeMap;
use std::collections::VecDeque;

/// What has a deadline and a number, in the order of the deadlines; of those at the same instant, the one with the lowest number first.
#[derive(Debug)]
pub(crate) struct Deadlines<I, T>(BTreeMap<I, DueTogether<T>>);

/// What is due at one instant, by number. One that is taken out leaves its place, so that no other has to move; the first place is
/// never left.
type DueTogether<T> = VecDeque<(u64, Option<T>)>;

impl<I, T> Default for Deadlines<I, T> {
    fn default() -> Deadlines<I, T> {
        Deadlines(BTreeMap::new())
    }
}

impl<I: Copy + Ord, T> Deadlines<I, T> {
    /// Adds something with its number.
    pub(crate) fn insert(&mut self, until: I, number: u64, what: T) {
        let together = self.0.entry(until).or_default();
        match together.back() {
            Some((last, _)) if *last >= number => match find(together, number) {
                Ok(place) => together[place].1 = Some(what),
                Err(place) => together.insert(place, (number, Some(what))),
            },
            _ => together.push_back((number, Some(what))),
        }
    }

    /// Takes out what has this number.
    pub(crate) fn remove(&mut self, until: I, number: u64) -> Option<T> {
        let together = self.0.get_mut(&until)?;
        let removed = find(together, number).ok().and_then(|place| together[place].1.take());
        while let Some((_, None)) = together.front() {
            together.pop_front();
        }
        if together.is_empty() {
            self.0.remove(&until);
        }
        removed
    }

    /// The earliest deadline and what has it.
    pub(crate) fn first(&self) -> Option<(I, &T)> {
        let (until, together) = self.0.first_key_value()?;
        let (_, what) = together.front()?;
        what.as_ref().map(|what| (*until, what))
    }

    /// Takes out all whose deadline is not after an instant, in order.
    pub(crate) fn take_until(&mut self, instant: I) -> Vec<T> {
        let mut due = Vec::new();
        while let Some(together) = self.0.first_entry()
            && *together.key() <= instant
        {
            due.extend(together.remove().into_iter().filter_map(|(_, what)| what));
        }
        due
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        self.0.values().flatten().filter_map(|(_, what)| what.as_ref())
    }
}

/// Where something stands, or would.
fn find<T>(together: &DueTogether<T>, number: u64) -> Result<usize, usize> {
    // Most that are due together have numbers that follow each other.
    let likely = together.front().and_then(|(first, _)| usize::try_from(number.checked_sub(*first)?).ok());
    match likely.and_then(|place| Some((place, together.get(place)?))) {
        Some((place, (found, _))) if *found == number => Ok(place),
        _ => together.binary_search_by_key(&number, |(other, _)| *other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_due_comes_in_the_order_of_deadlines_and_numbers(
            steps in proptest::collection::vec((0..8_u8, 0..6_u64, 0..12_u64), 0..80)
        ) {
            let (mut set, mut deadlines) = (BTreeSet::new(), Deadlines::default());
            for (step, until, number) in steps {
                match step {
                    0 => {
                        let later = set.split_off(&(until + 1, 0));
                        let due: Vec<(u64, u64)> = std::mem::replace(&mut set, later).into_iter().collect();
                        prop_assert_eq!(deadlines.take_until(until), due);
                    }
                    1..4 => {
                        let removed = set.take(&(until, number));
                        prop_assert_eq!(deadlines.remove(until, number), removed);
                    }
                    _ if set.insert((until, number)) => deadlines.insert(until, number, (until, number)),
                    _ => {}
                }
                let all: Vec<(u64, u64)> = set.iter().copied().collect();
                prop_assert_eq!(deadlines.iter().copied().collect::<Vec<_>>(), all);
                let first = set.first().copied();
                prop_assert_eq!(deadlines.first().map(|(until, what)| (until, *what)), first.map(|first| (first.0, first)));
            }
        }
    }
}
