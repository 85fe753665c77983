//! The promises of this module.

mod books;
mod codec;
mod linking;
mod missing_parts;
mod opening;
pub(crate) mod peer;
mod receiving;
mod sending;
mod streams;
