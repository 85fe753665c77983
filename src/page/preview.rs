//! What an act would come to, before it is done.

use maud::Markup;

use crate::page::labels::sentence;

/// What an act would come to.
#[derive(Default)]
pub(crate) struct Preview {
    /// What would be done, a sentence each.
    pub(crate) effects: Vec<String>,
    /// To which workflows, some of them.
    pub(crate) sample: Vec<String>,
    /// Of workflows whose head is skipped, which message that is, as fields of the form: no other is skipped then.
    pub(crate) heads: Vec<String>,
    /// What refuses, and why.
    pub(crate) refused: Vec<(String, String)>,
    /// What else there is to see before it is done.
    pub(crate) details: Option<Markup>,
    /// Whether there is anything to do.
    pub(crate) is_possible: bool,
}

impl Preview {
    pub(crate) fn of(effect: impl Into<String>) -> Preview {
        Preview { effects: vec![sentence(&effect.into())], is_possible: true, ..Preview::default() }
    }
}
