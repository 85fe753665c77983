//! Commands that move many messages move no more of them at once than their turn has room for.

use super::*;

/// What fills a turn: far less than a sweep does.
const ROOM: u64 = 2_048;

/// A queue that quarantines a workflow of many messages when one of them is exhausted.
fn with_quarantine() -> Turns {
    let options = QueueOptions {
        delivery_count_max: 1,
        exhausted: Some(ExhaustedPolicy::Quarantine),
        ..QueueOptions::by_position()
    };
    Turns::with_many(options, None)
}

impl Turns {
    #[track_caller]
    fn check_room(&mut self, what: &str) {
        let most = self.work.drain(..).max().expect("turns were counted");
        // Beside what fills it, rows are counted that were read in their tables.
        assert!(most <= 2 * ROOM, "{what}: {most} rows were looked at or changed in one turn");
    }

    /// Hands out the first message of the queue, which fails.
    fn fail_first(&mut self) {
        self.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token: token(1) }));
        let settlement = Settlement::Abandon {
            retry: Retry::Now,
            reason: "no good".to_owned(),
            properties: Properties::default(),
            output: Default::default(),
        };
        let (token, sequence) = (token(1), SequenceNumber::new(1));
        self.ask(Command::Settle(verbs::Settle {
            queue: queue(),
            token,
            sequence,
            delivery_count: 1,
            settlement,
        }));
    }
}

#[test]
fn a_quarantine_and_a_redrive_of_any_size_take_turns_of_bounded_work() {
    let mut turns = with_quarantine();
    turns.fail_first();
    assert!(turns.finish() >= MANY / limits::SWEEP_MAX as u64 / 2, "others are served in between");
    turns.check("a quarantine");
    assert_eq!(turns.counts().dead_lettered, MANY);
    turns.work.clear();
    turns.operate(Operation::Resume { redrive: true });
    assert!(turns.finish() >= MANY / limits::SWEEP_MAX as u64 / 2, "others are served in between");
    turns.check("a redrive");
    assert_eq!(turns.counts().ready, MANY);
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
