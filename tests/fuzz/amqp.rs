//! AMQP of any bytes: values are read and written again the same, connections answer and stay within their bounds.

use bytes::Bytes;
use bytes::BytesMut;
use seriatim::amqp::AmqpEvent;
use seriatim::amqp::Connection;
use seriatim::amqp::ConnectionOptions;
use seriatim::amqp::DeliveryOutcome;
use seriatim::amqp::LinkAnswer;
use seriatim::amqp::OutgoingMessage;
use seriatim::amqp::Value;
use seriatim::amqp::message::Sections;

const BUFFERED_BYTES_MAX: usize = 8_192;

/// A client opens without SASL, begins a session, and attaches a sender and a receiver with credit.
const BEGINNING: &[u8] = b"AMQP\x00\x01\x00\x00\
    \0\0\0\x11\x02\0\0\0\0\x53\x10\xc0\x04\x01\xa1\x01p\
    \0\0\0\x14\x02\0\0\0\0\x53\x11\xc0\x07\x04\x40\x43\x52\x09\x52\x09\
    \0\0\0\x13\x02\0\0\0\0\x53\x12\xc0\x06\x03\xa1\x01s\x43\x42\
    \0\0\0\x14\x02\0\0\0\0\x53\x12\xc0\x07\x03\xa1\x01r\x52\x01\x41\
    \0\0\0\x19\x02\0\0\0\0\x53\x13\xc0\x0c\x07\x43\x52\x09\x43\x52\x09\x52\x01\x43\x52\x09";

/// Reads the bytes as a value and as a message; what can be read can be written, and read again.
pub(crate) fn codec(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    if let Ok(value) = Value::decode(&bytes) {
        let mut once = BytesMut::new();
        value.encode(&mut once);
        let again = Value::decode(&once.clone().freeze()).expect("what was written can be read");
        let mut twice = BytesMut::new();
        again.encode(&mut twice);
        assert_eq!(once, twice, "what was read is written alike");
    }
    if let Ok(sections) = Sections::parse(&bytes) {
        assert!(sections.bare.len() + sections.footer.len() <= bytes.len());
        let _ = (sections.header(), sections.properties(), sections.body());
        let _ = (sections.message_annotations(), sections.delivery_annotations());
        let _ = sections.application_properties();
    }
}

/// Plays the bytes as what a client says. The first byte tells whether it begins well, and how the rest is cut.
pub(crate) fn connection(data: &[u8]) {
    let Some((how, said)) = data.split_first() else {
        return;
    };
    let options = ConnectionOptions {
        buffered_bytes_max: BUFFERED_BYTES_MAX,
        partial_bytes_max: BUFFERED_BYTES_MAX,
        message_bytes_max: 4_096,
        incoming_window: 8,
        unsettled_max: 32,
        ..ConnectionOptions::default()
    };
    let mut connection = Connection::new(options, 0);
    let mut said = Bytes::copy_from_slice(said);
    if how & 1 == 1 {
        said = [BEGINNING, &said].concat().into();
    }
    let mut now_ms = 0;
    let mut told_closed = 0;
    for piece in said.chunks(1 + usize::from(how >> 1) * 8) {
        now_ms += 10;
        connection.receive(piece, now_ms);
        told_closed += turn(&mut connection);
        connection.tick(now_ms);
    }
    connection.receive_end();
    told_closed += turn(&mut connection);
    assert_eq!(told_closed, 1, "a connection is closed once");
    assert!(connection.is_finished() && connection.deadline_ms().is_none());
}

/// Events and output until there are none. Says how often it was told that the connection is closed.
fn turn(connection: &mut Connection) -> usize {
    let mut told_closed = 0;
    loop {
        let mut is_silent = true;
        while let Some(event) = connection.next_event() {
            assert_eq!(told_closed, 0, "nothing follows the last event: {event:?}");
            is_silent = false;
            told_closed += usize::from(matches!(event, AmqpEvent::Closed { .. }));
            answer(connection, &event);
        }
        let waiting = connection.output().len();
        // What waited for a window, what is written at once when it opens, and an answer.
        assert!(waiting < 4 * BUFFERED_BYTES_MAX + 65_536, "{waiting}");
        connection.output().clear();
        if is_silent && waiting == 0 {
            return told_closed;
        }
    }
}

fn answer(connection: &mut Connection, event: &AmqpEvent) {
    match event {
        AmqpEvent::Sasl { .. } => connection.answer_sasl(true),
        AmqpEvent::Attached { link, attach } if attach.name.len() == 3 => connection.detach(*link, None),
        AmqpEvent::Attached { link, attach } => {
            connection.accept_link(*link, LinkAnswer::to(attach).credit(3))
        }
        AmqpEvent::Message { link, delivery, payload, .. } => {
            codec(payload);
            connection.settle(*link, *delivery, DeliveryOutcome::Accepted);
            connection.grant(*link, 3);
        }
        AmqpEvent::Settled { link, delivery, outcome, .. } => {
            connection.settle(*link, *delivery, outcome.clone().unwrap_or(DeliveryOutcome::Released));
        }
        AmqpEvent::TooLarge { link, delivery, .. } => {
            connection.settle(*link, *delivery, DeliveryOutcome::Rejected(None))
        }
        AmqpEvent::Credit { link, drain, .. } => {
            for len in [10, 1_000, 70_000] {
                let payload = vec![0x40; len].into();
                let _ = connection.send(
                    *link,
                    OutgoingMessage { payload, settled: len == 10, ..OutgoingMessage::default() },
                );
            }
            if *drain {
                connection.drained(*link);
            }
        }
        AmqpEvent::Detached { link, .. } => connection.detach(*link, None),
        AmqpEvent::Ended { channel, .. } => connection.end(*channel),
        AmqpEvent::Closed { .. } => connection.close(None),
        AmqpEvent::Opened(_) | AmqpEvent::MissingPart { .. } => {}
    }
}
