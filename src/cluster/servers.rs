//! Whether NATS servers keep what they acknowledge: asked of each, at its monitoring address, before anything is entrusted to it.

use std::time::Duration;

use futures_util::future::join_all;
use http_body_util::BodyExt;
use http_body_util::Empty;
use http_body_util::Limited;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cluster::error::ClusterError;
use crate::cluster::server_health::ServerHealth;
use crate::cluster::server_health::is_majority;
use crate::cluster::stop::pause;
use crate::error::Fault;
use crate::error::root_cause;
use crate::limits;

/// The oldest version of the server with which all of this was tried.
const OLDEST: [u64; 3] = [2, 14, 4];

/// How long a server may take to say how it is.
const ANSWER: Duration = Duration::from_secs(5);

/// How many bytes that may be.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What a server says of itself at `/varz`. What stands there of JetStream is what was so when somebody first looked.
#[derive(Debug, Deserialize)]
struct Varz {
    server_name: String,
    version: String,
    #[serde(default)]
    max_payload: usize,
}

/// What it says of JetStream at `/jsz`.
#[derive(Debug, Deserialize)]
struct JetStream {
    /// Whether it is off, or has not begun yet.
    #[serde(default)]
    disabled: bool,
    config: Option<JetStreamConfig>,
}

#[derive(Debug, Deserialize)]
struct JetStreamConfig {
    /// It is left out where it is false.
    #[serde(default)]
    sync_always: bool,
}

/// Asks all servers at once whether they can keep a log; returns the monitoring addresses of those that do not answer.
///
/// # Errors
/// [`ClusterError::Unsuitable`] for the first that cannot, [`ClusterError::Servers`] when not more than half of them answer: what
/// the others acknowledge alone may be lost.
pub(crate) async fn check_all(monitors: &[String]) -> Result<Vec<String>, ClusterError> {
    let silent = ask_all(monitors).await?;
    let answered = monitors.len() - silent.len();
    if !is_majority(answered, monitors.len()) {
        let whys = silent.iter().map(|SilentServer { monitor, why }| format!("{monitor}: {why}"));
        return Err(ClusterError::Servers(format!(
            "{answered} of {} say whether they sync what they acknowledge, and it has to be more than half ({})",
            monitors.len(),
            whys.collect::<Vec<_>>().join("; ")
        )));
    }
    for SilentServer { monitor, why } in &silent {
        tracing::warn!(
            monitor,
            why,
            "a NATS server does not say whether it syncs; it is asked again until it does"
        );
    }
    Ok(silent.into_iter().map(|silent| silent.monitor).collect())
}

/// Asks all servers again and again, and notes how many answer; returns what is wrong with the first that cannot keep a log any more.
pub(crate) async fn watch(monitors: &[String], mut silent: Vec<String>, health: &ServerHealth) -> Fault {
    loop {
        pause(limits::SERVER_LOOK).await;
        let found = match ask_all(monitors).await {
            Ok(found) => found,
            Err(ClusterError::Unsuitable { server, what }) => return Fault::Server { server, what },
            Err(error) => {
                tracing::warn!(%error, "NATS servers cannot be asked");
                continue;
            }
        };
        health.note(monitors.len() - found.len(), monitors.len());
        for SilentServer { monitor, why } in found.iter().filter(|found| !silent.contains(&found.monitor)) {
            tracing::warn!(
                monitor,
                why,
                "a NATS server does not say any more that it syncs what it acknowledges"
            );
        }
        for monitor in silent.iter().filter(|monitor| !found.iter().any(|found| found.monitor == **monitor)) {
            tracing::info!(monitor, "a NATS server says again that it syncs what it acknowledges");
        }
        silent = found.into_iter().map(|found| found.monitor).collect();
    }
}

/// A server that does not say how it is.
struct SilentServer {
    monitor: String,
    why: String,
}

/// Asks servers at once; returns those that do not answer.
///
/// # Errors
/// [`ClusterError::Unsuitable`] for the first that cannot keep a log.
async fn ask_all(monitors: &[String]) -> Result<Vec<SilentServer>, ClusterError> {
    let asked = join_all(monitors.iter().map(|monitor| look(monitor))).await;
    let mut silent = Vec::new();
    for (monitor, said) in monitors.iter().zip(asked) {
        match said {
            Ok((varz, config)) => check(&varz, &config)?,
            Err(why) => silent.push(SilentServer { monitor: monitor.clone(), why }),
        }
    }
    Ok(silent)
}

/// What a server says of itself, and of JetStream.
///
/// # Errors
/// Why it does not say it: a server is monitored before JetStream is there.
async fn look(monitor: &str) -> Result<(Varz, JetStreamConfig), String> {
    let (varz, jet_stream) = tokio::join!(read::<Varz>(monitor, "/varz"), read::<JetStream>(monitor, "/jsz"));
    let (varz, JetStream { disabled, config }) = (varz?, jet_stream?);
    match config {
        Some(config) if !disabled => Ok((varz, config)),
        _ => Err("JetStream is not there: it is off, or has not begun yet; its configuration needs `jetstream { sync_interval: always }`"
            .to_owned()),
    }
}

async fn read<T: DeserializeOwned>(monitor: &str, path: &str) -> Result<T, String> {
    let said = ask(monitor, path).await?;
    serde_json::from_slice(&said).map_err(|error| format!("what it says of itself makes no sense: {error}"))
}

/// What a server says at a path of its monitoring address.
///
/// # Errors
/// Why it says nothing.
pub(crate) async fn ask(monitor: &str, path: &str) -> Result<Vec<u8>, String> {
    let uri = format!("{}{path}", monitor.trim_end_matches('/'));
    let uri = uri.parse().map_err(|error| format!("{uri} is no address: {error}"))?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let answer = async {
        let response = client.get(uri).await.map_err(|error| root_cause(&error))?;
        if !response.status().is_success() {
            return Err(format!("it answers {}", response.status()));
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        body.map(|body| body.to_bytes().to_vec()).map_err(|error| error.to_string())
    };
    tokio::time::timeout(ANSWER, answer).await.map_err(|_| "it does not answer".to_owned())?
}

/// Judges what a server has said.
fn check(varz: &Varz, config: &JetStreamConfig) -> Result<(), ClusterError> {
    let unsuitable = |what: String| Err(ClusterError::Unsuitable { server: varz.server_name.clone(), what });
    if version(&varz.version).is_none_or(|version| version < OLDEST) {
        let [major, minor, patch] = OLDEST;
        return unsuitable(format!(
            "its version is {}; it has to be {major}.{minor}.{patch} at least",
            varz.version
        ));
    }
    if !config.sync_always {
        return unsuitable(
            "it acknowledges what is not on its disk yet; its configuration needs `sync_interval: always` in `jetstream { }`"
                .to_owned(),
        );
    }
    if varz.max_payload < limits::LOG_ENTRY_BYTES {
        return unsuitable(format!(
            "it takes messages of {} bytes at most; its configuration needs `max_payload: 8MB`",
            varz.max_payload
        ));
    }
    Ok(())
}

/// The numbers of a version, without what stands behind a hyphen.
fn version(text: &str) -> Option<[u64; 3]> {
    let numbers = text.split('-').next()?.split('.').map(|number| number.parse().ok());
    numbers.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(version: &str, config: &str, max_payload: usize) -> String {
        let varz =
            format!(r#"{{"server_name": "n1", "version": "{version}", "max_payload": {max_payload}}}"#);
        check(&serde_json::from_str(&varz).unwrap(), &serde_json::from_str(config).unwrap())
            .map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn a_server_that_syncs_what_it_acknowledges_is_taken_and_others_are_told_what_is_missing() {
        const SYNCS: &str = r#"{"sync_always": true}"#;
        let enough = limits::LOG_ENTRY_BYTES;
        assert_eq!(said("2.14.4", SYNCS, enough), "fine");
        assert_eq!(said("2.15.0-beta.1", SYNCS, enough), "fine");
        assert!(said("2.14.3", SYNCS, enough).contains("it has to be 2.14.4 at least"));
        assert!(said("2.9.30", SYNCS, enough).contains("it has to be 2.14.4 at least"));
        assert!(said("main", SYNCS, enough).contains("it has to be 2.14.4 at least"));
        let lax = r#"{"sync_interval": 120000000000}"#;
        assert!(said("2.15.1", lax, enough).contains("`sync_interval: always`"));
        assert!(said("2.15.1", SYNCS, enough - 1).contains("`max_payload: 8MB`"));
    }
}
