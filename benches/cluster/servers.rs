//! NATS servers as a cluster needs them, in a folder that is gone afterwards.

use std::time::Duration;

use seriatim::cluster::ClusterOptions;
use seriatim::cluster::LocalNats;
use tempfile::TempDir;

/// Some servers that are a cluster of NATS.
pub(crate) struct NatsServers {
    nats: LocalNats,
    folder: TempDir,
}

impl NatsServers {
    pub(crate) async fn start(count: usize) -> NatsServers {
        let folder = tempfile::tempdir_in(".").expect("a folder on the disk");
        let program = LocalNats::program().expect("nats-server is on the path, or named by NATS_SERVER");
        let nats = LocalNats::start(&program, &folder.path().join("nats"), count).await;
        NatsServers { nats: nats.expect("the servers can be started"), folder }
    }

    pub(crate) fn options(&self, cluster: &str, node: &str) -> ClusterOptions {
        let folder = self.folder.path().join(format!("{cluster}-{node}"));
        let options = ClusterOptions::new(cluster, node, folder);
        self.nats.servers().fold(options, |options, (server, monitor, _)| options.server(server, monitor))
    }

    /// Their addresses.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.nats.servers().map(|(server, _, _)| server).collect()
    }

    /// The addresses in one word, for a node in a process of its own.
    pub(crate) fn as_argument(&self) -> String {
        self.nats.as_argument()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "other processes give no signal, and time passes where it is measured"
)]
pub(crate) fn pause(lasts: Duration) {
    std::thread::sleep(lasts);
}
