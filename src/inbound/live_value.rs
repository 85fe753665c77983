//! What can change while everybody serves with it.

use std::sync::Arc;

use tokio::sync::watch;

/// What is in force, as the keys of a daemon: when it is read again, whoever has this has the new one at once.
#[derive(Debug)]
pub(crate) struct LiveValue<T> {
    value: Arc<watch::Sender<Option<Arc<T>>>>,
}

/// Says when there is another.
pub(crate) type ValueChanges<T> = watch::Receiver<Option<Arc<T>>>;

impl<T> LiveValue<T> {
    pub(crate) fn new(value: Option<T>) -> LiveValue<T> {
        LiveValue { value: Arc::new(watch::Sender::new(value.map(Arc::new))) }
    }

    /// What is in force, if there is something.
    pub(crate) fn load(&self) -> Option<Arc<T>> {
        self.value.borrow().clone()
    }

    /// Puts another in force.
    pub(crate) fn replace(&self, value: Option<T>) {
        self.value.send_replace(value.map(Arc::new));
    }

    /// Whoever has judged by it for longer than a request waits for another with this, and judges again.
    pub(crate) fn changes(&self) -> ValueChanges<T> {
        self.value.subscribe()
    }
}

impl<T> Clone for LiveValue<T> {
    fn clone(&self) -> LiveValue<T> {
        LiveValue { value: self.value.clone() }
    }
}

impl<T> Default for LiveValue<T> {
    fn default() -> LiveValue<T> {
        LiveValue::new(None)
    }
}
