//! The ledger's judgement of what is there: after each start of the process, and at the end.

use std::collections::BTreeMap;

use seriatim::view::Counts;

use crate::kill::book::Book;
use crate::kill::book::Known;
use crate::kill::ledger::Ledger;
use crate::kill::ledger::Page;
use crate::kill::name::Name;
use crate::kill::name::Ordered;
use crate::kill::report::Ending;
use crate::kill::report::Seen;
use crate::kill::report::Status;
use crate::kill::verdict::Verdict;

type Stock = BTreeMap<Name, (Seen, Status)>;

impl Ledger {
    /// Compares what was found with what must be there.
    pub(crate) fn take_stock(&mut self) {
        self.counters.looks += 1;
        let mut stock = Stock::new();
        for (seen, status) in std::mem::take(&mut self.looking) {
            let Some(name) = self.identify(&seen) else { continue };
            let sequence = seen.sequence;
            if let Some((other, _)) = stock.insert(name, (seen, status)) {
                let detail = format!("it is there as {sequence} and as {}", other.sequence);
                self.findings.note(Verdict::Doubled, name, &detail);
            }
        }
        for (name, (seen, status)) in &stock {
            if let Some((verdict, detail)) = self.book(*name).judge_found(name.number, seen, *status) {
                self.findings.note(verdict, name, detail);
            }
        }
        // Queues by position come first: what their completions sent is known when the others are judged.
        let pages: Vec<Page> = self.books.keys().copied().collect();
        for page in pages {
            self.judge_missing(page, &stock);
        }
    }

    fn judge_missing(&mut self, page: Page, stock: &Stock) {
        let name = |number| Name::new(page.0, page.1, number);
        let is_there = |number: u64| stock.contains_key(&name(number));
        let book = self.book(name(0));
        let unanswered = std::mem::take(&mut book.unanswered);
        let leaving = std::mem::take(&mut book.leaving);
        let (stays, goes) = leaving.into_iter().partition(|number| is_there(*number));
        let dead: Vec<u64> = book.dead.iter().copied().filter(|number| !is_there(*number)).collect();
        book.dead = &book.dead | &stays;
        book.gone = &book.gone | &goes;
        let missing: Vec<(u64, Known)> = book
            .open
            .iter()
            .filter(|(number, _)| !is_there(**number))
            .map(|(number, entry)| (*number, entry.known))
            .collect();
        for number in dead {
            self.lose(name(number), "it was a dead letter");
        }
        for (number, known) in missing {
            match unanswered.get(&number) {
                Some(ending @ (Ending::Completed | Ending::CompletedWithFollowUp)) => {
                    self.take_effect(name(0), BTreeMap::from([(number, *ending)]));
                }
                _ if known == Known::Meant => {}
                _ => self.lose(name(number), "it was acknowledged"),
            }
        }
        for (number, ending) in unanswered {
            if ending == Ending::CompletedWithFollowUp && is_there(number) {
                self.forget_follow_up(name(number), stock);
            }
        }
    }

    /// A completion did not take place: what it would have sent must not be there.
    fn forget_follow_up(&mut self, cause: Name, stock: &Stock) {
        let follow_up = cause.follow_up();
        if stock.contains_key(&follow_up) {
            self.findings.note(
                Verdict::Phantom,
                follow_up,
                "the completion that sends it did not take place",
            );
        }
        self.book(follow_up).open.remove(&follow_up.number);
    }

    fn lose(&mut self, name: Name, detail: &str) {
        let detail = format!("{detail}, and it is neither there nor settled");
        self.findings.note(Verdict::Lost, name, &detail);
        let book = self.book(name);
        book.open.remove(&name.number);
        book.dead.remove(&name.number);
        book.gone.insert(name.number);
    }

    /// Compares the counts of a drained engine with the books.
    pub(crate) fn balance(&mut self) {
        for ordered in Ordered::BOTH {
            let sums = self.sums(ordered);
            let Some(counts) = self.counted.get(&ordered).copied() else { continue };
            let broken = [
                (!counts.conserved(), "a message is unaccounted for"),
                (sums.open > 0, "a message is open after everything was drained"),
                (counts.stored() != counts.dead_lettered, "more than dead letters is left"),
                (counts.completed != sums.completed, "not as many are completed as were acknowledged"),
                (counts.dead_lettered + counts.purged != sums.dead, "not as many are dead letters or purged"),
                (counts.accepted != sums.completed + sums.dead, "not as many were accepted as sent"),
            ];
            for (_, detail) in broken.iter().filter(|(is_broken, _)| *is_broken) {
                let detail = format!("{detail}: the engine counts {}, the ledger {sums:?}", tell(&counts));
                self.findings.note(Verdict::Unbalanced, ordered.queue(), &detail);
            }
        }
    }

    pub(crate) fn sums(&self, ordered: Ordered) -> Sums {
        let mut sums = Sums::default();
        for (_, book) in self.books.iter().filter(|(page, _)| page.0 == ordered) {
            sums.open += book.open.len() as u64;
            sums.completed += book.completed.len() as u64;
            sums.dead += (book.dead.len() + book.leaving.len() + book.gone.len()) as u64;
        }
        sums
    }
}

/// How many messages of one queue the ledger has where.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) open: u64,
    pub(crate) completed: u64,
    pub(crate) dead: u64,
}

fn tell(counts: &Counts) -> String {
    let Counts { accepted, completed, dead_lettered, purged, .. } = *counts;
    format!(
        "{accepted} accepted, {} stored, {completed} completed, {dead_lettered} dead, {purged} purged",
        counts.stored()
    )
}

impl Book {
    /// Judges a message that was found, and notes where it is.
    fn judge_found(&mut self, number: u64, seen: &Seen, status: Status) -> Option<(Verdict, &'static str)> {
        if self.has_ended(number) {
            let may_be_there = self.dead.contains(&number) || self.leaving.contains(&number);
            let is_well = may_be_there && status == Status::DeadLettered;
            return (!is_well).then_some((Verdict::Doubled, "it has ended, and is there again"));
        }
        let unanswered = self.unanswered.get(&number).copied();
        let Some(entry) = self.open.get_mut(&number) else {
            return Some((Verdict::Phantom, "it is there, and nobody has sent it"));
        };
        if entry.sequence.is_some_and(|sequence| sequence != seen.sequence) {
            return Some((Verdict::Doubled, "it is there under two sequence numbers"));
        }
        // One hand-out more may have happened than was heard of.
        let is_counted = (entry.count..=entry.count + 1).contains(&seen.delivery_count);
        entry.may_be_suspect |= seen.delivery_count > entry.count;
        entry.count = seen.delivery_count;
        entry.was_set_aside |= unanswered == Some(Ending::Aside);
        let was_set_aside = entry.was_set_aside;
        (entry.known, entry.sequence) = (Known::Stored, Some(seen.sequence));
        if status == Status::DeadLettered {
            self.take_effect(number, Ending::DeadLettered);
        }
        match status {
            _ if !is_counted => Some((Verdict::Uncounted, "its hand-outs are not counted one by one")),
            Status::DeadLettered if unanswered != Some(Ending::DeadLettered) => {
                Some((Verdict::Lost, "it is a dead letter, and nobody has moved it there"))
            }
            Status::Aside if !was_set_aside => Some((Verdict::Lost, "it is set aside, and nobody has asked")),
            _ => None,
        }
    }
}
