//! When locks run out: many are granted at one instant, and end at one.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use crate::clock::Timestamp;
use crate::token::LockToken;

/// The locks in the order in which they run out; of those that do so at the same instant, the one with the lowest number first.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BTreeMap<Timestamp, VecDeque<(u64, LockToken)>>);

impl Deadlines {
    /// Adds a lock with its number.
    pub(crate) fn insert(&mut self, until: Timestamp, number: u64, token: LockToken) {
        let locks = self.0.entry(until).or_default();
        let place = locks.partition_point(|(other, _)| *other < number);
        locks.insert(place, (number, token));
    }

    /// Takes out the lock with this number.
    pub(crate) fn remove(&mut self, until: Timestamp, number: u64) {
        let Some(locks) = self.0.get_mut(&until) else { return };
        if let Ok(place) = locks.binary_search_by_key(&number, |(other, _)| *other) {
            locks.remove(place);
        }
        if locks.is_empty() {
            self.0.remove(&until);
        }
    }

    /// The earliest deadline and its lock.
    pub(crate) fn first(&self) -> Option<(Timestamp, LockToken)> {
        let (until, locks) = self.0.first_key_value()?;
        locks.front().map(|(_, token)| (*until, *token))
    }

    /// Every lock, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = LockToken> + '_ {
        self.0.values().flatten().map(|(_, token)| *token)
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
