//! One command that moves many messages moves no more of them than its turn has room for.

use super::*;

/// What fills a turn: far less than a sweep does.
const ROOM: u64 = 2_048;

impl Turns {
    #[track_caller]
    fn check_room(&mut self, what: &str) {
        let most = self.work.drain(..).max().expect("turns were counted");
        // Beside what fills it, rows are counted that were read in their tables.
        assert!(most <= 2 * ROOM, "{what}: {most} rows were looked at or changed in one turn");
    }
}

#[test]
fn a_quarantine_and_a_redrive_end_their_turn_when_it_is_full() {
    let mut turns = with_quarantine();
    turns.room = ROOM;
    turns.fail_first();
    turns.finish();
    turns.check_room("a quarantine");
    assert_eq!(turns.counts().dead_lettered, MANY);
    turns.operate(Operation::Resume { redrive: true });
    turns.finish();
    turns.check_room("a redrive");
    assert_eq!(turns.counts().ready, MANY);
}

#[test]
fn expired_messages_that_a_receiver_passes_end_their_turn_when_it_is_full() {
    let order = QueueOptions::by_position().order;
    let mut turns = Turns::filled(StoreOptions::default(), QueueOptions::by_position(), |number| {
        NewMessage { workflow_id: Some(WorkflowId::new(format!("w{number}")).unwrap()), ..mortal(order, 1) }
    });
    turns.room = ROOM;
    turns.now = turns.now + MINUTE;
    for number in 0..8 {
        turns.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token: token(number) }));
    }
    turns.finish();
    turns.check_room("expired messages");
    assert_eq!(turns.counts().dead_lettered, MANY);
}
