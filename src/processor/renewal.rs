//! Renewing a lock while a handler runs, and noticing when it is lost.

use std::time::Duration;

use crate::engine::Client;
use crate::engine::Renewal;
use crate::error::SettleError;
use crate::error::Unavailable;
use crate::limits;

/// When something is first to be done about a lock that has been held since an instant: at 70 % of its time it is renewed,
/// unless its handler will have had its time by then; then it runs out by itself.
pub(crate) fn first_due(since: Duration, lasts: Duration, renew_for: Duration) -> Duration {
    since.saturating_add(pause(lasts, renew_for).unwrap_or(lasts))
}

/// For how long a lock is renewed whose message may have to wait before it is begun: nobody knows when within a pause that was, so
/// none of that pause is part of its time.
pub(crate) fn with_wait(lasts: Duration, renew_for: Duration) -> Duration {
    renew_for.saturating_add(share(lasts))
}

/// 70 % of a lock's time.
fn share(lasts: Duration) -> Duration {
    lasts.mul_f64(0.7)
}

/// How long nothing is done about a lock: 70 % of its time; none when that is more than its handler has left.
fn pause(lasts: Duration, left: Duration) -> Option<Duration> {
    Some(share(lasts)).filter(|pause| *pause <= left)
}

/// Renews a lock at 70 % of its time, again and again, and returns when it is lost: refused, or not renewed any more
/// because the handler has had its time. An engine that is gone is an error, and a loss too; what a cluster cannot answer just
/// now is asked again as long as the lock lasts.
///
/// `lasts` is for how long it is held at first, from `since` in the clock's elapsed time; each renewal says for how long
/// from then on. As long as `is_waiting` says that nobody has begun the message, that is no part of its time.
pub(crate) async fn keep_until_lost(
    client: &Client,
    renewal: &Renewal,
    (mut since, mut lasts): (Duration, Duration),
    renew_for: Duration,
    is_waiting: impl Fn() -> bool,
) -> Result<(), Unavailable> {
    let mut left = renew_for;
    loop {
        let waits = is_waiting();
        let Some(pause) = pause(lasts, if waits { Duration::MAX } else { left }) else { break };
        client.sleep_until(since.saturating_add(pause)).await?;
        let ends = since.saturating_add(lasts);
        let prolonged = tokio::select! {
            biased;
            prolonged = prolong(client, renewal) => prolonged?,
            // The answer may come late, and the lock does not wait for it.
            slept = client.sleep_until(ends) => return slept,
        };
        match prolonged {
            Some(prolonged) => (since, lasts) = prolonged,
            None => return Ok(()),
        }
        left = if waits { left } else { left - pause };
    }
    // The lock runs out by itself; the engine's clock says when.
    client.sleep_until(since.saturating_add(lasts)).await
}

/// Since when a lock is renewed, and for how long; none when it is lost.
async fn prolong(client: &Client, renewal: &Renewal) -> Result<Option<(Duration, Duration)>, Unavailable> {
    loop {
        let asked = client.elapsed();
        match renewal.prolong().await {
            Ok(lasts) => return Ok(Some((asked, lasts))),
            Err(SettleError::Unavailable(unavailable)) if unavailable.is_over() => return Err(unavailable),
            Err(SettleError::Unavailable(_)) => client.sleep(limits::UNANSWERED_PAUSE).await?,
            Err(_) => return Ok(None),
        }
    }
}
