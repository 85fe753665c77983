//! The process is lost: between two turns, or in one, which is then on disk or is not.

use crate::clock::Timestamp;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::clock::Shown;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::engine::tests::simulation::world::World;

/// More operations of a disk than one commit takes.
const OPS: u64 = 16;

impl World {
    /// The process is lost between two turns.
    pub(crate) fn lose_process(&mut self) -> Finding {
        self.log(|| "the process is lost".to_owned());
        if let Some(stored) = &mut self.stored {
            stored.compare(&self.plain)?;
            let keeps_unsynced = self.clients.random.chance(50);
            stored.reopen(keeps_unsynced);
        }
        self.begin_again(Vec::new())
    }

    /// The process is lost in a turn whose answers nobody gets; perhaps the turn was written, perhaps not.
    pub(crate) fn lose_process_in_a_turn(&mut self) -> Finding {
        if self.plain.has_to_clear_up(self.clock.at) {
            return self.lose_process();
        }
        let questions = self.questions();
        let commands: Vec<Command> = questions.iter().map(|question| question.command.clone()).collect();
        if let Some(stored) = &mut self.stored {
            stored.compare(&self.plain)?;
        }
        let (kept, before) = (self.plain.kept(), self.plain.now);
        let played = self.plain.play(self.clock.at, &questions);
        let is_there = match &mut self.stored {
            None => self.clients.random.chance(50),
            Some(stored) => {
                let ops = self.clients.random.below(OPS);
                stored.cut_after(usize::try_from(ops).expect("a small number"));
                stored.play(self.clock.at, 0, &questions, ops.is_multiple_of(2));
                let position = stored.reopen(self.clients.random.chance(50));
                let is_one_of_both = [kept.position, self.plain.position].contains(&position);
                let both = (kept.position, self.plain.position);
                expect(is_one_of_both, || format!("I13 {position} is there, and should be one of {both:?}"))?;
                position == self.plain.position
            }
        };
        if is_there {
            self.record(&questions, played, false)?;
            self.shown.add(self.clock.at);
            self.look(before)?;
            self.log(|| "the process is lost before it could answer that".to_owned());
        } else {
            self.plain.restore(kept, self.clock.at);
            self.log(|| format!("the process is lost, and with it {commands:?}"));
            let rash = self.stored.as_mut().and_then(|stored| stored.answered_rashly());
            expect(rash.is_none(), || format!("I1 it is lost, and was answered: {rash:?}"))?;
        }
        self.begin_again(commands)
    }

    fn begin_again(&mut self, unanswered: Vec<Command>) -> Finding {
        self.epoch += 1;
        self.asked.clear();
        self.given_back.clear();
        self.ledger.lose(|_| true);
        let (closed, left) = (self.clock.at.wall, self.plain.stamped);
        self.clock.pass_closed(&mut self.clients.random);
        self.log(|| format!("it is gone for a while: {closed}"));
        if let Some(stored) = &mut self.stored {
            stored.compare_disk(&self.plain)?;
            stored.begin_again(self.clock.at)?;
        }
        let played = self.plain.reopen(self.clock.at);
        self.shown = Shown::new(self.clock.at);
        let passed = self.clock.at.wall.since(left.wall);
        let (now, is_new) = (self.plain.now, left.wall == Timestamp::default());
        expect(is_new || now.engine == left.engine + passed, || {
            format!("I14 {now:?} after {left:?}, and {passed:?} have passed")
        })?;
        self.ledger.advance(self.plain.now);
        self.reference.restart(self.plain.now);
        self.dead_letters.restart();
        played.cleared.iter().try_for_each(|cleared| self.reference.clear_up(cleared))?;
        for event in &played.events {
            self.ledger.event_listener.record(event);
            self.record_event(event);
        }
        self.clients.record_of_crash(unanswered, self.epoch);
        if let Some(stored) = &mut self.stored {
            stored.compare(&self.plain)?;
        }
        // Opening does what one turn has time for, and the reference all that is due: the rest would be undone if the process
        // were lost again and the clock set back meanwhile.
        if self.plain.has_due() { self.turn(Vec::new()) } else { Ok(()) }
    }
}
