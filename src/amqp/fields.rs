//! The fields of a described list: those at its end may be left out, any may be null.

use bytes::Bytes;

use crate::amqp::decode_error::DecodeError;
use crate::amqp::reader::Reader;
use crate::amqp::text::Text;
use crate::amqp::value::Map;
use crate::amqp::value::Value;

static NOTHING: Bytes = Bytes::new();

/// Which described list it is: by its number, or by its name, which a peer may write instead.
pub(crate) fn descriptor(reader: &mut Reader<'_>, names: &[(&str, u64)]) -> Result<u64, DecodeError> {
    if reader.byte()? != 0x00 {
        return Err(DecodeError::Expected("a described value"));
    }
    match reader.byte()? {
        0x44 => Ok(0),
        0x53 => Ok(reader.byte()?.into()),
        0x80 => Ok(u64::from_be_bytes(reader.fixed()?)),
        code @ (0xa3 | 0xb3) => {
            let name = reader.text(code)?;
            let known = names.iter().find(|(known, _)| name == *known);
            known.map(|(_, number)| *number).ok_or(DecodeError::Expected("a known descriptor"))
        }
        _ => Err(DecodeError::Expected("a symbol or a number as descriptor")),
    }
}

/// The fields of one list, in their order.
pub(crate) struct FieldList<'a> {
    body: Reader<'a>,
    left: usize,
}

impl<'a> FieldList<'a> {
    /// Begins the list at which the reader stands, and puts the reader after it.
    pub(crate) fn begin(reader: &mut Reader<'a>) -> Result<FieldList<'a>, DecodeError> {
        let (body, left) = match reader.byte()? {
            0x45 => (Reader::new(&NOTHING), 0),
            0xc0 => reader.compound(false)?,
            0xd0 => reader.compound(true)?,
            _ => return Err(DecodeError::Expected("a list")),
        };
        Ok(FieldList { body, left })
    }

    /// The constructor of the next field, unless it is null or left out.
    fn code(&mut self) -> Result<Option<u8>, DecodeError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let code = self.body.byte()?;
        Ok((code != 0x40).then_some(code))
    }

    /// Goes past a field.
    pub(crate) fn skip(&mut self) -> Result<(), DecodeError> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.body.skip()
    }

    pub(crate) fn boolean(&mut self) -> Result<Option<bool>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(0x41) => Ok(Some(true)),
            Some(0x42) => Ok(Some(false)),
            Some(0x56) => self.body.boolean().map(Some),
            Some(_) => Err(DecodeError::Expected("a boolean")),
        }
    }

    pub(crate) fn ubyte(&mut self) -> Result<Option<u8>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(0x50) => self.body.byte().map(Some),
            Some(_) => Err(DecodeError::Expected("a ubyte")),
        }
    }

    pub(crate) fn ushort(&mut self) -> Result<Option<u16>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(0x60) => Ok(Some(u16::from_be_bytes(self.body.fixed()?))),
            Some(_) => Err(DecodeError::Expected("a ushort")),
        }
    }

    pub(crate) fn uint(&mut self) -> Result<Option<u32>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(0x43) => Ok(Some(0)),
            Some(0x52) => Ok(Some(self.body.byte()?.into())),
            Some(0x70) => Ok(Some(u32::from_be_bytes(self.body.fixed()?))),
            Some(_) => Err(DecodeError::Expected("a uint")),
        }
    }

    pub(crate) fn ulong(&mut self) -> Result<Option<u64>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(0x44) => Ok(Some(0)),
            Some(0x53) => Ok(Some(self.body.byte()?.into())),
            Some(0x80) => Ok(Some(u64::from_be_bytes(self.body.fixed()?))),
            Some(_) => Err(DecodeError::Expected("a ulong")),
        }
    }

    pub(crate) fn timestamp(&mut self) -> Result<Option<i64>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(0x83) => Ok(Some(i64::from_be_bytes(self.body.fixed()?))),
            Some(_) => Err(DecodeError::Expected("a timestamp")),
        }
    }

    /// A string or a symbol: peers differ where the standard says one of them.
    pub(crate) fn text(&mut self) -> Result<Option<Text>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(code @ (0xa1 | 0xb1 | 0xa3 | 0xb3)) => self.body.text(code).map(Some),
            Some(_) => Err(DecodeError::Expected("a string or a symbol")),
        }
    }

    pub(crate) fn binary(&mut self) -> Result<Option<Bytes>, DecodeError> {
        match self.code()? {
            None => Ok(None),
            Some(code @ (0xa0 | 0xb0)) => self.body.sized(code).map(Some),
            Some(_) => Err(DecodeError::Expected("binary")),
        }
    }

    /// A field of any type; null if it is left out.
    pub(crate) fn value(&mut self) -> Result<Value, DecodeError> {
        match self.code()? {
            None => Ok(Value::Null),
            Some(code) => self.body.value_of(code),
        }
    }

    /// The entries of a map; none if it is left out.
    pub(crate) fn map(&mut self) -> Result<Map, DecodeError> {
        match self.value()? {
            Value::Null => Ok(Map::new()),
            Value::Map(entries) => Ok(entries),
            _ => Err(DecodeError::Expected("a map")),
        }
    }

    /// One symbol or an array of them; none if it is left out.
    pub(crate) fn symbols(&mut self) -> Result<Vec<Text>, DecodeError> {
        let symbol = |value| match value {
            Value::Symbol(name) => Ok(name),
            _ => Err(DecodeError::Expected("symbols")),
        };
        match self.value()? {
            Value::Null => Ok(Vec::new()),
            Value::Array(values) => values.into_iter().map(symbol).collect(),
            value => symbol(value).map(|name| vec![name]),
        }
    }

    /// Something described, at which a reader stands, unless it is null.
    pub(crate) fn described<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.body.is_at_null() {
            return self.skip().map(|()| None);
        }
        self.left -= 1;
        read(&mut self.body).map(Some)
    }
}
