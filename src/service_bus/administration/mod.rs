//! The administration API of Service Bus: entities and their rules, made, changed, listed and deleted with Atom documents.
//!
//! Its documents are those of the REST API of Service Bus (version 2021-05) as the SDKs read and write them.

mod atom;
mod authorized;
mod document;
mod entities;
mod fields;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod host;
mod listing;
mod path;
mod properties;
mod queues;
mod refusal;
mod respond;
mod rule_values;
mod rule_xml;
mod rules;
mod subscriptions;
mod topics;

pub(crate) use crate::service_bus::administration::host::query;
pub(crate) use crate::service_bus::administration::respond::respond;
