//! What a ledger can find wrong.

use std::fmt;

/// Findings that are kept in words; a broken engine would fill the memory with them.
const KEPT_MAX: usize = 40;

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// What was acknowledged is neither there nor ended by anybody.
    Lost,
    /// Something is there that was never sent.
    Phantom,
    /// A message was handed out before one that stands before it was settled.
    Overtaken,
    /// Two holders of one workflow.
    Overlap,
    /// A message is not what was sent.
    WrongContent,
    /// What ended is back, or one message is there twice.
    Doubled,
    /// A delivery count is not the number of hand-outs.
    Uncounted,
    /// A settle was accepted although its lock had been lost.
    Stale,
    /// Something was refused that had to be done.
    Refused,
    /// The engine's counts are not the ledger's.
    Unbalanced,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Lost => "LOST",
            Verdict::Phantom => "PHANTOM",
            Verdict::Overtaken => "OVERTAKEN",
            Verdict::Overlap => "OVERLAP",
            Verdict::WrongContent => "WRONG-CONTENT",
            Verdict::Doubled => "DOUBLED",
            Verdict::Uncounted => "UNCOUNTED",
            Verdict::Stale => "STALE",
            Verdict::Refused => "REFUSED",
            Verdict::Unbalanced => "UNBALANCED",
        })
    }
}

/// All that was found wrong so far.
#[derive(Clone, Default)]
pub(crate) struct Findings {
    kept: Vec<(Verdict, String)>,
    total: u64,
}

impl Findings {
    pub(crate) fn note(&mut self, verdict: Verdict, what: impl fmt::Display, detail: &str) {
        self.total += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push((verdict, format!("{verdict} {what}: {detail}")));
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn has(&self, verdict: Verdict) -> bool {
        self.kept.iter().any(|(found, _)| *found == verdict)
    }

    /// The verdicts in the order in which they fell.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        self.kept.iter().map(|(verdict, _)| *verdict).collect()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} finding(s)", self.total)?;
        self.kept.iter().try_for_each(|(_, text)| writeln!(f, "  {text}"))
    }
}
