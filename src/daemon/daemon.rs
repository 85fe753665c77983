//! The daemon: one engine, what the definitions say, and the server; started, reloaded and stopped in order.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::daemon::apply::apply;
use crate::daemon::daemon_state::DaemonState;
use crate::daemon::data_dir::DataDir;
use crate::daemon::endpoints::Serving;
use crate::daemon::error::DaemonError;
use crate::daemon::host::DaemonHost;
use crate::daemon::host::is_own;
use crate::daemon::membership::Membership;
use crate::daemon::message_store::MessageStore;
use crate::daemon::options::DaemonOptions;
use crate::daemon::state_file::StateFile;
use crate::daemon::systemd;
use crate::daemon::ticker::Ticker;
use crate::daemon::watch;
use crate::daemon::watch::ReloadSignals;
use crate::definition::Definitions;
use crate::engine::Client;
use crate::error::Error;
use crate::error::Fault;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::Unavailable;
use crate::handlers::fence;
use crate::intake::Intake;
use crate::page;
use crate::page::PageOptions;
use crate::processor::Running;
use crate::server::Server;
use crate::server::ServerCredentials;
use crate::server::ServerOptions;
use crate::service_bus::Endpoint;
use crate::service_bus::EndpointOptions;
use crate::service_bus::Owners;
use crate::shown::shown;
use crate::storage_queue::StorageQueues;
use crate::task;

/// A daemon that runs.
///
/// # Dropping
/// Nothing is stopped in order: handlers, schedules and server are tasks of the tokio runtime it was started on, and go on as long as
/// that does; on a cluster, the node leaves them. [`Daemon::stop`] ends it in order. A runtime that is shut down ends it at once,
/// as if it had been killed: what handlers were doing counts as failed attempts.
pub struct Daemon {
    store: MessageStore,
    daemon_state: Arc<DaemonState>,
    ticking: Running,
    address: SocketAddr,
    amqp: Vec<SocketAddr>,
    stopping: CancellationToken,
    server: JoinHandle<()>,
    endpoint: Option<JoinHandle<()>>,
    storage_queues: Option<Serving>,
    tasks: Vec<JoinHandle<()>>,
}

shown!(Daemon {});

/// Where requests come in: each has its address, and none is served yet.
struct Doors {
    server: Server,
    endpoint: Option<Endpoint>,
    storage_queues: Option<StorageQueues>,
}

impl Doors {
    /// Puts the definitions in force and takes every address; only then handlers begin, so that a start that fails has handed
    /// nothing out.
    async fn open(daemon_state: &Arc<DaemonState>, definitions: Definitions) -> Result<Doors, DaemonError> {
        apply(daemon_state, definitions).await?;
        let (client, host) = (
            daemon_state.intake.client().clone(),
            Arc::new(DaemonHost { daemon_state: daemon_state.clone() }),
        );
        let server = Server::bind(daemon_state.server_options()?, client, host.clone(), host).await?;
        let server = daemon_state.with_page(server);
        let _ = daemon_state.credential_reloader.set(server.credential_reloader());
        let endpoint = daemon_state.endpoint(server.credentials()).await?;
        let storage_queues = daemon_state.storage_queues(server.credentials()).await?;
        daemon_state.handler_supervisor.begin().await?;
        Ok(Doors { server, endpoint, storage_queues })
    }
}

impl Daemon {
    /// Reads the definitions, opens the store, ends children a daemon before this one left behind, and then lets handlers
    /// and server begin.
    ///
    /// # Errors
    /// [`DaemonError`]; nothing has begun then.
    pub async fn start(options: DaemonOptions) -> Result<Daemon, DaemonError> {
        starting(options).await
    }

    async fn start_all(options: DaemonOptions) -> Result<Daemon, DaemonError> {
        // Before they are read: what changes meanwhile is read again.
        let changes = ReloadSignals::listen(&options.definitions)?;
        let definitions = Definitions::load(&options.definitions)?;
        let unusable = |error| DaemonError::Data(options.data.clone(), error);
        let folder = DataDir::find(&options.data).map_err(unusable)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let store = systemd::while_opening(MessageStore::open(&folder, &options)).await?;
        let (client, membership) = (store.client().clone(), store.membership());
        let data_dir = DataDir::open(folder, fresh_id(&client)?, membership.cluster()).map_err(unusable)?;
        // Only now: whoever has the store open is the only one whose children may live.
        fence(&data_dir.state_file().store_id()).await?;
        let intake = Intake::new(client.clone());
        let ticker = open_ticker(&intake, &membership).await?;
        let daemon_state = Arc::new(DaemonState::new(options, data_dir, membership, intake, ticker, clock));
        take_over_pauses(&client, daemon_state.data_dir.state_file()).await?;
        let doors = match Doors::open(&daemon_state, definitions).await {
            Ok(doors) => doors,
            Err(error) => {
                daemon_state.outboxes.stop().await;
                store.close().await;
                return Err(error);
            }
        };
        let Doors { server, endpoint, storage_queues } = doors;
        let (address, stopping) = (server.address(), CancellationToken::new());
        let server = task::spawn(server.run(stopping.clone()));
        let amqp = endpoint.as_ref().map(|endpoint| endpoint.addresses().to_vec()).unwrap_or_default();
        let endpoint = endpoint.map(|endpoint| task::spawn(endpoint.run(stopping.clone())));
        let storage_queues = storage_queues.map(|queues| Serving::begin(queues, stopping.clone()));
        let ticking = daemon_state.ticker.start();
        let tasks = vec![
            task::spawn(watch::follow_files(daemon_state.clone(), changes)),
            task::spawn(watch::follow_troubles(daemon_state.clone())),
            task::spawn(watch::stay_alive(daemon_state.clone())),
        ];
        systemd::ready(&format!("serving {}://{address}", daemon_state.scheme()));
        Ok(Daemon {
            store,
            daemon_state,
            ticking,
            address,
            amqp,
            stopping,
            server,
            endpoint,
            storage_queues,
            tasks,
        })
    }

    /// Where HTTP is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the page is served, if it is.
    pub fn page(&self) -> Option<String> {
        let scheme = self.daemon_state.scheme();
        self.daemon_state.has_page().then(|| format!("{scheme}://{}/ui/", self.address))
    }

    /// Where AMQP is served, if it is: the first of its addresses.
    pub fn amqp_address(&self) -> Option<SocketAddr> {
        self.amqp.first().copied()
    }

    /// Everywhere that AMQP is served, in the order in which it was asked for.
    pub fn amqp_addresses(&self) -> &[SocketAddr] {
        &self.amqp
    }

    /// Where storage queues are served, if they are.
    pub fn storage_queue_address(&self) -> Option<SocketAddr> {
        self.storage_queues.as_ref().map(|serving| serving.address)
    }

    /// How many definitions are in force.
    pub fn definitions(&self) -> usize {
        self.daemon_state.definitions.load().len()
    }

    /// Reads keys and certificate again, and the definitions: a whole valid set takes the place of the old one. A mistake in
    /// definitions keeps no key back, and one in keys no definition. Once begun it goes on to its end, also when its future is dropped.
    ///
    /// # Errors
    /// [`DaemonError::Definitions`] with every mistake, [`DaemonError::Credentials`], [`DaemonError::Several`] with both, and
    /// [`DaemonError::Apply`] when definitions without a mistake cannot be put in force.
    pub async fn reload(&self) -> Result<(), DaemonError> {
        reloading(&self.daemon_state).await
    }

    /// Waits until a fault stops the engine, and says which. From then on every request is refused, `/healthz` and
    /// `/readyz` answer 503 with the fault, and the service manager's watchdog is not fed; what is left to do is
    /// [`Daemon::stop`], and to start again.
    pub async fn failed(&self) -> Fault {
        let client = self.daemon_state.intake.client();
        match client.ended().await {
            Unavailable::Stopped(fault) => {
                systemd::failed(&fault.to_string());
                fault
            }
            // Nobody but `stop` closes it, and that takes the daemon itself.
            other => Fault::Defect(other.to_string()),
        }
    }

    /// Stops in order: offers nothing more, lets handlers finish, gives back uncounted what was not started, ends
    /// requests, and closes the store.
    pub async fn stop(self) {
        stopping(self).await;
    }

    async fn stop_all(self) {
        if !self.store.has_failed() {
            systemd::stopping();
        }
        self.daemon_state.draining.cancel();
        for task in &self.tasks {
            task.abort();
        }
        let ticking = self.ticking.stop();
        let (outboxes, handlers) = (&self.daemon_state.outboxes, &self.daemon_state.handler_supervisor);
        let (_, ticked, ()) = tokio::join!(handlers.dismiss(), ticking, outboxes.stop());
        if let Err(error) = ticked
            && !self.store.has_failed()
        {
            tracing::warn!(%error, "failed to stop the schedules in order");
        }
        self.stopping.cancel();
        if let Err(error) = self.server.await {
            tracing::warn!(%error, "failed to stop the server in order");
        }
        if let Some(endpoint) = self.endpoint
            && let Err(error) = endpoint.await
        {
            tracing::warn!(%error, "failed to stop the endpoint of Service Bus in order");
        }
        if let Some(serving) = self.storage_queues {
            serving.end().await;
        }
        self.store.close().await;
    }
}

// These are compiled with the library: the code of an async function is made anew in each crate that awaits it, and with it
// the code of all that it awaits.

fn starting(options: DaemonOptions) -> BoxFuture<'static, Result<Daemon, DaemonError>> {
    Box::pin(Daemon::start_all(options))
}

fn reloading(daemon_state: &Arc<DaemonState>) -> BoxFuture<'_, Result<(), DaemonError>> {
    Box::pin(watch::reload_whole(daemon_state))
}

fn stopping(daemon: Daemon) -> BoxFuture<'static, ()> {
    Box::pin(daemon.stop_all())
}

/// Puts pauses that an older daemon kept beside the store into it, once.
async fn take_over_pauses(client: &Client, state_file: &StateFile) -> Result<(), DaemonError> {
    let paused = state_file.paused_before();
    for queue in &paused {
        let queue = client.queue(queue).map_err(Error::from)?;
        match queue.set_paused(true).await {
            Ok(_) | Err(QueueError::Refused(QueueRefusal::QueueNotFound(_))) => {}
            Err(error) => return Err(Error::from(error).into()),
        }
    }
    if !paused.is_empty()
        && let Err(error) = state_file.forget_paused()
    {
        tracing::warn!(%error, "failed to forget the pauses kept beside the store, which has them now");
    }
    Ok(())
}

async fn open_ticker(intake: &Intake, membership: &Membership) -> Result<Ticker, DaemonError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let opened = Ticker::open(intake.client(), intake.clone(), membership.clone()).await;
        match opened.map_err(DaemonError::from) {
            Err(error) if membership.tries_again(&error, attempts) => {}
            opened => return opened,
        }
    }
}

/// An ID that no other store has.
fn fresh_id(client: &Client) -> Result<String, DaemonError> {
    let draw = || client.entropy().map_err(QueueError::from).map_err(Error::from);
    Ok(format!("{:016x}{:016x}", draw()?, draw()?))
}

impl DaemonState {
    /// Reads keys and certificate again. What is wrong with them changes nothing.
    pub(crate) fn change_locks(&self) -> Result<(), DaemonError> {
        let Some(credential_reloader) = self.credential_reloader.get() else { return Ok(()) };
        let options = self.server_options()?;
        Ok(credential_reloader.change(options.keys, options.tls.as_ref())?)
    }

    /// The endpoint of Service Bus, if it is wanted.
    async fn endpoint(
        self: &Arc<DaemonState>,
        credentials: ServerCredentials,
    ) -> Result<Option<Endpoint>, DaemonError> {
        let Some(first) = self.options.amqp.first() else { return Ok(None) };
        let mut options = EndpointOptions::new(*first);
        options.addresses = self.options.amqp.clone();
        options.tls = credentials.tls;
        options.is_insecure = self.options.insecure_network;
        options.config = self.options.config_json.clone();
        options.keys = credentials.keys;
        let (clock, meters) = (self.clock.clone(), self.amqp_meters.clone());
        let are_several = self.membership.is_of_cluster();
        let owners = Owners { is_open: |queue| !is_own(queue), defined: self.defined(), are_several };
        Ok(Some(Endpoint::bind(options, self.intake.clone(), owners, clock, meters).await?))
    }

    /// Whether the page is served: as it was said, or else where nobody but this machine can reach it.
    fn has_page(&self) -> bool {
        self.options.page.unwrap_or_else(|| self.options.http.ip().is_loopback())
    }

    /// How the addresses of HTTP begin.
    fn scheme(&self) -> &'static str {
        if self.options.tls.is_some() { "https" } else { "http" }
    }

    /// The server, with the page in front of the API if it is served.
    fn with_page(&self, server: Server) -> Server {
        if !self.has_page() {
            return server;
        }
        let client = self.intake.client().clone();
        let options = PageOptions {
            clock: self.clock.clone(),
            draw: Arc::new(move || client.entropy().ok()),
            port: server.address().port(),
        };
        server.mount(|api| page::mount(api, options))
    }

    fn server_options(&self) -> Result<ServerOptions, DaemonError> {
        let mut options = ServerOptions::new(self.options.http);
        options.keys = self.keys()?;
        options.tls = self.tls();
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::poll;
    use tempfile::TempDir;

    use super::*;
    use crate::id::QueueName;

    #[tokio::test]
    async fn a_reload_nobody_waits_for_any_more_goes_on_to_its_end() {
        let folder = TempDir::new().unwrap();
        let (definitions, elsewhere) = (folder.path().join("workflows"), folder.path().join("elsewhere"));
        [&definitions, &elsewhere].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        // Behind a link, so that no change of it is seen by itself.
        let file = elsewhere.join("orders.toml");
        std::os::unix::fs::symlink(&file, definitions.join("orders.toml")).unwrap();
        let write = |lock| {
            std::fs::write(&file, format!("order = \"arrival\"\n[delivery]\nlock = \"{lock}\"\n")).unwrap()
        };
        write("5s");
        let mut options = DaemonOptions::new(folder.path().join("data"), &definitions);
        options.http = SocketAddr::from(([127, 0, 0, 1], 0));
        let daemon = Daemon::start(options).await.unwrap();
        write("7s");
        let mut reload = Box::pin(daemon.reload());
        assert!(poll!(&mut reload).is_pending());
        drop(reload);
        let orders = QueueName::new("orders").unwrap();
        let lock = || daemon.daemon_state.definitions.load().get(&orders).unwrap().options.lock;
        let is_in_force = async {
            while lock() != Duration::from_secs(7) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), is_in_force).await.expect("it goes on");
        daemon.stop().await;
    }
}
