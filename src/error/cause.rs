//! What stands at the bottom of an error.

use std::error::Error;

use crate::limits;

/// The text of the innermost cause: what the operating system or TLS said. The outer ones of an HTTP client only say that a
/// request failed.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    innermost(error).to_string()
}

/// The innermost cause of an error.
pub(crate) fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut cause = error;
    // Chains of errors are short; a loop in one would be a defect of its author.
    for _ in 0..limits::CAUSES_MAX {
        match cause.source() {
            Some(source) => cause = source,
            None => break,
        }
    }
    cause
}
