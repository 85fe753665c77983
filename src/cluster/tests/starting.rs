//! Nodes that start while not all NATS servers are there, or as they have to be.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::cluster::error::ClusterError;
use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::server_health::ServerHealth;
use crate::cluster::server_identity;
use crate::cluster::servers;
use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::has_all;
use crate::error::Fault;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;

const PARTITIONS: u16 = 2;

fn options(servers: &NatsServers) -> ClusterOptions {
    servers.options("orders", "first").partitions(PARTITIONS)
}

/// A node that can be worked with.
async fn start(servers: &NatsServers) -> ClusterNode {
    let node = ClusterNode::start(options(servers)).await.unwrap();
    tokio::task::block_in_place(|| wait_until("it has its partitions", || has_all(&node)));
    node
}

/// The monitoring addresses of the servers.
fn monitors(servers: &NatsServers) -> Vec<String> {
    options(servers).monitors
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_and_works_while_one_of_three_servers_is_down() {
    let Some(mut servers) = NatsServers::start(3) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send(Message::new("before").workflow("w")).await.unwrap();
    node.close().await;
    servers.kill(2);
    let node = start(&servers).await;
    let queue = node.client().queue("q").unwrap();
    queue.send(Message::new("meanwhile").workflow("w")).await.unwrap();
    let received = queue.receive(Duration::from_secs(30)).await.unwrap().unwrap();
    assert_eq!(received.message().body.as_ref(), b"before");
    servers.start_again(2);
    servers.wait();
    assert!(node.client().fault().is_none(), "it goes on with a server that is as it has to be");
    node.close().await;
}

/// On how many servers each stream of a cluster is, of those beside the logs.
async fn replicas(options: &ClusterOptions) -> Vec<usize> {
    let context = async_nats::jetstream::new(async_nats::connect(&options.servers).await.unwrap());
    let mut found = Vec::new();
    for name in [format!("KV_{}", options.bucket()), format!("OBJ_{}", options.snapshots_bucket())] {
        found.push(context.get_stream(name).await.unwrap().cached_info().config.num_replicas);
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_asks_for_fewer_replicas_changes_none_and_one_that_asks_for_more_is_refused() {
    let Some(servers) = NatsServers::start(3) else { return };
    start(&servers).await.close().await;
    let other = options(&servers).replicas(1).partitions(PARTITIONS + 1);
    ClusterNode::start(other).await.expect_err("it has another number of partitions");
    ClusterNode::start(options(&servers).replicas(1)).await.unwrap().close().await;
    assert_eq!(replicas(&options(&servers)).await, [3, 3]);
    let small = servers.options("small", "first").partitions(PARTITIONS);
    ClusterNode::start(small.clone().replicas(1)).await.unwrap().close().await;
    let refused = ClusterNode::start(small.clone()).await.expect_err("it has one replica").to_string();
    assert!(
        refused.contains("of the stream KV_seriatim-small, it has fewer replicas than are asked for"),
        "{refused}"
    );
    assert_eq!(replicas(&small).await, [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_stops_in_one_sentence_when_a_server_comes_back_that_does_not_sync() {
    let Some(mut servers) = NatsServers::start(3) else { return };
    start(&servers).await.close().await;
    servers.kill(2);
    let node = start(&servers).await;
    servers.reconfigure(2, "sync_interval: always", "sync_interval: 2m");
    servers.start_again(2);
    let ended = tokio::time::timeout(Duration::from_secs(30), node.client().ended()).await;
    let why = ended.expect("it stops").to_string();
    assert!(
        why.contains("the NATS server n2 cannot keep a log") && why.contains("`sync_interval: always`"),
        "{why}"
    );
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_stops_in_one_sentence_when_a_server_is_started_again_that_syncs_no_more() {
    let Some(mut servers) = NatsServers::start(3) else { return };
    let node = start(&servers).await;
    servers.kill(1);
    servers.reconfigure(1, "sync_interval: always", "sync_interval: 2m");
    servers.start_again(1);
    let ended = tokio::time::timeout(Duration::from_secs(30), node.client().ended()).await;
    let why = ended.expect("it stops").to_string();
    assert!(why.contains("the NATS server n1 cannot keep a log"), "{why}");
    node.close().await;
}

#[tokio::test]
async fn a_folder_of_another_cluster_is_refused_before_anything_is_asked_of_the_servers() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cluster"), "payments").unwrap();
    let options = ClusterOptions::new("orders", "first", folder.path());
    let refused = ClusterNode::start(options.server("nats://127.0.0.1:1", "http://127.0.0.1:1"));
    let text = refused.await.expect_err("it is of another").to_string();
    assert!(
        text.contains("belongs to a node of the cluster payments; a node of orders needs one of its own"),
        "{text}"
    );
}

#[tokio::test]
async fn a_node_that_is_stopped_while_it_starts_ends_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let options = ClusterOptions::new("orders", "first", folder.path());
    // Ports of nobody: it asks again and again.
    let start = ClusterNode::start(options.server("nats://127.0.0.1:1", "http://127.0.0.1:1"));
    assert!(tokio::time::timeout(Duration::from_millis(100), start).await.is_err(), "it goes on asking");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_servers_is_not_enough_and_the_error_says_of_which_how_many() {
    let Some(mut servers) = NatsServers::start(3) else { return };
    let monitors = monitors(&servers);
    assert_eq!(servers::check_all(&monitors).await.unwrap(), Vec::<String>::new());
    servers.kill(0);
    assert_eq!(servers::check_all(&monitors).await.unwrap(), monitors[..1]);
    servers.kill(1);
    let refused = servers::check_all(&monitors).await.unwrap_err();
    assert!(matches!(refused, ClusterError::Servers(_)));
    let text = refused.to_string();
    assert!(text.contains("1 of 3 say whether they sync what they acknowledge"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_monitoring_address_is_of_another_cluster_is_refused() {
    let (Some(servers), Some(others)) = (NatsServers::start(1), NatsServers::start(1)) else { return };
    let mut mixed = options(&servers);
    mixed.monitors = monitors(&others);
    let refused = ClusterNode::start(mixed).await.expect_err("nobody knows what it needs").to_string();
    assert!(refused.ends_with("which is of another cluster"), "{refused}");
    start(&servers).await.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitoring_address_of_another_server_of_the_cluster_is_named() {
    let Some(servers) = NatsServers::start(3) else { return };
    let options = options(&servers);
    let compare = |monitors: Vec<String>| {
        let addresses = options.servers.clone();
        async move { server_identity::compare(&addresses, &monitors).await.unwrap() }
    };
    assert_eq!(compare(options.monitors.clone()).await, Vec::<String>::new());
    let mut mixed = options.monitors.clone();
    mixed.swap(0, 1);
    let said = compare(mixed).await;
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("the NATS server n1 is monitored") && said[0].ends_with("it is n0"), "{said:?}");
}

/// The monitoring address of a server whose `/varz` says nothing of JetStream, and whose `/jsz` says these, one after the other, and
/// the last from then on; and how often it was asked for that.
async fn monitor(jet_stream: &'static [&'static str]) -> (Vec<String>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut request, mut bytes) = (Vec::new(), [0; 1024]);
            while !request.ends_with(b"\r\n\r\n") {
                let read = stream.read(&mut bytes).await.expect("a request comes whole");
                assert!(read > 0, "a request comes whole");
                request.extend_from_slice(&bytes[..read]);
            }
            let said = match request.starts_with(b"GET /jsz ") {
                true => {
                    jet_stream[count.fetch_add(1, Ordering::Relaxed).min(jet_stream.len() - 1)].to_owned()
                }
                false => {
                    let max = limits::LOG_ENTRY_BYTES;
                    format!(
                        r#"{{"server_name": "n1", "version": "2.14.4", "max_payload": {max}, "jetstream": {{}}}}"#
                    )
                }
            };
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", said.len());
            stream.write_all((head + &said).as_bytes()).await.expect("an answer is read");
        }
    });
    (vec![address], asked)
}

/// What a server says of JetStream before it has begun, and when it syncs.
const NOT_YET: &str = r#"{"disabled": true, "config": {"max_memory": 0, "max_storage": 0}}"#;
const SYNCS: &str = r#"{"config": {"max_memory": 1, "max_storage": 1, "sync_always": true}}"#;

#[tokio::test]
async fn a_server_that_is_being_started_stops_no_node_and_is_taken_when_its_jetstream_is_there() {
    let (monitors, asked) = monitor(&[NOT_YET, SYNCS]).await;
    let health = ServerHealth::default();
    let asked_twice = async {
        while asked.load(Ordering::Relaxed) < 2 {
            pause(limits::ROUTE_PAUSE).await;
        }
    };
    tokio::select! {
        fault = servers::watch(&monitors, Vec::new(), &health) => panic!("{fault}"),
        () = asked_twice => {}
    }
    assert_eq!(servers::check_all(&monitors).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn of_a_server_that_answers_without_jetstream_it_is_said_that_jetstream_is_not_there() {
    let (monitors, _) = monitor(&[NOT_YET]).await;
    let refused = servers::check_all(&monitors).await.unwrap_err().to_string();
    assert!(refused.contains("JetStream is not there: it is off, or has not begun yet"), "{refused}");
}

#[tokio::test]
async fn a_server_that_begins_and_does_not_sync_stops_a_node() {
    let (monitors, _) = monitor(&[NOT_YET, r#"{"config": {"max_memory": 1, "max_storage": 1}}"#]).await;
    let health = ServerHealth::default();
    let watched = servers::watch(&monitors, Vec::new(), &health);
    let fault = tokio::time::timeout(Duration::from_secs(30), watched).await.expect("it is asked again");
    assert!(matches!(&fault, Fault::Server { server, .. } if server == "n1"), "{fault}");
}
