//! Writes AMQP's encoding, each value in its smallest form.

use bytes::BufMut;
use bytes::BytesMut;

use crate::amqp::array;
use crate::amqp::array::element;
use crate::amqp::array::wide_code;
use crate::amqp::value::Value;

impl Value {
    /// Appends the value in its smallest form.
    pub fn encode(&self, out: &mut BytesMut) {
        value(out, self);
    }
}

pub(crate) fn null(out: &mut BytesMut) {
    out.put_u8(0x40);
}

pub(crate) fn boolean(out: &mut BytesMut, is_true: bool) {
    out.put_u8(if is_true { 0x41 } else { 0x42 });
}

pub(crate) fn ubyte(out: &mut BytesMut, n: u8) {
    out.put_slice(&[0x50, n]);
}

pub(crate) fn ushort(out: &mut BytesMut, n: u16) {
    out.put_u8(0x60);
    out.put_u16(n);
}

pub(crate) fn uint(out: &mut BytesMut, n: u32) {
    match u8::try_from(n) {
        Ok(0) => out.put_u8(0x43),
        Ok(small) => out.put_slice(&[0x52, small]),
        Err(_) => {
            out.put_u8(0x70);
            out.put_u32(n);
        }
    }
}

pub(crate) fn ulong(out: &mut BytesMut, n: u64) {
    match u8::try_from(n) {
        Ok(0) => out.put_u8(0x44),
        Ok(small) => out.put_slice(&[0x53, small]),
        Err(_) => {
            out.put_u8(0x80);
            out.put_u64(n);
        }
    }
}

fn int(out: &mut BytesMut, n: i32) {
    match i8::try_from(n) {
        Ok(small) => out.put_slice(&[0x54, small as u8]),
        Err(_) => {
            out.put_u8(0x71);
            out.put_i32(n);
        }
    }
}

fn long(out: &mut BytesMut, n: i64) {
    match i8::try_from(n) {
        Ok(small) => out.put_slice(&[0x55, small as u8]),
        Err(_) => {
            out.put_u8(0x81);
            out.put_i64(n);
        }
    }
}

pub(crate) fn timestamp(out: &mut BytesMut, ms: i64) {
    out.put_u8(0x83);
    out.put_i64(ms);
}

pub(crate) fn binary(out: &mut BytesMut, bytes: &[u8]) {
    variable(out, 0xa0, bytes);
}

pub(crate) fn string(out: &mut BytesMut, text: &str) {
    variable(out, 0xa1, text.as_bytes());
}

pub(crate) fn symbol(out: &mut BytesMut, name: &str) {
    variable(out, 0xa3, name.as_bytes());
}

/// The wide constructor of a type stands 16 above its narrow one.
fn variable(out: &mut BytesMut, narrow: u8, bytes: &[u8]) {
    match u8::try_from(bytes.len()) {
        Ok(len) => out.put_slice(&[narrow, len]),
        Err(_) => {
            out.put_u8(narrow + 0x10);
            out.put_u32(length(bytes.len()));
        }
    }
    out.put_slice(bytes);
}

/// A length on the wire. Nothing of four gigabytes is ever written: a message has its limit, which is far lower.
pub(crate) fn length(len: usize) -> u32 {
    u32::try_from(len).expect("values stay below the limit of a message")
}

/// The descriptor before a described value.
pub(crate) fn descriptor(out: &mut BytesMut, number: u64) {
    out.put_u8(0x00);
    ulong(out, number);
}

/// A compound: `fill` writes its values and says how many.
pub(crate) fn compound(out: &mut BytesMut, narrow: u8, fill: impl FnOnce(&mut BytesMut) -> usize) {
    let from = out.len();
    out.put_slice(&[narrow, 0, 0]);
    let count = fill(out);
    let body = out.len() - from - 3;
    if let (Ok(size), Ok(count)) = (u8::try_from(body + 1), u8::try_from(count)) {
        out[from + 1] = size;
        out[from + 2] = count;
        return;
    }
    out.put_bytes(0, 6);
    out.copy_within(from + 3..from + 3 + body, from + 9);
    out[from] = narrow + 0x10;
    out[from + 1..from + 5].copy_from_slice(&length(body + 4).to_be_bytes());
    out[from + 5..from + 9].copy_from_slice(&length(count).to_be_bytes());
}

/// An array of symbols.
pub(crate) fn symbols<T: AsRef<str>>(out: &mut BytesMut, names: &[T]) {
    let names: Vec<Value> = names.iter().map(|name| Value::Symbol(name.as_ref().into())).collect();
    array::write(out, &names);
}

/// A map.
pub(crate) fn map(out: &mut BytesMut, entries: &[(Value, Value)]) {
    compound(out, 0xc1, |out| {
        for (key, entry) in entries {
            value(out, key);
            value(out, entry);
        }
        2 * entries.len()
    });
}

pub(crate) fn values(out: &mut BytesMut, elements: &[Value]) {
    if elements.is_empty() {
        return out.put_u8(0x45);
    }
    compound(out, 0xc0, |out| {
        elements.iter().for_each(|element| value(out, element));
        elements.len()
    });
}

/// Any value.
pub(crate) fn value(out: &mut BytesMut, it: &Value) {
    match it {
        Value::Null => null(out),
        Value::Boolean(is_true) => boolean(out, *is_true),
        Value::Uint(n) => uint(out, *n),
        Value::Ulong(n) => ulong(out, *n),
        Value::Int(n) => int(out, *n),
        Value::Long(n) => long(out, *n),
        Value::Binary(bytes) => binary(out, bytes),
        Value::String(text) => string(out, text),
        Value::Symbol(name) => symbol(out, name),
        Value::List(elements) => values(out, elements),
        Value::Map(entries) => map(out, entries),
        Value::Array(elements) => array::write(out, elements),
        Value::Described(pair) => {
            out.put_u8(0x00);
            value(out, &pair.0);
            value(out, &pair.1);
        }
        _ => {
            let code = wide_code(it);
            out.put_u8(code);
            element(out, code, it);
        }
    }
}
