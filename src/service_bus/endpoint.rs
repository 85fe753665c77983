//! The endpoint: it listens, and gives every connection a task of its own.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::amqp::Connection;
use crate::amqp::ConnectionOptions;
use crate::clock::Clock;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::TopicError;
use crate::error::TopicRefusal;
use crate::inbound::accept::wait_after;
use crate::intake::Intake;
use crate::limits;
use crate::sas::Keys;
use crate::sas::Signatures;
use crate::service_bus::config::Configuration;
use crate::service_bus::config::ConfigurationError;
use crate::service_bus::config::ConfiguredQueue;
use crate::service_bus::config_topics::ConfiguredSubscription;
use crate::service_bus::config_topics::ConfiguredTopic;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::connection_task::elapsed_ms;
use crate::service_bus::listening::listen;
use crate::service_bus::meters::Meters;
use crate::service_bus::rights::PLAIN;
use crate::service_bus::shared::IsOpen;
use crate::service_bus::shared::Shared;

/// Where an endpoint listens, and what it serves.
#[derive(Clone, Debug)]
pub(crate) struct EndpointOptions {
    /// The address; port 0 takes any that is free.
    pub(crate) address: SocketAddr,
    /// Who may do what; without keys, everybody on this machine may do everything.
    pub(crate) keys: Option<Keys>,
    /// Whether other machines may come in although nothing is encrypted.
    pub(crate) is_insecure: bool,
    /// An emulator's file of queues.
    pub(crate) config: Option<PathBuf>,
    /// How many connections may be open at once.
    pub(crate) connections_max: usize,
}

impl EndpointOptions {
    pub(crate) fn new(address: SocketAddr) -> EndpointOptions {
        EndpointOptions {
            address,
            keys: None,
            is_insecure: false,
            config: None,
            connections_max: limits::SERVICE_BUS_CONNECTIONS_MAX,
        }
    }

    /// Whether the address may be listened at: where other machines reach it, only on request, which the log repeats.
    fn check_address(&self) -> Result<(), EndpointError> {
        let address = self.address;
        if address.ip().is_loopback() {
            return Ok(());
        }
        if !self.is_insecure {
            return Err(EndpointError::Unprotected(address));
        }
        let who = if self.keys.is_some() { "whoever has a key" } else { "everybody who reaches it" };
        tracing::warn!(
            "listening on {address} for AMQP without TLS: {who} may use the queues, and everybody on the way can read all"
        );
        Ok(())
    }
}

/// Why an endpoint cannot start.
#[derive(Debug, Error)]
pub(crate) enum EndpointError {
    /// The address cannot be had.
    #[error("cannot listen on {0} for AMQP: {1}")]
    Bind(SocketAddr, #[source] io::Error),
    /// Other machines could come in.
    #[error(
        "cannot listen on {0} for AMQP: other machines can reach this address, and this endpoint has no TLS; listen on \
         127.0.0.1, or allow it with --insecure-network"
    )]
    Unprotected(SocketAddr),
    /// The file of queues cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// A queue of the file cannot be made.
    #[error("cannot make queue {0}: {1}")]
    Queue(String, #[source] QueueError),
    /// A topic of the file cannot be made.
    #[error("cannot make topic {0}: {1}")]
    Topic(String, #[source] TopicError),
}

/// An endpoint that listens.
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    places: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Endpoint {
    /// Listens, and makes the queues of the configuration; nothing is answered before [`Endpoint::run`].
    pub(crate) async fn bind(
        options: EndpointOptions,
        intake: Intake,
        is_open: IsOpen,
        clock: Arc<dyn Clock>,
        meters: Meters,
    ) -> Result<Endpoint, EndpointError> {
        let address = options.address;
        options.check_address()?;
        let signatures = options.keys.map(Signatures::new);
        let shared = Arc::new(Shared::new(intake, is_open, clock, meters, signatures));
        if let Some(path) = &options.config {
            configure(&shared, Configuration::read(path)?).await?;
        }
        let listening = listen(address);
        let (listener, address) = listening.map_err(|error| EndpointError::Bind(address, error))?;
        Ok(Endpoint { listener, address, places: Arc::new(Semaphore::new(options.connections_max)), shared })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stopping` is set; then every client is told, and cut off if it does not end.
    pub(crate) async fn run(self, stopping: CancellationToken) {
        let (tracker, cut) = (TaskTracker::new(), CancellationToken::new());
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stopping.cancelled() => break,
            };
            match accepted {
                Ok((stream, peer)) => self.open(stream, peer, &tracker, &cut),
                Err(error) => wait_after(&error).await,
            }
        }
        self.shared.stopping.cancel();
        tracker.close();
        if tokio::time::timeout(limits::AMQP_DRAIN_MAX, tracker.wait()).await.is_err() {
            cut.cancel();
            tracker.wait().await;
        }
    }

    fn open(&self, stream: TcpStream, peer: SocketAddr, tracker: &TaskTracker, cut: &CancellationToken) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            tracing::warn!("turned an AMQP connection away: there are as many as there may be");
            return;
        };
        // Frames are written whole; waiting for more of them would only delay them.
        let _ = stream.set_nodelay(true);
        let now_ms = elapsed_ms(&*self.shared.clock);
        let mut options = ConnectionOptions {
            message_bytes_max: limits::SERVICE_BUS_MESSAGE_BYTES_MAX,
            ..ConnectionOptions::default()
        };
        let offers = |mechanism: &str| is_offered(mechanism, self.shared.signatures.is_some(), peer.ip());
        options.mechanisms.retain(|mechanism| offers(mechanism));
        let (shared, cut) = (self.shared.clone(), cut.clone());
        tracker.spawn(async move {
            let _place = place;
            let _open = shared.meters.open();
            let connection_task = ConnectionTask::new(Connection::new(options, now_ms), shared);
            cut.run_until_cancelled(connection_task.over(stream)).await;
        });
    }
}

/// Whether a client may say who it is in this way. Where there are keys, PLAIN says the text of one to everybody on the way, so
/// that it is for this machine only: this endpoint has no TLS.
fn is_offered(mechanism: &str, has_keys: bool, peer: IpAddr) -> bool {
    mechanism != PLAIN || !has_keys || peer.to_canonical().is_loopback()
}

/// Makes the queues of a file; those that are there are given its options.
async fn configure(shared: &Shared, configuration: Configuration) -> Result<(), EndpointError> {
    configuration.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
    for ConfiguredQueue { name, options, requires_session } in configuration.queues {
        let failed = |error| EndpointError::Queue(name.to_string(), error);
        match shared.client.create_queue(name.as_str(), options.clone()).await {
            Err(QueueError::Refused(QueueRefusal::QueueExists(_))) => {
                shared.client.change_queue(name.as_str(), options).await.map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
            Ok(_) => {}
        }
        if requires_session {
            shared.require_session(name);
        }
    }
    for topic in configuration.topics {
        let name = topic.name.to_string();
        configure_topic(shared, topic).await.map_err(|error| EndpointError::Topic(name, error))?;
    }
    Ok(())
}

/// Makes a topic of a file. Subscriptions that are there are given its options and rules; others stay.
async fn configure_topic(shared: &Shared, topic: ConfiguredTopic) -> Result<(), TopicError> {
    let made = shared.client.create_topic(&topic.name).await?;
    for subscription in topic.subscriptions {
        let ConfiguredSubscription { name, options, requires_session, rules } = subscription;
        let queue = match made.subscribe(&name, options.clone(), rules.clone()).await {
            Err(TopicError::Refused(TopicRefusal::SubscriptionExists(..))) => {
                made.change_subscription(&name, options, rules).await?
            }
            answer => answer?,
        };
        if requires_session {
            shared.require_session(queue.name().clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_offered_to_other_machines_only_where_there_are_no_keys() {
        let offered = |has_keys: bool, peer: &str| {
            let mut mechanisms = ConnectionOptions::default().mechanisms;
            mechanisms.retain(|mechanism| is_offered(mechanism, has_keys, peer.parse().unwrap()));
            assert!(mechanisms.contains(&"ANONYMOUS"), "who shows a token says nothing before");
            mechanisms.contains(&"PLAIN")
        };
        for here in ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(offered(true, here) && offered(false, here), "{here}");
        }
        for elsewhere in ["10.0.0.1", "169.254.0.1", "0.0.0.0", "2001:db8::1", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(!offered(true, elsewhere) && offered(false, elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn other_machines_come_in_only_where_that_is_allowed() {
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 5672));
        let refused = EndpointOptions::new(everywhere).check_address().unwrap_err().to_string();
        assert!(refused.contains("--insecure-network"), "{refused}");
        let options = EndpointOptions { is_insecure: true, ..EndpointOptions::new(everywhere) };
        assert!(options.check_address().is_ok());
        assert!(EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0))).check_address().is_ok());
    }
}
