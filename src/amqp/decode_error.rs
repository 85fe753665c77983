//! Why bytes are not what AMQP says they should be.

use thiserror::Error;

/// A reason not to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A length points past the end.
    #[error("a value ends after its frame")]
    Truncated,
    /// Bytes are left over.
    #[error("bytes follow the value")]
    Trailing,
    /// No type has this constructor.
    #[error("no type has the constructor {0:#04x}")]
    Constructor(u8),
    /// Values within values within values.
    #[error("values are nested too deeply")]
    Depth,
    /// More values than bytes justify or anybody needs.
    #[error("too many values")]
    Count,
    /// A compound's size and count do not fit together.
    #[error("a size and what it measures differ")]
    Size,
    /// A string is not UTF-8, or a character none of Unicode.
    #[error("text is not valid Unicode")]
    Unicode,
    /// A field has another type.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A field that must be there is not.
    #[error("field {0} is missing")]
    Missing(&'static str),
    /// A section of a message is twice there, or after one it must precede.
    #[error("sections of a message are out of order")]
    Order,
}
