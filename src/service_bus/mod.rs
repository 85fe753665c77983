//! Azure Service Bus, as its clients speak to it over AMQP 1.0: queues, sessions, dead letters and their management.
//!
//! What AMQP means as a protocol is the module `amqp`; here is what Service Bus means by it. Every connection is a task that
//! reads, writes, and waits for the engine all at once; nothing is answered before the engine has it on disk.

mod accept;
mod accepted_connection;
mod address;
mod administration;
mod arrival;
mod attach;
mod backlog;
mod browse;
mod browser;
mod changeable;
mod client_settlement;
mod completions;
mod config;
mod config_properties;
mod config_topics;
mod configure;
mod connection_task;
mod creation_instant;
mod description;
mod description_ends;
mod description_news;
mod dotnet_value;
mod elapsed;
mod endpoint;
mod endpoint_error;
mod entity;
mod feed;
mod find;
mod forward_each;
mod forwarding;
mod grants;
mod health;
mod held_session;
mod holds;
mod http;
mod in_order;
mod incoming;
mod kept_locks;
mod link_window;
mod links;
mod listening;
mod management;
mod meters;
mod on_their_way;
mod order;
mod outgoing;
mod piped_stream;
mod plain_json;
mod prompt;
mod property;
mod publish_each;
mod published;
mod raw_sections;
mod receive;
mod refusal;
mod rights;
mod selected;
mod selection;
mod send;
mod sender;
mod session;
mod settle;
mod shared;
mod slashed;
mod socket;
mod sql_filter;
mod stream;
#[cfg(test)]
mod tests;
mod too_large;
mod transacting;
mod transactions;
mod unsettled;
mod waiting;
mod websocket;
mod window;

#[cfg(fuzzing)]
pub use crate::service_bus::administration::fuzz::administration as fuzz_administration;
pub(crate) use crate::service_bus::config::ConfigurationError;
#[cfg(test)]
pub(crate) use crate::service_bus::description::RECORDS_QUEUE;
pub(crate) use crate::service_bus::endpoint::Endpoint;
pub(crate) use crate::service_bus::endpoint::EndpointOptions;
pub(crate) use crate::service_bus::endpoint_error::EndpointError;
pub(crate) use crate::service_bus::meters::MeterReading;
pub(crate) use crate::service_bus::meters::Meters;
pub(crate) use crate::service_bus::shared::Owners;
pub(crate) use crate::service_bus::too_large::OversizeEntry;
pub(crate) use crate::service_bus::waiting::WindowWait;
