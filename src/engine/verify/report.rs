//! What verifying a file found.

use serde::Serialize;

/// What was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// How many rows were read, in tables and, as last changed, in the journal.
    pub rows: u64,
    /// How many commits were read in the journal.
    pub commits: u64,
    /// How many messages are stored.
    pub messages: u64,
    /// Whether the rows were compared with each other. They are not when some could not be read.
    pub compared: bool,
    /// What is damaged, at most [`DAMAGES_KEPT`](crate::limits::DAMAGES_KEPT) entries.
    pub damages: Vec<Damage>,
    /// How much is damaged.
    pub damages_total: u64,
}

impl Verification {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damages_total == 0
    }
}

/// One thing that is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Damage {
    /// The table, or `pages` for what is below the tables.
    pub table: &'static str,
    /// The row's key in words; empty when it is not about one row.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}: {}", self.table, self.problem),
            key => write!(f, "{} [{key}]: {}", self.table, self.problem),
        }
    }
}

/// A part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum VerifyStep {
    /// Every page's checksum is compared.
    Pages,
    /// The journal is read.
    Journal,
    /// Every row is read.
    Rows,
    /// The rows are compared with each other.
    Compare,
}

/// How far verifying has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress {
    /// What it is at.
    pub step: VerifyStep,
    /// How many rows of this step are done.
    pub rows: u64,
    /// How many rows this step has, as far as that is known.
    pub rows_total: Option<u64>,
}
