//! Every value survives the way over the wire, and nothing that comes from there can do harm.

use bytes::Bytes;
use bytes::BytesMut;
use proptest::prelude::*;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::list;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_application_properties;
use crate::amqp::message::encode_data;
use crate::amqp::message::encode_delivery_annotations;
use crate::amqp::outcome::DeliveryOutcome;
use crate::amqp::performative::Performative;
use crate::amqp::transfer::TRANSFER;
use crate::amqp::value::Value;
use crate::amqp::writer;

fn encoded(value: &Value) -> Bytes {
    let mut out = BytesMut::new();
    value.encode(&mut out);
    out.freeze()
}

fn decoded(bytes: &[u8]) -> Result<Value, DecodeError> {
    Value::decode(&Bytes::copy_from_slice(bytes))
}

/// Values that are their own equals, so no NaN.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<u8>().prop_map(Value::Ubyte),
        any::<u16>().prop_map(Value::Ushort),
        prop_oneof![any::<u32>(), 0..300_u32].prop_map(Value::Uint),
        prop_oneof![any::<u64>(), 0..300_u64].prop_map(Value::Ulong),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        prop_oneof![any::<i32>(), -200..200_i32].prop_map(Value::Int),
        prop_oneof![any::<i64>(), -200..200_i64].prop_map(Value::Long),
        any::<i32>().prop_map(|n| Value::Float(n as f32)),
        any::<i32>().prop_map(|n| Value::Double(f64::from(n) / 7.0)),
        prop_oneof![Just(4_usize), Just(8), Just(16)].prop_map(|len| Value::Decimal(vec![7; len].into())),
        any::<char>().prop_map(Value::Char),
        any::<i64>().prop_map(Value::Timestamp),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Value::Binary(bytes.into())),
        ".{0,90}".prop_map(|text| Value::String(text.into())),
        "[a-z:-]{0,20}".prop_map(|name| Value::Symbol(name.into())),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
            prop::collection::vec((inner.clone(), inner.clone()), 0..8).prop_map(Value::Map),
            (inner.clone(), 0..8_usize).prop_map(|(value, len)| array(&value, len)),
            (any::<u64>(), inner).prop_map(|(n, value)| Value::described(Value::Ulong(n), value)),
        ]
    })
}

/// An array of one value, unless values of its type stand in no array.
fn array(value: &Value, len: usize) -> Value {
    let elements = vec![value.clone(); len];
    let array = Value::Array(elements.clone());
    if encoded(&array).first().is_some_and(|code| *code >= 0xe0) { array } else { Value::List(elements) }
}

#[test]
fn delivery_annotations_are_found_behind_the_body_too_and_nowhere_else() {
    let annotated = |out: &mut BytesMut| {
        encode_delivery_annotations(out, &[(Value::symbol("a"), Value::Int(1))]);
    };
    let head = |out: &mut BytesMut| encode_application_properties(out, &[]);
    let body = |out: &mut BytesMut| encode_data(out, b"x");
    let parse = |parts: &[&dyn Fn(&mut BytesMut)]| {
        let mut out = BytesMut::new();
        parts.iter().for_each(|part| part(&mut out));
        Sections::parse(&out.freeze())
    };
    let (first, last) = (parse(&[&annotated, &head, &body]), parse(&[&head, &body, &annotated]));
    assert_eq!(first, last);
    assert_eq!(last.unwrap().delivery_annotations().unwrap(), [(Value::symbol("a"), Value::Int(1))]);
    for wrong in [
        parse(&[&head, &annotated, &body]),
        parse(&[&head, &body, &annotated, &body]),
        parse(&[&head, &body, &annotated, &annotated]),
        parse(&[&annotated, &head, &body, &annotated]),
    ] {
        assert_eq!(wrong, Err(DecodeError::Order));
    }
}

proptest! {
    #[test]
    fn every_value_comes_back_as_it_was_written(value in value()) {
        prop_assert_eq!(Value::decode(&encoded(&value)), Ok(value));
    }

    #[test]
    fn any_bytes_are_a_value_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        if let Ok(value) = Value::decode(&bytes) {
            prop_assert!(Value::decode(&encoded(&value)).is_ok());
        }
        let _ = Performative::read(&bytes);
    }

    #[test]
    fn a_value_cut_off_is_refused(value in value(), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&value);
        prop_assert!(Value::decode(&bytes.slice(..cut.index(bytes.len()))).is_err());
    }
}

#[test]
fn a_nesting_bomb_is_refused() {
    for code in [0xd0_u8, 0xf0] {
        let bomb = (0..1_000).fold(vec![0x40], |inner, _| {
            let mut outer = vec![code];
            outer.extend((inner.len() as u32 + 4).to_be_bytes());
            outer.extend(1_u32.to_be_bytes());
            outer.extend(inner);
            outer
        });
        assert_eq!(decoded(&bomb), Err(DecodeError::Depth));
    }
    assert_eq!(decoded(&[0x00; 100_000]), Err(DecodeError::Depth));
    assert_eq!(Performative::read(&Bytes::from(vec![0x00; 100_000])).map(drop), Err(SYMBOL_OR_NUMBER));
}

const SYMBOL_OR_NUMBER: DecodeError = DecodeError::Expected("a symbol or a number as descriptor");

#[test]
fn an_array_of_nothings_cannot_claim_memory() {
    for code in [0x40_u8, 0x41, 0x43, 0x44, 0x45] {
        let mut array = vec![0xf0, 0, 0, 0, 5];
        array.extend(0x7fff_ffff_u32.to_be_bytes());
        array.push(code);
        assert_eq!(decoded(&array), Err(DecodeError::Count));
    }
}

#[test]
fn a_long_descriptor_of_many_elements_cannot_claim_memory() {
    let mut array = vec![0xf0];
    let name = vec![b'x'; 30_000];
    array.extend((4 + 2 + 4 + 30_000 + 1_u32).to_be_bytes());
    array.extend(30_000_u32.to_be_bytes());
    array.extend([0x00, 0xb3]);
    array.extend(30_000_u32.to_be_bytes());
    array.extend(&name);
    array.push(0x40);
    assert_eq!(decoded(&array), Err(DecodeError::Count));
}

/// The body of a frame with a transfer whose seventh and eighth fields are written so.
fn transfer(fill: impl FnOnce(&mut list::List<'_>), payload: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    writer::descriptor(&mut out, TRANSFER);
    list::write(&mut out, |fields| {
        fields.uint(0);
        (0..5).for_each(|_| fields.null());
        fill(fields);
    });
    out.extend_from_slice(payload);
    out.freeze()
}

#[test]
fn how_a_receiver_settles_is_said_by_a_number() {
    let long = transfer(|fields| fields.binary(&[7; 60_000][..]), b"x");
    assert_eq!(Performative::read(&long), Err(DecodeError::Expected("a ubyte")));
    let short = transfer(|fields| fields.ubyte(1), b"x");
    assert!(matches!(Performative::read(&short), Ok(Performative::Transfer(..))));
}

#[test]
fn a_payload_that_is_the_lesser_part_of_its_frame_does_not_keep_the_rest() {
    let annotations = vec![(Value::from("a"), Value::Binary(vec![7; 10_000].into()))];
    let state = DeliveryOutcome::Modified { delivery_failed: false, undeliverable_here: false, annotations };
    let frame = transfer(
        |fields| {
            fields.null();
            fields.field(|out| state.write(out));
        },
        b"x",
    );
    let Ok(Performative::Transfer(_, payload)) = Performative::read(&frame) else { panic!("{frame:?}") };
    assert!(payload == "x" && frame.is_unique());
    let frame = transfer(|fields| fields.null(), &[7; 10_000]);
    let Ok(Performative::Transfer(_, payload)) = Performative::read(&frame) else { panic!("{frame:?}") };
    assert!(payload.len() == 10_000 && !frame.is_unique(), "it is not copied");
}

#[test]
fn values_take_their_smallest_form() {
    let forms: &[(Value, &[u8])] = &[
        (Value::Uint(0), &[0x43]),
        (Value::Uint(255), &[0x52, 0xff]),
        (Value::Ulong(0), &[0x44]),
        (Value::Int(-1), &[0x54, 0xff]),
        (Value::Long(128), &[0x81, 0, 0, 0, 0, 0, 0, 0, 128]),
        (Value::List(vec![]), &[0x45]),
        (Value::Map(vec![]), &[0xc1, 1, 0]),
        (Value::string("ab"), &[0xa1, 2, b'a', b'b']),
        (Value::Boolean(true), &[0x41]),
    ];
    for (value, bytes) in forms {
        assert_eq!(&encoded(value)[..], *bytes, "{value:?}");
    }
}

#[test]
fn an_array_of_several_types_is_written_as_a_list() {
    let mixed = Value::Array(vec![Value::Uint(1), Value::Null]);
    assert_eq!(Value::decode(&encoded(&mixed)), Ok(Value::List(vec![Value::Uint(1), Value::Null])));
}
