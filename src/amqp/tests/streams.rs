//! Whole conversations, however their bytes are split or damaged.

use bytes::Bytes;
use proptest::prelude::*;

use crate::amqp::ConnectionOptions;
use crate::amqp::attach::Role;
use crate::amqp::closing::ClosingFrame;
use crate::amqp::closing::Detach;
use crate::amqp::connection::Connection;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::LinkAnswer;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::session::Session;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::attach;
use crate::amqp::tests::peer::disposition;
use crate::amqp::tests::peer::flow;
use crate::amqp::tests::peer::message;
use crate::amqp::tests::peer::transfer;
use crate::amqp::transfer::Flow;
use crate::amqp::transfer::Transfer;

/// Little of everything, so that bounds are met.
pub(crate) fn options() -> ConnectionOptions {
    ConnectionOptions {
        frame_bytes_max: 512,
        buffered_bytes_max: 4_000,
        partial_bytes_max: 4_000,
        message_bytes_max: 2_000,
        incoming_window: 8,
        unsettled_max: 20,
        links_max: 6,
        channels_max: 4,
        handles_max: 4,
        ..ConnectionOptions::default()
    }
}

/// Answers every event in the way that leads furthest, and never waits. Says how many there were.
fn answer(connection: &mut Connection, event: &AmqpEvent) {
    match event {
        AmqpEvent::Sasl { .. } => connection.answer_sasl(true),
        AmqpEvent::Attached { link, attach } => {
            connection.accept_link(*link, LinkAnswer::to(attach).credit(5))
        }
        AmqpEvent::Message { link, delivery, payload, .. } => {
            assert!(payload.len() <= 2_000);
            connection.settle(*link, *delivery, DeliveryOutcome::Accepted);
            connection.grant(*link, 5);
        }
        AmqpEvent::TooLarge { link, delivery, .. } => {
            connection.settle(*link, *delivery, DeliveryOutcome::Rejected(None));
        }
        AmqpEvent::Credit { link, drain, .. } => {
            for len in [3, 700, 3] {
                let _ = connection.send(*link, message(vec![5; len]));
            }
            if *drain {
                connection.drained(*link);
            }
        }
        AmqpEvent::Settled { link, delivery, settled, .. } => {
            if !settled {
                connection.settle(*link, *delivery, DeliveryOutcome::Accepted);
            }
            let _ = connection.send(*link, message("next"));
        }
        AmqpEvent::Detached { link, .. } => connection.detach(*link, None),
        AmqpEvent::Ended { channel, .. } => connection.end(*channel),
        AmqpEvent::Closed { .. } => connection.close(None),
        AmqpEvent::Opened(_) | AmqpEvent::MissingPart { .. } => {}
    }
}

/// What happens when the bytes come in these pieces.
fn played<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<AmqpEvent> {
    played_with(options(), pieces)
}

fn played_with<'a>(options: ConnectionOptions, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<AmqpEvent> {
    let mut connection = Connection::new(options, 0);
    let mut events = Vec::new();
    for piece in pieces {
        connection.receive(piece, 0);
        loop {
            let before = events.len();
            while let Some(event) = connection.next_event() {
                answer(&mut connection, &event);
                events.push(event);
            }
            assert_bounds(&mut connection);
            let was_silent = connection.output().is_empty();
            connection.output().clear();
            if was_silent && before == events.len() {
                break;
            }
        }
    }
    connection.receive_end();
    loop {
        while let Some(event) = connection.next_event() {
            answer(&mut connection, &event);
            events.push(event);
        }
        if connection.output().is_empty() {
            break;
        }
        connection.output().clear();
    }
    let closed = events.iter().filter(|event| matches!(event, AmqpEvent::Closed { .. })).count();
    assert_eq!(closed, 1, "{events:?}");
    assert!(matches!(events.last(), Some(AmqpEvent::Closed { .. })), "{events:?}");
    assert!(connection.is_finished());
    events
}

pub(crate) fn assert_bounds(connection: &mut Connection) {
    let hub = &connection.hub;
    let links: usize = connection.sessions.values().map(|session| session.links.len()).sum();
    let of_sessions = |count: fn(&Session) -> usize| connection.sessions.values().map(count).sum::<usize>();
    let unsettled_in = of_sessions(|session| session.incoming.len());
    let unsettled_out = of_sessions(|session| session.outgoing.len() + session.described.len());
    if !connection.sessions.is_empty() {
        let counted = (hub.links, hub.unsettled_in, hub.unsettled_out);
        assert_eq!(counted, (links, unsettled_in, unsettled_out));
        let queued = connection.sessions.values().flat_map(|session| &session.queue);
        assert_eq!(hub.queued_bytes, queued.map(|queued| queued.cost()).sum::<usize>());
        let of_links = connection.sessions.values().flat_map(|session| session.links.values());
        assert_eq!(unsettled_in + unsettled_out, of_links.map(|link| link.unsettled).sum::<usize>());
    }
    assert!(
        links <= 6
            && unsettled_in.max(unsettled_out) <= 20
            && hub.partial_bytes <= 4_000
            && hub.queued_bytes <= 5_000
    );
    assert!(connection.output().len() <= 20_000, "{}", connection.output().len());
}

/// One thing that a peer may say, sensible or not.
pub(crate) fn performative() -> impl Strategy<Value = Performative> {
    let handle = || 0..4_u32;
    let number = || prop_oneof![0..30_u32, Just(u32::MAX), Just(1 << 31)];
    let role = || prop_oneof![Just(Role::Sender), Just(Role::Receiver)];
    let outcome = || {
        prop_oneof![
            Just(DeliveryOutcome::Accepted),
            Just(DeliveryOutcome::Released),
            Just(DeliveryOutcome::Rejected(None)),
            any::<bool>().prop_map(|delivery_failed| DeliveryOutcome::Modified {
                delivery_failed,
                undeliverable_here: true,
                annotations: Vec::new(),
            }),
        ]
    };
    let attaches = (handle(), 0..3_u8, role()).prop_map(|(handle, name, role)| {
        Performative::Attach(Box::new(attach(&name.to_string(), handle, role)))
    });
    let flows = (prop::option::of(handle()), number(), number(), 0..20_u32, any::<[bool; 2]>()).prop_map(
        |(handle, count, frames, credit, [drain, echo])| {
            let (next_incoming_id, delivery_count) = (Some(frames), Some(count));
            Performative::Flow(Flow {
                handle,
                next_incoming_id,
                delivery_count,
                drain,
                echo,
                ..flow(0, credit)
            })
        },
    );
    let transfers = (handle(), prop::option::of(number()), 0..450_usize, any::<[bool; 3]>()).prop_map(
        |(handle, delivery_id, len, [more, settled, aborted])| {
            let transfer = Transfer {
                handle,
                delivery_id,
                delivery_tag: delivery_id.map(|_| Bytes::from_static(b"t")),
                settled: Some(settled),
                more,
                aborted: aborted && more,
                ..Transfer::default()
            };
            Performative::Transfer(transfer, vec![1; len].into())
        },
    );
    let dispositions = (role(), number(), number(), any::<bool>(), outcome())
        .prop_map(|(role, first, last, settled, state)| disposition(role, first, last, settled, state));
    let detaches = (handle(), any::<bool>())
        .prop_map(|(handle, closed)| Performative::Detach(Detach { handle, closed, error: None }));
    prop_oneof![
        4 => attaches,
        6 => flows,
        10 => transfers,
        8 => dispositions,
        2 => detaches,
        1 => Just(peer::begin()),
        1 => Just(Performative::End(ClosingFrame::default())),
    ]
}

/// The bytes of a conversation that begins well.
fn conversation() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((0..2_u16, performative()), 0..60).prop_map(|sent| {
        let mut bytes = well_begun();
        for (channel, performative) in sent {
            bytes.extend(peer::frame(channel, &performative));
        }
        bytes.extend(peer::frame(0, &Performative::Close(ClosingFrame::default())));
        bytes
    })
}

pub(crate) fn well_begun() -> Vec<u8> {
    let mut bytes = [peer::SASL_HEADER, &peer::sasl_init("ANONYMOUS"), peer::HEADER].concat();
    bytes.extend(peer::frame(0, &peer::open()));
    for channel in 0..2 {
        bytes.extend(peer::frame(channel, &peer::begin()));
        for (handle, role) in [(0, Role::Sender), (1, Role::Receiver)] {
            let attach = attach(&format!("link {handle}"), handle, role);
            bytes.extend(peer::frame(channel, &Performative::Attach(Box::new(attach))));
        }
        bytes.extend(peer::frame(channel, &Performative::Flow(flow(1, 10))));
        for number in 0..3 {
            bytes.extend(peer::frame(channel, &transfer(0, number, b"payload")));
        }
        let accepted = disposition(Role::Receiver, 0, 2, false, DeliveryOutcome::Accepted);
        bytes.extend(peer::frame(channel, &accepted));
    }
    bytes
}

/// The bytes cut at these places.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len())).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

proptest! {
    #[test]
    fn bytes_mean_the_same_however_they_are_split(
        bytes in conversation(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
    ) {
        // What is sent depends on the room there is, and that on how often the output is written: let there be enough.
        let roomy = || ConnectionOptions { buffered_bytes_max: 1 << 20, ..options() };
        prop_assert_eq!(played_with(roomy(), cut(&bytes, &places)), played_with(roomy(), bytes.chunks(1)));
    }

    #[test]
    fn damaged_bytes_close_the_connection_or_mean_something_else(
        bytes in conversation(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let mut bytes = bytes;
        for (place, byte) in damages {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        played(cut(&bytes, &places));
    }

    #[test]
    fn garbage_closes_the_connection(garbage in prop::collection::vec(any::<u8>(), 0..2_000)) {
        played([&garbage[..]]);
        let mut bytes = well_begun();
        bytes.extend(garbage);
        played(bytes.chunks(500));
    }
}

#[test]
fn a_conversation_that_begins_well_goes_on() {
    let events = played([&well_begun()[..]]);
    let count = |is: fn(&AmqpEvent) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, AmqpEvent::Message { .. })), 6);
    assert_eq!(count(|event| matches!(event, AmqpEvent::Settled { settled: false, .. })), 6);
    assert_eq!(count(|event| matches!(event, AmqpEvent::Detached { .. } | AmqpEvent::Ended { .. })), 0);
}
