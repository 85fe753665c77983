//! The order in which changes arrive: the order in which people wrote them, not the order in which they count.

use std::collections::BTreeSet;
use std::collections::HashMap;

use crate::demo::git::change::PathChange;

/// The indices of the changes in the order of their author times; equal times keep the mainline's order.
pub(crate) fn arrival_order(changes: &[PathChange]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..changes.len()).collect();
    // The sort must be stable: most changes share their time with the others of their commit.
    order.sort_by_key(|index| changes[*index].author_time);
    order
}

/// How much of a history arrives before its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EarlyArrivals {
    /// Changes that arrive while an earlier change of their path, not only the one just before, is missing.
    pub(crate) messages: usize,
    /// Paths with at least one such change.
    pub(crate) workflows: usize,
    /// Most changes set aside at once, if each that can be applied is applied as it arrives.
    pub(crate) waiting_max: usize,
}

/// Counts what arrives before its turn when the changes arrive in the given order.
pub(crate) fn count_early(changes: &[PathChange], order: &[usize]) -> EarlyArrivals {
    let mut paths: HashMap<&[u8], PathProgress> = HashMap::new();
    let mut early = EarlyArrivals::default();
    let mut waiting = 0;
    for index in order {
        let change = &changes[*index];
        let path = paths.entry(&change.path).or_default();
        if change.position != path.applied + 1 {
            early.messages += 1;
            early.workflows += usize::from(!path.was_early);
            path.was_early = true;
            path.waiting.insert(change.position);
            waiting += 1;
            early.waiting_max = early.waiting_max.max(waiting);
            continue;
        }
        path.applied += 1;
        while path.waiting.remove(&(path.applied + 1)) {
            path.applied += 1;
            waiting -= 1;
        }
    }
    early
}

/// How far one path has come.
#[derive(Default)]
struct PathProgress {
    applied: u64,
    waiting: BTreeSet<u64>,
    was_early: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The changes of paths with their author times, in mainline order.
    fn changes(history: &[(&'static str, i64)]) -> Vec<PathChange> {
        let mut positions: HashMap<&str, u64> = HashMap::new();
        let mut change = |(mainline, (path, author_time)): (usize, &(&'static str, i64))| {
            let position = positions.entry(path).or_default();
            *position += 1;
            PathChange {
                path: path.as_bytes().to_vec(),
                position: *position,
                old: None,
                new: None,
                author_time: *author_time,
                mainline,
            }
        };
        history.iter().enumerate().map(&mut change).collect()
    }

    #[test]
    fn equal_times_keep_the_order_of_the_mainline() {
        let changes = changes(&[("a", 5), ("b", 5), ("a", 5), ("b", 1)]);
        assert_eq!(arrival_order(&changes), [3, 0, 1, 2]);
    }

    #[test]
    fn a_history_in_order_has_nothing_early() {
        let changes = changes(&[("a", -1), ("b", 0), ("a", 1)]);
        let order = arrival_order(&changes);
        assert_eq!(count_early(&changes, &order), EarlyArrivals::default());
    }

    #[test]
    fn whatever_waits_for_a_missing_change_is_early() {
        // a: 1, 3, 4, then 2. The fourth comes after its predecessor, and still must wait for the second.
        let changes = changes(&[("a", 1), ("b", 1), ("a", 9), ("a", 2), ("a", 3), ("b", 4)]);
        let order = arrival_order(&changes);
        let expected = EarlyArrivals { messages: 2, workflows: 1, waiting_max: 2 };
        assert_eq!(count_early(&changes, &order), expected);
    }
}
