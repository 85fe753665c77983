//! The web page: what is stuck, why, since when, what happens next by itself, and what may be done about it.
//!
//! It asks the HTTP API as everybody else does, with the key of whoever looks: what it can do, `curl` can do.

mod actions;
mod answer;
mod api;
mod assets;
mod audit;
mod blocked;
mod body;
mod cluster;
mod dead_letters;
mod definitions;
mod edit;
mod events;
mod fields;
mod labels;
mod layout;
mod login;
mod message;
mod messages;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod page;
mod part;
mod plan;
mod present;
mod preview;
mod queues;
mod redact;
mod response;
mod review;
mod routes;
mod schedules;
mod sessions;
mod shared;
mod strip;
mod tail;
mod text;
mod timeline;
mod topics;
mod visitor;
mod workflow;
mod workflows;

pub(crate) use crate::page::page::PageOptions;
pub(crate) use crate::page::page::mount;
