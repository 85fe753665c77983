//! Why an attempt has to end before its handler has.

use std::time::Duration;

use crate::processor::Context;
use crate::processor::Failure;

/// Why an attempt has failed that outlasted the drain.
pub(super) const GIVEN_UP: &str = "terminated: the daemon was stopped, and its drain time was over";

/// Why an attempt has failed whose lock was lost.
pub(super) const LOCK_LOST: &str = "its lock was lost";

/// The failure of an attempt that outlasted the drain: it is tried again when the daemon is back.
pub(super) fn given_up() -> Failure {
    Failure::new(GIVEN_UP).retry_after(Duration::ZERO)
}

/// Waits until an attempt has to end.
pub(super) async fn cut_short(context: &Context) -> Failure {
    context.cancelled().await;
    match context.is_given_up() {
        true => given_up(),
        false => Failure::new(LOCK_LOST),
    }
}
