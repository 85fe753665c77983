//! Whether what is monitored are the servers that keep the logs: a monitoring address of another cluster says nothing of them.

use std::time::Duration;

use async_nats::ServerAddr;
use futures_util::future::join_all;
use serde::Deserialize;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncReadExt;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::cluster::error::ClusterError;
use crate::cluster::servers;

/// How long a server may take to say who it is.
const ANSWER: Duration = Duration::from_secs(5);

/// How many bytes that may be.
const INFO_BYTES_MAX: u64 = 64 * 1024;

/// Who a server is, as it says itself.
#[derive(Clone, Debug, Default, Deserialize)]
struct ServerIdentity {
    /// Another each time it is started.
    server_id: String,
    #[serde(default)]
    server_name: String,
    /// The name of its cluster, to its clients.
    #[serde(default)]
    cluster: Option<String>,
}

/// The same at its monitoring address.
#[derive(Debug, Deserialize)]
struct MonitoredIdentity {
    server_id: String,
    server_name: String,
    #[serde(default)]
    cluster: MonitoredCluster,
}

#[derive(Debug, Default, Deserialize)]
struct MonitoredCluster {
    #[serde(default)]
    name: Option<String>,
}

/// Compares each server with what stands at the monitoring address that was given with it, as far as both answer. Returns what is
/// to be said of those of which another server of the same cluster is monitored.
///
/// # Errors
/// [`ClusterError::Options`] when a server that is monitored belongs to another cluster.
pub(crate) async fn compare(servers: &[String], monitors: &[String]) -> Result<Vec<String>, ClusterError> {
    let asked = servers.iter().zip(monitors).map(|(server, monitor)| async move {
        let known = identity(server).await?;
        Some((server, monitor, known, monitored(monitor).await?))
    });
    let mut differing = Vec::new();
    for (server, monitor, known, monitored) in join_all(asked).await.into_iter().flatten() {
        differing.extend(judge((server, &known), (monitor, &monitored))?);
    }
    Ok(differing)
}

fn judge(
    (server, known): (&str, &ServerIdentity),
    (monitor, monitored): (&str, &ServerIdentity),
) -> Result<Option<String>, ClusterError> {
    if known.server_id == monitored.server_id {
        return Ok(None);
    }
    let what = format!(
        "at {monitor} the NATS server {} is monitored, and at {server} it is {}",
        monitored.server_name, known.server_name
    );
    match known.cluster.is_some() && known.cluster == monitored.cluster {
        true => Ok(Some(what)),
        false => Err(ClusterError::Options(format!("{what}, which is of another cluster"))),
    }
}

/// Who listens at an address for clients, as it says before anything else. `None` where that is not to be had.
async fn identity(server: &str) -> Option<ServerIdentity> {
    let address: ServerAddr = server.parse().ok()?;
    if address.is_websocket() {
        return None;
    }
    let mut line = String::new();
    let said = async {
        let stream = TcpStream::connect((address.host(), address.port())).await.ok()?;
        BufReader::new(stream.take(INFO_BYTES_MAX)).read_line(&mut line).await.ok()
    };
    timeout(ANSWER, said).await.ok()??;
    serde_json::from_str(line.strip_prefix("INFO ")?).ok()
}

/// Who is monitored at an address.
async fn monitored(monitor: &str) -> Option<ServerIdentity> {
    let said = servers::ask(monitor, "/varz").await.ok()?;
    let MonitoredIdentity { server_id, server_name, cluster } = serde_json::from_slice(&said).ok()?;
    Some(ServerIdentity { server_id, server_name, cluster: cluster.name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(id: &str, cluster: Option<&str>) -> ServerIdentity {
        ServerIdentity {
            server_id: id.to_owned(),
            server_name: format!("name-{id}"),
            cluster: cluster.map(str::to_owned),
        }
    }

    #[test]
    fn a_monitor_of_another_cluster_is_refused_and_one_of_another_server_is_named() {
        let judged = |known: &ServerIdentity, monitored: &ServerIdentity| {
            judge(("nats://a", known), ("http://b", monitored)).map_err(|error| error.to_string())
        };
        let one = server("1", Some("east"));
        assert_eq!(judged(&one, &one), Ok(None));
        let said = "at http://b the NATS server name-2 is monitored, and at nats://a it is name-1";
        assert_eq!(judged(&one, &server("2", Some("east"))), Ok(Some(said.to_owned())));
        for (known, other) in [(Some("east"), Some("west")), (Some("east"), None), (None, None)] {
            let why = judged(&server("1", known), &server("2", other)).unwrap_err();
            assert!(why.ends_with(&format!("{said}, which is of another cluster")), "{why}");
        }
    }
}
