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
        if let Ok(Reply::Purge(Ok(purged))) = tried.unwrap() {
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
