//! How many notifications of a queue are sent at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::Semaphore;

use crate::id::QueueName;
use crate::limits;

/// Whose turn it is to be sent: so many notifications of a queue at once, as one that hangs keeps others waiting.
#[derive(Default)]
pub(crate) struct Notices(Mutex<BTreeMap<QueueName, Arc<Semaphore>>>);

impl Notices {
    pub(crate) fn of(&self, queue: &QueueName) -> Arc<Semaphore> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = || Arc::new(Semaphore::new(limits::NOTICES_AT_ONCE));
        queues.entry(queue.clone()).or_insert_with(turns).clone()
    }
}
