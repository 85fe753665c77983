//! When locks run out: many are granted at one instant, and end at one.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use crate::clock::Timestamp;
use crate::token::LockToken;

/// The locks in the order in which they run out; of those that do so at the same instant, the one with the lowest number first.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BTreeMap<Timestamp, EndingTogether>);

/// The locks that run out at one instant, by number. One that is taken out leaves its place, so that no other has to move; the first
/// place is never left.
type EndingTogether = VecDeque<(u64, Option<LockToken>)>;

impl Deadlines {
    /// Adds a lock with its number.
    pub(crate) fn insert(&mut self, until: Timestamp, number: u64, token: LockToken) {
        let locks = self.0.entry(until).or_default();
        match locks.back() {
            Some((last, _)) if *last >= number => match find(locks, number) {
                Ok(place) => locks[place].1 = Some(token),
                Err(place) => locks.insert(place, (number, Some(token))),
            },
            _ => locks.push_back((number, Some(token))),
        }
    }

    /// Takes out the lock with this number.
    pub(crate) fn remove(&mut self, until: Timestamp, number: u64) {
        let Some(locks) = self.0.get_mut(&until) else { return };
        if let Ok(place) = find(locks, number) {
            locks[place].1 = None;
        }
        while let Some((_, None)) = locks.front() {
            locks.pop_front();
        }
        if locks.is_empty() {
            self.0.remove(&until);
        }
    }

    /// The earliest deadline and its lock.
    pub(crate) fn first(&self) -> Option<(Timestamp, LockToken)> {
        let (until, locks) = self.0.first_key_value()?;
        let (_, token) = locks.front()?;
        token.map(|token| (*until, token))
    }

    /// Every lock, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = LockToken> + '_ {
        self.0.values().flatten().filter_map(|(_, token)| *token)
    }
}

/// Where a lock stands, or would.
fn find(locks: &EndingTogether, number: u64) -> Result<usize, usize> {
    // Most that end together have numbers that follow each other.
    let likely = locks.front().and_then(|(first, _)| usize::try_from(number.checked_sub(*first)?).ok());
    match likely.and_then(|place| Some((place, locks.get(place)?))) {
        Some((place, (found, _))) if *found == number => Ok(place),
        _ => locks.binary_search_by_key(&number, |(other, _)| *other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn locks_run_out_in_the_order_of_their_deadlines_and_numbers(
            steps in proptest::collection::vec((any::<bool>(), 0..6_u64, 0..12_u64), 0..80)
        ) {
            let (mut set, mut deadlines) = (BTreeSet::new(), Deadlines::default());
            for (is_new, instant, number) in steps {
                let (until, token) = (Timestamp::from_millis(instant), LockToken::new(1, [number as u8; 12]));
                match is_new {
                    true if set.insert((until, number, token)) => deadlines.insert(until, number, token),
                    true => {}
                    false => {
                        set.remove(&(until, number, token));
                        deadlines.remove(until, number);
                    }
                }
                let tokens: Vec<LockToken> = set.iter().map(|(_, _, token)| *token).collect();
                prop_assert_eq!(deadlines.iter().collect::<Vec<_>>(), tokens);
                prop_assert_eq!(deadlines.first(), set.first().map(|(until, _, token)| (*until, *token)));
            }
        }
    }
}
