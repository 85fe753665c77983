//! The HTTP server: what an engine can be asked, asked from outside.

#![allow(dead_code, unused_imports, reason = "the daemon calls what nothing here does")]

mod alone;
mod answer;
mod audit;
mod batch;
mod behalf;
mod blocked;
mod bulk;
mod caller;
mod daemon;
mod dead;
mod events;
mod groups;
mod guard;
mod headers;
mod history;
mod host;
mod named;
mod openapi;
mod operate;
mod outbox;
mod page;
mod peek;
mod queues;
mod receive;
mod route;
mod routes;

mod search;
mod send;
mod serve;
mod settle;
mod shared;
mod socket;
#[cfg(test)]
mod tests;
mod walk;
mod workflows;

pub(crate) use crate::server::host::FullWindow;
pub(crate) use crate::server::host::Host;
pub(crate) use crate::server::host::Place;
pub(crate) use crate::server::host::TooLarge;
pub(crate) use crate::server::serve::Doorkeeper;
pub(crate) use crate::server::serve::Server;
pub(crate) use crate::server::serve::ServerError;
pub(crate) use crate::server::serve::ServerOptions;
pub(crate) use crate::server::serve::serve;
