//! The topics that were sent to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use crate::engine::client::fanout::CompiledTopic;
use crate::id::QueueName;

/// The topics that were sent to, their rules read. Whether they are still so, the engine says with each send.
#[derive(Default)]
pub(crate) struct KnownTopics(RwLock<HashMap<QueueName, Arc<CompiledTopic>>>);

impl KnownTopics {
    pub(crate) fn get(&self, name: &QueueName) -> Option<Arc<CompiledTopic>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn insert(&self, name: QueueName, topic: Arc<CompiledTopic>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name, topic);
    }

    pub(crate) fn forget(&self, name: &QueueName) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
