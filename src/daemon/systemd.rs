//! What a service manager is notified of, where there is one.

use sd_notify::NotifyState;

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
