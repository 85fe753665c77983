//! How many notifications of a queue are sent at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::id::QueueName;
use crate::limits;
use crate::mutex::Mutex;

/// Whose turn it is to be sent: so many notifications of a queue at once, as one that hangs keeps others waiting.
#[derive(Default)]
pub(crate) struct Notices(Mutex<BTreeMap<QueueName, Arc<Semaphore>>>);

impl Notices {
    fn of(&self, queue: &QueueName) -> Arc<Semaphore> {
        let mut queues = self.0.lock();
        let turns = || Arc::new(Semaphore::new(limits::NOTICES_AT_ONCE));
        queues.entry(queue.clone()).or_insert_with(turns).clone()
    }

    /// Sends a notification of a queue when it is its turn; nothing of it is made before, as many may wait.
    pub(crate) async fn in_turn<T>(&self, queue: &QueueName, send: impl AsyncFnOnce() -> T) -> T {
        let turns = self.of(queue);
        let _turn = turns.acquire().await.expect("nobody ends the turns");
        send().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn nothing_of_a_notification_is_made_before_its_turn() {
        let (queue, made) = (QueueName::new("orders").unwrap(), Arc::new(AtomicUsize::new(0)));
        let notices = Arc::new(Notices::default());
        let mut sent = Vec::new();
        for _ in 0..=limits::NOTICES_AT_ONCE {
            let (end, ended) = oneshot::channel::<()>();
            let (notices, queue, made) = (notices.clone(), queue.clone(), made.clone());
            let sending = tokio::spawn(async move {
                let send = async || {
                    made.fetch_add(1, Ordering::SeqCst);
                    let _ = ended.await;
                };
                notices.in_turn(&queue, send).await;
            });
            sent.push((end, sending));
        }
        for _ in 0..10 * limits::NOTICES_AT_ONCE {
            tokio::task::yield_now().await;
        }
        assert_eq!(made.load(Ordering::SeqCst), limits::NOTICES_AT_ONCE);
        for (end, sending) in sent {
            drop(end);
            sending.await.unwrap();
        }
        assert_eq!(made.load(Ordering::SeqCst), limits::NOTICES_AT_ONCE + 1);
    }
}
