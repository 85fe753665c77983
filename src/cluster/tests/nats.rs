//! NATS servers for tests: as many as are asked for, each with a folder that is gone afterwards.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::options::ClusterOptions;
use crate::cluster::tests::nats_program::nats_program;

/// Some servers that form a cluster of NATS; one is on its own.
pub(crate) struct NatsServers {
    folder: TempDir,
    servers: Vec<Server>,
}

struct Server {
    port: u16,
    monitor: u16,
    child: Child,
}

/// A port that nobody has: below those that the operating system gives away, and never the same twice in this process.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() * 97;
        let port = u16::try_from(10_240 + number % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl NatsServers {
    /// Starts so many servers; `None` where there is no program.
    pub(crate) fn start(count: usize) -> Option<NatsServers> {
        NatsServers::configured(count, "sync_interval: always")
    }

    pub(crate) fn configured(count: usize, jetstream: &str) -> Option<NatsServers> {
        NatsServers::with(count, jetstream, "")
    }

    /// Servers with something else in their configuration.
    pub(crate) fn with(count: usize, jetstream: &str, more: &str) -> Option<NatsServers> {
        NatsServers::routed(count, jetstream, more, |_, _, port| port)
    }

    /// Servers that are told where they find each other: each for each other, whose port is given. They tell nobody else.
    pub(crate) fn routed(
        count: usize,
        jetstream: &str,
        more: &str,
        mut route_to: impl FnMut(usize, usize, u16) -> u16,
    ) -> Option<NatsServers> {
        let program = nats_program()?;
        let folder = tempfile::tempdir().unwrap();
        let routes: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let servers = routes.iter().enumerate().map(|(number, route)| {
            let (port, monitor) = (free_port(), free_port());
            let store = folder.path().join(format!("js-{number}"));
            let mut config = format!(
                "port: {port}\nhost: 127.0.0.1\nhttp: 127.0.0.1:{monitor}\nserver_name: n{number}\nmax_payload: 8MB\n\
                 jetstream {{ store_dir: {store:?}, {jetstream} }}\n{more}\n"
            );
            if count > 1 {
                let others = routes.iter().enumerate().filter(|(other, _)| *other != number);
                let urls: Vec<String> = others
                    .map(|(other, port)| format!("nats://127.0.0.1:{}", route_to(number, other, *port)))
                    .collect();
                // What servers tell each other, and clients, would lead around the routes: to a port that nobody has.
                config += &format!(
                    "cluster {{ name: test, listen: 127.0.0.1:{route}, advertise: \"127.0.0.1:1\", no_advertise: true, routes: [{}] }}\n",
                    urls.join(", ")
                );
            }
            let path = folder.path().join(format!("{number}.conf"));
            std::fs::write(&path, config).unwrap();
            Server { port, monitor, child: spawn(&program, &path) }
        });
        let servers = servers.collect();
        let servers = NatsServers { folder, servers };
        servers.wait();
        Some(servers)
    }

    /// Waits until each server says that JetStream is there, and who leads it.
    pub(crate) fn wait(&self) {
        let count = self.servers.len();
        for server in &self.servers {
            let is_ready = || {
                let said = get(server.monitor, "/healthz").unwrap_or_default();
                let meta = get(server.monitor, "/jsz").unwrap_or_default();
                said.contains("\"ok\"") && (count == 1 || meta.contains("\"leader\": \"n"))
            };
            wait_until("a NATS server is ready", is_ready);
        }
    }

    /// Waits for a while until every copy of a stream has all that its leader has.
    pub(crate) fn let_catch_up(&self) {
        if !is_so_in_time(1_000, || self.have_caught_up()) {
            println!("some copies of streams are still behind");
        }
    }

    fn have_caught_up(&self) -> bool {
        let mut streams: BTreeMap<String, bool> = BTreeMap::new();
        for (number, server) in self.servers.iter().enumerate() {
            let said = get(server.monitor, "/jsz?streams=1").unwrap_or_default();
            let said = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            let said: Value = serde_json::from_str(said).unwrap_or_default();
            for stream in parts(&said, "account_details").flat_map(|account| parts(account, "stream_detail"))
            {
                let cluster = &stream["cluster"];
                // Only who leads knows how far the others are.
                let leads = cluster["leader"] == format!("n{number}");
                let current = parts(cluster, "replicas").filter(|replica| replica["current"] == true).count();
                let has_all = leads && current + 1 == self.servers.len();
                *streams.entry(stream["name"].to_string()).or_default() |= has_all;
            }
        }
        !streams.is_empty() && streams.values().all(|has_all| *has_all)
    }

    /// The options of a node on these servers.
    pub(crate) fn options(&self, cluster: &str, node: &str) -> ClusterOptions {
        let folder = self.folder.path().join(format!("node-{cluster}-{node}"));
        let options = ClusterOptions::new(cluster, node, folder).replicas(self.servers.len().min(3));
        self.servers.iter().fold(options, |options, server| {
            let address = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}");
            options.server(address("nats", server.port), address("http", server.monitor))
        })
    }

    /// Where each server listens to its clients.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(|server| server.port).collect()
    }

    /// The folder in which a server keeps its streams.
    pub(crate) fn store(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("js-{number}"))
    }

    /// The largest file of messages that a server has of a stream.
    pub(crate) fn largest_block(&self, number: usize, stream: &str) -> Option<PathBuf> {
        let folder = self.store(number).join("jetstream/$G/streams").join(stream).join("msgs");
        let files = std::fs::read_dir(&folder).ok()?.map(|entry| entry.unwrap().path());
        let blocks = files.filter(|path| path.extension().is_some_and(|suffix| suffix == "blk"));
        blocks.max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()))
    }

    /// Kills a server as a power cut would.
    pub(crate) fn kill(&mut self, number: usize) {
        let child = &mut self.servers[number].child;
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Changes words in the configuration of a server, for when it is started again.
    pub(crate) fn reconfigure(&self, number: usize, from: &str, to: &str) {
        let path = self.folder.path().join(format!("{number}.conf"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    }

    /// Appends an entry to the log of a partition as a later version would: no node goes on with it.
    pub(crate) async fn append_of_later_version(&self, options: &ClusterOptions, partition: u16) {
        let client = async_nats::connect(&options.servers).await.unwrap();
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Seriatim-Version", "2");
        let entry = async_nats::Request::new().headers(headers).payload("written otherwise".into());
        client.send_request(options.subject(partition), entry).await.unwrap();
    }

    /// Which versions the entries of a partition's log are said to be of.
    pub(crate) async fn versions(&self, options: &ClusterOptions, partition: u16) -> BTreeSet<Option<u32>> {
        let client = async_nats::connect(&options.servers).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let mut stream = context.get_stream(options.stream(partition)).await.unwrap();
        let state = stream.info().await.unwrap().state.clone();
        let mut versions = BTreeSet::new();
        // The last are enough, and there may be thousands.
        for position in state.last_sequence.saturating_sub(20).max(state.first_sequence)..=state.last_sequence
        {
            let entry = stream.get_raw_message(position).await.unwrap();
            let said = entry.headers.get("Seriatim-Version").map(|version| version.as_str().parse().unwrap());
            versions.insert(said);
        }
        versions
    }

    /// Starts a server again that was killed.
    pub(crate) fn start_again(&mut self, number: usize) {
        let config = self.folder.path().join(format!("{number}.conf"));
        self.servers[number].child = spawn(&nats_program().unwrap(), &config);
    }
}

impl Drop for NatsServers {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.child.kill();
            let _ = server.child.wait();
        }
    }
}

fn spawn(program: &Path, config: &Path) -> Child {
    let mut command = Command::new(program);
    command.arg("-c").arg(config).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// What a server says at a path.
fn get(port: u16, path: &str) -> io::Result<String> {
    use std::io::Read;
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// The parts of something that a server says.
fn parts<'v>(said: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    said[name].as_array().into_iter().flatten()
}

/// Waits until something is so, which no signal says.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    assert!(is_so_in_time(3_000, is_so), "it was waited in vain until {what}");
}

/// Looks so often whether something is so.
#[expect(clippy::disallowed_methods, reason = "other processes give no signal")]
fn is_so_in_time(looks: u32, is_so: impl Fn() -> bool) -> bool {
    (0..looks).any(|_| {
        let is_so = is_so();
        if !is_so {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_so
    })
}
