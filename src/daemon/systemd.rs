//! What a service manager is notified of, where there is one.

use std::time::Duration;

use sd_notify::NotifyState;

/// How often the manager is told that a store is still being opened.
const OPENING_TOLD_EVERY: Duration = Duration::from_secs(10);

/// How much time is asked for each time: some intervals, as a machine that is busy with the opening may be late.
const OPENING_EXTENSION: Duration = Duration::from_secs(60);

/// Waits for a store to be opened, which takes as long as reading all of its file after a kill, or writing it anew in a newer
/// format. A manager that gives a start less time would begin it over and over, so it is asked for more as long as this
/// goes on; that it takes long is said to whoever looks.
pub(crate) async fn while_opening<T>(opening: impl Future<Output = T>) -> T {
    let mut opening = std::pin::pin!(opening);
    let (mut ticks, mut so_far) = (tokio::time::interval(OPENING_TOLD_EVERY), Duration::ZERO);
    loop {
        tokio::select! {
            biased;
            opened = &mut opening => return opened,
            _ = ticks.tick() => {}
        }
        let status = format!("opening the store, for {} s so far", so_far.as_secs());
        let more = u32::try_from(OPENING_EXTENSION.as_micros()).unwrap_or(u32::MAX);
        notify(&[NotifyState::ExtendTimeoutUsec(more), NotifyState::Status(&status)]);
        if so_far >= OPENING_EXTENSION {
            tracing::warn!(
                "{status}: all of a file is read after a kill, and written anew in a newer format"
            );
        }
        so_far += OPENING_TOLD_EVERY;
    }
}

/// Says that the daemon is ready.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Says that the daemon is stopping.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// Says that a fault has stopped the engine.
pub(crate) fn failed(fault: &str) {
    notify(&[NotifyState::Status(&format!("failed: {fault}"))]);
}

/// Says that the daemon is alive, to a manager that would restart it otherwise.
pub(crate) fn alive() {
    notify(&[NotifyState::Watchdog]);
}

fn notify(states: &[NotifyState<'_>]) {
    // Without a manager there is nobody to notify.
    let _ = sd_notify::notify(states);
}
