//! Why a workflow waits for somebody or something, as JSON: its holds and its gap.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::time::WireTime;
use crate::engine::Gap;
use crate::engine::Hold;
use crate::engine::HoldCause;
use crate::queue::HoldKind;

/// A cause for which a workflow is held.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HoldView {
    /// Why.
    pub cause: HoldKind,
    /// Since when.
    pub since: WireTime,
    /// The reason.
    pub reason: String,
    /// The message it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
}

impl HoldView {
    /// Shows a hold.
    pub(crate) fn show(hold: &Hold) -> HoldView {
        HoldView {
            cause: hold.cause.kind(),
            since: WireTime(hold.since),
            reason: hold.reason.clone(),
            sequence_number: held_message(&hold.cause),
        }
    }
}

/// A gap that later messages wait behind.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GapView {
    /// The first missing position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_missing: Option<u64>,
    /// The lowest position that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_waiting: Option<u64>,
    /// The message ID that is waited for, in after-order: the predecessor that a stored message names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_predecessor: Option<String>,
    /// Since when messages wait.
    pub since: WireTime,
    /// When the queue's gap policy acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<WireTime>,
}

impl GapView {
    /// Shows a gap.
    pub(crate) fn show(gap: &Gap) -> GapView {
        GapView {
            first_missing: gap.first_missing,
            first_waiting: gap.first_waiting,
            missing_predecessor: gap.missing_predecessor.as_ref().map(ToString::to_string),
            since: WireTime(gap.since),
            due: gap.due.map(WireTime),
        }
    }
}

/// The message that a cause of a hold is about, if it is about one.
pub(crate) fn held_message(cause: &HoldCause) -> Option<u64> {
    match cause {
        HoldCause::Exhausted(number) | HoldCause::Predecessor(number) | HoldCause::Quarantine(number) => {
            Some(number.get())
        }
        HoldCause::Operator | HoldCause::Gap | HoldCause::Redriving => None,
    }
}
