//! The promises of the Service Bus and Storage Queue endpoints, kept towards Azure's own SDKs, unmodified and pinned.
//!
//! The SDKs are installed once, into the build folder. Where Python, Node or the packages cannot be had, the tests say
//! so and count as skipped; with `CI=true` that is a failure.

mod early;
mod fixture;
pub(crate) mod kit;
mod play;
mod scenarios;
