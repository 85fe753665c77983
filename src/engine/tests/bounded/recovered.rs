//! What was handed out when a process ended, given back when its file is opened again.

use super::*;

#[test]
fn giving_back_very_many_locks_costs_the_same_from_the_first_to_the_last() {
    let mut turns = Turns::filled(StoreOptions::default(), QueueOptions::default(), |number| NewMessage {
        workflow_id: Some(WorkflowId::new(format!("w{number:06}")).unwrap()),
        place: Place::Arrival,
        message_id: None,
        ..numbered(Order::Arrival, number)
    });
    let mut chance = 0;
    while turns.counts().locked < MANY {
        chance += 1;
        let (queue, token) = (queue(), token(chance));
        turns.ask(Command::Receive(verbs::Receive { queue, max: limits::SWEEP_MAX, token }));
    }
    turns.flush();
    turns.rules = Rules::default();
    turns.work.clear();
    while turns.counts().locked > 0 {
        turns.ask(Command::Recover(verbs::Recover {}));
    }
    turns.check("giving back many locks");
    let steps = turns.work.len();
    assert!(steps >= MANY as usize / limits::SWEEP_MAX, "others are served in between");
    turns.check_even("giving back many locks");
}
