//! The log: what each implementation promises, servers that misbehave, and stores that follow and take over.

mod acknowledged;
pub(crate) mod conformance;
mod following;
mod implementations;
mod nodes;
mod random;
#[cfg(feature = "cluster")]
mod recovered;
pub(crate) mod server;
#[cfg(feature = "cluster")]
mod serving;
#[cfg(feature = "cluster")]
mod turns;

#[cfg(feature = "cluster")]
pub(crate) use crate::engine::store::in_place::Epoch;
#[cfg(feature = "cluster")]
pub(crate) use crate::engine::store::log::Log;
#[cfg(feature = "cluster")]
pub(crate) use crate::engine::tests::crash::random::Random;
