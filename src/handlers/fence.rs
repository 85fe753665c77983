//! Ends the children an earlier daemon of the same store left behind, before anything is offered to new ones.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::Signal;
use thiserror::Error;

#[cfg(target_os = "linux")]
use crate::handlers::carriers;
#[cfg(target_os = "linux")]
use crate::limits;

/// Children of an earlier daemon that cannot be ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("end the processes {pids:?}, which an earlier daemon of this store left behind: they do not die")]
pub(crate) struct Survivors {
    /// Their process IDs.
    pub(crate) pids: Vec<i32>,
}

/// Kills every process that carries the store's ID, and the process groups of those, and waits until they are gone. Says
/// how many there were.
///
/// A message whose handler still runs in an orphan would be handled twice at the same time.
///
/// # Errors
/// [`Survivors`] names those that are still there after a while.
#[cfg(target_os = "linux")]
pub(crate) async fn fence(store_id: &str) -> Result<usize, Survivors> {
    if !carriers::can_be_found() {
        tracing::warn!(
            "handlers that a killed daemon left behind cannot be found without /proc: see that none runs"
        );
    }
    let (mut killed, mut was_still) = (BTreeSet::new(), false);
    for look in 0..limits::FENCE_PATIENCE.as_millis() / limits::FENCE_LOOK_EVERY.as_millis() {
        let left = carriers::find(store_id);
        if left.is_empty() {
            return Ok(killed.len());
        }
        // Stopped first, all of them: who starts others meanwhile, or is about to become another program, could leave
        // one behind that nothing leads to any more. A look takes time: only the second that finds all of them stopped
        // has seen what the first may have missed. Who waits for its child cannot stop, and is not waited for.
        let is_still = left.iter().all(|process| process.is_stopped);
        let is_time = look >= limits::FENCE_LOOKS_TO_STOP || is_still && was_still;
        was_still = is_still;
        for process in left {
            match is_time {
                true if carriers::signal(process, Signal::KILL) => drop(killed.insert(process.pid)),
                true => {}
                false => drop(carriers::signal(process, Signal::STOP)),
            }
        }
        pause(limits::FENCE_LOOK_EVERY).await;
    }
    Err(Survivors { pids: carriers::find(store_id).iter().map(|process| process.pid).collect() })
}

/// Says that nothing can be found: there is no `/proc` here.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn fence(_store_id: &str) -> Result<usize, Survivors> {
    tracing::warn!(
        "handlers that a killed daemon left behind cannot be found on this system: see that none runs"
    );
    Ok(0)
}

/// A dying process gives no sign.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a few milliseconds between two looks, and ten seconds in all")]
async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}
