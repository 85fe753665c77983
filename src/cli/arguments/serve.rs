//! Arguments of `run` and `dev`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use seriatim::wire::WireDuration;

/// Endpoints beside HTTP.
#[derive(Debug, Args)]
pub(crate) struct EndpointArguments {
    /// Where the endpoint of Azure Service Bus listens for AMQP, for example 127.0.0.1:5672; without it, it does not.
    #[arg(long, env = "SERIATIM_AMQP", value_parser = listen_address)]
    pub(crate) amqp: Option<SocketAddr>,
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
    /// How long handlers may go on when the daemon is told to stop.
    #[arg(long, default_value = "30s")]
    pub(crate) drain: WireDuration,
    /// Write the log as lines of JSON. SERIATIM_LOG chooses what is in it: `warn`, `info`, `seriatim=debug`.
    #[arg(long)]
    pub(crate) log_json: bool,
    /// Print one line of JSON when it is ready.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    /// The folder of the definitions; a demonstration without it.
    pub(crate) definitions: Option<PathBuf>,
    /// Where HTTP is served.
    #[arg(long, default_value = "127.0.0.1:7700", env = "SERIATIM_HTTP", value_parser = listen_address)]
    pub(crate) http: SocketAddr,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
    /// Print one line of JSON when it is ready.
    #[arg(long)]
    pub(crate) json: bool,
}

/// An address and a port. `localhost` is this machine's own address whatever a name server says; other names are not
/// looked up, because which of a name's addresses is meant only who starts the daemon knows.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let own = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    own.as_deref().unwrap_or(text).parse().map_err(|_| {
        "give an IP address and a port, such as 127.0.0.1:7700, [::1]:7700 or localhost:7700".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArguments,
    }

    /// An argument that is an address, and what was read of it.
    type Flag = (&'static str, fn(&RunArguments) -> Option<SocketAddr>);

    const FLAGS: [Flag; 3] = [
        ("--http", |run| Some(run.http)),
        ("--amqp", |run| run.endpoints.amqp),
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
    fn every_endpoint_takes_localhost_and_no_other_name() {
        for (flag, get) in FLAGS {
            let parsed = Line::try_parse_from(["run", flag, "localhost:1"]).unwrap();
            assert_eq!(get(&parsed.run), Some(SocketAddr::from(([127, 0, 0, 1], 1))), "{flag}");
            let refused = Line::try_parse_from(["run", flag, "example.org:1"]).unwrap_err();
            assert!(refused.to_string().contains(flag), "{refused}");
        }
    }
}
