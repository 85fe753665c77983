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
}
