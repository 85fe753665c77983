//! Panics that are caught: redb panics where a file's bytes make no sense, and nobody shall read of it in its words.

use std::any::Any;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Once;

use crate::engine::store::checksum::PAGES_MAKE_NO_SENSE;
use crate::engine::store::checksum::damaged;
use crate::engine::store::definition::RawTableDefinition;
use crate::error::Fault;

/// What follows the folder of this crate's sources in the name of this file.
const THIS_FILE: &str = "engine/store/caught.rs";

thread_local! {
    /// Whether a panic of this thread is caught and told in another way.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where the last of them was: its file and line.
    static PLACE: Cell<Option<(String, u32)>> = const { Cell::new(None) };
}

/// Keeps panics that the engine catches off stderr: each is answered as a fault or as damage of the file, in words that
/// say what is wrong.
///
/// The layer that reads pages panics where their bytes make no sense. The engine catches that, but the process's panic
/// hook prints it all the same. This wraps the hook that is set now; panics that nobody catches go to it as before. A defect of
/// the engine then says where the panic was. To be called once, at the start of a program; calling it again changes nothing.
pub fn quiet_caught_panics() {
    static WRAPPED: Once = Once::new();
    WRAPPED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                return before(panic);
            }
            PLACE.set(panic.location().map(|place| (place.file().to_owned(), place.line())));
        }));
    });
}

/// A panic that was caught.
#[derive(Debug)]
pub(crate) struct PanicReport {
    text: String,
    place: Option<(String, u32)>,
}

impl PanicReport {
    /// What it said, and where, if that is known.
    pub(crate) fn told(&self) -> String {
        self.placed(&self.text)
    }

    /// The fault, where bytes that make no sense are met without a panic.
    pub(crate) fn into_defect(self) -> Fault {
        Fault::Defect(self.told())
    }

    /// What is damaged, where redb reads or writes a file: what has panicked in this crate is no damage. What a panic of redb said goes
    /// to the log, at debug.
    ///
    /// # Errors
    /// [`Fault::Defect`] if it was in this crate.
    pub(crate) fn damage(self) -> Result<String, Fault> {
        if self.is_ours() {
            return Err(self.into_defect());
        }
        let said = self.placed(self.text.lines().next().unwrap_or_default());
        tracing::debug!(panic = %said, "{PAGES_MAKE_NO_SENSE}");
        Ok(PAGES_MAKE_NO_SENSE.to_owned())
    }

    /// The fault, where redb reads or writes a table.
    pub(crate) fn fault_in(self, table: &RawTableDefinition) -> Fault {
        self.damage().map_or_else(|defect| defect, |detail| damaged(table, &detail))
    }

    fn is_ours(&self) -> bool {
        let sources = file!().strip_suffix(THIS_FILE);
        let place = self.place.as_ref();
        sources.zip(place).is_some_and(|(sources, (file, _))| file.starts_with(sources))
    }

    /// A text with the place; of another crate's the name and what is in it.
    fn placed(&self, text: &str) -> String {
        let Some((file, line)) = &self.place else { return text.to_owned() };
        let file = match file.rsplit_once("/src/") {
            Some((folder, inner)) => format!("{}/src/{inner}", folder.rsplit('/').next().unwrap_or_default()),
            None => file.clone(),
        };
        format!("{text} at {file}:{line}")
    }
}

/// Does something that may panic on a damaged file; the panic if it did.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, PanicReport> {
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.map_err(|panic| PanicReport { text: panic_text(&*panic), place: PLACE.take() })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::store::definition::JOURNAL;

    #[test]
    fn a_panic_is_told_with_its_place_and_is_a_defect_where_it_is_ours() {
        quiet_caught_panics();
        let ours = guarded(|| assert_eq!(7, 8, "numbers")).unwrap_err().fault_in(&JOURNAL);
        let Fault::Defect(text) = ours else { panic!("{ours:?}") };
        assert!(text.contains(": numbers\n") && text.contains(" at src/engine/store/caught.rs:"), "{text}");
        let theirs = guarded(|| drop(bytes::Bytes::new().split_to(5))).unwrap_err().fault_in(&JOURNAL);
        let Fault::Damaged { detail, .. } = theirs else { panic!("{theirs:?}") };
        assert_eq!(detail, PAGES_MAKE_NO_SENSE);
    }
}
