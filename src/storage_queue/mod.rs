//! The REST API of Azure's storage queues, over the queues of the engine.

mod access;
mod answer;
mod asked;
mod list;
mod messages;
mod metadata;
mod meters;
mod names;
mod operation;
mod queues;
mod refused;
mod route;
mod serve;
mod service;
mod shared;
#[cfg(test)]
mod tests;
mod times;
mod xml;

pub(crate) use crate::storage_queue::metadata::METADATA;
pub(crate) use crate::storage_queue::meters::MeterReading;
pub(crate) use crate::storage_queue::meters::Meters;
pub(crate) use crate::storage_queue::meters::RequestCount;
pub(crate) use crate::storage_queue::serve::StorageQueueOptions;
pub(crate) use crate::storage_queue::serve::StorageQueues;
pub(crate) use crate::storage_queue::shared::Defined;
