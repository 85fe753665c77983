//! A node shows the servers who it is, over an encrypted connection if it is told to.

use std::path::Path;
use std::time::Duration;

use crate::cluster::error::ClusterError;
use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::tests::nats::NatsServers;

async fn refused(mut options: ClusterOptions) -> ClusterError {
    // A server that refuses a connection is asked again, as one is that has not begun.
    options.start_wait = Duration::ZERO;
    ClusterNode::start(options.partitions(1)).await.expect_err("it is refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_logs_in_and_whoever_does_not_is_refused() {
    let login = "authorization { user: ada, password: hunter2 }";
    let Some(servers) = NatsServers::with(1, "sync_interval: always", login) else { return };
    let options = || servers.options("access", "first");
    assert!(matches!(refused(options()).await, ClusterError::Servers(_)));
    assert!(matches!(refused(options().login("ada", "wrong")).await, ClusterError::Servers(_)));
    let node = ClusterNode::start(options().login("ada", "hunter2").partitions(1)).await.unwrap();
    node.close().await;
    let both = options().login("ada", "hunter2").credentials("nowhere.creds");
    assert!(matches!(refused(both).await, ClusterError::Options(_)));
    assert!(matches!(refused(options().credentials("nowhere.creds")).await, ClusterError::System(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_encrypts_its_connection_and_trusts_only_the_certificates_it_is_told() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/testdata");
    let (certificate, key) = (testdata.join("certificate.pem"), testdata.join("key.pem"));
    let tls = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}");
    let Some(servers) = NatsServers::with(1, "sync_interval: always", &tls) else { return };
    let options = || {
        let mut options = servers.options("access", "first");
        options.servers.iter_mut().for_each(|server| *server = server.replace("127.0.0.1", "localhost"));
        options
    };
    assert!(matches!(refused(options()).await, ClusterError::Servers(_)));
    let node = ClusterNode::start(options().ca_file(certificate).partitions(1)).await.unwrap();
    node.close().await;
}
