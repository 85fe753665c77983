//! Panics that are caught: redb panics where a file's bytes make no sense, and nobody shall read of it in its words.

use std::any::Any;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Once;

use crate::error::Fault;

thread_local! {
    /// Whether a panic of this thread is caught and told in another way.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics that the engine catches off stderr: each is answered as a fault or as damage of the file, in words that
/// say what is wrong.
///
/// The layer that reads pages panics where their bytes make no sense. The engine catches that, but the process's panic
/// hook prints it all the same. This wraps the hook that is set now; panics that nobody catches go to it as before. To
/// be called once, at the start of a program; calling it again changes nothing.
pub fn quiet_caught_panics() {
    static WRAPPED: Once = Once::new();
    WRAPPED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                before(panic);
            }
        }));
    });
}

/// Does something that may panic on a damaged file; the panic's text if it did.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.map_err(|panic| panic_text(&*panic))
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}

/// A failure of redb as a fault.
pub(crate) fn store_fault(error: impl Into<redb::Error>) -> Fault {
    Fault::Store(std::sync::Arc::new(error.into()))
}
