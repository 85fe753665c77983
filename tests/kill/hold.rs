//! The ledger's judgement of what is handed out and settled.

use std::collections::BTreeMap;

use crate::kill::book::Hold;
use crate::kill::book::Known;
use crate::kill::ledger::Ledger;
use crate::kill::ledger::Page;
use crate::kill::name::Name;
use crate::kill::report::Ending;
use crate::kill::report::Seen;
use crate::kill::verdict::Verdict;

/// How far a holder's wall clock and the engine's clock may be apart within a lock, in milliseconds: the engine measures
/// a lock by the clock that is never set, a holder reads the one that the machine keeps right, and both cut off.
pub(crate) const CLOCKS_APART_MS: u64 = 3;

impl Ledger {
    /// Messages of one workflow were handed out under one lock.
    pub(crate) fn received(&mut self, id: String, seen: &[Seen], locked_until_ms: u64, lock_ms: u64) {
        let names: Vec<_> = seen.iter().filter_map(|seen| Some((self.identify(seen)?, seen))).collect();
        let Some((first, _)) = names.first().copied() else { return };
        let numbers: Vec<u64> = names.iter().map(|(name, _)| name.number).collect();
        self.end_hold_before(first, &numbers, locked_until_ms.saturating_sub(lock_ms));
        let (is_alone, mut before) = (names.len() == 1, None);
        for (name, seen) in names {
            self.counters.hand_outs += 1;
            self.hand_out(name, seen, before, is_alone);
            before = Some(name.number);
        }
        self.holds.insert(id.clone(), (first.ordered, first.workflow));
        self.book(first).hold = Some(Hold {
            id,
            locked_until_ms,
            unsettled: numbers.into_iter().collect(),
            settling: BTreeMap::new(),
            settling_at_ms: 0,
        });
    }

    /// Somebody else has the workflow since an instant: whoever had it before must have settled or lost it.
    fn end_hold_before(&mut self, name: Name, handed_out: &[u64], since_ms: u64) {
        let Some(hold) = self.book(name).hold.take() else { return };
        let has_lapsed = since_ms + CLOCKS_APART_MS >= hold.locked_until_ms;
        let is_settled = hold.unsettled.is_empty() && !hold.settling.is_empty();
        let is_handed_out_again = hold.settling.keys().any(|number| handed_out.contains(number));
        if has_lapsed && (!is_settled || is_handed_out_again) {
            self.book(name).lapsed.push(hold);
            return;
        }
        if !is_settled {
            let detail = format!("{} has it, and nobody has settled {:?}", hold.id, hold.unsettled);
            self.findings.note(Verdict::Overlap, name, &detail);
        }
        self.take_effect(name, hold.settling);
    }

    fn hand_out(&mut self, name: Name, seen: &Seen, before: Option<u64>, is_alone: bool) {
        let book = self.book(name);
        let mut broken = Vec::new();
        if book.has_ended(name.number) {
            broken.push((Verdict::Doubled, "it is handed out after it has ended".to_owned()));
        } else if !book.open.contains_key(&name.number) {
            broken.push((Verdict::Phantom, "it is handed out, and nobody has sent it".to_owned()));
        }
        let follows = |number: u64| before == Some(number) || book.is_out_of_the_way(number);
        match book.waiting_before(name.number) {
            Some(number) if before.is_none_or(|before| before < number) => {
                broken.push((Verdict::Overtaken, format!("{number} stands before it and is not settled")));
            }
            _ if name.has_positions() && name.number > 1 && !follows(name.number - 1) => {
                broken.push((Verdict::Overtaken, "the position before it has not come".to_owned()));
            }
            _ => {}
        }
        let highest = book.highest_handed_out;
        book.highest_handed_out = highest.max(name.number);
        if let Some(entry) = book.open.get_mut(&name.number) {
            if !entry.was_handed_out && name.number < highest {
                broken.push((Verdict::Overtaken, format!("{highest} was handed out before it")));
            }
            let is_given_back = entry.may_be_suspect && is_alone && seen.delivery_count == entry.count;
            entry.may_be_suspect = false;
            if seen.delivery_count != entry.count + 1 && !is_given_back {
                let counts = format!("its count is {} after {}", seen.delivery_count, entry.count);
                broken.push((Verdict::Uncounted, counts));
            }
            if entry.sequence.is_some_and(|sequence| sequence != seen.sequence) {
                broken.push((Verdict::Doubled, "it is there under two sequence numbers".to_owned()));
            }
            (entry.known, entry.was_handed_out) = (Known::Stored, true);
            (entry.sequence, entry.count) = (Some(seen.sequence), seen.delivery_count);
        }
        broken.iter().for_each(|(verdict, detail)| self.findings.note(*verdict, name, detail));
    }

    /// Some of a hold are about to be settled.
    pub(crate) fn settling(&mut self, id: &str, endings: &[(Name, Ending)], at_ms: u64) {
        for (name, ending) in endings {
            let book = self.book(*name);
            if let Some(entry) = book.open.get_mut(&name.number)
                && *ending == Ending::Released
            {
                entry.count = entry.count.saturating_sub(1);
            }
            let lapsed = book.lapsed.iter_mut();
            if let Some(hold) = book.hold.iter_mut().chain(lapsed).find(|hold| hold.id == id) {
                hold.unsettled.remove(&name.number);
                hold.settling.insert(name.number, *ending);
                hold.settling_at_ms = at_ms;
            }
            if *ending == Ending::CompletedWithFollowUp {
                self.book(name.follow_up()).open.entry(name.number).or_default();
            }
        }
    }

    /// The settle was accepted.
    pub(crate) fn settled(&mut self, id: &str) {
        self.counters.settles += 1;
        let Some(page) = self.holds.get(id).copied() else { return };
        let name = Name::new(page.0, page.1, 0);
        if let Some(lapsed) = self.take_lapsed(page, id) {
            let detail = format!("{id} had lost its lock, and has settled {:?}", lapsed.settling);
            self.findings.note(Verdict::Stale, name, &detail);
            return;
        }
        // A hold that is not the workflow's any more was settled before its successor was handed out.
        let Some(hold) = self.book(name).hold.as_mut().filter(|hold| hold.id == id) else { return };
        let settling = std::mem::take(&mut hold.settling);
        let (at_ms, until_ms, is_over) =
            (hold.settling_at_ms, hold.locked_until_ms, hold.unsettled.is_empty());
        if is_over {
            self.book(name).hold = None;
        }
        if at_ms >= until_ms + CLOCKS_APART_MS {
            let detail = format!("{id} was locked until {until_ms}, and settled at {at_ms}");
            self.findings.note(Verdict::Stale, name, &detail);
        }
        self.take_effect(name, settling);
    }

    /// The settle was refused.
    pub(crate) fn refused(&mut self, id: &str, why: &str, at_ms: u64) {
        let Some(page) = self.holds.get(id).copied() else { return };
        let name = Name::new(page.0, page.1, 0);
        if self.take_lapsed(page, id).is_some() {
            self.counters.lost_locks += 1;
            return;
        }
        let Some(hold) = self.book(name).hold.take_if(|hold| hold.id == id) else {
            let detail = format!("{id} is refused ({why}), but its successor was handed out");
            return self.findings.note(Verdict::Overtaken, name, &detail);
        };
        if at_ms + CLOCKS_APART_MS < hold.locked_until_ms {
            let detail = format!("{id} is locked until {}, but at {at_ms}: {why}", hold.locked_until_ms);
            self.findings.note(Verdict::Refused, name, &detail);
        }
        self.counters.lost_locks += 1;
        for (number, ending) in hold.settling {
            if ending == Ending::CompletedWithFollowUp {
                let follow_up = Name { number, ..name }.follow_up();
                self.book(follow_up).open.remove(&number);
            }
        }
    }

    fn take_lapsed(&mut self, page: Page, id: &str) -> Option<Hold> {
        let lapsed = &mut self.books.get_mut(&page)?.lapsed;
        let at = lapsed.iter().position(|hold| hold.id == id)?;
        Some(lapsed.remove(at))
    }

    /// Settles of one workflow took place.
    pub(crate) fn take_effect(&mut self, name: Name, settling: BTreeMap<u64, Ending>) {
        for (number, ending) in settling {
            let name = Name { number, ..name };
            if self.book(name).take_effect(number, ending) {
                self.stored_with_its_cause(name.follow_up());
            }
        }
    }

    /// A message that a completion has sent is there, unless it has ended already.
    fn stored_with_its_cause(&mut self, follow_up: Name) {
        if let Some(entry) = self.book(follow_up).open.get_mut(&follow_up.number)
            && entry.known == Known::Meant
        {
            entry.known = Known::Stored;
        }
    }
}
