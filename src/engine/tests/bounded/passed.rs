//! What a command goes past: early messages that join, places that were given up, dead letters that do not come back.

use super::*;
use crate::queue::GapAction;
use crate::queue::GapPolicy;

#[test]
fn a_purge_of_messages_that_join_the_run_costs_no_more_in_one_step_than_in_another() {
    // The first one is missing.
    let mut turns = Turns::flushed(|number| number + 1);
    turns.send(numbered(Order::POSITION, 1));
    turns.work.clear();
    assert_eq!(turns.purge(&PurgeScope::Workflow(workflow())), MANY + 1);
    turns.work.pop();
    let (most, least) = (turns.work.iter().max().unwrap(), turns.work.iter().min().unwrap());
    assert!(most <= &(2 * least), "{:?} rows a step", turns.work);
}

#[test]
fn a_long_purge_of_messages_that_follow_each_other_costs_the_same_from_its_first_step_to_its_last() {
    let order = Order::After;
    // Each two name each other as their predecessors: of none of them is the predecessor unknown.
    let partner = |number: u64| if number.is_multiple_of(2) { number - 1 } else { number + 1 };
    let options = QueueOptions { order, ..QueueOptions::default() };
    let mut turns = Turns::filled(StoreOptions::default(), options, |number| NewMessage {
        place: Place::After(Some(MessageId::new(format!("m{}", partner(number))).unwrap())),
        ..numbered(order, number)
    });
    turns.flush();
    assert_eq!(turns.purge(&PurgeScope::Workflow(workflow())), MANY);
    turns.check_even("a purge");
}

#[test]
fn a_gap_with_many_holes_is_given_up_in_turns_of_bounded_work() {
    let gap = GapPolicy { wait: 2 * MINUTE, then: GapAction::Skip };
    let mut turns = Turns::filled(
        StoreOptions::default(),
        QueueOptions { gap, ..QueueOptions::by_position() },
        |number| mortal(Order::POSITION, 2 * number),
    );
    turns.pass_time(MINUTE);
    assert_eq!(turns.counts().dead_lettered, MANY);
    turns.send(numbered(Order::POSITION, 2 * MANY + 2));
    turns.work.clear();
    turns.pass_time(2 * MINUTE);
    for _ in 0..2 * MANY / limits::SWEEP_MAX as u64 {
        turns.pass_time(Duration::from_millis(1));
    }
    let most = turns.work.iter().max().unwrap();
    assert!(*most <= ENOUGH / 4, "{most} rows were looked at or changed in one turn");
    assert_eq!((turns.counts().ready, turns.counts().early), (1, 0));
}

#[test]
fn a_skipped_message_comes_back_although_very_many_dead_letters_before_it_do_not() {
    let order = Order::After;
    let options = QueueOptions { order, exhausted: Some(ExhaustedPolicy::Skip), ..QueueOptions::default() };
    let mut turns = Turns::filled(StoreOptions::default(), options, |number| mortal(order, number));
    turns.pass_time(MINUTE);
    assert_eq!(turns.counts().dead_lettered, MANY);
    turns.send(numbered(order, MANY + 1));
    turns.finish();
    turns.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token: token(1) }));
    turns.ask(Command::Settle(verbs::Settle {
        queue: queue(),
        token: token(1),
        sequence: SequenceNumber::new(MANY + 1),
        delivery_count: 1,
        settlement: Settlement::Complete(CompletionCommand::default()),
    }));
    assert_eq!(turns.counts().completed, 1);
    turns.operate(Operation::Hold { reason: "look".to_owned() });
    turns.send(numbered(order, MANY + 2));
    turns.send(numbered(order, MANY + 3));
    turns.operate(Operation::SkipHead { reason: "bad".to_owned() });
    assert_eq!(turns.counts().dead_lettered, MANY + 1);
    turns.operate(Operation::Resume { redrive: true });
    turns.finish();
    assert_eq!((turns.counts().dead_lettered, turns.counts().ready), (MANY, 2));
}

#[test]
fn a_dead_letter_comes_back_although_as_many_before_it_as_a_step_looks_at_do_not() {
    let options = QueueOptions { lock: 10 * MINUTE, ..QueueOptions::by_position() };
    let mut turns = Turns::filled(StoreOptions::default(), options, |number| mortal(Order::POSITION, number));
    turns.pass_time(MINUTE);
    turns.send(numbered(Order::POSITION, MANY + 1));
    turns.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token: token(1) }));
    turns.send(mortal(Order::POSITION, MANY + 2));
    turns.pass_time(MINUTE);
    assert_eq!((turns.counts().dead_lettered, turns.counts().locked), (MANY + 1, 1));
    turns.operate(Operation::Hold { reason: "look".to_owned() });
    turns.operate(Operation::Resume { redrive: true });
    turns.finish();
    assert_eq!((turns.counts().dead_lettered, turns.counts().ready), (MANY, 1));
}
