//! The state of a workflow: what its path holds after the changes applied so far.

use serde::Deserialize;
use serde::Serialize;

use crate::demo::git::ChangeBody;
use crate::demo::git::TreeEntry;

/// What a path holds, with what happened to its messages. It is written in the transaction that completes a message,
/// so its counts are exact however often the process is killed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathState {
    /// The last change applied: its `new` is what the path holds.
    pub(crate) last: ChangeBody,
    /// Changes applied.
    pub(crate) applied: u64,
    /// Of these, those whose predecessor was not what the path held.
    pub(crate) wrong: u64,
    /// First attempts that were made to fail.
    pub(crate) failed: u64,
}

impl PathState {
    /// What the path holds.
    pub(crate) fn entry(&self) -> Option<&TreeEntry> {
        self.last.new.as_ref()
    }

    /// The state after a change: it is applied even onto the wrong predecessor, which is counted.
    pub(crate) fn after(before: Option<PathState>, change: ChangeBody, failed: bool) -> PathState {
        let held = before.as_ref().and_then(PathState::entry);
        let wrong = u64::from(held != change.old.as_ref());
        let (applied, wrong_before, failed_before) =
            before.as_ref().map_or((0, 0, 0), |state| (state.applied, state.wrong, state.failed));
        PathState {
            last: change,
            applied: applied + 1,
            wrong: wrong_before + wrong,
            failed: failed_before + u64::from(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: Option<u32>, new: Option<u32>) -> ChangeBody {
        let entry = |mode| TreeEntry { mode, id: "ab".repeat(20) };
        ChangeBody { path: b"a".to_vec(), old: old.map(entry), new: new.map(entry) }
    }

    #[test]
    fn a_change_onto_the_wrong_predecessor_is_counted() {
        let first = PathState::after(None, change(None, Some(1)), false);
        assert_eq!((first.applied, first.wrong), (1, 0));
        let right = PathState::after(Some(first), change(Some(1), Some(2)), true);
        assert_eq!((right.applied, right.wrong, right.failed), (2, 0, 1));
        let wrong = PathState::after(Some(right), change(Some(1), None), false);
        assert_eq!((wrong.applied, wrong.wrong, wrong.entry()), (3, 1, None));
    }
}
