//! Writes arrays, whose elements share one constructor.

use bytes::BufMut;
use bytes::BytesMut;

use crate::amqp::value::Value;
use crate::amqp::writer::compound;
use crate::amqp::writer::length;
use crate::amqp::writer::value;
use crate::amqp::writer::values;

/// Values of one constructor; a list of them, if they have none in common.
pub(crate) fn write(out: &mut BytesMut, elements: &[Value]) {
    match constructor(elements) {
        None => values(out, elements),
        Some(constructor) => compound(out, 0xe0, |out| {
            array_body(out, &constructor, elements);
            elements.len()
        }),
    }
}

/// The constructor that all elements of an array share.
struct Constructor<'a> {
    descriptor: Option<&'a Value>,
    code: u8,
}

fn constructor(elements: &[Value]) -> Option<Constructor<'_>> {
    let (descriptor, first) = described(elements.first().unwrap_or(&Value::Null));
    let code = wide_code(first);
    // An array of nulls has no size of its own, and a reader may not believe its count.
    let has_size = code != 0x40 || elements.is_empty();
    let fits = |element| {
        let (its_descriptor, inner) = described(element);
        its_descriptor == descriptor && wide_code(inner) == code && is_uniform(inner)
    };
    (code != 0x00 && has_size && elements.iter().all(fits)).then_some(Constructor { descriptor, code })
}

/// Whether a value within an array can be written there: an array within must be one as well.
fn is_uniform(it: &Value) -> bool {
    match it {
        Value::Array(elements) => constructor(elements).is_some(),
        _ => true,
    }
}

fn array_body(out: &mut BytesMut, constructor: &Constructor<'_>, elements: &[Value]) {
    if let Some(descriptor) = constructor.descriptor {
        out.put_u8(0x00);
        value(out, descriptor);
    }
    out.put_u8(constructor.code);
    elements.iter().for_each(|it| element(out, constructor.code, described(it).1));
}

/// A value's descriptor and the value under it.
fn described(it: &Value) -> (Option<&Value>, &Value) {
    match it {
        Value::Described(pair) => (Some(&pair.0), &pair.1),
        _ => (None, it),
    }
}

/// The constructor that holds every value of the type.
pub(crate) fn wide_code(it: &Value) -> u8 {
    match it {
        Value::Null => 0x40,
        Value::Boolean(_) => 0x56,
        Value::Ubyte(_) => 0x50,
        Value::Ushort(_) => 0x60,
        Value::Uint(_) => 0x70,
        Value::Ulong(_) => 0x80,
        Value::Byte(_) => 0x51,
        Value::Short(_) => 0x61,
        Value::Int(_) => 0x71,
        Value::Long(_) => 0x81,
        Value::Float(_) => 0x72,
        Value::Double(_) => 0x82,
        Value::Decimal(bytes) => match bytes.len() {
            4 => 0x74,
            8 => 0x84,
            16 => 0x94,
            _ => 0xb0,
        },
        Value::Char(_) => 0x73,
        Value::Timestamp(_) => 0x83,
        Value::Uuid(_) => 0x98,
        Value::Binary(_) => 0xb0,
        Value::String(_) => 0xb1,
        Value::Symbol(_) => 0xb3,
        Value::List(_) => 0xd0,
        Value::Map(_) => 0xd1,
        Value::Array(_) => 0xf0,
        Value::Described(_) => 0x00,
    }
}

/// What follows the wide constructor of a value.
pub(crate) fn element(out: &mut BytesMut, code: u8, it: &Value) {
    match it {
        Value::Null => {}
        Value::Boolean(is_true) => out.put_u8((*is_true).into()),
        Value::Ubyte(n) => out.put_u8(*n),
        Value::Ushort(n) => out.put_u16(*n),
        Value::Uint(n) => out.put_u32(*n),
        Value::Ulong(n) => out.put_u64(*n),
        Value::Byte(n) => out.put_i8(*n),
        Value::Short(n) => out.put_i16(*n),
        Value::Int(n) => out.put_i32(*n),
        Value::Long(n) | Value::Timestamp(n) => out.put_i64(*n),
        Value::Float(n) => out.put_f32(*n),
        Value::Double(n) => out.put_f64(*n),
        Value::Char(c) => out.put_u32((*c).into()),
        Value::Uuid(uuid) => out.put_slice(uuid),
        Value::Decimal(bytes) if code != 0xb0 => out.put_slice(bytes),
        Value::Decimal(bytes) | Value::Binary(bytes) => wide(out, bytes),
        Value::String(text) | Value::Symbol(text) => wide(out, text.as_bytes()),
        Value::List(_) | Value::Map(_) | Value::Array(_) => wide_compound(out, it),
        Value::Described(_) => value(out, it),
    }
}

fn wide(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(length(bytes.len()));
    out.put_slice(bytes);
}

/// The body of a compound within an array, where sizes are always wide.
fn wide_compound(out: &mut BytesMut, it: &Value) {
    let from = out.len();
    out.put_bytes(0, 4);
    match it {
        Value::List(elements) => {
            out.put_u32(length(elements.len()));
            elements.iter().for_each(|element| value(out, element));
        }
        Value::Map(entries) => {
            out.put_u32(length(2 * entries.len()));
            for (key, entry) in entries {
                value(out, key);
                value(out, entry);
            }
        }
        _ => {
            let elements = it.as_list().unwrap_or_default();
            out.put_u32(length(elements.len()));
            if let Some(constructor) = constructor(elements) {
                array_body(out, &constructor, elements);
            }
        }
    }
    let size = length(out.len() - from - 4);
    out[from..from + 4].copy_from_slice(&size.to_be_bytes());
}
