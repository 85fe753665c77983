//! What the ledger asks of a process that was just started.

use crate::kill::book::Known;
use crate::kill::ledger::Ledger;
use crate::kill::name::Name;
use crate::kill::name::Ordered;
use crate::kill::report::Plan;
use crate::random::Random;

/// Workflows of each queue that senders feed.
const WORKFLOWS: u32 = 12;

/// How many of the last messages of a workflow may be sent once more although they are there or completed.
const RESENT_MAX: u64 = 8;

/// Dead letters after which they are removed.
const DEAD_MAX: usize = 50;

impl Ledger {
    /// What to send again, and where to go on: a sender that crashed sends again what it has no answer for, and some
    /// more, as senders do.
    pub(crate) fn plan(&self, random: &mut Random) -> Plan {
        let mut plan = Plan::default();
        for ordered in Ordered::BOTH {
            for workflow in 0..WORKFLOWS {
                self.plan_workflow(Name::new(ordered, workflow, 0), &mut plan, random);
            }
        }
        let dead: usize = self.books.values().map(|book| book.dead.len()).sum();
        plan.purge = dead > DEAD_MAX;
        plan
    }

    fn plan_workflow(&self, name: Name, plan: &mut Plan, random: &mut Random) {
        let page = (name.ordered, name.workflow);
        let Some(book) = self.books.get(&page) else {
            return plan.next.push(Name { number: 1, ..name });
        };
        plan.next.push(Name { number: book.highest_meant + 1, ..name });
        let unknown = book.open.iter().filter(|(_, entry)| entry.known == Known::Meant);
        plan.again.extend(unknown.map(|(number, _)| Name { number: *number, ..name }));
        if random.chance(20) && book.highest_meant > 0 {
            let back = random.below(RESENT_MAX.min(book.highest_meant));
            let number = book.highest_meant - back;
            let is_known = book.open.get(&number).is_some_and(|entry| entry.known != Known::Meant);
            if is_known || book.completed.contains_key(&number) {
                plan.again.push(Name { number, ..name });
            }
        }
    }
}
