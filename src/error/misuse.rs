//! What the caller got wrong, with the field that is wrong.

use std::borrow::Cow;

use thiserror::Error;

/// A value the caller passed that is not allowed, caught before it reaches the engine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {problem}")]
pub struct Misuse {
    field: Cow<'static, str>,
    problem: Cow<'static, str>,
}

impl Misuse {
    /// Names the field and what is wrong with it, as a fragment that follows the field's name.
    pub fn new(field: impl Into<Cow<'static, str>>, problem: impl Into<Cow<'static, str>>) -> Misuse {
        Misuse { field: field.into(), problem: problem.into() }
    }

    /// The field that is wrong.
    pub fn field(&self) -> &str {
        &self.field
    }
}
