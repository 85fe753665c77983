//! The engine: rules, store and the one thread that writes. Outsiders see only its face.

pub(crate) mod rules;
pub(crate) mod store;
