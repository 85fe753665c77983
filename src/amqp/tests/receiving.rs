//! Messages that a peer sends.

use bytes::Bytes;

use crate::amqp::ConnectionOptions;
use crate::amqp::attach::Role;
use crate::amqp::closing::ClosingFrame;
use crate::amqp::closing::Detach;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkId;
use crate::amqp::hub::Breach;
use crate::amqp::opening::Begin;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::tests::peer::Pair;
use crate::amqp::tests::peer::attach;
use crate::amqp::tests::peer::disposition;
use crate::amqp::tests::peer::flow;
use crate::amqp::tests::peer::transfer;
use crate::amqp::transfer::Flow;
use crate::amqp::transfer::Transfer;

/// A part of a delivery; only the first part has its number and tag.
fn part(delivery: Option<u32>, payload: &'static [u8], more: bool) -> Performative {
    let transfer = Transfer {
        delivery_id: delivery,
        delivery_tag: delivery.map(|_| Bytes::from_static(b"tag")),
        more,
        ..Transfer::default()
    };
    Performative::Transfer(transfer, Bytes::from_static(payload))
}

fn received(link: LinkId, delivery: u32, payload: &'static [u8], settled: bool) -> AmqpEvent {
    let tag = Bytes::from_static(b"tag");
    let payload = Bytes::from_static(payload);
    AmqpEvent::Message {
        link,
        delivery: DeliveryNumber(delivery),
        format: 0,
        tag,
        payload,
        settled,
        transaction: None,
    }
}

/// The condition with which the link was detached, if that is what is heard.
fn detached_for(pair: &mut Pair) -> Option<String> {
    pair.events();
    pair.receive_frames().into_iter().find_map(|frames| match frames {
        Performative::Detach(Detach { error: Some(error), .. }) => Some(error.condition.to_string()),
        _ => None,
    })
}

#[test]
fn a_message_is_told_and_settled_with_its_outcome() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.says(part(Some(7), b"hello", false));
    assert_eq!(pair.events(), [received(link, 7, b"hello", false)]);
    pair.connection.settle(link, DeliveryNumber(7), DeliveryOutcome::Accepted);
    let Performative::Disposition(mut expected) =
        disposition(Role::Receiver, 7, 7, true, DeliveryOutcome::Accepted)
    else {
        unreachable!()
    };
    expected.last = None;
    assert_eq!(pair.receive_frames(), [Performative::Disposition(expected)]);
    pair.connection.settle(link, DeliveryNumber(7), DeliveryOutcome::Accepted);
    assert_eq!(pair.receive_frames(), [], "it is settled once");
}

#[test]
fn messages_that_end_alike_are_settled_in_one_frame() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    // The numbers go round in the middle of it.
    let numbers: Vec<u32> = (0..5).map(|n| (u32::MAX - 1).wrapping_add(n)).collect();
    for number in &numbers {
        pair.says(part(Some(*number), b"", false));
    }
    pair.events();
    for (at, number) in numbers.iter().enumerate() {
        let outcome = if at == 3 { DeliveryOutcome::Released } else { DeliveryOutcome::Accepted };
        pair.connection.settle(link, DeliveryNumber(*number), outcome);
    }
    let ranges = pair.receive_frames().into_iter().map(|frames| match frames {
        Performative::Disposition(disposition) => (disposition.first, disposition.last),
        other => panic!("{other:?}"),
    });
    assert_eq!(ranges.collect::<Vec<_>>(), [(u32::MAX - 1, Some(0)), (1, None), (2, None)]);
}

#[test]
fn a_message_in_parts_is_told_when_it_is_whole() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.says(part(Some(0), b"one ", true));
    pair.says(part(None, b"two ", true));
    assert_eq!(pair.events(), []);
    pair.says(part(Some(0), b"three", false));
    assert_eq!(pair.events(), [received(link, 0, b"one two three", false)]);
    assert_eq!(pair.connection.hub.partial_bytes, 0);
    assert_eq!(pair.connection.credit(link), 9);
}

#[test]
fn a_message_that_is_aborted_is_never_told() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.says(part(Some(0), b"half of", true));
    let aborted = Transfer { aborted: true, ..Transfer::default() };
    pair.says(Performative::Transfer(aborted, Bytes::new()));
    pair.says(part(Some(1), b"whole", false));
    assert_eq!(pair.events(), [received(link, 1, b"whole", false)]);
    assert_eq!(pair.connection.credit(link), 9, "it gives back its credit");
    let frames = pair.receive_frames();
    let [Performative::Flow(flow)] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(1), Some(10)));
    assert_eq!(pair.connection.hub.partial_bytes, 0);
}

#[test]
fn a_message_is_settled_if_any_of_its_parts_is() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    let first = Transfer {
        settled: Some(true),
        delivery_id: Some(0),
        delivery_tag: Some(Bytes::from_static(b"tag")),
        more: true,
        ..Transfer::default()
    };
    pair.says(Performative::Transfer(first, Bytes::from_static(b"a")));
    pair.says(part(None, b"b", false));
    assert_eq!(pair.events(), [received(link, 0, b"ab", true)]);
    pair.connection.settle(link, DeliveryNumber(0), DeliveryOutcome::Accepted);
    assert_eq!(pair.receive_frames(), []);
}

#[test]
fn a_delivery_within_another_one_detaches_the_link() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.says(part(Some(0), b"half", true));
    pair.says(part(Some(1), b"other", false));
    assert!(matches!(pair.events()[..], [AmqpEvent::Detached { link: over, .. }] if over == link));
    assert_eq!(detached_for(&mut pair).as_deref(), Some(condition::NOT_ALLOWED));
    assert_eq!(pair.connection.hub.partial_bytes, 0);
}

#[test]
fn a_message_without_credit_detaches_the_link() {
    let (mut pair, _) = Pair::attached(Role::Sender, 2);
    for number in 0..3 {
        pair.says(transfer(0, number, b""));
    }
    assert_eq!(detached_for(&mut pair).as_deref(), Some(condition::TRANSFER_LIMIT_EXCEEDED));
    let mut pair = Pair::begun(ConnectionOptions::default());
    pair.says(Performative::Attach(Box::new(attach("unanswered", 0, Role::Sender))));
    pair.says(transfer(0, 0, b""));
    assert_eq!(detached_for(&mut pair).as_deref(), Some(condition::TRANSFER_LIMIT_EXCEEDED));
}

#[test]
fn credit_is_raised_and_never_taken_back() {
    let (mut pair, link) = Pair::attached(Role::Sender, 2);
    pair.connection.grant(link, 1);
    assert_eq!(pair.receive_frames(), []);
    pair.says(transfer(0, 0, b""));
    pair.events();
    pair.connection.grant(link, 5);
    let frames = pair.receive_frames();
    assert!(matches!(
        frames[..],
        [Performative::Flow(Flow { link_credit: Some(5), delivery_count: Some(1), .. })]
    ));
    assert_eq!(pair.connection.credit(link), 5);
}

#[test]
fn a_sender_that_gives_up_credit_by_counting_further_gets_it_again() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.says(Performative::Flow(Flow { delivery_count: Some(4), ..flow(0, 0) }));
    assert_eq!(pair.events(), []);
    assert_eq!(pair.connection.credit(link), 10);
    let frames = pair.receive_frames();
    let [Performative::Flow(flow)] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(4), Some(10)));
}

#[test]
fn a_message_larger_than_the_link_takes_is_not_kept_and_leaves_the_link_as_it_is() {
    let options = ConnectionOptions { message_bytes_max: 6, ..ConnectionOptions::default() };
    let (mut pair, link) = Pair::attached_with(options, Role::Sender, 10);
    pair.says(part(Some(0), b"four", true));
    pair.says(part(None, b"four", true));
    assert_eq!(pair.connection.hub.partial_bytes, 0);
    pair.says(part(None, b"four", false));
    let too_large =
        AmqpEvent::TooLarge { link, delivery: DeliveryNumber(0), settled: false, transaction: None };
    assert_eq!(pair.events(), [too_large]);
    assert_eq!(pair.connection.credit(link), 9);
}

#[test]
fn messages_in_parts_take_no_more_memory_than_they_may() {
    let options = ConnectionOptions {
        partial_bytes_max: 1_000,
        message_bytes_max: 800,
        ..ConnectionOptions::default()
    };
    let mut pair = Pair::begun(options);
    for handle in 0..2 {
        pair.attach(attach(&handle.to_string(), handle, Role::Sender), 5);
        pair.receive_frames();
        let Performative::Transfer(part, _) = part(Some(handle), b"", true) else { unreachable!() };
        pair.says(Performative::Transfer(Transfer { handle, ..part }, vec![0; 600].into()));
    }
    assert_eq!(detached_for(&mut pair).as_deref(), Some(condition::DETACH_FORCED), "clients try again");
    assert_eq!(pair.connection.hub.partial_bytes, 600, "the other message goes on");
}

#[test]
fn many_links_send_large_messages_at_the_same_time() {
    const BYTES: usize = 1024 * 1024;
    let mut pair = Pair::begun(ConnectionOptions::default());
    for handle in 0..16 {
        pair.attach(attach(&handle.to_string(), handle, Role::Sender), 5);
        let session = pair.connection.sessions.get_mut(&0).unwrap();
        let Performative::Transfer(part, _) = part(Some(handle), b"", true) else { unreachable!() };
        let transfer = Transfer { handle, ..part };
        session.transfer(&mut pair.connection.hub, transfer, vec![0; BYTES].into()).unwrap();
    }
    assert_eq!(pair.connection.hub.partial_bytes, 16 * BYTES);
}

#[test]
fn two_links_cannot_give_one_number_to_two_deliveries() {
    let mut pair = Pair::begun(ConnectionOptions::default());
    for (handle, more) in [(0, true), (1, true), (0, false), (1, false)] {
        if more {
            pair.attach(attach(&handle.to_string(), handle, Role::Sender), 5);
        }
        let Performative::Transfer(part, payload) = part(Some(7), b"x", more) else { unreachable!() };
        pair.says(Performative::Transfer(Transfer { handle, ..part }, payload));
    }
    assert_eq!(detached_for(&mut pair).as_deref(), Some(condition::NOT_ALLOWED));
    assert_eq!(pair.connection.hub.unsettled_in, 1);
}

#[test]
fn no_more_is_unsettled_than_may_be() {
    let options = ConnectionOptions { unsettled_max: 2, ..ConnectionOptions::default() };
    let (mut pair, link) = Pair::attached_with(options, Role::Sender, 10);
    for number in 0..3 {
        pair.says(transfer(0, number, b""));
        pair.events();
        if number == 0 {
            pair.connection.settle(link, DeliveryNumber(0), DeliveryOutcome::Accepted);
        }
    }
    assert_eq!(pair.connection.credit(link), 7);
    pair.says(transfer(0, 3, b""));
    assert_eq!(detached_for(&mut pair).as_deref(), Some(condition::RESOURCE_LIMIT_EXCEEDED));
    assert_eq!(pair.connection.hub.unsettled_in, 0, "what a link leaves is forgotten");
}

#[test]
fn the_window_opens_again_before_it_is_used_up() {
    let options = ConnectionOptions { incoming_window: 10, ..ConnectionOptions::default() };
    let (mut pair, _) = Pair::attached_with(options, Role::Sender, 1_000);
    let mut window = 10;
    for number in 0..100 {
        assert!(window > 0);
        pair.says(transfer(0, number, b""));
        window -= 1;
        pair.events();
        for frames in pair.receive_frames() {
            let Performative::Flow(Flow { next_incoming_id, incoming_window, handle: None, .. }) = frames
            else {
                panic!("{frames:?}");
            };
            assert_eq!(next_incoming_id, Some(number + 1));
            window = incoming_window;
        }
    }
}

#[test]
fn more_than_the_window_ends_the_session() {
    let options = ConnectionOptions { incoming_window: 0, ..ConnectionOptions::default() };
    let (mut pair, _) = Pair::attached_with(options, Role::Sender, 1_000);
    // A window of one is always open again at once, so take it away.
    pair.connection.sessions.get_mut(&0).unwrap().incoming_window = 0;
    pair.says(transfer(0, 0, b""));
    pair.events();
    let frames = pair.receive_frames();
    let [Performative::End(ClosingFrame { error: Some(error) })] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!(error.condition, condition::WINDOW_VIOLATION);
}

#[test]
fn a_receiver_that_sends_ends_the_session() {
    let (mut pair, _) = Pair::attached(Role::Receiver, 1);
    pair.says(transfer(0, 0, b""));
    assert!(
        matches!(&pair.events()[..], [AmqpEvent::Detached { .. }, AmqpEvent::Ended { error: Some(error), .. }]
        if error.condition == condition::ERRANT_LINK)
    );
}

#[test]
fn a_sender_that_settles_what_it_sent_is_told_of() {
    let (mut pair, link) = Pair::attached(Role::Sender, 5);
    pair.says(transfer(0, 0, b""));
    pair.events();
    pair.says(disposition(Role::Sender, 0, 9, true, DeliveryOutcome::Released));
    let delivery = DeliveryNumber(0);
    let settled = AmqpEvent::Settled {
        link,
        delivery,
        outcome: Some(DeliveryOutcome::Released),
        settled: true,
        transaction: None,
    };
    assert_eq!(pair.events(), [settled]);
    assert_eq!(pair.connection.hub.unsettled_in, 0);
}

#[test]
fn a_window_counts_from_where_the_peer_begins() {
    let mut pair = Pair::begun(ConnectionOptions { incoming_window: 4, ..ConnectionOptions::default() });
    let begin =
        Begin { next_outgoing_id: u32::MAX, incoming_window: 1, outgoing_window: 1, ..Begin::default() };
    pair.says(Performative::End(ClosingFrame::default()));
    pair.says(Performative::Begin(begin));
    pair.events();
    pair.connection.end(0);
    pair.attach(attach("link", 0, Role::Sender), 10);
    pair.receive_frames();
    pair.says(transfer(0, 0, b""));
    pair.says(transfer(0, 1, b""));
    pair.events();
    let frames = pair.receive_frames();
    assert!(matches!(frames[..], [Performative::Flow(Flow { next_incoming_id: Some(1), .. })]), "{frames:?}");
}

#[test]
fn a_message_that_has_come_in_part_keeps_nothing_else_of_its_frame() {
    let (mut pair, _) = Pair::attached(Role::Sender, 10);
    let frame = Bytes::from(vec![7; 60_000]);
    let transfer = Transfer {
        delivery_id: Some(0),
        delivery_tag: Some(frame.slice(..4)),
        transaction: Some(frame.slice(..8)),
        more: true,
        ..Transfer::default()
    };
    let session = pair.connection.sessions.get_mut(&0).unwrap();
    session.transfer(&mut pair.connection.hub, transfer, frame.slice(..1)).unwrap();
    assert!(frame.is_unique());
}

#[test]
fn the_id_of_a_transaction_may_not_be_long() {
    let (mut pair, _) = Pair::attached(Role::Sender, 10);
    let transfer = Transfer {
        delivery_id: Some(0),
        delivery_tag: Some(Bytes::from_static(b"tag")),
        transaction: Some(vec![7; 1_000].into()),
        ..Transfer::default()
    };
    let session = pair.connection.sessions.get_mut(&0).unwrap();
    let breach = session.transfer(&mut pair.connection.hub, transfer, Bytes::new()).unwrap_err();
    assert!(matches!(breach, Breach::Link(0, error) if error.condition == condition::INVALID_FIELD));
}
