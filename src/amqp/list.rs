//! Writes the lists of fields that performatives, sections and states are.

use bytes::BufMut;
use bytes::BytesMut;

use crate::amqp::value::Map;
use crate::amqp::value::Value;
use crate::amqp::writer;

/// A list whose fields at the end are left out if they are null.
pub(crate) fn write(out: &mut BytesMut, fill: impl FnOnce(&mut List<'_>)) {
    let from = out.len();
    writer::compound(out, 0xc0, |out| {
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
        self.optional(field.into(), writer::boolean);
    }

    pub(crate) fn ubyte(&mut self, field: impl Into<Option<u8>>) {
        self.optional(field.into(), writer::ubyte);
    }

    pub(crate) fn ushort(&mut self, field: impl Into<Option<u16>>) {
        self.optional(field.into(), writer::ushort);
    }

    pub(crate) fn uint(&mut self, field: impl Into<Option<u32>>) {
        self.optional(field.into(), writer::uint);
    }

    pub(crate) fn ulong(&mut self, field: impl Into<Option<u64>>) {
        self.optional(field.into(), writer::ulong);
    }

    pub(crate) fn timestamp(&mut self, field: impl Into<Option<i64>>) {
        self.optional(field.into(), writer::timestamp);
    }

    pub(crate) fn string<'t>(&mut self, field: impl Into<Option<&'t str>>) {
        self.optional(field.into(), writer::string);
    }

    pub(crate) fn symbol<'t>(&mut self, field: impl Into<Option<&'t str>>) {
        self.optional(field.into(), writer::symbol);
    }

    pub(crate) fn binary<'t>(&mut self, field: impl Into<Option<&'t [u8]>>) {
        self.optional(field.into(), writer::binary);
    }

    pub(crate) fn value(&mut self, field: &Value) {
        if field.is_null() { self.null() } else { self.field(|out| writer::value(out, field)) }
    }

    /// A map, or null if it is empty.
    pub(crate) fn map(&mut self, entries: &Map) {
        if entries.is_empty() { self.null() } else { self.field(|out| writer::map(out, entries)) }
    }

    /// An array of symbols, or null if there are none.
    pub(crate) fn symbols<T: AsRef<str>>(&mut self, names: &[T]) {
        if names.is_empty() { self.null() } else { self.field(|out| writer::symbols(out, names)) }
    }
}
