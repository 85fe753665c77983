//! `seriatim dev --nodes`: a cluster on this machine, gone afterwards. Each node and each NATS server is a process of its own,
//! so that any of them can be killed to see what happens.

use std::io;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::process::Stdio;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use serde_json::Value;
use serde_json::json;
use seriatim::cluster::LocalNats;
use seriatim::daemon::Signals;
use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;
use tokio::process::Child;
use tokio::process::ChildStdin;
use tokio::process::Command;

use crate::cli::arguments::serve::DevArguments;
use crate::cli::failure::CliFailure;
use crate::cli::insistence::asked_again;
use crate::cli::out::write_unless_unread;

/// NATS servers of a cluster that has more than one node: as many as can lose one.
const SERVERS: usize = 3;

/// A node in a process of its own.
struct DevNode {
    name: String,
    child: Child,
    /// Held as long as the node is to run: whoever waits for a child would close it.
    _input: Option<ChildStdin>,
    /// How it was started, so that a person can start it again.
    command: Vec<String>,
    log: PathBuf,
    ready: Value,
}

/// Runs nodes and servers until it is told to stop.
pub(crate) fn run(
    arguments: &DevArguments,
    nodes: usize,
    folder: &Path,
    definitions: &Path,
) -> Result<bool, CliFailure> {
    let program = LocalNats::program()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let servers = if nodes == 1 { 1 } else { SERVERS };
        let nats = LocalNats::start(&program, &folder.join("nats"), servers).await?;
        let mut running = Vec::new();
        for number in 0..nodes {
            running.push(spawn(arguments, number, folder, definitions, &nats)?);
        }
        for node in &mut running {
            tokio::select! {
                ready = node.wait_until_ready() => ready?,
                () = signals.stop() => return Ok(true),
            }
        }
        announce(&running, &nats, folder, arguments.json);
        supervise(&mut running, &mut signals).await;
        match stop(running, &mut signals).await {
            true => Ok(true),
            false => Err(CliFailure::CutOff),
        }
    })
}

fn spawn(
    arguments: &DevArguments,
    number: usize,
    folder: &Path,
    definitions: &Path,
    nats: &LocalNats,
) -> io::Result<DevNode> {
    let name = format!("node-{}", number + 1);
    let replicas = nats.servers().count().to_string();
    let (data, definitions) = (folder.join(&name), definitions.display().to_string());
    let http = shifted(arguments.http, number).to_string();
    let mut command = vec![std::env::current_exe()?.display().to_string(), "run".to_owned(), definitions];
    let mut add = |flag: &str, value: String| command.extend([flag.to_owned(), value]);
    add("--data", data.display().to_string());
    add("--http", http);
    add("--cluster", "dev".to_owned());
    add("--node", name.clone());
    add("--nats", nats.as_argument());
    add("--replicas", replicas);
    add("--page", "true".to_owned());
    for address in &arguments.endpoints.amqp {
        add("--amqp", shifted(*address, number).to_string());
    }
    if let Some(address) = arguments.endpoints.storage_queue {
        add("--storage-queue", shifted(address, number).to_string());
    }
    if let Some(file) = &arguments.endpoints.config_json {
        add("--config-json", file.display().to_string());
    }
    command.extend(arguments.endpoints.insecure_network.then(|| "--insecure-network".to_owned()));
    command.push("--json".to_owned());
    let log = folder.join(format!("{name}.log"));
    let mut process = Command::new(&command[0]);
    // In a group of its own: Ctrl-C is for this process, which ends the nodes in their order.
    process.args(&command[1..]).process_group(0).kill_on_drop(true);
    // Its input is held by this process, and nobody else: it ends with it, however that ends.
    process
        .arg("--end-with-input")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log)?);
    let mut child = process.spawn()?;
    let input = child.stdin.take();
    Ok(DevNode { name, child, _input: input, command, log, ready: Value::Null })
}

/// The address of a node that is so many behind the first; any port stays any port.
fn shifted(address: SocketAddr, number: usize) -> SocketAddr {
    let shift = if address.port() == 0 { 0 } else { u16::try_from(number).unwrap_or_default() };
    SocketAddr::new(address.ip(), address.port().saturating_add(shift))
}

impl DevNode {
    /// Waits until the node says where it listens.
    async fn wait_until_ready(&mut self) -> Result<(), CliFailure> {
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).await?;
        }
        self.ready = serde_json::from_str(&line).map_err(|_| {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            CliFailure::Refused(format!("start {}:\n{log}", self.name))
        })?;
        Ok(())
    }

    fn show(&self) -> Value {
        let mut shown = json!({
            "node": self.name, "pid": self.child.id(), "log": self.log, "command": self.command,
        });
        for server in ["http", "amqp", "storage_queue", "page"] {
            shown[server] = self.ready[server].clone();
        }
        shown
    }
}

fn announce(nodes: &[DevNode], nats: &LocalNats, folder: &Path, json: bool) {
    if json {
        let server = |(address, monitor, pid): (String, String, u32)| json!({ "address": address, "monitor": monitor, "pid": pid });
        let nats: Vec<Value> = nats.servers().map(server).collect();
        let nodes: Vec<Value> = nodes.iter().map(DevNode::show).collect();
        write_unless_unread(&json!({ "folder": folder, "nats": nats, "nodes": nodes }).to_string());
        return;
    }
    for (address, monitor, pid) in nats.servers() {
        write_unless_unread(&format!("NATS server {pid}: {address}, monitored at {monitor}"));
    }
    for node in nodes {
        let pid = node.child.id().unwrap_or_default();
        let addresses: Vec<&str> = ["http", "amqp", "storage_queue"]
            .iter()
            .filter_map(|server| node.ready[server].as_str())
            .collect();
        let (addresses, log) = (addresses.join(", "), node.log.display());
        write_unless_unread(&format!("{} (process {pid}): {addresses}, log in {log}", node.name));
    }
    write_unless_unread(
        "every node works for every workflow; kill any process to see that; Ctrl-C stops all of them",
    );
}

/// Says which nodes end, until this is told to stop.
async fn supervise(nodes: &mut Vec<DevNode>, signals: &mut Signals) {
    loop {
        let ended = async {
            if nodes.is_empty() {
                return std::future::pending().await;
            }
            let waits = nodes.iter_mut().map(|node| Box::pin(node.child.wait()));
            let (ended, number, _) = futures_util::future::select_all(waits).await;
            (ended, number)
        };
        let (ended, number) = tokio::select! {
            ended = ended => ended,
            () = signals.stop() => return,
        };
        let node = nodes.remove(number);
        let how = ended.map_or_else(|error| error.to_string(), describe);
        eprintln!("{} has ended ({how}): the others take over what it had. To start it again:", node.name);
        eprintln!("  {}", node.command.join(" "));
    }
}

fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

/// Ends the nodes in order; false when a second signal has ended them at once.
async fn stop(mut nodes: Vec<DevNode>, signals: &mut Signals) -> bool {
    for node in &nodes {
        if let Some(pid) = node.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    let ended = async {
        for node in &mut nodes {
            let _ = node.child.wait().await;
        }
    };
    tokio::select! {
        () = ended => true,
        () = asked_again(async || signals.stop().await) => false,
    }
}
