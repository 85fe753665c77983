//! What the ledger knows of one workflow.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::kill::report::Ending;

/// One workflow's page of the ledger, by message number.
#[derive(Clone, Default)]
pub(crate) struct Book {
    /// Sent or meant to be, and not ended.
    pub(crate) open: BTreeMap<u64, Entry>,
    /// Completed, with their sequence numbers.
    pub(crate) completed: BTreeMap<u64, Option<u64>>,
    /// Among the dead letters.
    pub(crate) dead: BTreeSet<u64>,
    /// Dead letters that somebody meant to remove.
    pub(crate) leaving: BTreeSet<u64>,
    /// Removed for good, or reported as lost.
    pub(crate) gone: BTreeSet<u64>,
    /// Who has the workflow.
    pub(crate) hold: Option<Hold>,
    /// Holds whose lock ran out before somebody else got the workflow.
    pub(crate) lapsed: Vec<Hold>,
    /// Settles whose process was killed before their answer was heard.
    pub(crate) unanswered: BTreeMap<u64, Ending>,
    /// The highest number that was ever handed out.
    pub(crate) highest_handed_out: u64,
    /// The highest number that was ever meant to be sent.
    pub(crate) highest_meant: u64,
}

/// A message that has not ended.
#[derive(Clone, Default)]
pub(crate) struct Entry {
    pub(crate) known: Known,
    pub(crate) sequence: Option<u64>,
    /// Its delivery count, as far as was heard; after a kill, one less than it may be.
    pub(crate) count: u32,
    /// It was out, or may have been, when its process was killed. If it was in a run, nobody knows which message of it was
    /// to blame: its first delivery alone gets that hand-out back.
    pub(crate) may_be_suspect: bool,
    pub(crate) was_handed_out: bool,
    /// Its consumer has set it aside: from then on its workflow goes on without it.
    pub(crate) was_set_aside: bool,
}

/// What is known of a message that has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Known {
    /// A send was meant; nobody has seen whether it happened.
    #[default]
    Meant,
    Stored,
}

/// Messages handed out under one lock.
#[derive(Clone)]
pub(crate) struct Hold {
    pub(crate) id: String,
    pub(crate) locked_until_ms: u64,
    /// Those that nobody has meant to settle.
    pub(crate) unsettled: BTreeSet<u64>,
    /// Those somebody meant to settle, and how; the answer has not been heard.
    pub(crate) settling: BTreeMap<u64, Ending>,
    pub(crate) settling_at_ms: u64,
}

impl Book {
    /// Notes that a settle took place. Returns whether it sent a follow-up.
    pub(crate) fn take_effect(&mut self, number: u64, ending: Ending) -> bool {
        match ending {
            Ending::Completed | Ending::CompletedWithFollowUp => {
                if let Some(entry) = self.open.remove(&number) {
                    self.completed.insert(number, entry.sequence);
                }
            }
            Ending::DeadLettered => {
                if self.open.remove(&number).is_some() {
                    self.dead.insert(number);
                }
            }
            Ending::Aside => {
                if let Some(entry) = self.open.get_mut(&number) {
                    entry.was_set_aside = true;
                }
            }
            Ending::Failed | Ending::Released => {}
        }
        ending == Ending::CompletedWithFollowUp
    }

    /// Whether a message has ended, in whatever way.
    pub(crate) fn has_ended(&self, number: u64) -> bool {
        self.completed.contains_key(&number)
            || self.dead.contains(&number)
            || self.leaving.contains(&number)
            || self.gone.contains(&number)
    }

    /// Whether nothing that stands behind a message has to wait for it.
    pub(crate) fn is_out_of_the_way(&self, number: u64) -> bool {
        self.has_ended(number) || self.open.get(&number).is_some_and(|entry| entry.was_set_aside)
    }

    /// Messages before this one that it must not overtake.
    pub(crate) fn waiting_before(&self, number: u64) -> Option<u64> {
        let mut before = self.open.range(..number);
        before.find(|(_, entry)| !entry.was_set_aside).map(|(before, _)| *before)
    }
}
