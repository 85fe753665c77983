//! What is only tried: it hides rows, and is taken back.

use super::*;

impl Turns {
    fn receive(&mut self, token: LockToken) {
        self.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token }));
    }

    fn transact(&mut self, steps: impl IntoIterator<Item = Command>) {
        let steps = steps.into_iter().map(|step| step.into_step().expect("it can be a step")).collect();
        self.ask(Command::Transact(verbs::Transact { steps }));
    }
}

fn completion(token: LockToken, sequence: u64) -> Command {
    Command::Settle(verbs::Settle {
        queue: queue(),
        token,
        sequence: SequenceNumber::new(sequence),
        delivery_count: 1,
        settlement: Settlement::Complete(CompletionCommand::default()),
    })
}

#[test]
fn a_purge_that_was_only_tried_leaves_every_message_to_be_found() {
    let scope = PurgeScope::Workflow(workflow());
    let mut turns = Turns::with_many(QueueOptions::by_position(), None);
    let Turns { rules, store, now, .. } = &mut turns;
    let mut from = Some(PurgeFrom::Start);
    for _ in 0..4 {
        let Some(next) = from.take() else { break };
        let command = Command::Purge(verbs::Purge { queue: queue(), scope: scope.clone(), from: next });
        let tried = store.try_out(|turn| rules.try_out(ClockInstants::same(*now), command, turn));
        if let Reply::Purge(Ok(purged)) = tried.unwrap() {
            from = purged.next;
        }
    }
    assert_eq!(turns.counts().ready, MANY);
    assert_eq!(turns.purge(&scope), MANY);
}

#[test]
fn a_long_backlog_that_is_drained_by_transactions_costs_the_same_from_its_first_message_to_its_last() {
    let mut turns = Turns::flushed(|number| number);
    let (mut hundreds, mut number) = (Vec::new(), 0);
    for _ in 0..10 {
        for _ in 0..100 {
            number += 1;
            let token = token(u8::try_from(number % 251).unwrap());
            turns.receive(token);
            turns.transact([completion(token, number)]);
        }
        hundreds.push(turns.work.drain(..).sum::<u64>());
    }
    assert_eq!(turns.counts().completed, number);
    assert!(hundreds[9] * 5 <= hundreds[0] * 6, "{hundreds:?} rows for a hundred messages");
}

#[test]
fn a_place_that_a_refused_transaction_took_is_free_again() {
    // There is nothing at the tenth place.
    let mut turns = Turns::flushed(|number| if number < 10 { number } else { number + 1 });
    for number in 1..10 {
        turns.receive(token(number));
        turns.ask(completion(token(number), u64::from(number)));
    }
    let tenth = || {
        Command::Send(verbs::Send {
            queue: queue(),
            messages: vec![numbered(QueueOptions::by_position().order, 10)],
        })
    };
    let nobodys = token(200);
    turns.transact([tenth(), completion(nobodys, 10)]);
    turns.receive(token(10));
    assert_eq!((turns.counts().completed, turns.counts().locked), (9, 0), "the transaction was refused");
    turns.ask(tenth());
    for (number, sequence) in [(11, MANY + 1), (12, 10)] {
        turns.receive(token(number));
        turns.transact([completion(token(number), sequence)]);
    }
    assert_eq!(turns.counts().completed, 11, "in the order of their places");
}

#[test]
fn the_steps_of_a_transaction_let_no_more_join_together_than_one_command_may() {
    const EACH: u64 = 2_500;
    let mut turns = Turns::with_queue(StoreOptions::default(), QueueOptions::by_position());
    let workflows = ["v", "w"].map(|name| WorkflowId::new(name).unwrap());
    let of = |workflow: &WorkflowId, number| NewMessage {
        workflow_id: Some(workflow.clone()),
        ..numbered(Order::POSITION, number)
    };
    let send = |messages| Command::Send(verbs::Send { queue: queue(), messages });
    for workflow in &workflows {
        for number in 2..EACH + 2 {
            turns.ask(send(vec![of(workflow, number)]));
        }
    }
    assert_eq!(turns.counts().early, 2 * EACH);
    turns.transact(workflows.iter().map(|workflow| send(vec![of(workflow, 1)])));
    let early = turns.counts().early;
    assert!(early >= 2 * EACH - limits::EXTEND_MAX as u64, "only {early} wait for the next turns");
    turns.finish();
    assert_eq!((turns.counts().ready, turns.counts().early), (2 * EACH + 2, 0));
}
