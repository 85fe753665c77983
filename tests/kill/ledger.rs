//! The ledger: what was meant and what was acknowledged, kept outside the process that is killed.
//!
//! It hears the lines of that process, in order. A settle that was meant and not yet answered counts as done as soon
//! as somebody else is given the workflow: an engine may hand out the successor only once the settle is durable.

use std::collections::BTreeMap;

use seriatim::view::Counts;

use crate::kill::book::Book;
use crate::kill::book::Known;
use crate::kill::name::Name;
use crate::kill::name::Ordered;
use crate::kill::report::Answer;
use crate::kill::report::Report;
use crate::kill::report::Seen;
use crate::kill::report::Status;
use crate::kill::verdict::Findings;
use crate::kill::verdict::Verdict;

/// A workflow, by its queue and number.
pub(crate) type Page = (Ordered, u32);

/// The books of all workflows.
#[derive(Clone)]
pub(crate) struct Ledger {
    pub(crate) seed: u64,
    pub(crate) books: BTreeMap<Page, Book>,
    pub(crate) findings: Findings,
    /// What was found so far by a process that has not found everything yet.
    pub(crate) looking: Vec<(Seen, Status)>,
    /// Whose workflow each hold of the running process is.
    pub(crate) holds: BTreeMap<String, Page>,
    pub(crate) counted: BTreeMap<Ordered, Counts>,
    pub(crate) counters: Tallies,
}

/// How much was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) sends: u64,
    pub(crate) settles: u64,
    pub(crate) hand_outs: u64,
    pub(crate) looks: u64,
    pub(crate) lost_locks: u64,
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Ledger {
        Ledger {
            seed,
            books: BTreeMap::new(),
            findings: Findings::default(),
            looking: Vec::new(),
            holds: BTreeMap::new(),
            counted: BTreeMap::new(),
            counters: Tallies::default(),
        }
    }

    /// Hears a line.
    pub(crate) fn hear(&mut self, said: Report) {
        match said {
            Report::Found(seen, status) => self.looking.push((seen, status)),
            Report::Looked => self.take_stock(),
            Report::Sending(names) => names.into_iter().for_each(|name| self.mean_to_send(name)),
            Report::Sent(answers) => answers.into_iter().for_each(|(name, answer)| self.sent(name, answer)),
            Report::Received { hold, seen, locked_until_ms, lock_ms } => {
                self.received(hold, &seen, locked_until_ms, lock_ms);
            }
            Report::Settling { hold, endings, at_ms } => self.settling(&hold, &endings, at_ms),
            Report::Settled { hold } => self.settled(&hold),
            Report::Refused { hold, why, at_ms } => self.refused(&hold, &why, at_ms),
            Report::Purging => self.mean_to_purge(),
            Report::Counted(ordered, counts) => drop(self.counted.insert(ordered, counts)),
            Report::Done => self.balance(),
            Report::RoundOver => {}
            Report::Stopped(why) => self.findings.note(Verdict::Refused, "the engine", &why),
        }
    }

    /// Notes that the process is gone, and with it every hold.
    pub(crate) fn process_ended(&mut self) {
        self.looking.clear();
        self.holds.clear();
        for book in self.books.values_mut() {
            book.lapsed.clear();
            if let Some(hold) = book.hold.take() {
                for number in hold.unsettled.iter().chain(hold.settling.keys()) {
                    book.open.entry(*number).and_modify(|entry| entry.may_be_suspect = true);
                }
                book.unanswered.extend(hold.settling);
            }
        }
    }

    pub(crate) fn book(&mut self, name: Name) -> &mut Book {
        self.books.entry((name.ordered, name.workflow)).or_default()
    }

    /// Whose message it is, if what was seen is what was sent.
    pub(crate) fn identify(&mut self, seen: &Seen) -> Option<Name> {
        let Ok(name) = seen.message_id.parse::<Name>() else {
            self.findings.note(Verdict::Phantom, &seen.message_id, "nobody sends such a message");
            return None;
        };
        let is_ours = (&seen.queue[..], &seen.workflow_id) == (name.ordered.queue(), &name.workflow_id());
        if !is_ours {
            let place = format!("it is in workflow {} of queue {}", seen.workflow_id, seen.queue);
            self.findings.note(Verdict::WrongContent, name, &place);
        } else if seen.body != name.body(self.seed) {
            self.findings.note(Verdict::WrongContent, name, &format!("its body is {:?}", seen.body));
        }
        Some(name)
    }

    fn mean_to_send(&mut self, name: Name) {
        let book = self.book(name);
        book.highest_meant = book.highest_meant.max(name.number);
        if !book.has_ended(name.number) {
            book.open.entry(name.number).or_default();
        }
    }

    fn sent(&mut self, name: Name, answer: Answer) {
        self.counters.sends += 1;
        let broken = match answer {
            Answer::Accepted(sequence) => self.accepted(name, sequence),
            Answer::Duplicate(sequence) => self.recognised(name, sequence),
            Answer::AlreadySettled if !self.book(name).completed.contains_key(&name.number) => {
                Some((Verdict::Lost, "it is said to be settled, but nobody has settled it"))
            }
            Answer::AlreadySettled => None,
            Answer::Refused => Some((Verdict::Refused, "its send was refused")),
        };
        if let Some((verdict, detail)) = broken {
            self.findings.note(verdict, name, detail);
        }
    }

    fn accepted(&mut self, name: Name, sequence: Option<u64>) -> Option<(Verdict, &'static str)> {
        let book = self.book(name);
        let again = (Verdict::Doubled, "it was accepted although it was there already");
        if let Some(entry) = book.open.get_mut(&name.number) {
            if entry.known == Known::Meant {
                (entry.known, entry.sequence) = (Known::Stored, sequence);
                return None;
            }
            return (entry.sequence != sequence).then_some(again);
        }
        match book.completed.get(&name.number) {
            Some(completed) if *completed == sequence => None,
            // It was handed out and moved aside before its sender spoke.
            None if book.dead.contains(&name.number) => None,
            _ => Some(again),
        }
    }

    fn recognised(&mut self, name: Name, sequence: u64) -> Option<(Verdict, &'static str)> {
        let book = self.book(name);
        let first = match book.open.get(&name.number) {
            Some(entry) if entry.known == Known::Meant => {
                return Some((Verdict::Lost, "it is said to be a duplicate, but the first is not there"));
            }
            Some(entry) => entry.sequence,
            None => book.completed.get(&name.number).copied().flatten(),
        };
        let is_known = first.is_none_or(|first| first == sequence);
        (!is_known).then_some((Verdict::Doubled, "it is there under two sequence numbers"))
    }

    fn mean_to_purge(&mut self) {
        for book in self.books.values_mut() {
            book.leaving.append(&mut book.dead);
        }
    }
}
