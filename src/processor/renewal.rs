//! Keeping a lock while a handler runs, and noticing when it is lost.

use std::time::Duration;

use crate::engine::Client;
use crate::engine::Renewal;

/// Renews a lock at 70 % of its time, again and again, and returns when it is lost: refused, or not renewed any more
/// because the handler has had its time. Errors of the engine count as a loss too; the settle will name them.
pub(crate) async fn keep_until_lost(client: &Client, renewal: &Renewal, lock: Duration, renew_for: Duration) {
    let pause = lock.mul_f64(0.7);
    let mut renewed_for = Duration::ZERO;
    while renewed_for + pause <= renew_for {
        if client.sleep(pause).await.is_err() || renewal.renew().await.is_err() {
            return;
        }
        renewed_for += pause;
    }
    // The lock runs out by itself; the engine's clock says when.
    let _ = client.sleep(lock).await;
}
