//! What is remembered of what has ended, and forgotten: however much comes of age at one instant, it takes turns of bounded work.

use super::*;
use crate::engine::rules::record::Remind;

/// The queue, which is the first of its store.
const QUEUE: QueueId = QueueId(1);

impl Turns {
    /// Lets so much time pass, and everything that is due then; in how many turns.
    fn let_pass(&mut self, time: Duration) -> u64 {
        self.work.clear();
        self.now = self.now + time;
        self.turn(None);
        1 + self.finish()
    }

    /// Purges everything that there is.
    fn end_all(&mut self) {
        assert_eq!(self.purge(&PurgeScope::Everything), MANY);
        self.finish();
        self.flush();
    }
}

#[test]
fn very_many_cursors_that_come_of_age_at_once_are_forgotten_in_turns_of_bounded_work() {
    let options = QueueOptions::by_position();
    let lasts = options.remember_cursor;
    let mut turns = Turns::with_queue(StoreOptions::default(), options);
    let since = turns.now;
    let left = turns.store.turn(|turn| {
        for number in 0..MANY {
            let stream = WorkflowRef::Named(WorkflowId::new(format!("w{number:06}")).unwrap());
            let key = WorkflowKey { queue: QUEUE, stream };
            turn.write(Change::Cursor(key, since, Some(Cursor { next: 2, done: 1, since })))?;
        }
        let check = since + lasts;
        let count = CursorCount { kept: MANY, check: Some(check), ..CursorCount::default() };
        turn.write(Change::CursorCount(QUEUE, Some(count)))?;
        let reminder = Reminder { due: Due::engine(check), queue: QUEUE, what: Remind::Cursors };
        turn.write(Change::Reminder(reminder, true))
    });
    left.unwrap();
    turns.flush();
    assert!(turns.let_pass(lasts) > 1, "others are served in between");
    turns.check("the end of many cursors");
    let left = turns.store.turn(|turn| Ok((turn.cursor_count(QUEUE)?, turn.cursor_oldest(QUEUE)?))).unwrap();
    assert_eq!(left, (CursorCount::default(), None));
}

#[test]
fn a_long_history_that_comes_of_age_at_once_is_forgotten_in_turns_of_bounded_work() {
    let lasts = Duration::from_secs(60);
    let options = QueueOptions { history: Some(lasts), ..QueueOptions::by_position() };
    let mut turns = Turns::with_many(options, None);
    turns.end_all();
    let kept = |turns: &mut Turns| turns.store.turn(|turn| Ok(turn.counters(QUEUE)?.history.kept())).unwrap();
    assert_eq!(kept(&mut turns), MANY);
    assert!(turns.let_pass(lasts) > 4, "others are served in between");
    turns.check("the end of a history");
    assert_eq!(kept(&mut turns), 0);
}

#[test]
fn the_places_of_a_long_idle_workflow_are_forgotten_in_turns_of_bounded_work() {
    let options = QueueOptions { order: Order::After, ..QueueOptions::default() };
    let lasts = options.forget_after;
    let mut turns = Turns::with_many(options, None);
    turns.end_all();
    let key = WorkflowKey { queue: QUEUE, stream: WorkflowRef::Named(workflow()) };
    let first = |turns: &mut Turns| turns.store.turn(|turn| turn.trail_from(&key, 0)).unwrap();
    assert!(first(&mut turns).is_some(), "its links are remembered");
    assert!(turns.let_pass(lasts) > 2, "others are served in between");
    turns.check("the end of a long workflow");
    assert!(first(&mut turns).is_none());
}

#[test]
fn a_first_message_does_not_get_lost_in_a_workflow_that_is_half_forgotten() {
    let options = QueueOptions { order: Order::After, ..QueueOptions::default() };
    let lasts = options.forget_after;
    let mut turns = Turns::with_many(options, None);
    turns.end_all();
    turns.now = turns.now + lasts;
    turns.turn(None);
    turns.send(numbered(Order::After, 1));
    let Counts { ready, early, dead_lettered, .. } = turns.counts();
    assert_eq!(
        (ready, early, dead_lettered),
        (0, 0, 1),
        "its place is still known as that of one that was purged"
    );
}
