//! How sessions and links begin and end.

use crate::amqp::ConnectionOptions;
use crate::amqp::attach::Attach;
use crate::amqp::attach::Role;
use crate::amqp::closing::ClosingFrame;
use crate::amqp::closing::Detach;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::event::DeliveryNumber;
use crate::amqp::event::LinkAnswer;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::Pair;
use crate::amqp::tests::peer::attach;
use crate::amqp::tests::peer::flow;
use crate::amqp::tests::peer::message;
use crate::amqp::tests::peer::transfer;
use crate::amqp::transfer::Flow;
use crate::amqp::value::Value;

fn says_attach(attach: Attach) -> Performative {
    Performative::Attach(Box::new(attach))
}

fn detach(handle: u32, closed: bool) -> Performative {
    Performative::Detach(Detach { handle, closed, error: None })
}

fn begun() -> Pair {
    Pair::begun(ConnectionOptions::default())
}

/// The condition that ends the session, if that is what is heard.
fn ended_for(pair: &mut Pair) -> Option<String> {
    pair.events();
    pair.receive_frames().into_iter().find_map(|frames| match frames {
        Performative::End(ClosingFrame { error }) => error.map(|error| error.condition.to_string()),
        _ => None,
    })
}

#[test]
fn everything_may_be_said_before_anything_is_answered() {
    let mut pair = Pair::silent(ConnectionOptions::default());
    let mut bytes = [peer::SASL_HEADER, &peer::sasl_init("ANONYMOUS"), peer::HEADER].concat();
    bytes.extend(peer::frame(0, &peer::open()));
    bytes.extend(peer::frame(7, &peer::begin()));
    bytes.extend(peer::frame(7, &says_attach(attach("out", 0, Role::Sender))));
    bytes.extend(peer::frame(7, &says_attach(attach("in", 1, Role::Receiver))));
    bytes.extend(peer::frame(7, &Performative::Flow(flow(1, 5))));
    pair.says_bytes(&bytes);
    assert!(matches!(pair.events()[..], [AmqpEvent::Sasl { .. }]));
    pair.connection.answer_sasl(true);
    let events = pair.events();
    let [AmqpEvent::Opened(_), AmqpEvent::Attached { .. }, AmqpEvent::Attached { link, attach }] =
        &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(link.channel(), 7);
    pair.connection.accept_link(*link, LinkAnswer::to(attach));
    let link = *link;
    assert_eq!(pair.events(), [AmqpEvent::Credit { link, credit: 5, drain: false }], "it was told before");
    assert_eq!(pair.connection.credit(link), 5);
}

#[test]
fn an_answer_echoes_what_was_asked_and_adds_what_was_not() {
    let mut pair = begun();
    let mut asked = attach("link", 3, Role::Receiver);
    let filter = vec![(Value::symbol("com.microsoft:session-filter"), Value::Null)];
    let source = asked.source.as_mut().unwrap();
    source.address = Some("amqps://Host:5672/Queue".into());
    source.filter = filter;
    pair.says(says_attach(asked.clone()));
    let events = pair.events();
    let [AmqpEvent::Attached { link, attach }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(**attach, asked);
    let mut answer = LinkAnswer::to(attach);
    answer.properties = vec![(Value::symbol("com.microsoft:locked-until-utc"), Value::Long(5))];
    answer.source.as_mut().unwrap().filter[0].1 = Value::string("session-1");
    pair.connection.accept_link(*link, answer.clone());
    let frames = pair.receive_frames();
    let [Performative::Attach(frames)] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!((frames.handle, frames.role), (3, Role::Sender));
    assert_eq!((&frames.source, &frames.target), (&answer.source, &answer.target));
    assert_eq!(frames.properties, answer.properties);
    assert_eq!(
        (frames.sender_settles, frames.receiver_settles),
        (asked.sender_settles, asked.receiver_settles)
    );
    assert_eq!(frames.initial_delivery_count, Some(0));
}

#[test]
fn who_sends_is_told_the_largest_message_and_who_receives_that_there_is_none() {
    for (role, largest) in [(Role::Sender, 800), (Role::Receiver, 0)] {
        let mut pair =
            Pair::begun(ConnectionOptions { message_bytes_max: 800, ..ConnectionOptions::default() });
        pair.attach(attach("link", 0, role), 1);
        let frames = pair.receive_frames();
        let Some(Performative::Attach(answer)) = frames.first() else {
            panic!("{frames:?}");
        };
        assert_eq!(answer.max_message_bytes, Some(largest));
    }
}

#[test]
fn a_refused_link_is_attached_without_ends_and_closed() {
    let mut pair = begun();
    pair.says(says_attach(attach("link", 0, Role::Receiver)));
    let Some(AmqpEvent::Attached { link, attach }) = pair.connection.next_event() else {
        panic!("it asks for a link");
    };
    let error = AmqpError::new(condition::NOT_FOUND, "no such queue");
    pair.connection.refuse_link(link, error.clone());
    let frames = pair.receive_frames();
    let [Performative::Attach(answer), Performative::Detach(end)] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!((&answer.source, &answer.target, &answer.name), (&None, &None, &attach.name));
    assert_eq!(*end, Detach { handle: 0, closed: true, error: Some(error) });
    pair.connection.accept_link(link, LinkAnswer::to(&attach));
    assert_eq!(pair.after(detach(0, true)), (vec![], vec![]));
    pair.attach(peer::attach("again", 0, Role::Sender), 1);
}

#[test]
fn a_detach_is_answered_as_it_was_said() {
    for closed in [true, false] {
        let (mut pair, link) = Pair::attached(Role::Sender, 1);
        let (events, frames) = pair.after(detach(0, closed));
        assert_eq!(events, [AmqpEvent::Detached { link, error: None, closed }]);
        assert_eq!(frames, [], "the application answers");
        pair.connection.detach(link, None);
        assert_eq!(pair.receive_frames(), [detach(0, closed)]);
    }
}

#[test]
fn what_was_sent_before_a_detach_can_be_settled_before_it_is_answered() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.says(transfer(0, 7, b"one"));
    pair.says(detach(0, true));
    let events = pair.events();
    let [AmqpEvent::Message { delivery, .. }, AmqpEvent::Detached { .. }] = &events[..] else {
        panic!("{events:?}");
    };
    pair.connection.settle(link, *delivery, DeliveryOutcome::Accepted);
    pair.connection.detach(link, None);
    assert!(matches!(pair.receive_frames()[..], [Performative::Disposition(_), Performative::Detach(_)]));
    assert_eq!((pair.connection.hub.unsettled_in, pair.connection.hub.links), (0, 0));
}

#[test]
fn what_was_said_of_deliveries_before_an_end_can_be_answered_before_it() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 5);
    let delivery = pair.connection.send(link, message("one")).unwrap();
    pair.receive_frames();
    pair.says(peer::disposition(Role::Receiver, 0, 0, false, DeliveryOutcome::Accepted));
    pair.says(Performative::End(ClosingFrame::default()));
    assert!(matches!(
        pair.events()[..],
        [AmqpEvent::Settled { .. }, AmqpEvent::Detached { .. }, AmqpEvent::Ended { .. }]
    ));
    assert_eq!(pair.connection.credit(link), 0, "nothing is sent to who has left");
    pair.connection.settle(link, delivery, DeliveryOutcome::Accepted);
    pair.connection.detach(link, None);
    pair.connection.end(0);
    assert!(matches!(pair.receive_frames()[..], [Performative::Disposition(_), Performative::End(_)]));
    assert_eq!((pair.connection.hub.unsettled_out, pair.connection.hub.links), (0, 0));
}

#[test]
fn a_handle_or_a_channel_that_is_used_again_waits_until_its_end_is_answered() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.says(detach(0, true));
    pair.says(says_attach(attach("next", 0, Role::Sender)));
    assert!(matches!(pair.events()[..], [AmqpEvent::Detached { .. }]));
    assert!(!pair.connection.may_read(), "what follows would wait as well");
    pair.connection.detach(link, None);
    assert!(matches!(pair.events()[..], [AmqpEvent::Attached { .. }]));
    pair.says(Performative::End(ClosingFrame::default()));
    pair.says(peer::begin());
    assert!(matches!(pair.events()[..], [AmqpEvent::Detached { .. }, AmqpEvent::Ended { .. }]));
    pair.receive_frames();
    pair.connection.end(0);
    pair.events();
    assert!(matches!(pair.receive_frames()[..], [Performative::End(_), Performative::Begin(_)]));
}

#[test]
fn a_link_that_was_detached_is_not_there_for_its_peer() {
    let (mut pair, _) = Pair::attached(Role::Sender, 10);
    pair.says(detach(0, true));
    pair.says(detach(0, true));
    assert_eq!(ended_for(&mut pair).as_deref(), Some(condition::UNATTACHED_HANDLE));
}

#[test]
fn what_was_not_written_when_a_peer_left_is_named() {
    let (mut pair, link) = Pair::attached(Role::Receiver, 5);
    pair.says(Performative::Flow(crate::amqp::transfer::Flow { incoming_window: 1, ..flow(0, 5) }));
    pair.events();
    let sent = [1, 2, 3].map(|_| pair.connection.send(link, message("m")).unwrap());
    assert_eq!(pair.connection.unsent(link), sent[1..]);
    pair.says(detach(0, true));
    pair.events();
    assert_eq!(pair.connection.unsent(link), sent[1..]);
    pair.receive_frames();
    pair.says(Performative::Flow(crate::amqp::transfer::Flow { handle: None, ..flow(0, 0) }));
    pair.events();
    assert_eq!(pair.receive_frames(), [], "it goes no further");
}

#[test]
fn what_was_not_written_when_a_link_ended_by_itself_is_named_until_the_end_is_answered() {
    for how in ["stolen", "breach of the session", "breach of the connection", "silence"] {
        let (mut pair, link) = Pair::attached(Role::Receiver, 5);
        pair.says(Performative::Flow(crate::amqp::transfer::Flow { incoming_window: 1, ..flow(0, 5) }));
        pair.events();
        let sent = [1, 2, 3].map(|_| pair.connection.send(link, message("m")).unwrap());
        match how {
            "stolen" => pair.says(says_attach(attach("link", 1, Role::Receiver))),
            "breach of the session" => pair.says(says_attach(attach("other", 0, Role::Receiver))),
            "breach of the connection" => pair.says_bytes(&[0; 8]),
            _ => pair.connection.tick(u64::from(u32::MAX)),
        }
        assert!(!pair.events().is_empty(), "{how}: the application is told");
        assert_eq!(pair.connection.unsent(link), sent[1..], "{how}");
        pair.connection.detach(link, None);
        assert_eq!(pair.connection.unsent(link), [], "{how}: it is known no longer");
    }
}

#[test]
fn a_link_that_was_never_answered_can_be_detached() {
    let mut pair = begun();
    pair.says(says_attach(attach("link", 0, Role::Receiver)));
    pair.says(detach(0, true));
    let events = pair.events();
    let [AmqpEvent::Attached { link, .. }, AmqpEvent::Detached { .. }] = &events[..] else {
        panic!("{events:?}");
    };
    pair.connection.detach(*link, None);
    assert!(matches!(pair.receive_frames()[..], [Performative::Attach(_), Performative::Detach(_)]));
}

#[test]
fn commands_for_a_link_that_is_over_do_not_reach_its_successor() {
    let (mut pair, old) = Pair::attached(Role::Receiver, 5);
    let delivery = pair.connection.send(old, message("one")).unwrap();
    pair.says(detach(0, true));
    pair.events();
    pair.connection.detach(old, None);
    let new = pair.attach(attach("other", 0, Role::Receiver), 0);
    pair.says(Performative::Flow(flow(0, 5)));
    pair.events();
    pair.receive_frames();
    assert_ne!(old, new);
    assert!(pair.connection.send(old, message("two")).is_err());
    pair.connection.settle(old, delivery, DeliveryOutcome::Accepted);
    pair.connection.detach(old, None);
    pair.connection.drained(old);
    assert_eq!(pair.receive_frames(), []);
    assert_eq!(pair.connection.credit(new), 5);
}

#[test]
fn what_a_peer_sends_after_we_detached_is_ignored() {
    let (mut pair, link) = Pair::attached(Role::Sender, 10);
    pair.connection.detach(link, Some(AmqpError::new(condition::DETACH_FORCED, "idle")));
    assert!(matches!(pair.receive_frames()[..], [Performative::Detach(_)]));
    assert_eq!(pair.after(transfer(0, 0, b"late")), (vec![], vec![]));
    assert_eq!(pair.after(Performative::Flow(flow(0, 1))), (vec![], vec![]));
    assert_eq!(pair.after(detach(0, true)), (vec![], vec![]));
    pair.says(transfer(0, 1, b"too late"));
    assert_eq!(ended_for(&mut pair).as_deref(), Some(condition::UNATTACHED_HANDLE));
}

#[test]
fn a_name_attached_again_takes_the_place_of_the_link_before() {
    let (mut pair, old) = Pair::attached(Role::Sender, 1);
    pair.says(says_attach(attach("link", 1, Role::Sender)));
    let events = pair.events();
    let [AmqpEvent::Detached { link, error: Some(error), .. }, AmqpEvent::Attached { .. }] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((*link, error.condition.as_str()), (old, condition::STOLEN));
    pair.says(says_attach(attach("link", 2, Role::Receiver)));
    assert!(matches!(pair.events()[..], [AmqpEvent::Attached { .. }]), "the other direction is another link");
}

#[test]
fn a_handle_in_use_ends_the_session_and_its_links() {
    let (mut pair, link) = Pair::attached(Role::Sender, 1);
    pair.says(says_attach(attach("other", 0, Role::Sender)));
    let events = pair.events();
    let [AmqpEvent::Detached { link: over, .. }, AmqpEvent::Ended { channel: 0, error: Some(_) }] =
        &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(*over, link);
    assert_eq!(ended_for(&mut pair).as_deref(), Some(condition::HANDLE_IN_USE));
    assert_eq!(pair.after(transfer(0, 0, b"late")), (vec![], vec![]));
    assert_eq!(pair.after(Performative::End(ClosingFrame::default())), (vec![], vec![]));
    assert!(matches!(pair.after(peer::begin()).1[..], [Performative::Begin(_)]), "the channel is free again");
}

#[test]
fn a_peer_that_ends_a_session_ends_its_links() {
    let (mut pair, link) = Pair::attached(Role::Sender, 1);
    let (events, frames) = pair.after(Performative::End(ClosingFrame::default()));
    let detached = AmqpEvent::Detached { link, error: None, closed: true };
    assert_eq!(events, [detached, AmqpEvent::Ended { channel: 0, error: None }]);
    assert_eq!(frames, [], "the application answers");
    pair.connection.end(0);
    assert_eq!(pair.receive_frames(), [Performative::End(ClosingFrame::default())]);
    pair.connection.grant(link, 5);
    assert_eq!(pair.receive_frames(), []);
}

#[test]
fn a_handle_or_a_channel_above_the_highest_closes_the_connection() {
    let mut pair = begun();
    pair.says(says_attach(attach("link", 16_384, Role::Sender)));
    assert_eq!(pair.closed_for().as_deref(), Some(condition::FRAMING_ERROR));
    let mut pair = begun();
    pair.says_bytes(&peer::frame(5_000, &peer::begin()));
    assert_eq!(pair.closed_for().as_deref(), Some(condition::FRAMING_ERROR));
}

#[test]
fn a_channel_without_a_session_closes_the_connection() {
    let mut pair = begun();
    pair.says_bytes(&peer::frame(1, &transfer(0, 0, b"")));
    assert_eq!(pair.closed_for().as_deref(), Some(condition::NOT_ALLOWED));
    let mut pair = begun();
    pair.says(peer::begin());
    assert_eq!(pair.closed_for().as_deref(), Some(condition::NOT_ALLOWED));
}

#[test]
fn a_connection_has_no_more_links_than_it_may() {
    let mut pair = Pair::begun(ConnectionOptions { links_max: 2, ..ConnectionOptions::default() });
    for handle in 0..2 {
        let link = pair.attach(attach(&handle.to_string(), handle, Role::Sender), 1);
        pair.connection.detach(link, None);
    }
    pair.receive_frames();
    pair.says(says_attach(attach("more", 2, Role::Sender)));
    assert_eq!(ended_for(&mut pair).as_deref(), Some(condition::RESOURCE_LIMIT_EXCEEDED));
    pair.says(Performative::End(ClosingFrame::default()));
    pair.says(peer::begin());
    pair.events();
    pair.attach(attach("more", 0, Role::Sender), 1);
}

#[test]
fn an_answer_larger_than_the_peers_frames_refuses_the_link() {
    let mut pair = Pair::silent(ConnectionOptions::default());
    pair.says_bytes(peer::HEADER);
    let open =
        crate::amqp::Open { container_id: "p".into(), max_frame_size: Some(512), ..Default::default() };
    pair.says(Performative::Open(Box::new(open)));
    pair.says(peer::begin());
    pair.says(says_attach(attach("link", 0, Role::Receiver)));
    let Some(AmqpEvent::Attached { link, attach }) = pair.events().pop() else {
        panic!("it asks for a link");
    };
    let mut answer = LinkAnswer::to(&attach);
    answer.properties = vec![(Value::symbol("x"), Value::String("y".repeat(600).into()))];
    pair.connection.accept_link(link, answer);
    let events = pair.events();
    assert!(matches!(&events[..], [AmqpEvent::Detached { error: Some(error), .. }]
        if error.condition == condition::FRAME_SIZE_TOO_SMALL));
}

#[test]
fn a_link_is_asked_for_with_no_more_than_so_many_values() {
    let asked = |entries: usize| {
        let entry = (Value::from("a"), Value::Null);
        says_attach(Attach { properties: vec![entry; entries], ..attach("link", 0, Role::Sender) })
    };
    let mut pair = begun();
    pair.says(asked(500));
    assert!(matches!(pair.events()[..], [AmqpEvent::Attached { .. }]));
    let mut pair = begun();
    pair.says(asked(600));
    assert_eq!(pair.closed_for().as_deref(), Some(condition::DECODE_ERROR));
}

#[test]
fn what_was_not_written_when_a_session_ends_is_named_for_each_link() {
    let mut pair = begun();
    let links =
        [0, 1].map(|handle| pair.attach(attach(&format!("link-{handle}"), handle, Role::Receiver), 0));
    for handle in [0, 1] {
        pair.says(Performative::Flow(Flow { incoming_window: 1, ..flow(handle, 5) }));
    }
    pair.events();
    for link in [links[0], links[0], links[1], links[1]] {
        pair.connection.send(link, message("x")).unwrap();
    }
    pair.says(Performative::End(ClosingFrame::default()));
    pair.events();
    assert_eq!(pair.connection.unsent(links[0]), [DeliveryNumber(1)]);
    assert_eq!(pair.connection.unsent(links[1]), [DeliveryNumber(2), DeliveryNumber(3)]);
    assert_eq!((pair.connection.hub.queued_bytes, pair.connection.hub.unsettled_out), (0, 0));
}
