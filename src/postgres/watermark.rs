//! Which numbers of a table are final: no row with a lower one will ever be seen that is not seen already.
//!
//! A sequence gives numbers in order, but transactions commit in any. A number that follows the one before it by one is final
//! at once. Before any other a number is missing: it was given to a transaction that has come to nothing, or to one that is
//! still open. So what was seen behind it waits until every transaction has ended that was open when it was seen, and for
//! nobody who came later: a busy table cannot keep it back for ever.

use std::collections::BTreeSet;

/// What is known of a table's numbers.
#[derive(Debug, Default)]
pub(crate) struct Watermark {
    /// Everything up to here is final.
    last_final: Option<i64>,
    /// Becomes final when all of these have ended.
    pending: Option<(i64, BTreeSet<String>)>,
}

impl Watermark {
    /// Notes the highest number that is seen, and which transactions are open at this moment. What it says is true of
    /// whatever is read after the server has answered.
    pub(crate) fn note(&mut self, highest: Option<i64>, open: BTreeSet<String>) {
        if let Some((number, awaited)) = &mut self.pending {
            awaited.retain(|transaction| open.contains(transaction));
            if awaited.is_empty() {
                self.last_final = self.last_final.max(Some(*number));
                self.pending = None;
            }
        }
        let Some(highest) = highest else { return };
        if open.is_empty() {
            self.last_final = self.last_final.max(Some(highest));
            self.pending = None;
        } else if self.pending.is_none() && Some(highest) > self.last_final {
            self.pending = Some((highest, open));
        }
    }

    /// Whether no number will come between one that is final and this one.
    pub(crate) fn is_final(&self, before: Option<i64>, number: i64) -> bool {
        Some(number) <= self.last_final || before.and_then(|before| before.checked_add(1)) == Some(number)
    }

    /// How many transactions are waited for.
    pub(crate) fn waits_for(&self) -> usize {
        self.pending.as_ref().map_or(0, |(_, open)| open.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_seen_while_no_transaction_is_open_is_final_at_once() {
        let mut watermark = Watermark::default();
        watermark.note(None, open(&[]));
        assert_eq!(watermark.last_final, None);
        watermark.note(Some(7), open(&[]));
        assert_eq!(watermark.last_final, Some(7));
    }

    #[test]
    fn a_number_waits_for_those_that_were_open_when_it_was_seen_and_for_no_other() {
        let mut watermark = Watermark::default();
        watermark.note(Some(2), open(&["3/1", "4/1"]));
        assert_eq!((watermark.last_final, watermark.waits_for()), (None, 2));
        watermark.note(Some(5), open(&["4/1", "5/1"]));
        assert_eq!((watermark.last_final, watermark.waits_for()), (None, 1));
        watermark.note(Some(9), open(&["5/1", "6/1"]));
        assert_eq!((watermark.last_final, watermark.waits_for()), (Some(2), 2));
        watermark.note(Some(9), open(&["7/1"]));
        assert_eq!(watermark.last_final, Some(9));
    }

    #[test]
    fn a_number_that_follows_one_that_is_final_waits_for_nobody() {
        let mut watermark = Watermark::default();
        watermark.note(Some(9), open(&["3/1"]));
        assert!(watermark.is_final(Some(4), 5) && !watermark.is_final(Some(4), 6));
        assert!(!watermark.is_final(None, 1), "before the first nobody knows what is missing");
        watermark.note(Some(9), open(&[]));
        assert!(watermark.is_final(Some(4), 6) && watermark.is_final(None, 1));
    }

    #[test]
    fn a_table_that_was_emptied_takes_nothing_back() {
        let mut watermark = Watermark::default();
        watermark.note(Some(5), open(&[]));
        watermark.note(None, open(&["3/1"]));
        watermark.note(Some(2), open(&["3/1"]));
        assert_eq!((watermark.last_final, watermark.waits_for()), (Some(5), 0));
    }
}
