//! A mutex that stays usable when somebody has panicked with it.

use std::sync::MutexGuard;
use std::sync::PoisonError;

/// A mutex of the standard library, without its poison: what is guarded here is whole between any two statements, and a panic is said where
/// it happens.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits until nobody else has it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it has guarded.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only handlers of the daemon end so"))]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
