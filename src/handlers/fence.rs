//! Ends what children leave behind: those of an earlier daemon before anything is offered to new ones, and those who left
//! the group of a child once that has ended.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::Signal;
use thiserror::Error;

#[cfg(target_os = "linux")]
use crate::handlers::marked_processes;
#[cfg(target_os = "linux")]
use crate::handlers::marked_processes::EnvironmentMark;
#[cfg(target_os = "linux")]
use crate::handlers::marked_processes::Sight;
#[cfg(target_os = "linux")]
use crate::handlers::variables::CHILD;
#[cfg(target_os = "linux")]
use crate::handlers::variables::STORE;
#[cfg(target_os = "linux")]
use crate::limits;

/// Processes that cannot be ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot end the processes {pids:?}, which handlers of this store left behind: they do not die")]
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
    if !marked_processes::can_be_found() {
        tracing::warn!(
            "handlers that a killed daemon left behind cannot be found without /proc: see that none runs"
        );
    }
    end_all(EnvironmentMark { name: STORE, value: store_id.to_owned() }).await
}

/// Kills every process that carries the mark of one child, wherever it went, and waits until they are gone.
#[cfg(target_os = "linux")]
pub(super) async fn sweep(mark: String) {
    match end_all(EnvironmentMark { name: CHILD, value: mark }).await {
        Ok(0) => {}
        Ok(count) => tracing::debug!(count, "ended what a handler had detached from its group"),
        Err(survivors) => tracing::error!("{survivors}"),
    }
}

/// Nothing can be found: there is no `/proc` here.
#[cfg(not(target_os = "linux"))]
pub(super) async fn sweep(_mark: String) {}

#[cfg(target_os = "linux")]
async fn end_all(carried: EnvironmentMark) -> Result<usize, Survivors> {
    let (mut killed, mut was_still) = (BTreeSet::new(), false);
    for look in 0..limits::FENCE_TIMEOUT.as_millis() / limits::FENCE_LOOK_EVERY.as_millis() {
        let Sight { found: left, is_whole } = find(&carried).await;
        let is_long = look >= limits::FENCE_LOOKS_TO_STOP;
        // Who becomes another program in this moment may be one of them: the next look will tell.
        if left.is_empty() && (is_whole || is_long) {
            return Ok(killed.len());
        }
        // Stopped first, all of them: who starts others meanwhile, or is about to become another program, could leave
        // one behind that nothing leads to any more. A look takes time: only the second that finds all of them stopped
        // has seen what the first may have missed. Who waits for its child cannot stop, and is not waited for.
        let is_still = is_whole && left.iter().all(|process| process.is_stopped);
        let is_time = is_long || is_still && was_still;
        was_still = is_still;
        for process in left {
            match is_time {
                true if marked_processes::signal(process, Signal::KILL) => drop(killed.insert(process.pid)),
                true => {}
                false => drop(marked_processes::signal(process, Signal::STOP)),
            }
        }
        pause(limits::FENCE_LOOK_EVERY).await;
    }
    Err(Survivors { pids: find(&carried).await.found.iter().map(|process| process.pid).collect() })
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

/// Looks through all processes, on a thread that may take its time.
#[cfg(target_os = "linux")]
async fn find(carried: &EnvironmentMark) -> Sight {
    let carried = carried.clone();
    // A look that panicked has found nothing.
    tokio::task::spawn_blocking(move || marked_processes::find(&carried)).await.unwrap_or_default()
}

/// A dying process gives no sign.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a few milliseconds between two looks, and ten seconds in all")]
async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}
