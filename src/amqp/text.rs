//! Text as AMQP's strings and symbols carry it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// A string or the name of a symbol: a constant costs nothing, what came from a peer is owned.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Cow<'static, str>);

impl Text {
    /// A constant.
    pub const fn of(text: &'static str) -> Text {
        Text(Cow::Borrowed(text))
    }

    /// The characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(Cow::Owned(text.to_owned()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(Cow::Owned(text))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0.into_owned()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
