//! Messages that a peer receives.

use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::ConnectionOptions;
use crate::amqp::attach::Attach;
use crate::amqp::attach::Role;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkId;
use crate::amqp::event::OutgoingMessage;
use crate::amqp::event::Unsent;
use crate::amqp::opening::Begin;
use crate::amqp::opening::Open;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::Pair;
use crate::amqp::tests::peer::attach;
use crate::amqp::tests::peer::disposition;
use crate::amqp::tests::peer::flow;
use crate::amqp::tests::peer::message;
use crate::amqp::transfer::Disposition;
use crate::amqp::transfer::Flow;
use crate::amqp::transfer::Transfer;

/// A link to a receiver with much credit, in a session and with frames of these limits.
fn narrow(frame_bytes: u32, window: u32) -> (Pair, LinkId) {
    let mut pair = Pair::silent(ConnectionOptions { buffered_bytes_max: 9_000, ..Default::default() });
    pair.says_bytes(peer::HEADER);
    let open = Open { container_id: "p".into(), max_frame_size: Some(frame_bytes), ..Open::default() };
    pair.says(Performative::Open(Box::new(open)));
    let begin = Begin { incoming_window: window, outgoing_window: 1, ..Begin::default() };
    pair.says(Performative::Begin(begin));
    pair.events();
    let link = pair.attach(attach("link", 0, Role::Receiver), 0);
    pair.says(Performative::Flow(Flow { incoming_window: window, ..flow(0, 100) }));
    pair.events();
    pair.connection.output().clear();
    (pair, link)
}

/// The parts of deliveries that are heard, and nothing else.
fn parts(frames: Vec<Performative>) -> Vec<(Transfer, Bytes)> {
    let part = |frames| match frames {
        Performative::Transfer(transfer, payload) => (transfer, payload),
        other => panic!("{other:?}"),
    };
    frames.into_iter().map(part).collect()
}

fn settled(link: LinkId, delivery: DeliveryNumber, outcome: DeliveryOutcome, settled: bool) -> AmqpEvent {
    AmqpEvent::Settled { link, delivery, outcome: Some(outcome), settled, transaction: None }
}

#[test]
fn a_message_goes_out_with_its_own_tag_and_uses_credit() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 2);
    let tag = Bytes::from(vec![9; 16]);
    let outgoing =
        OutgoingMessage { tag: tag.clone(), payload: Bytes::from_static(b"hello"), format: 3, settled: true };
    pair.connection.send(link, outgoing.clone()).unwrap();
    let frames = parts(pair.receive_frames());
    let [(transfer, payload)] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!(transfer.delivery_tag, Some(tag));
    assert_eq!((transfer.message_format, transfer.settled, transfer.more), (Some(3), Some(true), false));
    assert_eq!(&payload[..], b"hello");
    assert_eq!(pair.connection.credit(link), 1);
    pair.connection.send(link, outgoing.clone()).unwrap();
    assert_eq!(pair.connection.send(link, outgoing), Err(Unsent::NoCredit));
}

#[test]
fn a_large_message_goes_out_in_frames_the_peer_takes() {
    for len in 0..1_300 {
        let (mut pair, link) = narrow(512, 1_000);
        let payload: Bytes = (0..len).map(|n| n as u8).collect();
        let number = pair.connection.send(link, message(payload.clone())).unwrap();
        let sizes: Vec<usize> = frame_sizes(pair.connection.output());
        assert!(sizes.iter().all(|size| *size <= 512), "{sizes:?}");
        let parts = parts(pair.receive_frames());
        assert_eq!(parts[0].0.delivery_id, Some(number.0));
        let more: Vec<bool> = parts.iter().map(|(transfer, _)| transfer.more).collect();
        assert_eq!(more.iter().filter(|more| !**more).count(), 1);
        assert_eq!(more.last(), Some(&false));
        let together: Vec<u8> = parts.iter().flat_map(|(_, payload)| payload.to_vec()).collect();
        assert_eq!(together, payload);
    }
}

fn frame_sizes(output: &BytesMut) -> Vec<usize> {
    let mut rest = &output[..];
    let mut sizes = Vec::new();
    while let Some(size) = rest.first_chunk() {
        let size = u32::from_be_bytes(*size) as usize;
        sizes.push(size);
        rest = &rest[size..];
    }
    sizes
}

#[test]
fn what_the_window_does_not_let_pass_waits_for_it() {
    let (mut pair, link) = narrow(512, 3);
    for _ in 0..5 {
        pair.connection.send(link, message(vec![1; 700])).unwrap();
    }
    let mut frames = parts(pair.receive_frames());
    assert_eq!(frames.len(), 3);
    for more in [2, 4, 9] {
        let next_incoming_id = Some(frames.len() as u32);
        let flow = Flow { next_incoming_id, incoming_window: more, handle: None, ..flow(0, 0) };
        pair.says(Performative::Flow(flow));
        assert_eq!(pair.events(), []);
        frames.extend(parts(pair.receive_frames()));
    }
    assert_eq!(frames.len(), 10);
    let bytes: usize = frames.iter().map(|(_, payload)| payload.len()).sum();
    assert_eq!(bytes, 5 * 700);
    assert_eq!(pair.connection.hub.queued_bytes, 0);
}

#[test]
fn a_window_counts_what_is_under_way() {
    let (mut pair, link) = narrow(512, 3);
    for _ in 0..2 {
        pair.connection.send(link, message("x")).unwrap();
    }
    // The peer said this before it saw the two.
    pair.says(Performative::Flow(Flow { incoming_window: 3, handle: None, ..flow(0, 0) }));
    pair.events();
    for _ in 0..3 {
        pair.connection.send(link, message("x")).unwrap();
    }
    assert_eq!(parts(pair.receive_frames()).len(), 3);
}

#[test]
fn credit_counts_what_is_under_way() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 10);
    for _ in 0..4 {
        pair.connection.send(link, message("x")).unwrap();
    }
    pair.says(Performative::Flow(Flow { delivery_count: Some(1), ..flow(0, 10) }));
    assert_eq!(pair.events(), [AmqpEvent::Credit { link, credit: 7, drain: false }]);
    pair.says(Performative::Flow(Flow { delivery_count: Some(1), ..flow(0, 2) }));
    assert_eq!(pair.events(), [AmqpEvent::Credit { link, credit: 0, drain: false }]);
}

#[test]
fn a_peer_that_never_takes_anything_costs_no_more_than_it_may() {
    let (mut pair, link) = narrow(512, 0);
    let sent = std::iter::from_fn(|| pair.connection.send(link, message(vec![1; 1_000])).ok()).count();
    assert!((5..10).contains(&sent), "{sent}");
    assert!(!pair.connection.has_room());
    assert!(pair.connection.may_read(), "only the peer can open its window");
    assert_eq!(pair.connection.send(link, message("x")), Err(Unsent::NoRoom));
    pair.says(Performative::Flow(Flow { incoming_window: 1_000, handle: None, ..flow(0, 0) }));
    assert_eq!(pair.events(), []);
    assert!(!pair.connection.has_room(), "it is not written yet");
    pair.receive_frames();
    assert!(pair.connection.has_room());
}

#[test]
fn who_takes_messages_slowly_is_heard_meanwhile() {
    let (mut pair, link) = narrow(512, 1_000);
    let send = |pair: &mut Pair| pair.connection.send(link, message(vec![1; 1_000])).ok();
    let sent: Vec<DeliveryNumber> = std::iter::from_fn(|| send(&mut pair)).collect();
    assert!(!pair.connection.has_room() && pair.connection.may_read());
    pair.says(disposition(Role::Receiver, 0, 0, true, DeliveryOutcome::Accepted));
    assert_eq!(pair.events(), [settled(link, sent[0], DeliveryOutcome::Accepted, true)]);
}

#[test]
fn a_connection_that_has_nothing_to_write_keeps_no_room_for_it() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 10);
    pair.connection.send(link, message(vec![1; 200_000])).unwrap();
    pair.connection.tick(0);
    assert!(pair.connection.output().len() > 200_000, "it is not written yet");
    pair.connection.output().clear();
    assert!(pair.connection.output().capacity() > 200_000);
    pair.connection.tick(0);
    assert_eq!(pair.connection.output().capacity(), 0);
}

#[test]
fn nothing_is_read_while_answers_are_not_written() {
    let (mut pair, _) = narrow(512, 10);
    let echo = peer::frame(0, &Performative::Flow(Flow { echo: true, ..flow(0, 10) }));
    for _ in 0..10 {
        pair.says_bytes(&echo.repeat(20));
        pair.events();
    }
    let waiting = pair.connection.output().len();
    pair.says_bytes(&echo.repeat(100));
    pair.events();
    pair.says_bytes(&echo.repeat(100));
    pair.events();
    let full = pair.connection.output().len();
    assert!(waiting < full && full < 9_100, "{waiting} {full}");
    assert!(!pair.connection.may_read());
    pair.receive_frames();
    pair.events();
    assert!(!pair.receive_frames().is_empty(), "the rest is read now");
}

#[test]
fn a_receiver_that_waits_for_the_settlement_gets_it() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 10);
    let numbers: Vec<_> = (0..4).map(|_| pair.connection.send(link, message("x")).unwrap()).collect();
    pair.receive_frames();
    pair.says(disposition(Role::Receiver, 0, 2, false, DeliveryOutcome::Accepted));
    let described: Vec<_> =
        numbers[..3].iter().map(|n| settled(link, *n, DeliveryOutcome::Accepted, false)).collect();
    assert_eq!(pair.events(), described);
    pair.says(disposition(Role::Receiver, 0, 2, false, DeliveryOutcome::Accepted));
    assert_eq!(pair.events(), [], "it is told once");
    let lost = DeliveryOutcome::Rejected(Some(AmqpError::new("com.microsoft:message-lock-lost", "late")));
    pair.connection.settle(link, numbers[0], DeliveryOutcome::Accepted);
    pair.connection.settle(link, numbers[1], lost.clone());
    pair.connection.settle(link, numbers[2], DeliveryOutcome::Rejected(None));
    let single = |n: u32, state| {
        let (role, state) = (Role::Sender, Some(state));
        Performative::Disposition(Disposition {
            role,
            first: n,
            last: None,
            settled: true,
            state,
            transaction: None,
        })
    };
    let expected =
        [single(0, DeliveryOutcome::Accepted), single(1, lost), single(2, DeliveryOutcome::Rejected(None))];
    assert_eq!(pair.receive_frames(), expected);
    assert_eq!(pair.connection.hub.unsettled_out, 1);
}

#[test]
fn a_receiver_that_settles_itself_is_not_answered() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 10);
    let number = pair.connection.send(link, message("x")).unwrap();
    pair.receive_frames();
    pair.says(disposition(Role::Receiver, number.0, number.0, true, DeliveryOutcome::Released));
    assert_eq!(pair.events(), [settled(link, number, DeliveryOutcome::Released, true)]);
    pair.connection.settle(link, number, DeliveryOutcome::Released);
    assert_eq!(pair.receive_frames(), []);
    assert_eq!(pair.connection.hub.unsettled_out, 0);
}

#[test]
fn a_range_over_all_numbers_costs_only_what_is_unsettled() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 10);
    pair.connection.sessions.get_mut(&0).unwrap().next_delivery = u32::MAX;
    let numbers: Vec<_> = (0..3).map(|_| pair.connection.send(link, message("x")).unwrap()).collect();
    assert_eq!(numbers.iter().map(|n| n.0).collect::<Vec<_>>(), [u32::MAX, 0, 1]);
    let (first, last) = (u32::MAX - 1_000_000_000, 1_000_000_000);
    pair.says(disposition(Role::Receiver, first, last, true, DeliveryOutcome::Accepted));
    let described: Vec<_> =
        numbers.iter().map(|n| settled(link, *n, DeliveryOutcome::Accepted, true)).collect();
    assert_eq!(pair.events(), described);
    pair.says(disposition(Role::Receiver, 5, 4, true, DeliveryOutcome::Accepted));
    assert!(
        matches!(&pair.events()[..], [AmqpEvent::Detached { .. }, AmqpEvent::Ended { error: Some(error), .. }]
        if error.condition == condition::INVALID_FIELD)
    );
}

#[test]
fn a_long_outcome_is_not_copied_for_any_number_of_deliveries() {
    for (deliveries, is_allowed) in [(256, true), (257, false)] {
        let (mut pair, link) = Pair::attached(Role::Receiver, deliveries);
        for _ in 0..deliveries {
            pair.connection.send(link, message("x")).unwrap();
        }
        let rejected =
            DeliveryOutcome::Rejected(Some(AmqpError::new("com.microsoft:dead-letter", "it is long")));
        pair.says(disposition(Role::Receiver, 0, 1_000, false, rejected));
        let events = pair.events();
        assert_eq!(matches!(events[..], [AmqpEvent::Detached { .. }, AmqpEvent::Ended { .. }]), !is_allowed);
        assert_eq!(events.len() == deliveries as usize, is_allowed);
    }
}

#[test]
fn who_gives_credit_before_hearing_that_it_was_drained_is_asked_again() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 2);
    pair.says(Performative::Flow(Flow { drain: true, ..flow(0, 2) }));
    pair.events();
    pair.connection.drained(link);
    assert_eq!(pair.receive_frames().len(), 1);
    pair.says(Performative::Flow(flow(0, 2)));
    pair.events();
    let frames = pair.receive_frames();
    let [Performative::Flow(asked)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((asked.delivery_count, asked.link_credit, asked.echo), (Some(2), Some(0), true));
    assert_eq!(pair.connection.credit(link), 0, "it may not have meant more");
    pair.says(Performative::Flow(Flow { delivery_count: Some(2), ..flow(0, 2) }));
    pair.events();
    assert_eq!(pair.receive_frames(), [], "it has heard");
    assert_eq!(pair.connection.credit(link), 2);
}

#[test]
fn a_drain_is_answered_when_there_is_nothing_more() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 10);
    pair.connection.drained(link);
    assert_eq!(pair.receive_frames(), [], "nobody drains");
    pair.says(Performative::Flow(Flow { drain: true, ..flow(0, 10) }));
    assert_eq!(pair.events(), [AmqpEvent::Credit { link, credit: 10, drain: true }]);
    pair.connection.send(link, message("last")).unwrap();
    pair.connection.drained(link);
    let frames = pair.receive_frames();
    let [Performative::Transfer(..), Performative::Flow(answer)] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!((answer.delivery_count, answer.link_credit, answer.drain), (Some(10), Some(0), true));
    assert_eq!(pair.connection.credit(link), 0);
    pair.says(Performative::Flow(Flow { delivery_count: Some(10), ..flow(0, 3) }));
    assert_eq!(pair.events(), [AmqpEvent::Credit { link, credit: 3, drain: false }]);
}

#[test]
fn however_often_a_closed_window_is_drained_one_answer_waits_for_it() {
    let (mut pair, link) = narrow(512, 0);
    for sent in 1..=2 {
        pair.connection.send(link, message("x")).unwrap();
        for _ in 0..100 {
            pair.says(Performative::Flow(Flow { incoming_window: 0, drain: true, ..flow(0, 10) }));
            pair.events();
            pair.connection.drained(link);
        }
        assert_eq!(pair.connection.sessions[&0].queue.len(), 2 * sent, "a message and an answer");
        pair.says(Performative::Flow(Flow {
            incoming_window: 0,
            delivery_count: Some(5_000),
            ..flow(0, 10)
        }));
        pair.events();
    }
    pair.says(Performative::Flow(Flow { incoming_window: 9, handle: None, ..flow(0, 0) }));
    pair.events();
    assert_eq!(pair.receive_frames().len(), 4);
    pair.says(Performative::Flow(Flow { incoming_window: 9, drain: true, ..flow(0, 10) }));
    pair.events();
    pair.connection.drained(link);
    assert!(matches!(pair.receive_frames()[..], [Performative::Flow(_)]), "nothing waits any more");
}

#[test]
fn the_answer_to_a_drain_does_not_overtake_deliveries() {
    let (mut pair, link) = narrow(512, 0);
    pair.connection.send(link, message("x")).unwrap();
    pair.says(Performative::Flow(Flow { incoming_window: 0, drain: true, ..flow(0, 10) }));
    pair.events();
    pair.connection.drained(link);
    assert_eq!(pair.receive_frames(), []);
    pair.says(Performative::Flow(Flow { incoming_window: 9, handle: None, ..flow(0, 0) }));
    pair.events();
    assert!(matches!(pair.receive_frames()[..], [Performative::Transfer(..), Performative::Flow(_)]));
}

#[test]
fn an_echo_is_answered_for_what_it_asks_about() {
    let (mut pair, _) = Pair::attached(Role::Receiver, 10);
    let (_, frames) = pair.after(Performative::Flow(Flow { echo: true, ..flow(0, 10) }));
    let asked = |frames: &[Performative]| match frames {
        [Performative::Flow(flow)] => (flow.handle, flow.link_credit, flow.echo),
        other => panic!("{other:?}"),
    };
    assert_eq!(asked(&frames), (Some(0), Some(10), false));
    let (_, frames) = pair.after(Performative::Flow(Flow { echo: true, handle: None, ..flow(0, 0) }));
    assert_eq!(asked(&frames), (None, None, false));
}

#[test]
fn a_delivery_settled_while_it_waits_goes_out_settled() {
    let (mut pair, link) = narrow(512, 0);
    let number = pair.connection.send(link, message("x")).unwrap();
    pair.connection.settle(link, number, DeliveryOutcome::Accepted);
    assert_eq!(pair.receive_frames(), []);
    pair.says(Performative::Flow(Flow { incoming_window: 9, handle: None, ..flow(0, 0) }));
    pair.events();
    let frames = parts(pair.receive_frames());
    assert_eq!(frames[0].0.settled, Some(true));
}

#[test]
fn what_waits_for_a_link_goes_with_it() {
    let (mut pair, link) = narrow(512, 0);
    let other = pair.attach(attach("other", 1, Role::Receiver), 0);
    pair.says(Performative::Flow(Flow { incoming_window: 0, ..flow(1, 10) }));
    pair.events();
    pair.connection.send(link, message("one")).unwrap();
    pair.connection.send(other, message("two")).unwrap();
    pair.connection.detach(link, None);
    pair.connection.output().clear();
    pair.says(Performative::Flow(Flow { incoming_window: 9, handle: None, ..flow(0, 0) }));
    pair.events();
    let frames = parts(pair.receive_frames());
    assert_eq!(frames.iter().map(|(transfer, _)| transfer.handle).collect::<Vec<_>>(), [1]);
    assert_eq!((pair.connection.hub.queued_bytes, pair.connection.hub.unsettled_out), (0, 1));
}

#[test]
fn what_the_peer_does_not_take_is_not_sent() {
    let mut pair = Pair::begun(ConnectionOptions { unsettled_max: 1, ..Default::default() });
    let small = Attach { max_message_bytes: Some(4), ..attach("link", 0, Role::Receiver) };
    let link = pair.attach(small, 0);
    pair.says(Performative::Flow(flow(0, 10)));
    pair.events();
    assert_eq!(pair.connection.send(link, message("12345")), Err(Unsent::TooLarge));
    let long_tag = OutgoingMessage { tag: Bytes::from_static(&[0; 65]), ..message("") };
    assert_eq!(pair.connection.send(link, long_tag), Err(Unsent::TooLarge));
    pair.connection.send(link, message("1234")).unwrap();
    assert_eq!(
        pair.connection.send(link, message("1")),
        Err(Unsent::TooManyUnsettled),
        "one may be unsettled"
    );
    pair.connection.send(link, OutgoingMessage { settled: true, ..message("1") }).unwrap();
    let sender = pair.attach(attach("other", 1, Role::Sender), 5);
    assert_eq!(pair.connection.send(sender, message("")), Err(Unsent::NoLink));
}
