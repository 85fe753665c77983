//! The HTTP server: what an engine can be asked, asked from outside.

#![cfg_attr(not(test), allow(dead_code, unused_imports, reason = "the daemon calls it"))]

mod answer;
mod guard;
mod host;
mod inflow;
mod named;
mod pace;
mod receive;
mod routes;
mod send;
mod serve;
mod settle;
mod shared;
#[cfg(test)]
mod tests;

pub(crate) use crate::server::host::Host;
pub(crate) use crate::server::host::Place;
pub(crate) use crate::server::serve::Server;
pub(crate) use crate::server::serve::ServerError;
pub(crate) use crate::server::serve::ServerOptions;
pub(crate) use crate::server::serve::serve;
