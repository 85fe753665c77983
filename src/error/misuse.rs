//! What the caller got wrong, with the field that is wrong.

use std::borrow::Cow;

use thiserror::Error;

/// A value the caller passed that is not allowed, caught before it reaches the engine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {problem}")]
pub struct Misuse {
    field: Cow<'static, str>,
    problem: Cow<'static, str>,
    code: &'static str,
}

impl Misuse {
    /// Names the field and what is wrong with it, as a fragment that follows the field's name.
    pub fn new(field: impl Into<Cow<'static, str>>, problem: impl Into<Cow<'static, str>>) -> Misuse {
        Misuse { field: field.into(), problem: problem.into(), code: "misuse" }
    }

    /// The same under another code.
    #[must_use]
    pub(crate) fn known_as(self, code: &'static str) -> Misuse {
        Misuse { code, ..self }
    }

    /// The code under which it is told over HTTP: `misuse`, or what a cluster cannot do.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The field that is wrong.
    pub fn field(&self) -> &str {
        &self.field
    }
}
