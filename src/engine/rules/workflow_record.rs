//! What is kept of a workflow: the row, without a word on how it is stored.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::rules::holds::Holds;
use crate::engine::rules::sparse::sparse_record;
use crate::id::MessageId;
use crate::seldom::Blank;
use crate::seldom::Seldom;

/// What is known of a workflow. Ranks are positions (order by position), ordinals (after-order) or sequence
/// numbers (order of arrival).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkflowRecord {
    /// The next rank to settle; 0 in order of arrival.
    pub(crate) cursor: u64,
    /// The last rank of the unbroken run that begins at the cursor; `cursor - 1` when the next is missing.
    pub(crate) through: u64,
    /// The highest rank that was completed.
    pub(crate) done: u64,
    /// Unsettled messages in the line, handed out or not.
    pub(crate) line: u64,
    /// Of these, those with a missing predecessor, and their bytes.
    pub(crate) early: u64,
    pub(crate) early_bytes: u64,
    /// Messages set aside by the consumer, or scheduled in order of arrival.
    pub(crate) aside: u64,
    /// Dead letters of this workflow.
    pub(crate) dead: u64,
    /// Its number in the queue's ready list, while its head can be handed out.
    pub(crate) ticket: Option<u64>,
    /// Since when nothing is stored.
    pub(crate) idle_since: Option<Timestamp>,
    /// The instant of the pending reminder to forget the workflow.
    pub(crate) forget: Option<Timestamp>,
    pub(crate) rare: Rare,
}

/// What most workflows have nothing of most of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RareFields {
    /// After-order: the message ID at rank `through`.
    pub(crate) tail: Option<MessageId>,
    pub(crate) has_state: bool,
    /// When its state was last set, by the wall clock, if it has one; `None` also where an older file did not say.
    pub(crate) state_set_at: Option<Timestamp>,
    pub(crate) holds: Holds,
    pub(crate) gap: Option<GapRecord>,
    /// The instant of the pending reminder to go on extending, sweeping or redriving.
    pub(crate) sweep: Option<Timestamp>,
    /// Whether more early messages may join the run than one command looked at.
    pub(crate) extending: bool,
    /// While the run is being shortened to a place that was given back in the middle of it.
    pub(crate) shortening: Option<Shortening>,
}

/// The rare fields of a workflow, so that a record of what every command changes can be copied as it is.
pub(crate) type Rare = Seldom<RareFields>;

static BLANK: RareFields = RareFields {
    tail: None,
    has_state: false,
    state_set_at: None,
    holds: Holds::NONE,
    gap: None,
    sweep: None,
    extending: false,
    shortening: None,
};

impl Blank for RareFields {
    fn blank() -> &'static RareFields {
        &BLANK
    }
}

sparse_record!(WorkflowRecord {
    always: [],
    sparse: [
        cursor: u64, through: u64, [rare] tail: Option<MessageId>, done: u64, line: u64, early: u64, early_bytes: u64,
        aside: u64, dead: u64, [rare] has_state: bool, [rare] state_set_at: Option<Timestamp>, [rare] holds: Holds,
        [rare] gap: Option<GapRecord>, ticket: Option<u64>, [rare] sweep: Option<Timestamp>, [rare] extending: bool,
        idle_since: Option<Timestamp>, forget: Option<Timestamp>, [rare] shortening: Option<Shortening>,
    ]
});

impl WorkflowRecord {
    /// Before anything is known.
    fn blank() -> WorkflowRecord {
        WorkflowRecord::default()
    }

    /// Whether a place before this rank is missing, so that nothing is offered from there on.
    pub(crate) fn is_beyond(&self, rank: u64) -> bool {
        rank > self.through || self.rare.shortening.as_ref().is_some_and(|missing| rank > missing.rank)
    }
}

/// A gap that later messages wait behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GapRecord {
    /// The last rank before the gap; in after-order the number of the message whose predecessor is unknown.
    pub(crate) at: u64,
    /// When the first message began to wait.
    pub(crate) since: Timestamp,
    /// The instant of its reminder, `None` once that has fired before the workflow had come to the gap.
    pub(crate) due: Option<Timestamp>,
}

/// A place that was given back in the middle of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shortening {
    /// Its rank: the run ends before it, and whatever stands behind it is early.
    pub(crate) rank: u64,
    /// After-order: what its message had named as its predecessor.
    pub(crate) after: Option<MessageId>,
}
