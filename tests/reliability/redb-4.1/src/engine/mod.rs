//! The modules of the crash tests, under the names they know each other by.

pub(crate) mod tests;
