//! What nodes note of where messages are placed, for those that are down.

use async_nats::jetstream;
use async_nats::jetstream::stream::Config;
use serde_json::Value;

use crate::cluster::fixture::Cluster;

/// The bucket of the cluster, in which things are noted.
const BUCKET: &str = "seriatim-dev";

/// The key of what is noted of the queue `orders`.
const NOTE: &str = "sources.6f7264657273";

/// Lets the servers acknowledge what comes into the bucket, or not.
async fn set_acknowledged(context: &jetstream::Context, is_acknowledged: bool) {
    let stream = context.get_stream(format!("KV_{BUCKET}")).await.expect("the bucket is there");
    let config = Config { no_ack: !is_acknowledged, ..stream.cached_info().config.clone() };
    context.update_stream(config).await.expect("it is changed");
}

#[test]
fn a_node_keeps_where_it_places_messages_only_once_the_others_can_know_it() {
    let Some(cluster) = Cluster::start(2, &[("orders.toml", "key = \"/order\"\n")]) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let connect = async { jetstream::new(async_nats::connect(cluster.nats()).await.unwrap()) };
    let context = runtime.block_on(connect);
    runtime.block_on(set_acknowledged(&context, false));
    std::fs::write(cluster.path().join("workflows/orders.toml"), "key = \"/customer\"\n").unwrap();
    let keeps = || std::fs::read_to_string(cluster.data(0).join("seriatim.json")).unwrap();
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| cluster.json(0, "POST", "/v1/definitions/reload", &Value::Null));
        runtime.block_on(async {
            let bucket = context.get_key_value(BUCKET).await.unwrap();
            let is_noted = |noted: &[u8]| String::from_utf8_lossy(noted).contains("/customer");
            while !bucket.get(NOTE).await.unwrap().is_some_and(|noted| is_noted(&noted)) {
                tokio::task::yield_now().await;
            }
        });
        // The node waits for the acknowledgement.
        let kept = keeps();
        assert!(kept.contains("/order") && !kept.contains("/customer"), "{kept}");
        runtime.block_on(set_acknowledged(&context, true));
        reload.join().unwrap();
    });
    let kept = keeps();
    assert!(kept.contains("/customer") && !kept.contains("/order"), "{kept}");
    assert_eq!(cluster.stop(), Some(0));
}
