//! Parts of transactions that their peer has settled, and that are about what has ended here.

use bytes::Bytes;

use crate::amqp::attach::Role;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::tests::peer::Pair;
use crate::amqp::tests::peer::message;
use crate::amqp::transfer::Disposition;
use crate::amqp::transfer::Transfer;

const TRANSACTION: Bytes = Bytes::from_static(b"t");

fn missing() -> AmqpEvent {
    AmqpEvent::MissingPart { transaction: TRANSACTION }
}

impl Pair {
    /// Takes a frame of a message that belongs to a transaction. Frames of tests do not name one.
    fn takes_part(&mut self, settled: bool, more: bool) {
        let transfer = Transfer {
            delivery_id: Some(0),
            delivery_tag: Some(Bytes::from_static(b"tag")),
            settled: Some(settled),
            more,
            transaction: Some(TRANSACTION),
            ..Transfer::default()
        };
        let session = self.connection.sessions.get_mut(&0).unwrap();
        session.transfer(&mut self.connection.hub, transfer, Bytes::from_static(b"x")).unwrap();
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
        let session = self.connection.sessions.get_mut(&0).unwrap();
        let endings = session.disposition(&mut self.connection.hub, disposition).unwrap();
        self.connection.endings = Some(endings);
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
