//! NATS servers on this machine, configured as a cluster needs them: for a look, a demonstration and tests.

use std::collections::BTreeSet;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use serde::Deserialize;

use crate::cluster::error::ClusterError;
use crate::cluster::servers::ask;
use crate::cluster::stop::pause;
use crate::limits;
use crate::shown::shown;

/// The variable that names the program where it is not on the path.
const PROGRAM: &str = "NATS_SERVER";

/// Starts a server in the background, says its process number, and kills it when nobody holds its input any more: also when
/// whoever did was killed.
const KEEPER: &str = r#""$0" -c "$1" </dev/null >/dev/null 2>&1 & echo $!; read -r _; kill -9 $!"#;

/// NATS servers on this machine, which form a cluster of their own. They are killed when it is dropped, or when this process is
/// gone; what they have written stays in the folder.
pub struct LocalNats {
    program: PathBuf,
    folder: PathBuf,
    servers: Vec<LocalNatsServer>,
}

shown!(LocalNats {});

/// One of them.
struct LocalNatsServer {
    port: u16,
    monitor: u16,
    process: ServerProcess,
}

/// The process of a server, and the one that ends it with this one.
struct ServerProcess {
    pid: u32,
    keeper: Child,
}

impl ServerProcess {
    fn kill(&mut self) -> io::Result<()> {
        if let Some(pid) = Pid::from_raw(self.pid.cast_signed()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        drop(self.keeper.stdin.take());
        self.keeper.wait().map(drop)
    }
}

impl LocalNats {
    /// Finds the program: the one that `NATS_SERVER` names, or `nats-server` on the path.
    ///
    /// # Errors
    /// [`ClusterError::NoProgram`].
    pub fn program() -> Result<PathBuf, ClusterError> {
        if let Some(program) = std::env::var_os(PROGRAM) {
            return Ok(program.into());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
        found.into_iter().find(|program| program.is_file()).ok_or(ClusterError::NoProgram)
    }

    /// Starts so many servers with their files in a folder, and waits until they are ready.
    ///
    /// # Errors
    /// [`ClusterError`] when one cannot be started, or is not ready in time.
    pub async fn start(program: &Path, folder: &Path, count: usize) -> Result<LocalNats, ClusterError> {
        std::fs::create_dir_all(folder)?;
        let mut ports = free_ports(count * 3)?;
        let (monitors, routes) = (ports.split_off(count * 2), ports.split_off(count));
        let mut nats =
            LocalNats { program: program.to_owned(), folder: folder.to_owned(), servers: Vec::new() };
        for (number, (port, monitor)) in ports.into_iter().zip(monitors).enumerate() {
            let text = nats.configuration(number, port, monitor, &routes);
            std::fs::write(nats.file(number), text)?;
            let process = nats.spawn(number)?;
            nats.servers.push(LocalNatsServer { port, monitor, process });
        }
        for number in 0..count {
            nats.wait_for(number).await?;
        }
        Ok(nats)
    }

    /// Each server's address, the one at which it is monitored, and its process.
    pub fn servers(&self) -> impl Iterator<Item = (String, String, u32)> {
        self.servers.iter().map(|server| {
            let LocalNatsServer { port, monitor, process } = server;
            (format!("nats://127.0.0.1:{port}"), format!("http://127.0.0.1:{monitor}"), process.pid)
        })
    }

    /// The servers in one word, as `seriatim run --nats` takes them: addresses with where they are monitored.
    pub fn as_argument(&self) -> String {
        let servers: Vec<String> =
            self.servers().map(|(address, monitor, _)| format!("{address}={monitor}")).collect();
        servers.join(",")
    }

    /// Kills a server, as a power cut would.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn kill(&mut self, number: usize) -> io::Result<()> {
        self.servers[number].process.kill()
    }

    /// Starts a server again that was killed.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn start_again(&mut self, number: usize) -> io::Result<()> {
        self.servers[number].process = self.spawn(number)?;
        Ok(())
    }

    fn file(&self, number: usize) -> PathBuf {
        self.folder.join(format!("nats-{number}.conf"))
    }

    fn spawn(&self, number: usize) -> io::Result<ServerProcess> {
        let mut command = Command::new("sh");
        // In a group of its own: Ctrl-C is for whoever started it, which has to end nodes before their servers.
        command.args(["-c", KEEPER]).arg(&self.program).arg(self.file(number)).process_group(0);
        let mut keeper =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = keeper.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let pid = line.trim().parse().map_err(io::Error::other)?;
        Ok(ServerProcess { pid, keeper })
    }

    fn configuration(&self, number: usize, port: u16, monitor: u16, routes: &[u16]) -> String {
        let (store, name) = (self.folder.join(format!("nats-{number}")), server_name(number));
        let text = format!(
            "port: {port}\nhost: 127.0.0.1\nhttp: 127.0.0.1:{monitor}\nserver_name: {name}\nmax_payload: 8MB\n\
             jetstream {{ store_dir: {store:?}, sync_interval: always }}\n"
        );
        let urls: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        match routes {
            [_] => text,
            _ => {
                let (listen, urls) = (routes[number], urls.join(", "));
                format!("{text}cluster {{ name: local, listen: 127.0.0.1:{listen}, routes: [{urls}] }}\n")
            }
        }
    }

    /// Waits until a server is healthy and has formed a cluster with the others. Streams that are made before that have replicas
    /// that nobody has told of it.
    async fn wait_for(&self, number: usize) -> Result<(), ClusterError> {
        let monitor = format!("http://127.0.0.1:{}", self.servers[number].monitor);
        for _ in 0..limits::LOCAL_NATS_LOOKS {
            let health = ask(&monitor, "/healthz").await.unwrap_or_default();
            let is_healthy = String::from_utf8_lossy(&health).contains("\"ok\"");
            if is_healthy && (self.servers.len() == 1 || self.is_formed(number, &monitor).await) {
                return Ok(());
            }
            pause(limits::ROUTE_PAUSE).await;
        }
        let file = self.file(number);
        Err(ClusterError::Servers(format!("the one with the configuration {} is not ready", file.display())))
    }

    /// Whether a server is connected with all others and knows who leads; and if it leads itself, whether it hears all others.
    async fn is_formed(&self, number: usize, monitor: &str) -> bool {
        let others = self.servers.len() - 1;
        let routes = ask(monitor, "/routez").await.unwrap_or_default();
        let routes = serde_json::from_slice::<Routez>(&routes).unwrap_or_default().routes;
        let names: BTreeSet<String> = routes.into_iter().map(|route| route.remote_name).collect();
        let said = ask(monitor, "/jsz").await.unwrap_or_default();
        let Jsz { meta_cluster } = serde_json::from_slice(&said).unwrap_or_default();
        let hears = |replica: &MetaReplica| replica.current && replica.active > 0;
        let leads = meta_cluster.leader == server_name(number);
        names.len() == others
            && meta_cluster.replicas.len() == others
            && !meta_cluster.leader.is_empty()
            && (!leads || meta_cluster.replicas.iter().all(hears))
    }
}

/// What a server says of its connections to others.
#[derive(Default, Deserialize)]
struct Routez {
    #[serde(default)]
    routes: Vec<NatsRoute>,
}

#[derive(Deserialize)]
struct NatsRoute {
    #[serde(default)]
    remote_name: String,
}

/// What a server says of JetStream.
#[derive(Default, Deserialize)]
struct Jsz {
    #[serde(default)]
    meta_cluster: MetaCluster,
}

#[derive(Default, Deserialize)]
struct MetaCluster {
    #[serde(default)]
    leader: String,
    #[serde(default)]
    replicas: Vec<MetaReplica>,
}

#[derive(Deserialize)]
struct MetaReplica {
    #[serde(default)]
    current: bool,
    /// Nanoseconds since it was heard; zero when it never was.
    #[serde(default)]
    active: i64,
}

fn server_name(number: usize) -> String {
    format!("n{number}")
}

impl Drop for LocalNats {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.process.kill();
        }
    }
}

/// Ports that nobody has at this moment, each another.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let listeners: io::Result<Vec<TcpListener>> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect();
    listeners?.iter().map(|listener| listener.local_addr().map(|address| address.port())).collect()
}
