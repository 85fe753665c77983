//! Any value of AMQP's type system.

use bytes::Bytes;

use crate::amqp::text::Text;

/// The entries of a map in their order on the wire; a key may be any value.
pub type Map = Vec<(Value, Value)>;

/// A value with its AMQP type, so that what was read is written with the same type again.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Boolean(bool),
    /// 8 bits without a sign.
    Ubyte(u8),
    /// 16 bits without a sign.
    Ushort(u16),
    /// 32 bits without a sign.
    Uint(u32),
    /// 64 bits without a sign.
    Ulong(u64),
    /// 8 bits with a sign.
    Byte(i8),
    /// 16 bits with a sign.
    Short(i16),
    /// 32 bits with a sign.
    Int(i32),
    /// 64 bits with a sign.
    Long(i64),
    /// 32 bits of floating point.
    Float(f32),
    /// 64 bits of floating point.
    Double(f64),
    /// A decimal of 4, 8 or 16 bytes, as they are on the wire; other lengths are written as binary.
    Decimal(Bytes),
    /// One Unicode scalar value.
    Char(char),
    /// Milliseconds since 1970.
    Timestamp(i64),
    /// A UUID in the byte order of RFC 4122.
    Uuid([u8; 16]),
    /// Bytes.
    Binary(Bytes),
    /// UTF-8 text.
    String(Text),
    /// A name from a domain of names.
    Symbol(Text),
    /// Values of any types.
    List(Vec<Value>),
    /// Keys and values.
    Map(Map),
    /// Values of one type. Values of several are written as a list, because an array has one constructor.
    Array(Vec<Value>),
    /// A descriptor and the value that it gives a meaning.
    Described(Box<(Value, Value)>),
}

impl Value {
    /// A string of constant text.
    pub const fn string(text: &'static str) -> Value {
        Value::String(Text::of(text))
    }

    /// A symbol of constant text.
    pub const fn symbol(text: &'static str) -> Value {
        Value::Symbol(Text::of(text))
    }

    /// A value under a descriptor.
    pub fn described(descriptor: Value, value: Value) -> Value {
        Value::Described(Box::new((descriptor, value)))
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// The text of a string or a symbol.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) | Value::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// An integer of any width, if it is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Ubyte(n) => Some(n.into()),
            Value::Ushort(n) => Some(n.into()),
            Value::Uint(n) => Some(n.into()),
            Value::Ulong(n) => Some(n),
            _ => self.as_i64().and_then(|n| n.try_into().ok()),
        }
    }

    /// An integer of any width, if 64 bits with a sign hold it.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Ubyte(n) => Some(n.into()),
            Value::Ushort(n) => Some(n.into()),
            Value::Uint(n) => Some(n.into()),
            Value::Ulong(n) => n.try_into().ok(),
            Value::Byte(n) => Some(n.into()),
            Value::Short(n) => Some(n.into()),
            Value::Int(n) => Some(n.into()),
            Value::Long(n) => Some(n),
            _ => None,
        }
    }

    /// A boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Value::Boolean(is_true) => Some(is_true),
            _ => None,
        }
    }

    /// Milliseconds since 1970.
    pub fn as_timestamp(&self) -> Option<i64> {
        match *self {
            Value::Timestamp(ms) => Some(ms),
            _ => None,
        }
    }

    /// A UUID.
    pub fn as_uuid(&self) -> Option<[u8; 16]> {
        match *self {
            Value::Uuid(uuid) => Some(uuid),
            _ => None,
        }
    }

    /// Bytes.
    pub fn as_binary(&self) -> Option<&Bytes> {
        match self {
            Value::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The values of a list or an array.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) | Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The entries of a map.
    pub fn as_map(&self) -> Option<&[(Value, Value)]> {
        match self {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under its descriptors, or itself.
    pub fn undescribed(&self) -> &Value {
        match self {
            Value::Described(pair) => pair.1.undescribed(),
            _ => self,
        }
    }
}

/// The value under a key of a map that is a string or a symbol of this text.
pub fn lookup<'a>(entries: &'a [(Value, Value)], key: &str) -> Option<&'a Value> {
    entries.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
}

impl From<bool> for Value {
    fn from(is_true: bool) -> Value {
        Value::Boolean(is_true)
    }
}

impl From<u32> for Value {
    fn from(n: u32) -> Value {
        Value::Uint(n)
    }
}

impl From<i32> for Value {
    fn from(n: i32) -> Value {
        Value::Int(n)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Long(n)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text.into())
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Value {
        Value::Binary(bytes)
    }
}
