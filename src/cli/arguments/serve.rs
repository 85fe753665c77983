//! Arguments of `run` and `dev`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;
#[cfg(feature = "cluster")]
use clap::builder::RangedU64ValueParser;
use seriatim::api::WireDuration;
use seriatim::api::views::EnvironmentView;
use seriatim::api::views::TraceUrl;
use seriatim::limits;

#[cfg(feature = "cluster")]
use crate::cli::arguments::cluster::ClusterArguments;

/// Endpoints beside HTTP.
#[derive(Debug, Args)]
pub(crate) struct EndpointArguments {
    /// Where the endpoint of Azure Service Bus listens, for example 127.0.0.1:5672; without it, it does not. Each address takes
    /// AMQP, AMQP over WebSockets, and both over TLS if there is a certificate. Can be given several times.
    #[arg(long, env = "SERIATIM_AMQP", value_parser = listen_address, value_delimiter = ',')]
    pub(crate) amqp: Vec<SocketAddr>,
    /// Let other machines speak to --amqp without TLS, for example at 0.0.0.0:5672 inside a container: everybody on the way
    /// can read the traffic, and without --keys whoever reaches it may do everything.
    #[arg(long, env = "SERIATIM_INSECURE_NETWORK", requires = "amqp", value_parser = FalseyValueParser::new())]
    pub(crate) insecure_network: bool,
    /// Config.json of the Service Bus emulator, whose queues are made at start.
    #[arg(long, env = "SERIATIM_CONFIG_JSON", requires = "amqp")]
    pub(crate) config_json: Option<PathBuf>,
    /// Where the endpoint for Azure storage queues listens, for example 127.0.0.1:10001; without it, it does not.
    #[arg(long, env = "SERIATIM_STORAGE_QUEUE", value_parser = listen_address)]
    pub(crate) storage_queue: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The folder of the definitions.
    #[arg(default_value = "workflows")]
    pub(crate) definitions: PathBuf,
    /// The data folder; made if it is not there.
    #[arg(long, default_value = "seriatim-data", env = "SERIATIM_DATA")]
    pub(crate) data: PathBuf,
    /// Where HTTP is served. Beyond this machine it needs keys and TLS.
    #[arg(long, default_value = "127.0.0.1:7700", env = "SERIATIM_HTTP", value_parser = listen_address)]
    pub(crate) http: SocketAddr,
    /// Serve the web page at /ui: true or false. Without it, it is served where only this machine can reach the address.
    #[arg(long, env = "SERIATIM_PAGE")]
    pub(crate) page: Option<bool>,
    /// The environment, as a badge on the page and in `top`: a name, and a colour of red, amber, green, blue and grey behind a
    /// colon, for example production:red.
    #[arg(long, env = "SERIATIM_ENVIRONMENT", value_name = "NAME[:COLOUR]")]
    pub(crate) environment: Option<EnvironmentView>,
    /// Where the trace of a message can be looked at, for example https://traces.example/trace/{trace_id}: the page links the
    /// `traceparent` of a message to it.
    #[arg(long, env = "SERIATIM_TRACE_URL", value_name = "URL")]
    pub(crate) trace_url: Option<TraceUrl>,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
    /// TOML file of the keys and what each may do. Without it, whoever reaches the address may do everything.
    #[arg(long, env = "SERIATIM_KEYS")]
    pub(crate) keys: Option<PathBuf>,
    /// PEM file of the certificate chain.
    #[arg(long, env = "SERIATIM_TLS_CERTIFICATE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// PEM file of the certificate's private key.
    #[arg(long, env = "SERIATIM_TLS_KEY", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// How long handlers may go on when the daemon is stopped.
    #[arg(long, default_value = "30s", env = "SERIATIM_DRAIN")]
    pub(crate) drain: WireDuration,
    /// How much of the disk is kept free for receiving, settling and purging when it is nearly full, such as 64MiB, which is
    /// the default; with 0 a full disk stops the daemon. Nothing is kept free with --cluster.
    #[arg(long, env = "SERIATIM_HEAD_ROOM", value_parser = head_room)]
    pub(crate) head_room: Option<u64>,
    /// End when nobody holds the standard input any more: for whoever starts a daemon that is not to outlive it.
    #[arg(long, hide = true)]
    pub(crate) end_with_input: bool,
    /// Write the log as lines of JSON. SERIATIM_LOG chooses what is in it: `warn`, `info`, `seriatim=debug`.
    #[arg(long, env = "SERIATIM_LOG_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) log_json: bool,
    /// Print one line of JSON when it is ready.
    #[arg(long)]
    pub(crate) json: bool,
    // Last: its heading in the help goes on to whatever comes behind.
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
}

impl RunArguments {
    /// What was asked for and is not done, in a sentence.
    #[cfg(feature = "cluster")]
    pub(crate) fn unheeded(&self) -> Option<&'static str> {
        let is_unheeded = self.cluster.cluster.is_some() && self.head_room.is_some();
        is_unheeded.then_some(
            "--head-room does nothing with --cluster: a node that cannot write a file stops that partition, and leaves it to others",
        )
    }
}

#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    /// The folder of the definitions; without it, ./workflows if that is there, else a demonstration.
    pub(crate) definitions: Option<PathBuf>,
    /// Where HTTP is served; each further node takes the port behind that of the one before.
    #[arg(long, default_value = "127.0.0.1:7700", env = "SERIATIM_HTTP", value_parser = listen_address)]
    pub(crate) http: SocketAddr,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
    /// Run a cluster of so many nodes, each in a process of its own, with NATS servers; `nats-server` has to be on the path.
    #[cfg(feature = "cluster")]
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=9))]
    pub(crate) nodes: Option<usize>,
    /// Print one line of JSON when it is ready.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number of bytes, in KiB, MiB or GiB: none, or as much as is of use.
fn head_room(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)))
        .unwrap_or((text, 1));
    let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let bytes = bytes.ok_or_else(|| "give a number of bytes, such as 64MiB".to_owned())?;
    match bytes {
        0 | limits::HEAD_ROOM_BYTES_MIN.. => Ok(bytes),
        _ => Err(format!("give 0, or at least {}MiB", limits::HEAD_ROOM_BYTES_MIN >> 20)),
    }
}

/// An address and a port. `localhost` is this machine's own address whatever a name server says; other names are not
/// looked up, because which of a name's addresses is meant only who starts the daemon knows.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let own = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    own.as_deref().unwrap_or(text).parse().map_err(|_| {
        "give an IP address and a port, such as 127.0.0.1:7700, [::1]:7700 or localhost:7700".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArguments,
    }

    #[test]
    fn every_setting_of_a_daemon_has_a_variable() {
        let line = Line::command();
        let settings = line.get_arguments().filter(|argument| !argument.is_hide_set());
        let bare = settings.filter(|argument| argument.get_env().is_none());
        let bare: Vec<&str> = bare.filter_map(|argument| argument.get_long()).collect();
        assert_eq!(bare, ["json"], "what is printed once is no setting");
    }

    #[test]
    fn head_room_is_a_number_of_bytes_in_units() {
        assert_eq!((head_room("64MiB"), head_room("0")), (Ok(64 << 20), Ok(0)));
        assert_eq!((head_room("1GiB"), head_room("8388608")), (Ok(1 << 30), Ok(8 << 20)));
        for wrong in ["", "64MB", "MiB", "-1", "1", "99999999999GiB"] {
            assert!(head_room(wrong).is_err(), "{wrong}");
        }
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn head_room_that_is_asked_of_a_node_of_a_cluster_is_said_to_do_nothing() {
        let node = ["--cluster", "orders", "--node", "n", "--nats", "nats://localhost:1=http://localhost:2"];
        let unheeded = |words: &[&'static str]| {
            let line = ["run"].into_iter().chain(words.iter().copied());
            Line::try_parse_from(line).unwrap().run.unheeded()
        };
        assert_eq!(unheeded(&["--head-room", "64MiB"]), None);
        assert_eq!(unheeded(&node), None);
        let both: Vec<&str> = node.into_iter().chain(["--head-room", "64MiB"]).collect();
        assert!(unheeded(&both).unwrap().starts_with("--head-room does nothing with --cluster"));
    }

    /// An argument that is an address, and what was read of it.
    type Flag = (&'static str, fn(&RunArguments) -> Option<SocketAddr>);

    const FLAGS: [Flag; 3] = [
        ("--http", |run| Some(run.http)),
        ("--amqp", |run| run.endpoints.amqp.first().copied()),
        ("--storage-queue", |run| run.endpoints.storage_queue),
    ];

    #[test]
    fn localhost_is_an_address_and_other_names_are_not() {
        assert_eq!(listen_address("localhost:7700"), Ok(SocketAddr::from(([127, 0, 0, 1], 7700))));
        assert_eq!(listen_address("0.0.0.0:1"), Ok(SocketAddr::from(([0, 0, 0, 0], 1))));
        for wrong in ["example.org:7700", "localhost", "7700", ""] {
            assert!(listen_address(wrong).unwrap_err().contains("localhost:7700"), "{wrong}");
        }
    }

    #[test]
    fn the_endpoint_of_service_bus_listens_at_as_many_addresses_as_are_given() {
        let line = ["run", "--amqp", "localhost:1", "--amqp", "0.0.0.0:2,[::1]:3"];
        let parsed = Line::try_parse_from(line).unwrap().run.endpoints.amqp;
        let shown: Vec<String> = parsed.iter().map(SocketAddr::to_string).collect();
        assert_eq!(shown, ["127.0.0.1:1", "0.0.0.0:2", "[::1]:3"]);
    }

    #[test]
    fn every_endpoint_takes_localhost_and_no_other_name() {
        for (flag, get) in FLAGS {
            let parsed = Line::try_parse_from(["run", flag, "localhost:1"]).unwrap();
            assert_eq!(get(&parsed.run), Some(SocketAddr::from(([127, 0, 0, 1], 1))), "{flag}");
            let refused = Line::try_parse_from(["run", flag, "example.org:1"]).unwrap_err();
            assert!(refused.to_string().contains(flag), "{refused}");
        }
    }
}
