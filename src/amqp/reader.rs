//! Reads AMQP's encoding within limits that hold whatever the bytes say.

use bytes::Bytes;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::text::Text;
use crate::amqp::value::Map;
use crate::amqp::value::Value;
use crate::limits::AMQP_DEPTH_MAX;
use crate::limits::AMQP_VALUES_MAX;

/// For how many values room is made before any of them was read.
const CLAIM_MAX: usize = 32;

impl Value {
    /// Reads exactly one value.
    ///
    /// # Errors
    /// The bytes are no AMQP value, are more than one, nest deeper than [`AMQP_DEPTH_MAX`] or hold more than
    /// [`AMQP_VALUES_MAX`] values.
    pub fn decode(bytes: &Bytes) -> Result<Value, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = reader.value()?;
        if reader.is_empty() { Ok(value) } else { Err(DecodeError::Trailing) }
    }
}

/// A place in bytes. Whatever it allocates is in proportion to bytes that are really there.
pub(crate) struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
    end: usize,
    depth: usize,
    /// How many more values it reads: no more than there are bytes, because an array of nothings has no size.
    values_left: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a Bytes) -> Reader<'a> {
        let values_left = bytes.len().min(AMQP_VALUES_MAX);
        Reader { bytes, at: 0, end: bytes.len(), depth: 0, values_left }
    }

    /// Reads at most so many values, of each list that it comes upon.
    pub(crate) fn limit_values(&mut self, values_max: usize) {
        self.values_left = self.values_left.min(values_max);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// How many bytes were read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What is left, without copying it.
    pub(crate) fn rest(&self) -> Bytes {
        self.bytes.slice(self.at..self.end)
    }

    pub(crate) fn is_at_null(&self) -> bool {
        !self.is_empty() && self.bytes[self.at] == 0x40
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        let [byte] = self.fixed()?;
        Ok(byte)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.take(N)?.first_chunk().copied().ok_or(DecodeError::Truncated)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let bytes = self.bytes;
        self.advance(len).map(|from| &bytes[from..from + len])
    }

    pub(crate) fn share(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        let bytes = self.bytes;
        self.advance(len).map(|from| bytes.slice(from..from + len))
    }

    fn advance(&mut self, len: usize) -> Result<usize, DecodeError> {
        if len > self.end - self.at {
            return Err(DecodeError::Truncated);
        }
        let from = self.at;
        self.at += len;
        Ok(from)
    }

    /// The length before a variable or compound value.
    pub(crate) fn length(&mut self, is_wide: bool) -> Result<usize, DecodeError> {
        if is_wide { Ok(u32::from_be_bytes(self.fixed()?) as usize) } else { Ok(self.byte()?.into()) }
    }

    /// A reader of the body of a compound, and how many values the body claims; this reader goes on after it.
    pub(crate) fn compound(&mut self, is_wide: bool) -> Result<(Reader<'a>, usize), DecodeError> {
        let size = self.length(is_wide)?;
        let from = self.advance(size)?;
        let mut body = Reader {
            bytes: self.bytes,
            at: from,
            end: from + size,
            depth: self.depth,
            values_left: self.values_left,
        };
        let count = body.length(is_wide).map_err(|_| DecodeError::Size)?;
        Ok((body, count))
    }

    /// Goes past one value without looking inside.
    pub(crate) fn skip(&mut self) -> Result<(), DecodeError> {
        let code = self.byte()?;
        let width = match code {
            0x00 => return self.skip_described(),
            0x40..=0x4f => 0,
            0x50..=0x5f => 1,
            0x60..=0x6f => 2,
            0x70..=0x7f => 4,
            0x80..=0x8f => 8,
            0x90..=0x9f => 16,
            0xa0..=0xaf | 0xc0..=0xcf | 0xe0..=0xef => self.length(false)?,
            0xb0..=0xbf | 0xd0..=0xdf | 0xf0..=0xff => self.length(true)?,
            _ => return Err(DecodeError::Constructor(code)),
        };
        self.advance(width).map(drop)
    }

    fn skip_described(&mut self) -> Result<(), DecodeError> {
        self.descend()?;
        self.skip()?;
        self.skip()?;
        self.depth -= 1;
        Ok(())
    }

    fn descend(&mut self) -> Result<(), DecodeError> {
        self.depth += 1;
        if self.depth > AMQP_DEPTH_MAX { Err(DecodeError::Depth) } else { Ok(()) }
    }

    /// One value of any type.
    pub(crate) fn value(&mut self) -> Result<Value, DecodeError> {
        let code = self.byte()?;
        self.value_of(code)
    }

    /// The value after its constructor.
    pub(crate) fn value_of(&mut self, code: u8) -> Result<Value, DecodeError> {
        self.values_left = self.values_left.checked_sub(1).ok_or(DecodeError::Count)?;
        Ok(match code {
            0x00 => return self.described(),
            0x40 => Value::Null,
            0x41 => Value::Boolean(true),
            0x42 => Value::Boolean(false),
            0x43 => Value::Uint(0),
            0x44 => Value::Ulong(0),
            0x45 => Value::List(Vec::new()),
            0x50 => Value::Ubyte(self.byte()?),
            0x51 => Value::Byte(i8::from_be_bytes(self.fixed()?)),
            0x52 => Value::Uint(self.byte()?.into()),
            0x53 => Value::Ulong(self.byte()?.into()),
            0x54 => Value::Int(i8::from_be_bytes(self.fixed()?).into()),
            0x55 => Value::Long(i8::from_be_bytes(self.fixed()?).into()),
            0x56 => Value::Boolean(self.boolean()?),
            0x60 => Value::Ushort(u16::from_be_bytes(self.fixed()?)),
            0x61 => Value::Short(i16::from_be_bytes(self.fixed()?)),
            0x70 => Value::Uint(u32::from_be_bytes(self.fixed()?)),
            0x71 => Value::Int(i32::from_be_bytes(self.fixed()?)),
            0x72 => Value::Float(f32::from_be_bytes(self.fixed()?)),
            0x73 => {
                Value::Char(char::from_u32(u32::from_be_bytes(self.fixed()?)).ok_or(DecodeError::Unicode)?)
            }
            0x74 => Value::Decimal(self.share(4)?),
            0x80 => Value::Ulong(u64::from_be_bytes(self.fixed()?)),
            0x81 => Value::Long(i64::from_be_bytes(self.fixed()?)),
            0x82 => Value::Double(f64::from_be_bytes(self.fixed()?)),
            0x83 => Value::Timestamp(i64::from_be_bytes(self.fixed()?)),
            0x84 => Value::Decimal(self.share(8)?),
            0x94 => Value::Decimal(self.share(16)?),
            0x98 => Value::Uuid(self.fixed()?),
            0xa0 | 0xb0 => Value::Binary(self.sized(code)?),
            0xa1 | 0xb1 => Value::String(self.text(code)?),
            0xa3 | 0xb3 => Value::Symbol(self.text(code)?),
            0xc0 | 0xd0 => Value::List(self.list(code == 0xd0)?),
            0xc1 | 0xd1 => Value::Map(self.map(code == 0xd1)?),
            0xe0 | 0xf0 => Value::Array(self.array(code == 0xf0)?),
            _ => return Err(DecodeError::Constructor(code)),
        })
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Expected("a boolean")),
        }
    }

    /// The bytes of a variable value, whose constructor tells how wide its length is.
    pub(crate) fn sized(&mut self, code: u8) -> Result<Bytes, DecodeError> {
        let len = self.length(code >= 0xb0)?;
        self.share(len)
    }

    /// The text of a string or a symbol.
    pub(crate) fn text(&mut self, code: u8) -> Result<Text, DecodeError> {
        let len = self.length(code >= 0xb0)?;
        let text = str::from_utf8(self.take(len)?).map_err(|_| DecodeError::Unicode)?;
        Ok(text.into())
    }

    fn described(&mut self) -> Result<Value, DecodeError> {
        self.descend()?;
        let described = Value::described(self.value()?, self.value()?);
        self.depth -= 1;
        Ok(described)
    }

    fn list(&mut self, is_wide: bool) -> Result<Vec<Value>, DecodeError> {
        self.body(is_wide, |body, count| {
            let mut values = Vec::with_capacity(count.min(CLAIM_MAX));
            for _ in 0..count {
                values.push(body.value()?);
            }
            Ok(values)
        })
    }

    fn map(&mut self, is_wide: bool) -> Result<Map, DecodeError> {
        self.body(is_wide, |body, count| {
            if count % 2 == 1 {
                return Err(DecodeError::Size);
            }
            let mut entries = Map::with_capacity(count.min(CLAIM_MAX) / 2);
            for _ in 0..count / 2 {
                entries.push((body.value()?, body.value()?));
            }
            Ok(entries)
        })
    }

    fn array(&mut self, is_wide: bool) -> Result<Vec<Value>, DecodeError> {
        self.body(is_wide, |body, count| {
            let code = body.byte()?;
            let descriptor = if code == 0 { Some((body.value()?, body.byte()?)) } else { None };
            let mut values = Vec::with_capacity(count.min(CLAIM_MAX));
            for _ in 0..count {
                values.push(match &descriptor {
                    None => body.value_of(code)?,
                    Some((descriptor, code)) => body.element_of(descriptor, *code)?,
                });
            }
            Ok(values)
        })
    }

    /// An element of an array that gives all its elements one descriptor.
    fn element_of(&mut self, descriptor: &Value, code: u8) -> Result<Value, DecodeError> {
        // Every element gets a copy, so a long descriptor is as dear as its bytes are values.
        let cost = match descriptor {
            Value::Ulong(_) => 0,
            Value::Symbol(name) => name.len(),
            _ => return Err(DecodeError::Expected("a symbol or a number as descriptor")),
        };
        self.values_left = self.values_left.checked_sub(cost).ok_or(DecodeError::Count)?;
        self.descend()?;
        let element = Value::described(descriptor.clone(), self.value_of(code)?);
        self.depth -= 1;
        Ok(element)
    }

    /// Reads what is in a compound, one level deeper; it must be read to its end.
    fn body<T>(
        &mut self,
        is_wide: bool,
        read: impl FnOnce(&mut Reader<'a>, usize) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let (mut body, count) = self.compound(is_wide)?;
        body.descend()?;
        if count > body.values_left {
            return Err(DecodeError::Count);
        }
        let read = read(&mut body, count)?;
        self.values_left = body.values_left;
        if body.is_empty() { Ok(read) } else { Err(DecodeError::Size) }
    }
}
