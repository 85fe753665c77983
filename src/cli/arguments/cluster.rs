//! Arguments that make a daemon a node of a cluster.

use std::path::Path;
use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use seriatim::api::WireDuration;
use seriatim::cluster::ClusterOptions;
use seriatim::limits;

/// The variable that holds the password of `--nats-user`: an argument could be read by everybody on the machine.
const PASSWORD: &str = "SERIATIM_NATS_PASSWORD";

/// What makes a daemon a node of a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArguments {
    /// The name of the cluster of which this daemon is a node: letters, digits, `-` and `_`. Messages are then kept on NATS
    /// servers, and the data folder has copies.
    #[arg(long, env = "SERIATIM_CLUSTER", value_name = "NAME", value_parser = name, requires_all = ["node", "nats"])]
    pub(crate) cluster: Option<String>,
    /// The name of this node, which no other node of the cluster has.
    #[arg(long, env = "SERIATIM_NODE", value_name = "NAME", value_parser = name, requires = "cluster")]
    pub(crate) node: Option<String>,
    /// A NATS server: its address, and behind `=` the one at which it can be monitored, for example
    /// nats://10.0.0.1:4222=http://10.0.0.1:8222. Give all of them: each is asked whether it syncs what it acknowledges.
    #[arg(long, env = "SERIATIM_NATS", value_name = "NATS=HTTP", value_parser = server, value_delimiter = ',', requires = "cluster")]
    pub(crate) nats: Vec<NatsServer>,
    /// How many partitions a new cluster has; fixed when it is created. JavaScript rounds the sequence numbers of more than 32.
    /// [default: 16]
    #[arg(long, env = "SERIATIM_PARTITIONS", requires = "cluster", value_parser = RangedU64ValueParser::<u16>::new().range(1..=u64::from(limits::PARTITIONS_MAX)))]
    pub(crate) partitions: Option<u16>,
    /// On how many NATS servers each message is before it is acknowledged: 1, 3 or 5. [default: 3]
    #[arg(long, env = "SERIATIM_REPLICAS", requires = "cluster", value_parser = ["1", "3", "5"])]
    pub(crate) replicas: Option<String>,
    /// How long a node may be silent before others take over what it has. [default: 1s]
    #[arg(long, env = "SERIATIM_LEASE", requires = "cluster", value_parser = lease)]
    pub(crate) lease: Option<WireDuration>,
    /// File of credentials for the NATS servers, as `nsc` writes it.
    #[arg(long, env = "SERIATIM_NATS_CREDENTIALS", requires = "cluster", conflicts_with = "nats_user")]
    pub(crate) nats_credentials: Option<PathBuf>,
    /// User for the NATS servers; the password is in the variable SERIATIM_NATS_PASSWORD.
    #[arg(long, env = "SERIATIM_NATS_USER", requires = "cluster")]
    pub(crate) nats_user: Option<String>,
    /// PEM file of certificates that are trusted beside those of the system; connections to NATS are encrypted then.
    #[arg(long, env = "SERIATIM_NATS_CA", requires = "cluster")]
    pub(crate) nats_ca: Option<PathBuf>,
    /// PEM file of the certificate that this node shows the NATS servers.
    #[arg(long, env = "SERIATIM_NATS_CERTIFICATE", requires_all = ["cluster", "nats_key"])]
    pub(crate) nats_certificate: Option<PathBuf>,
    /// PEM file of that certificate's private key.
    #[arg(long, env = "SERIATIM_NATS_KEY", requires = "nats_certificate")]
    pub(crate) nats_key: Option<PathBuf>,
}

/// A NATS server, and where it can be monitored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NatsServer {
    address: String,
    monitor: String,
}

impl ClusterArguments {
    /// The options of the node, if the daemon is to be one.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(crate) fn options(&self, data: &Path) -> Result<Option<ClusterOptions>, String> {
        let (Some(cluster), Some(node)) = (&self.cluster, &self.node) else { return Ok(None) };
        if self.nats.iter().any(|server| server.address.contains('@')) {
            return Err(format!(
                "--nats holds a name or a password, which the log would show: give --nats-user with the password in {PASSWORD}, \
                 or --nats-credentials"
            ));
        }
        let mut options = ClusterOptions::new(cluster, node, data);
        for NatsServer { address, monitor } in &self.nats {
            options = options.server(address, monitor);
        }
        options.partitions = self.partitions.unwrap_or(options.partitions);
        let replicas = self.replicas.as_ref().and_then(|replicas| replicas.parse().ok());
        options.replicas = replicas.unwrap_or(options.replicas);
        options.lease = self.lease.map_or(options.lease, |lease| lease.0);
        options.access.credentials = self.nats_credentials.clone();
        options.access.ca_file = self.nats_ca.clone();
        options.access.certificate = self.nats_certificate.clone().zip(self.nats_key.clone());
        if let Some(user) = &self.nats_user {
            let password = std::env::var(PASSWORD);
            let password = password.map_err(|_| format!("--nats-user needs the password in {PASSWORD}"))?;
            options = options.login(user, password);
        }
        Ok(Some(options))
    }
}

fn name(text: &str) -> Result<String, String> {
    ClusterOptions::check_name(text).map(|()| text.to_owned())
}

fn server(text: &str) -> Result<NatsServer, String> {
    // What is refused here is shown, so that a text which may hold a password is refused later.
    if text.contains('@') {
        return Ok(NatsServer { address: text.to_owned(), monitor: String::new() });
    }
    let wrong =
        || "give nats://HOST:PORT=http://HOST:PORT: the address, and where it is monitored".to_owned();
    let (address, monitor) = text.split_once('=').ok_or_else(wrong)?;
    let has_host = |url: &str, schemes: &[&str]| {
        schemes
            .iter()
            .any(|scheme| url.strip_prefix(scheme).is_some_and(|host| !host.trim_end_matches('/').is_empty()))
    };
    match has_host(address, &["nats://", "tls://"]) && has_host(monitor, &["http://"]) {
        true => Ok(NatsServer { address: address.to_owned(), monitor: monitor.to_owned() }),
        false => Err(wrong()),
    }
}

fn lease(text: &str) -> Result<WireDuration, String> {
    let lease = text.parse::<WireDuration>().map_err(|error| error.to_string())?;
    match lease.0 >= limits::LEASE_MIN {
        true => Ok(lease),
        false => Err(format!("it has to last {} at least", WireDuration(limits::LEASE_MIN))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        cluster: ClusterArguments,
    }

    const NODE: [&str; 7] = [
        "run",
        "--cluster",
        "orders",
        "--node",
        "n1",
        "--nats",
        "nats://a:1=http://a:2,tls://b:1=http://b:2",
    ];

    fn options(more: &[&str]) -> Result<Option<ClusterOptions>, String> {
        let line = Line::try_parse_from(NODE.iter().chain(more)).map_err(|error| error.to_string())?;
        line.cluster.options(Path::new("data"))
    }

    #[test]
    fn a_node_is_told_all_servers_and_what_is_not_said_is_as_by_default() {
        let options = options(&["--replicas", "1", "--lease", "2s"]).unwrap().unwrap();
        assert_eq!(options.servers, ["nats://a:1", "tls://b:1"]);
        assert_eq!(options.monitors, ["http://a:2", "http://b:2"]);
        assert_eq!((options.cluster.as_str(), options.node.as_str()), ("orders", "n1"));
        assert_eq!((options.partitions, options.replicas, options.lease.as_secs()), (16, 1, 2));
        let none = Line::try_parse_from(["run"]).unwrap().cluster.options(Path::new("data"));
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn every_mistake_is_named_with_its_argument() {
        for (mistake, argument) in [
            (["--lease", "10ms"], "--lease"),
            (["--partitions", "0"], "--partitions"),
            (["--replicas", "2"], "--replicas"),
            (["--nats", "nats://c:1"], "--nats"),
            (["--nats-key", "k"], "--nats-certificate"),
        ] {
            let refused = options(&mistake).unwrap_err();
            assert!(refused.contains(argument), "{mistake:?}: {refused}");
        }
        for (line, argument) in [
            (&["run", "--cluster", "a b"][..], "--cluster"),
            (&["run", "--cluster", "a"], "--node"),
            (&["run", "--node", "a"], "--cluster"),
        ] {
            let refused = Line::try_parse_from(line).unwrap_err().to_string();
            assert!(refused.contains(argument), "{line:?}: {refused}");
        }
        assert!(options(&["--nats-user", "ada"]).unwrap_err().contains(PASSWORD));
    }

    #[test]
    fn a_server_with_a_password_is_refused_and_the_password_is_not_shown() {
        for server in [
            "nats://ada:hunter2@c:1=http://c:2",
            "nats://ada:hunter2=@c:1=http://c:2",
            "nats://c:1=http://ada:hunter2@c:2",
            "ada:hunter2@c:1",
        ] {
            let refused = options(&["--nats", server]).unwrap_err();
            assert!(refused.contains("--nats-user") && refused.contains(PASSWORD), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
