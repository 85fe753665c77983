//! What a daemon is started with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::views::EnvironmentView;
use crate::api::views::TraceUrl;
#[cfg(feature = "cluster")]
use crate::cluster::ClusterOptions;
use crate::engine::Durability;
use crate::limits;

/// What a daemon is started with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DaemonOptions {
    /// The data folder; made if it is not there.
    pub data: PathBuf,
    /// The folder of the definitions.
    pub definitions: PathBuf,
    /// Where HTTP is served; port 0 takes any that is free.
    pub http: SocketAddr,
    /// Whether the web page is served at `/ui`; `None` serves it where only this machine can reach the address.
    pub page: Option<bool>,
    /// The environment, as the command line and the page show it.
    pub environment: Option<EnvironmentView>,
    /// Where a trace can be looked at.
    pub trace_url: Option<TraceUrl>,
    /// A file of keys; without one, everybody who reaches the address may do everything.
    pub keys: Option<PathBuf>,
    /// Certificate chain and private key, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Where the endpoint of Service Bus listens: each address takes AMQP, AMQP over WebSockets, and both over TLS if there
    /// is a certificate. Port 0 takes any that is free.
    pub amqp: Vec<SocketAddr>,
    /// Whether the endpoint of Service Bus serves other machines without TLS.
    pub insecure_network: bool,
    /// A `Config.json` of the emulator of Service Bus, whose queues are made at start.
    pub config_json: Option<PathBuf>,
    /// Where the endpoint for storage queues listens, if it does; port 0 takes any that is free.
    pub storage_queue: Option<SocketAddr>,
    /// What an acknowledged commit survives.
    pub durability: Durability,
    /// How long handlers may go on when the daemon stops.
    pub drain: Duration,
    /// Bytes of the disk that are kept free for receiving, settling and purging, as
    /// [`EngineBuilder::head_room`](crate::EngineBuilder::head_room); with 0 a full disk is a fault.
    pub head_room_bytes: u64,
    /// The cluster whose node this daemon is; without one it has a store of its own. What its folder is, is
    /// [`data`](DaemonOptions::data).
    #[cfg(feature = "cluster")]
    pub cluster: Option<ClusterOptions>,
    /// How long queues remember how messages have ended whose definition does not say; `None` remembers nothing.
    pub history: Option<Duration>,
}

impl DaemonOptions {
    /// Options with everything by default: loopback, no keys, and 30 seconds to drain.
    pub fn new(data: impl Into<PathBuf>, definitions: impl Into<PathBuf>) -> DaemonOptions {
        DaemonOptions {
            data: data.into(),
            definitions: definitions.into(),
            http: SocketAddr::from(([127, 0, 0, 1], limits::HTTP_PORT)),
            page: None,
            environment: None,
            trace_url: None,
            keys: None,
            tls: None,
            amqp: Vec::new(),
            insecure_network: false,
            config_json: None,
            storage_queue: None,
            durability: Durability::default(),
            drain: limits::DRAIN_DEFAULT,
            head_room_bytes: limits::HEAD_ROOM_BYTES,
            #[cfg(feature = "cluster")]
            cluster: None,
            history: None,
        }
    }
}
