//! What the servers take without a node: the log of a partition once more, entry by entry.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::stream::DiscardPolicy;
use seriatim::Clock;
use seriatim::SystemClock;

/// The log that a node has written.
const WRITTEN: &str = "seriatim-bench-0";

/// How long it takes to append as many entries as were written, each with their mean length and after the answer to the one before.
pub(crate) async fn time(addresses: &[String]) -> Duration {
    let client = async_nats::connect(addresses).await.expect("the servers are there");
    let context = jetstream::new(client);
    let written = context.get_stream(WRITTEN).await.expect("a node has written it");
    let state = written.cached_info().state.clone();
    let config = Config {
        name: "alone".to_owned(),
        num_replicas: 3,
        discard: DiscardPolicy::New,
        deny_delete: true,
        ..Config::default()
    };
    context.create_stream(config).await.expect("the servers make it");
    let entry = bytes::Bytes::from(vec![7; (state.bytes / state.messages) as usize]);
    let clock = SystemClock::default();
    for last in 0..state.messages {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Sequence", last.to_string());
        let sent = context.publish_with_headers("alone", headers, entry.clone()).await;
        sent.expect("it is sent").await.expect("it is acknowledged");
    }
    clock.elapsed()
}
