//! Parts of transactions that their peer has settled, and that are about what has ended here.

use bytes::Bytes;

use crate::amqp::attach::Role;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::OutgoingMessage;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::tests::peer::Pair;
use crate::amqp::tests::peer::message;
use crate::amqp::transfer::Disposition;
use crate::amqp::transfer::Transfer;

const TRANSACTION: Bytes = Bytes::from_static(b"t");

fn missing() -> AmqpEvent {
    AmqpEvent::MissingPart { transaction: TRANSACTION }
}

fn part() -> Transfer {
    Transfer {
        delivery_id: Some(0),
        delivery_tag: Some(Bytes::from_static(b"tag")),
        transaction: Some(TRANSACTION),
        ..Transfer::default()
    }
}

impl Pair {
    /// Takes a frame of a message that belongs to a transaction. Frames of tests do not name one.
    fn takes_part(&mut self, settled: bool, more: bool) {
        self.takes(Transfer { settled: Some(settled), more, ..part() });
    }

    fn takes(&mut self, transfer: Transfer) {
        self.connection.on_performative(0, Performative::Transfer(transfer, Bytes::from_static(b"x")));
    }

    /// Takes that the first deliveries were accepted with a transaction.
    fn takes_accepted(&mut self, deliveries: u32, settled: bool) {
        let disposition = Disposition {
            role: Role::Receiver,
            first: 0,
            last: Some(deliveries - 1),
            settled,
            state: Some(DeliveryOutcome::Accepted),
            transaction: Some(TRANSACTION),
        };
        self.connection.on_performative(0, Performative::Disposition(disposition));
    }

    fn is_told_of_missing(&mut self) -> bool {
        self.events().contains(&missing())
    }
}

#[test]
fn a_message_over_a_link_that_ends_here_is_missed_by_its_transaction() {
    for settled in [true, false] {
        let (mut pair, link) = Pair::attached(Role::Sender, 5);
        pair.connection.detach(link, None);
        pair.takes_part(settled, false);
        assert_eq!(pair.is_told_of_missing(), settled, "who waits for an answer hears the end of the link");
    }
}

#[test]
fn a_message_of_which_a_part_has_come_when_its_link_ends_here_is_missed_by_its_transaction() {
    for settled in [true, false] {
        let (mut pair, link) = Pair::attached(Role::Sender, 5);
        pair.takes_part(settled, true);
        assert!(!pair.is_told_of_missing());
        pair.connection.detach(link, None);
        assert_eq!(pair.is_told_of_missing(), settled);
    }
}

#[test]
fn the_end_of_a_delivery_that_has_ended_here_is_missed_by_its_transaction() {
    for (known, settled) in [(2, true), (1, true), (1, false)] {
        let (mut pair, link) = Pair::attached(Role::Receiver, 5);
        for number in 0..2 {
            pair.connection.send(link, message("x")).unwrap();
            if number >= known {
                pair.connection.settle(link, DeliveryNumber(number), DeliveryOutcome::Released);
            }
        }
        pair.takes_accepted(2, settled);
        assert_eq!(pair.is_told_of_missing(), settled && known < 2, "{known} of two, settled: {settled}");
    }
}

#[test]
fn a_range_over_what_was_settled_when_it_was_sent_misses_nothing() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 5);
    for settled in [false, true, false] {
        pair.connection.send(link, OutgoingMessage { settled, ..message("x") }).unwrap();
    }
    pair.takes_accepted(3, true);
    assert!(!pair.is_told_of_missing());
}

#[test]
fn what_breaks_a_rule_is_missed_by_its_transaction_and_so_is_what_has_come_of_others() {
    let (mut pair, _) = Pair::attached(Role::Sender, 0);
    pair.takes_part(true, false);
    assert!(pair.is_told_of_missing(), "there was no credit");
    let (mut pair, _) = Pair::attached(Role::Sender, 5);
    pair.takes_part(true, true);
    pair.takes(Transfer { delivery_id: Some(1), transaction: None, ..part() });
    assert!(pair.is_told_of_missing(), "another one began within it");
    let (mut pair, _) = Pair::attached(Role::Sender, 5);
    pair.takes_part(true, true);
    pair.takes(Transfer { handle: 7, transaction: None, ..part() });
    assert!(pair.is_told_of_missing(), "its session ended");
}

#[test]
fn what_its_sender_gives_up_is_not_missed() {
    let (mut pair, link) = Pair::attached(Role::Sender, 5);
    pair.connection.detach(link, None);
    pair.takes(Transfer { settled: Some(true), aborted: true, ..part() });
    assert!(!pair.is_told_of_missing());
}
