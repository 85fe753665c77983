//! Commands that happen together or not at all.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::rules::Rules;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::PurgeFrom;
use crate::engine::rules::command::PurgeScope;
use crate::engine::rules::command::Reply;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::records::Records;
use crate::engine::tests::crash::listing::Listing;
use crate::engine::tests::crash::rows::Rows;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::message::Message;
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
    Command::Send { queue: queue(), messages: vec![Message::new("x").check().unwrap()] }
}

fn settle(token: LockToken, sequence: SequenceNumber) -> Command {
    let settlement = Settlement::Complete(CompletionCommand::default());
    Command::Settle { queue: queue(), token, sequence, delivery_count: 1, settlement }
}

fn next(sequence: SequenceNumber) -> SequenceNumber {
    SequenceNumber::new(sequence.get() + 1)
}

impl Played {
    fn new(options: QueueOptions) -> Played {
        let (rules, rows, now) = (Rules::default(), Rows::default(), Timestamp::from_millis(1_000));
        let mut played = Played { rules, rows, now };
        played.ask(Command::CreateQueue { name: queue(), options: Box::new(options) });
        played
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.rules.apply(ClockInstants::same(self.now), command, &mut self.rows).unwrap().reply
    }

    fn transact(&mut self, steps: Vec<Command>) -> Result<usize, usize> {
        match self.ask(Command::Transact { steps }) {
            Reply::Transact(answer) => answer.map(|replies| replies.len()).map_err(|(index, _)| index),
            other => panic!("{other:?} answers no transaction"),
        }
    }

    fn received(&mut self) -> (LockToken, SequenceNumber) {
        self.ask(send());
        let token = LockToken::new(1, [7; 12]);
        match self.ask(Command::Receive { queue: queue(), max: 1, token }) {
            Reply::Receive(Ok(handed)) => (handed[0].token, handed[0].sequence),
            other => panic!("{other:?} hands nothing out"),
        }
    }

    fn stored(&self) -> u64 {
        let of = self.rows.queue_named(&queue()).unwrap().unwrap().id;
        self.rows.tally(of).unwrap().counts.stored()
    }
}

#[test]
fn what_comes_before_a_refused_step_has_not_happened() {
    let mut played = Played::new(QueueOptions::default().messages_max(3));
    let (token, sequence) = played.received();
    let before = Listing::number(&mut played.rows.clone()).unwrap();
    let refused =
        played.transact(vec![send(), settle(token, sequence), settle(token, next(sequence)), send()]);
    assert_eq!(refused, Err(2));
    assert_eq!(Listing::number(&mut played.rows.clone()).unwrap(), before, "every row is as it was");
    assert_eq!(played.transact(vec![send(), settle(token, sequence), send(), send()]), Ok(4));
    assert_eq!(played.stored(), 3, "what one step frees, the next may use");
}

#[test]
fn a_settlement_that_was_only_tried_is_not_remembered_as_done() {
    let mut played = Played::new(QueueOptions::default());
    let (token, sequence) = played.received();
    assert_eq!(played.transact(vec![settle(token, sequence), settle(token, next(sequence))]), Err(1));
    played.now = played.now + Duration::from_secs(40);
    played.ask(Command::ExpireLock { token });
    match played.ask(settle(token, sequence)) {
        Reply::Settle(Err(SettleRefusal::LockLost)) => {}
        other => panic!("{other:?}, and the message is still there"),
    }
    assert_eq!(played.stored(), 1);
}

#[test]
fn a_dead_letter_that_is_not_there_cannot_end_with_a_transaction() {
    let mut played = Played::new(QueueOptions::default());
    let scope = PurgeScope::DeadLetter(SequenceNumber::new(1));
    let purge = Command::Purge { queue: queue(), scope, from: PurgeFrom::Start };
    assert_eq!(played.transact(vec![send(), purge]), Err(1));
    assert_eq!(played.stored(), 0);
}
