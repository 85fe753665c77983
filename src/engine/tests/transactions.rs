//! Commands that happen together or not at all.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::record::Counts;
use crate::engine::rules::records::Records;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::listing::Listing;
use crate::engine::tests::crash::rows::Rows;
use crate::error::SettleRefusal;
use crate::header::Properties;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::token::LockToken;

struct Played {
    rules: Rules,
    rows: Rows,
    now: Timestamp,
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn send() -> Command {
    Command::Send(verbs::Send { queue: queue(), messages: vec![Message::new("x").check().unwrap()] })
}

fn settle(token: LockToken, sequence: SequenceNumber) -> Command {
    let settlement = Settlement::Complete(CompletionCommand::default());
    Command::Settle(verbs::Settle { queue: queue(), token, sequence, delivery_count: 1, settlement })
}

impl Played {
    fn new(options: QueueOptions) -> Played {
        let (rules, rows, now) = (Rules::default(), Rows::default(), Timestamp::from_millis(1_000));
        let mut played = Played { rules, rows, now };
        played.ask(Command::CreateQueue(verbs::CreateQueue { name: queue(), options: Box::new(options) }));
        played
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.rules.apply(ClockInstants::same(self.now), command, &mut self.rows).unwrap().reply
    }

    fn transact(&mut self, steps: Vec<Command>) -> Result<usize, usize> {
        let steps = steps.into_iter().map(|step| step.into_step().expect("it can be a step")).collect();
        match self.ask(Command::Transact(verbs::Transact { steps })) {
            Reply::Transact(answer) => answer.map(|replies| replies.len()).map_err(|refused| refused.index),
            other => panic!("{other:?} answers no transaction"),
        }
    }

    fn received(&mut self) -> (LockToken, SequenceNumber) {
        self.ask(send());
        let token = LockToken::new(1, [7; 12]);
        match self.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token })) {
            Reply::Receive(Ok(handed)) => (handed[0].token, handed[0].sequence),
            other => panic!("{other:?} hands nothing out"),
        }
    }

    fn counts(&self) -> Counts {
        let of = self.rows.queue_named(&queue()).unwrap().unwrap().id;
        self.rows.counters(of).unwrap().counts
    }

    fn stored(&self) -> u64 {
        self.counts().stored()
    }
}

#[test]
fn what_comes_before_a_refused_step_has_not_happened() {
    let mut played = Played::new(QueueOptions::default().messages_max(3));
    let (token, sequence) = played.received();
    let before = Listing::number(&mut played.rows.clone()).unwrap();
    let refused =
        played.transact(vec![send(), settle(token, sequence), settle(token, sequence.next()), send()]);
    assert_eq!(refused, Err(2));
    assert_eq!(Listing::number(&mut played.rows.clone()).unwrap(), before, "every row is as it was");
    assert_eq!(played.transact(vec![send(), settle(token, sequence), send(), send()]), Ok(4));
    assert_eq!(played.stored(), 3, "what one step frees, the next may use");
}

#[test]
fn a_settlement_that_was_only_tried_is_not_remembered_as_done() {
    let mut played = Played::new(QueueOptions::default());
    let (token, sequence) = played.received();
    assert_eq!(played.transact(vec![settle(token, sequence), settle(token, sequence.next())]), Err(1));
    played.now = played.now + Duration::from_secs(40);
    played.ask(Command::ExpireLock(verbs::ExpireLock { token }));
    match played.ask(settle(token, sequence)) {
        Reply::Settle(Err(SettleRefusal::LockLost)) => {}
        other => panic!("{other:?}, and the message is still there"),
    }
    assert_eq!(played.stored(), 1);
}

#[test]
fn a_transaction_that_is_asked_again_is_refused_and_sends_nothing_twice() {
    let mut played = Played::new(QueueOptions::default());
    let (token, sequence) = played.received();
    let steps = || vec![send(), settle(token, sequence)];
    assert_eq!(played.transact(steps()), Ok(2));
    let before = Listing::number(&mut played.rows.clone()).unwrap();
    assert_eq!(played.transact(steps()), Err(1), "what it settles was settled before it");
    assert_eq!(Listing::number(&mut played.rows.clone()).unwrap(), before, "every row is as it was");
    assert_eq!(played.stored(), 1);
    assert!(
        matches!(played.ask(settle(token, sequence)), Reply::Settle(Ok(_))),
        "alone it is answered as the first time"
    );
}

#[test]
fn a_dead_letter_ends_with_a_transaction_or_stays_held() {
    let mut played = Played::new(QueueOptions::default());
    let (token, sequence) = played.received();
    let (reason, description, properties) = ("bad".to_owned(), String::new(), Properties::new());
    let settlement = Settlement::DeadLetter { reason, description, properties };
    played.ask(Command::Settle(verbs::Settle {
        queue: queue(),
        token,
        sequence,
        delivery_count: 1,
        settlement,
    }));
    let token = LockToken::new(1, [8; 12]);
    played.ask(Command::ReceiveDeadLetters(verbs::ReceiveDeadLetters { queue: queue(), max: 1, token }));
    let settlement = Settlement::Complete(CompletionCommand::default());
    let complete =
        Command::Settle(verbs::Settle { queue: queue(), token, sequence, delivery_count: 2, settlement });
    let before = Listing::number(&mut played.rows.clone()).unwrap();
    assert_eq!(played.transact(vec![send(), complete.clone(), complete.clone()]), Ok(3), "the same again");
    assert_eq!(played.stored(), 1);
    assert_ne!(Listing::number(&mut played.rows.clone()).unwrap(), before);
}

#[test]
fn a_dead_letter_received_in_a_transaction_that_is_refused_is_found_again() {
    let mut played = Played::new(QueueOptions::default());
    let (token, sequence) = played.received();
    let (reason, description, properties) = ("bad".to_owned(), String::new(), Properties::new());
    let settlement = Settlement::DeadLetter { reason, description, properties };
    played.ask(Command::Settle(verbs::Settle {
        queue: queue(),
        token,
        sequence,
        delivery_count: 1,
        settlement,
    }));
    let release = |token| {
        let settlement = Settlement::Release;
        Command::Settle(verbs::Settle { queue: queue(), token, sequence, delivery_count: 2, settlement })
    };
    let receive =
        |token| Command::ReceiveDeadLetters(verbs::ReceiveDeadLetters { queue: queue(), max: 1, token });
    let found = |reply| matches!(reply, Reply::Receive(Ok(handed)) if handed.len() == 1);
    let (first, second) = (LockToken::new(1, [8; 12]), LockToken::new(1, [9; 12]));
    assert!(found(played.ask(receive(first))));
    // The release is taken back: whoever looks meanwhile must not be led past it for ever, nor find it while it is held.
    assert_eq!(played.transact(vec![release(first), settle(second, sequence)]), Err(1));
    assert!(!found(played.ask(receive(second))), "it is still held");
    assert!(matches!(played.ask(release(first)), Reply::Settle(Ok(_))));
    assert!(found(played.ask(receive(second))));
}

#[test]
fn a_settlement_that_is_repeated_in_a_transaction_goes_the_same_way_in_earnest_as_on_trial() {
    let mut played = Played::new(QueueOptions::default());
    let oldest = played.received();
    played.ask(settle(oldest.0, oldest.1));
    for _ in 1..limits::SETTLEMENTS_KEPT {
        let (token, sequence) = played.received();
        played.ask(settle(token, sequence));
    }
    let newest = played.received();
    let both = vec![settle(newest.0, newest.1), settle(oldest.0, oldest.1)];
    assert_eq!(
        played.transact(both),
        Err(1),
        "the oldest is remembered no more, the first time as the second"
    );
    assert_eq!(played.stored(), 1);
}

#[test]
fn a_place_in_a_chain_that_one_step_gives_back_is_free_for_the_next() {
    let mut played = Played::new(QueueOptions::default().order(Order::After));
    let message = |number: u64| {
        let message = Message::new("x").workflow("w").message_id(number.to_string());
        if number == 1 { message.first() } else { message.after((number - 1).to_string()) }
    };
    let send = |message: Message| {
        Command::Send(verbs::Send { queue: queue(), messages: vec![message.check().unwrap()] })
    };
    // Behind it stand more than are taken out of the chain in one step.
    for number in 1..=2 * limits::SHORTEN_MAX as u64 {
        let due = played.now + Duration::from_secs(60);
        played.ask(send(if number == 3 { message(3).schedule_at(due) } else { message(number) }));
    }
    let (queue, sequence, void) = (queue(), SequenceNumber::new(3), false);
    let cancel = Command::Cancel(verbs::Cancel { queue, sequence, void });
    assert_eq!(played.transact(vec![cancel, send(message(3))]), Ok(2));
    assert_eq!(played.counts().dead_lettered, 0, "it was sent for the place that is free");
}
