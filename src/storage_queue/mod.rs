//! The REST API of Azure's storage queues, over the queues of the engine.

mod access;
mod answer;
mod cors;
mod element;
mod list;
mod messages;
mod metadata;
mod meters;
mod names;
mod operation;
mod policies;
mod properties;
mod queues;
mod records;
mod refusal;
mod request;
mod request_id;
mod route;
mod serve;
mod service;
mod shared;
#[cfg(test)]
mod tests;
mod times;
mod xml;

pub(crate) use crate::storage_queue::meters::RequestCount;
pub(crate) use crate::storage_queue::meters::StorageMeterReading;
pub(crate) use crate::storage_queue::meters::StorageMeters;
#[cfg(test)]
pub(crate) use crate::storage_queue::records::RECORDS_QUEUE;
pub(crate) use crate::storage_queue::serve::StorageQueueOptions;
pub(crate) use crate::storage_queue::serve::StorageQueues;
