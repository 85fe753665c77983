//! The HTTP server: what an engine can be asked, asked from outside.

mod answer;
mod answer_writer;
mod audit;
mod authorize;
mod batch;
mod blocked;
mod blocked_reason;
mod bulk;
mod cluster;
mod daemon;
mod dead_letters;
mod events;
mod extract;
mod groups;
mod headers;
mod history;
mod host;
mod impersonation;
mod openapi;
mod operate;
mod page;
mod peek;
mod principal;
mod queues;
mod receive;
mod route;
mod routes;
mod unordered_summary;

mod search;
mod send;
mod serve;
mod settle;
mod shared;
mod socket;
#[cfg(test)]
mod tests;
mod topic_routes;
mod topics;
mod walk;
mod workflows;

pub(crate) use crate::server::host::Host;
pub(crate) use crate::server::host::OversizeMessage;
pub(crate) use crate::server::host::Placement;
pub(crate) use crate::server::host::WindowStall;
pub(crate) use crate::server::serve::CredentialReloader;
pub(crate) use crate::server::serve::Server;
pub(crate) use crate::server::serve::ServerCredentials;
pub(crate) use crate::server::serve::ServerError;
pub(crate) use crate::server::serve::ServerOptions;
