//! One turn, played on plain rows or on a store, as the hot loop plays it but without its thread.

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::store::Job;
use crate::engine::store::Store;
use crate::engine::tests::crash::listing::Listing;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::upcoming::first_reminders;
use crate::error::Fault;

/// Reminders one turn handles; the rest waits for the next, as in the hot loop.
const REMINDERS_PER_TURN: usize = 64;

/// What is asked in one turn, and when.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) now: Timestamp,
    pub(crate) commands: Vec<Command>,
    /// Whether nothing is asked, and the store flushes what is left to be flushed.
    pub(crate) is_idle: bool,
}

/// Plain rows with the position of the last batch.
#[derive(Clone, Default)]
pub(crate) struct Model {
    pub(crate) rows: Rows,
    pub(crate) position: u64,
}

impl Model {
    /// Plays a turn, and says what was answered.
    pub(crate) fn play(&mut self, rules: &mut Rules, turn: &Turn) -> Vec<Reply> {
        if turn.is_idle {
            self.position += 1;
            return Vec::new();
        }
        let before = self.rows.changes;
        let replies = play(&mut self.rows, rules, turn).expect("plain rows never fail");
        if self.rows.changes > before {
            self.position += 1;
        }
        replies
    }

    /// The number of this state; the rows are used up by it.
    pub(crate) fn number(mut self) -> State {
        let rows = Listing::number(&mut self.rows).expect("plain rows never fail");
        State { rows, position: self.position }
    }

    /// The number of what can be seen of it without using it up.
    pub(crate) fn surface(&self) -> u64 {
        Listing::surface(&self.rows).expect("plain rows never fail")
    }

    pub(crate) fn lines(mut self) -> Vec<String> {
        Listing::lines(&mut self.rows).expect("plain rows never fail")
    }
}

/// A state as a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    rows: u64,
    position: u64,
}

/// Plays a turn on a store: one commit.
pub(crate) fn play_on(store: &mut Store, rules: &mut Rules, turn: &Turn) -> Result<Vec<Reply>, Fault> {
    let (replies, job) = prepare_on(store, rules, turn)?;
    store.commit(job.as_slice())?;
    Ok(replies)
}

/// Plays a turn on a store, and leaves its commit to be written.
pub(crate) fn prepare_on(
    store: &mut Store,
    rules: &mut Rules,
    turn: &Turn,
) -> Result<(Vec<Reply>, Option<Job>), Fault> {
    if turn.is_idle {
        return store.prepare_flush().map(|job| (Vec::new(), Some(job)));
    }
    store.prepare(|records| {
        let replies = play(records, rules, turn)?;
        records.stamp(turn.now);
        Ok(replies)
    })
}

/// The number of what a store can show without being changed.
pub(crate) fn surface_of(store: &mut Store) -> Result<u64, Fault> {
    store.turn(|records| Listing::surface(records))
}

/// The number of a store's state. The store is of no use afterwards.
pub(crate) fn state_of(store: &mut Store) -> Result<State, Fault> {
    let (position, _) = store.place();
    Ok(State { rows: in_vain(store, |records| Listing::number(records))?, position })
}

/// A store's rows as lines. The store is of no use afterwards.
pub(crate) fn lines_of(store: &mut Store) -> Result<Vec<String>, Fault> {
    in_vain(store, |records| Listing::lines(records))
}

/// Does something in a turn that is never committed.
fn in_vain<T>(
    store: &mut Store,
    work: impl FnOnce(&mut dyn MutableRecords) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut done = None;
    let stopped: Result<(), Fault> = store.turn(|records| {
        done = Some(work(records)?);
        Err(Fault::Defect("a test does not want this turn committed".to_owned()))
    });
    done.ok_or_else(|| stopped.expect_err("the turn has failed"))
}

/// What is due comes first, then what is asked.
fn play(records: &mut dyn MutableRecords, rules: &mut Rules, turn: &Turn) -> Result<Vec<Reply>, Fault> {
    while let Some((_, token)) = rules.locks().first_deadline().filter(|(due, _)| *due <= turn.now) {
        apply(records, rules, turn.now, Command::ExpireLock(verbs::ExpireLock { token }))?;
    }
    for _ in 0..REMINDERS_PER_TURN {
        let firsts = first_reminders(records)?.into_iter().flatten();
        let due = firsts.filter(|reminder| reminder.due.is_past(ClockInstants::same(turn.now)));
        let Some(reminder) = due.min_by_key(|reminder| reminder.due.at()) else {
            break;
        };
        apply(records, rules, turn.now, Command::Remind(verbs::Remind { reminder }))?;
    }
    let mut replies = Vec::new();
    for command in &turn.commands {
        replies.push(apply(records, rules, turn.now, command.clone())?);
    }
    Ok(replies)
}

fn apply(
    records: &mut dyn MutableRecords,
    rules: &mut Rules,
    now: Timestamp,
    command: Command,
) -> Result<Reply, Fault> {
    Ok(rules.apply(ClockInstants::same(now), command, records)?.reply)
}
