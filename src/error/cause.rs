//! What stands at the bottom of an error.

use std::error::Error;

/// The text of the innermost cause of an error: the outer ones of an HTTP client only say that a request failed.
pub(crate) fn root_cause(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
