//! How connections open and close, and what is due in between.

use bytes::Bytes;

use crate::amqp::ConnectionOptions;
use crate::amqp::closing::ClosingFrame;
use crate::amqp::error::AmqpError;
use crate::amqp::error::condition;
use crate::amqp::event::AmqpEvent;
use crate::amqp::opening::Open;
use crate::amqp::performative::Performative;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::Pair;

#[test]
fn a_peer_that_says_who_it_is_waits_for_the_verdict() {
    let mut pair = Pair::silent(ConnectionOptions::default());
    pair.says_bytes(peer::SASL_HEADER);
    pair.says_bytes(&peer::sasl_init("PLAIN"));
    pair.says_bytes(peer::HEADER);
    pair.says(peer::open());
    let response = Bytes::from_static(b"\0name\0password");
    assert_eq!(pair.events(), [AmqpEvent::Sasl { mechanism: "PLAIN".into(), response }]);
    pair.connection.answer_sasl(true);
    assert!(matches!(pair.events()[..], [AmqpEvent::Opened(_)]));
    assert!(!pair.connection.is_finished());
}

#[test]
fn a_peer_that_is_not_welcome_is_told_so() {
    let mut pair = Pair::silent(ConnectionOptions::default());
    pair.says_bytes(peer::SASL_HEADER);
    pair.says_bytes(&peer::sasl_init("ANONYMOUS"));
    pair.events();
    pair.connection.output().clear();
    pair.connection.answer_sasl(false);
    assert_eq!(pair.connection.output()[8..], [0x00, 0x53, 0x44, 0xc0, 3, 1, 0x50, 1]);
    assert_eq!(pair.closed_for().as_deref(), Some(condition::UNAUTHORIZED_ACCESS));
    assert!(pair.connection.is_finished());
}

#[test]
fn a_mechanism_that_was_not_offered_is_refused() {
    let mut pair = Pair::silent(ConnectionOptions::default());
    pair.says_bytes(peer::SASL_HEADER);
    pair.says_bytes(&peer::sasl_init("GSSAPI"));
    assert_eq!(pair.closed_for().as_deref(), Some(condition::UNAUTHORIZED_ACCESS));
}

#[test]
fn sasl_may_be_required() {
    let mut pair = Pair::silent(ConnectionOptions { may_skip_sasl: false, ..ConnectionOptions::default() });
    pair.says_bytes(peer::HEADER);
    assert_eq!(pair.closed_for().as_deref(), Some(condition::NOT_IMPLEMENTED));
    assert_eq!(&pair.connection.output()[..], peer::SASL_HEADER);
}

#[test]
fn another_protocol_is_answered_with_ours_at_once() {
    for beginning in [&b"GET / HTTP/1.1\r\n"[..], b"\x16\x03", b"AMQP\x00\x00\x09\x01"] {
        let mut pair = Pair::silent(ConnectionOptions::default());
        pair.says_bytes(beginning);
        assert_eq!(pair.closed_for().as_deref(), Some(condition::NOT_IMPLEMENTED));
        assert_eq!(&pair.connection.output()[..], peer::SASL_HEADER);
        assert!(pair.connection.is_finished());
    }
}

#[test]
fn a_frame_that_is_none_closes_the_connection() {
    for bytes in
        [&[0, 0, 0, 7, 2, 0, 0, 0][..], &[0xff; 8], &[0, 0, 0, 8, 3, 0, 0, 0], &[0, 0, 0, 8, 2, 9, 0, 0]]
    {
        let mut pair = Pair::begun(ConnectionOptions::default());
        pair.says_bytes(bytes);
        assert_eq!(pair.closed_for().as_deref(), Some(condition::FRAMING_ERROR));
        assert!(matches!(pair.receive_frames()[..], [Performative::Close(ClosingFrame { error: Some(_) })]));
        assert!(!pair.connection.is_finished(), "the peer is to answer");
        pair.says(Performative::Close(ClosingFrame::default()));
        assert_eq!(pair.events(), []);
        assert!(pair.connection.is_finished());
    }
}

#[test]
fn a_performative_that_is_none_closes_the_connection() {
    let mut pair = Pair::begun(ConnectionOptions::default());
    pair.says_bytes(&peer::raw_frame(0, 0, |out| out.extend_from_slice(&[0x00, 0x53, 0x14, 0xc0, 9, 9])));
    assert_eq!(pair.closed_for().as_deref(), Some(condition::DECODE_ERROR));
}

#[test]
fn a_peer_that_closes_is_answered() {
    let mut pair = Pair::begun(ConnectionOptions::default());
    let (events, frames) = pair.after(Performative::Close(ClosingFrame::default()));
    assert_eq!(events, [AmqpEvent::Closed { error: None }]);
    assert_eq!(frames, [], "the application answers");
    pair.connection.close(None);
    assert_eq!(pair.receive_frames(), [Performative::Close(ClosingFrame::default())]);
    assert!(pair.connection.is_finished());
}

#[test]
fn a_peer_that_leaves_is_told_of_once() {
    let mut pair = Pair::begun(ConnectionOptions::default());
    pair.connection.receive_end();
    pair.connection.receive_end();
    assert_eq!(pair.events().len(), 1);
    pair.connection.close(None);
    assert_eq!((pair.events(), pair.receive_frames()), (vec![], vec![]));
    assert!(pair.connection.is_finished());
}

#[test]
fn an_error_is_told_with_three_fields() {
    let mut pair = Pair::begun(ConnectionOptions::default());
    let error = AmqpError { condition: "a:b".into(), ..AmqpError::default() };
    pair.connection.close(Some(error.clone()));
    let error_list = [0x00, 0x53, 0x1d, 0xc0, 8, 3, 0xa3, 3, b'a', b':', b'b', 0x40, 0x40];
    assert!(pair.connection.output().ends_with(&error_list), "{:x?}", pair.connection.output());
    assert_eq!(pair.events(), [AmqpEvent::Closed { error: Some(error) }]);
}

#[test]
fn an_error_that_does_not_fit_is_told_shorter() {
    let mut pair = Pair::silent(ConnectionOptions::default());
    pair.says_bytes(peer::HEADER);
    let open = Open { container_id: "p".into(), max_frame_size: Some(512), ..Open::default() };
    pair.says(Performative::Open(Box::new(open)));
    pair.events();
    pair.connection.output().clear();
    pair.connection.close(Some(AmqpError::new(condition::INTERNAL_ERROR, "\u{e4}".repeat(700))));
    let frames = pair.receive_frames();
    let [Performative::Close(ClosingFrame { error: Some(error) })] = &frames[..] else {
        panic!("{frames:?}");
    };
    assert_eq!(error.description.as_deref().map(str::len), Some(128));
}

#[test]
fn a_silent_peer_hears_heartbeats_and_is_given_up_when_it_gives_none() {
    let mut pair = Pair::silent(ConnectionOptions { idle_ms: Some(1_000), ..ConnectionOptions::default() });
    pair.says_bytes(peer::HEADER);
    let open = Open { container_id: "p".into(), idle_time_out: Some(600), ..Open::default() };
    pair.says(Performative::Open(Box::new(open)));
    pair.events();
    pair.connection.output().clear();
    pair.connection.tick(1);
    assert_eq!(pair.connection.deadline_ms(), Some(300));
    pair.connection.tick(300);
    assert_eq!(&pair.connection.output()[..], &[0, 0, 0, 8, 2, 0, 0, 0]);
    pair.connection.output().clear();
    for now_ms in [600, 900, 1_200, 1_500, 1_800, 1_999] {
        pair.connection.tick(now_ms);
        assert!(pair.connection.next_event().is_none());
    }
    pair.connection.tick(2_000);
    assert_eq!(pair.closed_for().as_deref(), Some(condition::CONNECTION_FORCED));
}

#[test]
fn a_peer_to_which_nobody_listens_is_not_silent() {
    let mut pair = Pair::begun(ConnectionOptions { idle_ms: Some(1_000), ..ConnectionOptions::default() });
    for now_ms in [1_000, 2_000, 4_000] {
        pair.connection.note_unread(now_ms);
        pair.connection.tick(now_ms);
        assert_eq!(pair.closed_for(), None);
    }
    pair.connection.tick(6_000);
    assert_eq!(pair.closed_for().as_deref(), Some(condition::CONNECTION_FORCED));
}

#[test]
fn a_peer_that_does_not_open_is_given_up() {
    let mut pair = Pair::silent(ConnectionOptions { open_ms_max: 50, ..ConnectionOptions::default() });
    assert_eq!(pair.connection.deadline_ms(), Some(50));
    pair.says_bytes(peer::HEADER);
    pair.connection.tick(50);
    assert_eq!(pair.closed_for().as_deref(), Some(condition::CONNECTION_FORCED));
    assert!(pair.connection.is_finished());
}

#[test]
fn a_peer_that_does_not_answer_a_close_is_left() {
    let mut pair = Pair::begun(ConnectionOptions { open_ms_max: 50, ..ConnectionOptions::default() });
    pair.connection.close(None);
    pair.events();
    assert!(!pair.connection.is_finished());
    pair.connection.tick(50);
    assert!(pair.connection.is_finished());
}

#[test]
fn limits_that_nobody_could_keep_are_refused() {
    let too_small = Open { container_id: "p".into(), max_frame_size: Some(511), ..Open::default() };
    let too_hasty = Open { container_id: "p".into(), idle_time_out: Some(1), ..Open::default() };
    for (open, condition) in [(too_small, condition::INVALID_FIELD), (too_hasty, condition::NOT_ALLOWED)] {
        let mut pair = Pair::silent(ConnectionOptions::default());
        pair.says_bytes(peer::HEADER);
        pair.says(Performative::Open(Box::new(open)));
        assert_eq!(pair.closed_for().as_deref(), Some(condition));
    }
}

#[test]
fn more_than_is_read_is_refused() {
    let options =
        ConnectionOptions { buffered_bytes_max: 1_000, frame_bytes_max: 512, ..ConnectionOptions::default() };
    let mut pair = Pair::silent(options);
    pair.says_bytes(peer::SASL_HEADER);
    pair.says_bytes(&peer::sasl_init("PLAIN"));
    pair.events();
    for _ in 0..3 {
        pair.says_bytes(&[0; 900]);
    }
    assert_eq!(pair.closed_for().as_deref(), Some(condition::RESOURCE_LIMIT_EXCEEDED));
}
