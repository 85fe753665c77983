//! Messages of Service Bus and messages of ours: what one says, the other says too.

use std::time::Duration;

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::MessageProperties as AmqpProperties;
use crate::amqp::Value;
use crate::amqp::lookup;
use crate::amqp::message::MessageBody;
use crate::amqp::message::MessageHeader;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_data;
use crate::amqp::message::encode_message_annotations;
use crate::amqp::message::encode_properties;
use crate::amqp::message::encode_value;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::engine::Outcome;
use crate::engine::Queue;
use crate::engine::ReceivedMessage;
use crate::engine::Redriven;
use crate::header::PropertyValue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::service_bus::incoming;
use crate::service_bus::outgoing::EncodedMessage;
use crate::service_bus::property::PropertyChanges;
use crate::service_bus::property::set_by_settling;
use crate::service_bus::raw_sections::RAW_SECTIONS;
use crate::service_bus::refusal::condition;
use crate::testing::ManualClock;

const ID: &str = "assigned";

/// Writes the body of a message.
type BodyWriter<'a> = &'a dyn Fn(&mut BytesMut);

fn read(payload: &Bytes) -> Message {
    incoming::read(payload, Order::None, ID).unwrap()
}

fn payload(fill: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    fill(&mut out);
    out.freeze()
}

fn named(id: &str) -> AmqpProperties {
    AmqpProperties { message_id: Value::from(id), ..AmqpProperties::default() }
}

/// What a receiver gets after the engine had a message.
async fn passed(message: Message) -> Bytes {
    let engine = Engine::in_memory().open().await.unwrap();
    let options = QueueOptions { order: Order::None, ..QueueOptions::default() };
    let queue = engine.client().create_queue("q", options).await.unwrap();
    queue.send(message).await.unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let received: &ReceivedMessage = delivery.message();
    let encoded = EncodedMessage::handed(received).encode();
    delivery.complete().await.unwrap();
    encoded
}

#[tokio::test]
async fn a_message_comes_out_byte_for_byte_as_it_went_in() {
    let properties = AmqpProperties {
        message_id: Value::Uuid([7; 16]),
        user_id: Some(Bytes::from_static(b"u")),
        to: Some("there".into()),
        reply_to_group_id: Some("g".into()),
        ..AmqpProperties::default()
    };
    let application = [(Value::from("n"), Value::Uint(7)), (Value::from("t"), Value::Timestamp(9))];
    let bodies: [BodyWriter<'_>; 6] = [
        &|out| encode_data(out, b"body"),
        &|out| encode_data(out, &[7; 1_000]),
        &|out| out.put_slice(&[0, 0x53, 0x75, 0xb0, 0, 0, 0, 2, b'h', b'i']),
        &|out| [b"one", b"two"].iter().for_each(|part| encode_data(out, *part)),
        &|out| encode_value(out, &Value::from("text")),
        &|out| encode_value(out, &Value::Map(vec![(Value::from("a"), Value::Null)])),
    ];
    for body in bodies {
        let sent = payload(|out| {
            encode_properties(out, &properties);
            encode_application_properties(out, &application);
            body(out);
        });
        let received = Sections::parse(&passed(read(&sent)).await).unwrap();
        assert_eq!(received.bare, sent);
    }
}

#[test]
fn a_message_that_is_read_for_another_queue_keeps_the_place_that_its_sender_has_said() {
    let sent = payload(|out| {
        let given = AmqpProperties { group_id: Some("w".into()), group_sequence: Some(3), ..named("m") };
        encode_properties(out, &given);
        encode_data(out, b"x");
    });
    let message = incoming::read(&sent, Order::Arrival, ID).unwrap();
    assert_eq!(message.position, None, "it has none where there are no places");
    assert_eq!(incoming::placed_anew(message, Order::POSITION).unwrap().position, Some(3));
}

#[test]
fn a_body_of_one_data_section_is_the_body_and_nothing_else_is_kept() {
    let properties =
        AmqpProperties { subject: Some("paid".into()), group_id: Some("order-17".into()), ..named("m") };
    let message = read(&payload(|out| {
        encode_properties(out, &properties);
        encode_application_properties(out, &[(Value::from("n"), Value::Long(7))]);
        encode_data(out, b"{}");
    }));
    assert_eq!(message.body(), "{}");
    assert_eq!(
        (message.message_id.as_deref(), message.workflow_id.as_deref()),
        (Some("m"), Some("order-17"))
    );
    assert_eq!(message.headers.subject.as_deref(), Some("paid"));
    let properties: Vec<_> = message.headers.properties.into_iter().collect();
    assert_eq!(properties, [("n".to_owned(), PropertyValue::Integer(7))]);
}

#[test]
fn a_text_is_read_by_others_as_text() {
    assert_eq!(read(&payload(|out| encode_value(out, &Value::from("hello")))).body(), "hello");
}

#[tokio::test]
async fn a_message_without_an_id_is_given_one() {
    let received = passed(read(&payload(|out| encode_data(out, b"x")))).await;
    let properties = Sections::parse(&received).unwrap().properties().unwrap();
    assert_eq!(properties.message_id, Value::from(ID));
    let from_elsewhere = passed(Message::new("x")).await;
    let properties = Sections::parse(&from_elsewhere).unwrap().properties().unwrap();
    assert!(!properties.message_id.is_null(), "{properties:?}");
}

#[tokio::test]
async fn a_message_from_elsewhere_is_received_with_all_it_says() {
    let message = Message::new("{}")
        .workflow("w")
        .message_id("m")
        .subject("s")
        .content_type("application/json")
        .correlation_id("c")
        .reply_to("r")
        .property("n", 7_i64)
        .time_to_live(Duration::from_secs(60));
    let received = Sections::parse(&passed(message).await).unwrap();
    let properties = received.properties().unwrap();
    let texts = [properties.subject, properties.content_type, properties.reply_to, properties.group_id];
    let texts: Vec<String> = texts.into_iter().flatten().map(String::from).collect();
    assert_eq!(texts, ["s", "application/json", "r", "w"]);
    assert_eq!(received.application_properties().unwrap(), [(Value::from("n"), Value::Long(7))]);
    assert_eq!(received.body().unwrap(), MessageBody::Data(vec![Bytes::from_static(b"{}")]));
    let header = received.header().unwrap();
    assert_eq!((header.ttl_ms, header.delivery_count), (Some(60_000), Some(0)));
    let annotations = received.message_annotations().unwrap();
    for name in ["x-opt-sequence-number", "x-opt-enqueued-time", "x-opt-message-state"] {
        assert!(lookup(&annotations, name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_senders_annotations_come_out_beside_those_of_the_delivery() {
    let own = [
        (Value::symbol("x-opt-partition-key"), Value::from("p")),
        (Value::symbol("x-opt-sequence-number"), Value::Long(-1)),
    ];
    let sent = payload(|out| {
        encode_message_annotations(out, &own);
        encode_data(out, b"x");
    });
    let received = Sections::parse(&passed(read(&sent)).await).unwrap().message_annotations().unwrap();
    assert_eq!(lookup(&received, "x-opt-partition-key"), Some(&Value::from("p")));
    assert_ne!(
        lookup(&received, "x-opt-sequence-number"),
        Some(&Value::Long(-1)),
        "that is not a sender's to say"
    );
}

#[tokio::test]
async fn annotations_with_numbers_as_keys_come_back() {
    let own = [(Value::Ulong(1), Value::from("one")), (Value::Ulong(2), Value::from("two"))];
    let sent = payload(|out| {
        encode_message_annotations(out, &own);
        encode_data(out, b"x");
    });
    let received = Sections::parse(&passed(read(&sent)).await).unwrap().message_annotations().unwrap();
    assert_eq!(received[received.len() - 2..], own);
}

#[test]
fn too_many_properties_are_refused_before_anything_is_done_with_each() {
    let own: Vec<_> = (0..20_000).map(|name| (Value::from(name.to_string()), Value::Uint(name))).collect();
    let sent = payload(|out| encode_application_properties(out, &own));
    let refusal = incoming::read(&sent, Order::None, ID).unwrap_err();
    assert_eq!(refusal.condition, condition::ARGUMENT_ERROR);
    assert!(refusal.description.contains("properties have"), "{refusal}");
}

#[test]
fn times_are_read_from_header_properties_and_annotations() {
    let scheduled = [(Value::symbol("x-opt-scheduled-enqueue-time"), Value::Timestamp(5_000))];
    let message = read(&payload(|out| {
        MessageHeader { ttl_ms: Some(1_000), ..MessageHeader::default() }.encode(out);
        encode_message_annotations(out, &scheduled);
        encode_data(out, b"x");
    }));
    assert_eq!(message.time_to_live, Some(Duration::from_secs(1)));
    assert_eq!(message.schedule_at, Some(Timestamp::from_millis(5_000)));
    let long = AmqpProperties {
        creation_time: Some(0),
        absolute_expiry_time: Some(1 << 33),
        ..AmqpProperties::default()
    };
    let message = read(&payload(|out| {
        MessageHeader { ttl_ms: Some(u32::MAX), ..MessageHeader::default() }.encode(out);
        encode_properties(out, &long);
    }));
    assert_eq!(message.time_to_live, Some(Duration::from_millis(1 << 33)), "longer than a header can say");
}

#[test]
fn a_position_is_said_by_property_or_by_group_sequence() {
    let order = Order::POSITION;
    let grouped = AmqpProperties { group_sequence: Some(3), ..named("m") };
    let sent = |application: &[(Value, Value)]| {
        let sent = payload(|out| {
            encode_properties(out, &grouped);
            encode_application_properties(out, application);
        });
        incoming::read(&sent, order, ID).map(|message| message.position)
    };
    assert_eq!(sent(&[]).unwrap(), Some(3));
    let property = |value| [(Value::from("seriatim-position"), value)];
    assert_eq!(sent(&property(Value::Int(5))).unwrap(), Some(5));
    assert_eq!(sent(&property(Value::from("6"))).unwrap(), Some(6));
    let refused = sent(&property(Value::from("six"))).unwrap_err();
    assert_eq!(refused.condition, condition::ARGUMENT_ERROR);
}

#[test]
fn a_message_that_pretends_to_be_kept_is_refused() {
    let sent =
        payload(|out| encode_application_properties(out, &[(Value::from(RAW_SECTIONS), Value::from("x"))]));
    let refused = incoming::read(&sent, Order::None, ID).unwrap_err();
    assert_eq!(refused.condition, condition::ARGUMENT_ERROR);
    let torn = Bytes::from_static(&[0, 0x53, 0x75, 0xa0, 9, 1]);
    assert!(incoming::read(&torn, Order::None, ID).is_err());
}

/// The queue and clock of an engine in memory, with a message of session `s` that has come from a client.
async fn with_sent(order: Order, sent: &Bytes) -> (Engine, ManualClock, Queue) {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let queue =
        engine.client().create_queue("q", QueueOptions { order, ..QueueOptions::default() }).await.unwrap();
    queue.send(read(sent)).await.unwrap();
    (engine, clock, queue)
}

#[tokio::test]
async fn a_body_that_somebody_has_edited_is_sent_whatever_the_form_of_the_one_before_was() {
    let edited = MessageBody::Data(vec![Bytes::from_static(b"edited")]);
    let bodies: [(BodyWriter<'_>, MessageBody); 4] = [
        (&|out| encode_data(out, b"body"), edited.clone()),
        (&|_| (), edited.clone()),
        (&|out| encode_value(out, &Value::Map(vec![(Value::from("a"), Value::Null)])), edited),
        (&|out| encode_value(out, &Value::from("text")), MessageBody::Value(Value::from("edited"))),
    ];
    for (body, expected) in bodies {
        let sent = payload(|out| {
            encode_properties(out, &AmqpProperties { to: Some("there".into()), ..named("m") });
            body(out);
        });
        let (_engine, _, queue) = with_sent(Order::None, &sent).await;
        let mut delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        let number = delivery.sequence_number();
        delivery.dead_letter("bad", "").await.unwrap();
        queue.edit_and_redrive(number, "edited", None).await.unwrap();
        let delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        let received = Sections::parse(&EncodedMessage::handed(delivery.message()).encode()).unwrap();
        assert_eq!(received.body().unwrap(), expected);
        assert_eq!(received.properties().unwrap().to.as_deref(), Some("there"), "what else it said stays");
        let original = lookup(&received.application_properties().unwrap(), "seriatim-original").cloned();
        assert!(original.is_some(), "and it says of what it was made");
    }
}

#[tokio::test]
async fn a_text_that_a_storage_queue_has_set_is_sent_whatever_the_form_of_the_body_before_was() {
    let text = MessageBody::Data(vec![Bytes::from_static(b"x")]);
    let map = Value::Map(vec![(Value::from("a"), Value::Null)]);
    let bodies: [(BodyWriter<'_>, MessageBody); 3] = [
        (&|_| (), text.clone()),
        (&|out| encode_value(out, &map), text),
        (&|out| encode_value(out, &Value::from("text")), MessageBody::Value(Value::from("x"))),
    ];
    for (body, expected) in bodies {
        let sent = payload(|out| {
            encode_properties(out, &AmqpProperties { to: Some("there".into()), ..named("m") });
            body(out);
        });
        let (_engine, _, queue) = with_sent(Order::None, &sent).await;
        let hidden = queue.receive_hidden(1, Duration::from_secs(30)).await.unwrap().remove(0);
        queue.hide_again(hidden.claim, Duration::ZERO, Some(Bytes::from_static(b"x"))).await.unwrap();
        let delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
        let received = Sections::parse(&EncodedMessage::handed(delivery.message()).encode()).unwrap();
        assert_eq!(received.body().unwrap(), expected);
    }
}

#[tokio::test]
async fn a_dead_letter_that_is_put_back_as_new_says_what_settlements_have_set() {
    let sent = payload(|out| {
        encode_properties(out, &AmqpProperties { group_id: Some("s".into()), ..named("m") });
        encode_application_properties(out, &[(Value::from("n"), Value::Uint(7))]);
        encode_data(out, b"x");
    });
    let (_engine, _, queue) = with_sent(Order::Arrival, &sent).await;
    let delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let number = delivery.sequence_number();
    let changes = PropertyChanges::read(&[(Value::from("note"), Value::from("look"))]);
    let set =
        changes.to_properties(set_by_settling(&delivery.message().headers.properties).as_ref()).unwrap();
    let outcome = Outcome::DeadLetter { reason: "bad".to_owned(), description: String::new() };
    queue.settler().end_with(delivery.keep(), outcome, set).await.unwrap();
    assert!(matches!(queue.redrive(number).await.unwrap(), Redriven::AsNew(_)));
    let delivery = queue.receive(Duration::ZERO).await.unwrap().unwrap();
    let received = Sections::parse(&EncodedMessage::handed(delivery.message()).encode()).unwrap();
    let expected = [(Value::from("n"), Value::Uint(7)), (Value::from("note"), Value::from("look"))];
    assert_eq!(received.application_properties().unwrap(), expected);
}

#[tokio::test]
async fn a_message_for_later_lives_from_when_it_is_due() {
    let (_, clock) = crate::testing::engine().await.unwrap();
    let due_ms = i64::try_from(clock.now().as_millis()).unwrap() + 3_600_000;
    let sent = payload(|out| {
        MessageHeader { ttl_ms: Some(60_000), ..MessageHeader::default() }.encode(out);
        encode_message_annotations(
            out,
            &[(Value::symbol("x-opt-scheduled-enqueue-time"), Value::Timestamp(due_ms))],
        );
        let properties = AmqpProperties {
            creation_time: Some(due_ms - 3_600_000),
            absolute_expiry_time: Some(due_ms - 3_540_000),
            ..AmqpProperties::default()
        };
        encode_properties(out, &properties);
        encode_data(out, b"x");
    });
    let (_engine, clock, queue) = with_sent(Order::None, &sent).await;
    let lives = |encoded: &Bytes| Sections::parse(encoded).unwrap().header().unwrap().ttl_ms;
    let seen = queue.peek(SequenceNumber::new(0), 1).await.unwrap();
    assert_eq!(lives(&EncodedMessage::seen(&seen[0]).encode()), Some(60_000));
    clock.advance(Duration::from_secs(3_600));
    let delivery = queue.receive(Duration::from_secs(5)).await.unwrap().unwrap();
    let handed = EncodedMessage::handed(delivery.message()).encode();
    assert_eq!(lives(&handed), Some(60_000));
    let ends_ms = Sections::parse(&handed).unwrap().properties().unwrap().absolute_expiry_time;
    assert_eq!(ends_ms, Some(due_ms + 60_000), "what its client has said would be over before it is due");
}
