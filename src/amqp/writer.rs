//! Writes AMQP's encoding, each value in its smallest form.

use bytes::BufMut;
use bytes::BytesMut;

use crate::amqp::value::Map;
use crate::amqp::value::Value;

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
fn length(len: usize) -> u32 {
    u32::try_from(len).expect("values stay below the limit of a message")
}

/// The descriptor before a described value.
pub(crate) fn descriptor(out: &mut BytesMut, number: u64) {
    out.put_u8(0x00);
    ulong(out, number);
}

/// A compound: `fill` writes its values and says how many.
fn compound(out: &mut BytesMut, narrow: u8, fill: impl FnOnce(&mut BytesMut) -> usize) {
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

/// A list whose fields at the end are left out if they are null.
pub(crate) fn list(out: &mut BytesMut, fill: impl FnOnce(&mut List<'_>)) {
    let from = out.len();
    compound(out, 0xc0, |out| {
        let mut fields = List { out, count: 0, nulls: 0 };
        fill(&mut fields);
        fields.count
    });
    if out.len() == from + 3 {
        out.truncate(from);
        out.put_u8(0x45);
    }
}

/// The fields of a list that is being written.
pub(crate) struct List<'a> {
    out: &'a mut BytesMut,
    count: usize,
    /// Nulls that are written as soon as something follows them.
    nulls: usize,
}

impl List<'_> {
    pub(crate) fn null(&mut self) {
        self.nulls += 1;
    }

    /// Writes one field, after the nulls before it.
    pub(crate) fn field(&mut self, write: impl FnOnce(&mut BytesMut)) {
        self.keep_nulls();
        self.count += 1;
        write(self.out);
    }

    /// Writes nulls even if they are the last: some peers look at fields by their number.
    pub(crate) fn keep_nulls(&mut self) {
        self.out.put_bytes(0x40, self.nulls);
        self.count += self.nulls;
        self.nulls = 0;
    }

    fn optional<T>(&mut self, field: Option<T>, write: impl FnOnce(&mut BytesMut, T)) {
        match field {
            None => self.null(),
            Some(field) => self.field(|out| write(out, field)),
        }
    }

    pub(crate) fn boolean(&mut self, field: impl Into<Option<bool>>) {
        self.optional(field.into(), boolean);
    }

    pub(crate) fn ubyte(&mut self, field: impl Into<Option<u8>>) {
        self.optional(field.into(), ubyte);
    }

    pub(crate) fn ushort(&mut self, field: impl Into<Option<u16>>) {
        self.optional(field.into(), ushort);
    }

    pub(crate) fn uint(&mut self, field: impl Into<Option<u32>>) {
        self.optional(field.into(), uint);
    }

    pub(crate) fn ulong(&mut self, field: impl Into<Option<u64>>) {
        self.optional(field.into(), ulong);
    }

    pub(crate) fn timestamp(&mut self, field: impl Into<Option<i64>>) {
        self.optional(field.into(), timestamp);
    }

    pub(crate) fn string<'t>(&mut self, field: impl Into<Option<&'t str>>) {
        self.optional(field.into(), string);
    }

    pub(crate) fn symbol<'t>(&mut self, field: impl Into<Option<&'t str>>) {
        self.optional(field.into(), symbol);
    }

    pub(crate) fn binary<'t>(&mut self, field: impl Into<Option<&'t [u8]>>) {
        self.optional(field.into(), binary);
    }

    pub(crate) fn value(&mut self, field: &Value) {
        if field.is_null() { self.null() } else { self.field(|out| value(out, field)) }
    }

    /// A map, or null if it is empty.
    pub(crate) fn map(&mut self, entries: &Map) {
        if entries.is_empty() { self.null() } else { self.field(|out| map(out, entries)) }
    }

    /// An array of symbols, or null if there are none.
    pub(crate) fn symbols<T: AsRef<str>>(&mut self, names: &[T]) {
        if names.is_empty() { self.null() } else { self.field(|out| symbols(out, names)) }
    }
}

/// An array of symbols.
pub(crate) fn symbols<T: AsRef<str>>(out: &mut BytesMut, names: &[T]) {
    let names: Vec<Value> = names.iter().map(|name| Value::Symbol(name.as_ref().into())).collect();
    array(out, &names);
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

fn values(out: &mut BytesMut, elements: &[Value]) {
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
        Value::Array(elements) => array(out, elements),
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

/// Values of one constructor; a list of them, if they have none in common.
fn array(out: &mut BytesMut, elements: &[Value]) {
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
fn wide_code(it: &Value) -> u8 {
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
fn element(out: &mut BytesMut, code: u8, it: &Value) {
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
