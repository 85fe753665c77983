//! Asking NATS through a client that may have no connection: what is asked then waits for room in its queue, which no limit of the client
//! counts, and is sent when nobody waits for it any more.

use std::time::Duration;

use async_nats::Client as NatsClient;
use async_nats::connection::State;
use async_nats::jetstream::kv;
use bytes::Bytes;

use crate::limits;

/// Whether a server is connected.
pub(crate) fn is_connected(client: &NatsClient) -> bool {
    client.connection_state() == State::Connected
}

/// Puts the value of a key behind its revision, which is 0 where there is none. Returns the new one.
///
/// # Errors
/// What is said of it, also that another was faster, or that it was not in time: then it may have been put.
pub(crate) async fn put_unless_changed(
    bucket: &kv::Store,
    key: &str,
    bytes: Bytes,
    behind: u64,
) -> Result<u64, String> {
    match behind {
        0 => in_time(limits::NATS_ANSWER, bucket.create(key, bytes)).await,
        _ => in_time(limits::NATS_ANSWER, bucket.update(key, bytes, behind)).await,
    }
}

/// What comes of asking, unless it takes longer in all.
///
/// # Errors
/// What is said of it, or that it was not in time.
pub(crate) async fn in_time<T, E: std::fmt::Display>(
    most: Duration,
    asked: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(most, asked).await {
        Ok(answered) => answered.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer came in {most:?}")),
    }
}
