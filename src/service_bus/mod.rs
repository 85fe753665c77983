//! Azure Service Bus, as its clients speak to it over AMQP 1.0: queues, sessions, dead letters and their management.
//!
//! What AMQP means as a protocol is the room `amqp`; here is what Service Bus means by it. Every connection is a task that
//! reads, writes, and waits for the engine all at once; nothing is answered before the engine has it on disk.

mod address;
mod attach;
mod config;
mod dead;
mod endpoint;
mod entity;
mod holds;
mod incoming;
mod keepsake;
mod links;
mod management;
mod meters;
mod outgoing;
mod property;
mod receive;
mod refusal;
mod rights;
mod send;
mod session;
mod settle;
mod shared;
mod talk;
#[cfg(test)]
mod tests;

pub(crate) use crate::service_bus::endpoint::Endpoint;
pub(crate) use crate::service_bus::endpoint::EndpointError;
pub(crate) use crate::service_bus::endpoint::EndpointOptions;
pub(crate) use crate::service_bus::meters::MeterReading;
pub(crate) use crate::service_bus::meters::Meters;
