//! Verifying a file that no engine has open: every page, every row, and what the rows say of each other.
//!
//! First the bytes: pages, journal, rows (`pages` in the store, `journal`, `bytes`). Then, if every row could be read,
//! the promises of the rules, restated here on their own so that a mistake in a rule is found too (`compare`,
//! `messages`, `workflows`, `offers`, `chains`, `pointers`, `answers`, `audit`, `topics`, `counters`). Nothing is ever written.

mod answers;
mod audit;
mod bytes;
mod chains;
mod compare;
mod counters;
mod cursors;
mod findings;
mod history;
mod journal;
mod lane;
mod ledger;
mod messages;
mod offers;
mod pointers;
pub(crate) mod report;
mod topics;
#[expect(clippy::module_inception, reason = "the file is named by the function it holds")]
pub(crate) mod verify;
mod workflows;
