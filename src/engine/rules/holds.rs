//! The holds of a workflow: why it offers nothing, since when, and what was said.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::SequenceNumber;
use crate::queue::HoldKind;

/// Why a workflow is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HoldCause {
    /// An operator asked for it.
    Operator,
    /// The message at its head is exhausted.
    Exhausted(SequenceNumber),
    /// A missing predecessor has not come in time.
    Gap,
    /// A predecessor in an after-ordered workflow ended without being completed.
    Predecessor(SequenceNumber),
    /// A message was exhausted, and everything behind it goes to the dead letters.
    Quarantine(SequenceNumber),
    /// Its dead letters are being put back in place; it resumes by itself.
    Redriving,
}

impl HoldCause {
    /// Its kind.
    pub fn kind(&self) -> HoldKind {
        match self {
            HoldCause::Operator => HoldKind::Operator,
            HoldCause::Exhausted(_) => HoldKind::Exhausted,
            HoldCause::Gap => HoldKind::Gap,
            HoldCause::Predecessor(_) => HoldKind::Predecessor,
            HoldCause::Quarantine(_) => HoldKind::Quarantine,
            HoldCause::Redriving => HoldKind::Redriving,
        }
    }
}

/// A hold: a workflow offers nothing as long as it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Why.
    pub cause: HoldCause,
    /// Since when.
    pub since: Timestamp,
    /// What was said when it was held.
    pub reason: String,
}

/// The holds of a workflow, oldest first: at most one of each kind, which bounds them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Holds(Vec<Hold>);

impl Holds {
    pub(crate) const NONE: Holds = Holds(Vec::new());
}

impl FromIterator<Hold> for Holds {
    fn from_iter<I: IntoIterator<Item = Hold>>(holds: I) -> Holds {
        let mut all = Holds::default();
        holds.into_iter().for_each(|hold| all.add(hold));
        all
    }
}

impl Holds {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Hold> {
        self.0.iter()
    }

    #[inline]
    pub(crate) fn has(&self, kind: HoldKind) -> bool {
        self.0.iter().any(|hold| hold.cause.kind() == kind)
    }

    /// The exhausted message for which the workflow is held.
    pub(crate) fn exhausted(&self) -> Option<SequenceNumber> {
        self.0.iter().find_map(|hold| match hold.cause {
            HoldCause::Exhausted(sequence) => Some(sequence),
            _ => None,
        })
    }

    /// Adds a hold of a kind that is not there.
    pub(crate) fn add(&mut self, hold: Hold) {
        assert!(!self.has(hold.cause.kind()), "a workflow has one hold of a kind: {hold:?}");
        self.0.push(hold);
    }

    /// Removes the hold of a kind; false when there is none.
    pub(crate) fn remove(&mut self, kind: HoldKind) -> bool {
        let before = self.0.len();
        self.0.retain(|hold| hold.cause.kind() != kind);
        self.0.len() < before
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
