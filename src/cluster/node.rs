//! A node: connected to the servers, with a thread for each partition.

use std::sync::Arc;
use std::thread::JoinHandle;
#[cfg(test)]
use std::time::Duration;

use async_nats::Client as NatsClient;
use async_nats::Subscriber;
use async_nats::jetstream;
use futures_util::future::BoxFuture;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::cluster::definitions::QueueDefinitions;
use crate::cluster::error::ClusterError;
use crate::cluster::handle::ClusterHandle;
use crate::cluster::hashing::partition_of;
use crate::cluster::hearing;
use crate::cluster::jet_stream::JetStreamLog;
use crate::cluster::leases::Leases;
use crate::cluster::nodes::Nodes;
use crate::cluster::options::ClusterOptions;
use crate::cluster::partition::Partition;
use crate::cluster::partition::PartitionParts;
use crate::cluster::partition::PartitionStatus;
use crate::cluster::random::random;
use crate::cluster::router::Router;
use crate::cluster::router::RouterParts;
use crate::cluster::server_health::ServerHealth;
use crate::cluster::server_identity;
use crate::cluster::servers;
use crate::cluster::shape::check_folder;
use crate::cluster::signals::NodeSignals;
#[cfg(test)]
use crate::cluster::snapshot_list::SnapshotList;
use crate::cluster::snapshot_taker::SnapshotTaker;
use crate::cluster::snapshots::Snapshots;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::engine::Client;
use crate::engine::Event;
use crate::engine::elsewhere::Elsewhere;
use crate::engine::elsewhere::Inbox;
use crate::engine::log::FollowerOptions;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;

/// Where a workflow is handled now.
#[derive(Clone)]
#[non_exhaustive]
pub enum NodeRoute {
    /// By this node: the engine of its partition.
    Here(Client),
    /// By another node, or by none at the moment. Nodes can be wrong about it: whoever is asked says so.
    Elsewhere {
        /// The partition of the workflow.
        partition: u16,
        /// The node that has it, if that is alive.
        owner: Option<String>,
    },
}

/// A node of a cluster.
///
/// It follows every partition, and owns some. A partition that it owns is an engine: what that has acknowledged is in the log of
/// the partition on as many NATS servers as there are replicas, and whichever node takes over has it.
pub struct ClusterNode {
    partitions: Vec<Arc<Partition>>,
    threads: Vec<JoinHandle<()>>,
    leases: Arc<Leases>,
    router: Arc<Router>,
    client: Client,
    stop: ClusterStop,
    #[cfg(test)]
    taker: Arc<SnapshotTaker>,
    runtime: NodeRuntime,
}

impl ClusterNode {
    /// Starts a node: checks the servers, makes or opens the streams, and begins to follow.
    ///
    /// # Errors
    /// [`ClusterError`] when the options or servers do not fit, when the cluster was created otherwise, or when a server cannot
    /// keep a log.
    pub async fn start(options: ClusterOptions) -> Result<ClusterNode, ClusterError> {
        starting(options).await
    }

    async fn start_all(options: ClusterOptions) -> Result<ClusterNode, ClusterError> {
        options.check()?;
        std::fs::create_dir_all(&options.folder)?;
        check_folder(&options)?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).thread_name("seriatim-cluster").enable_all().build()?;
        let (stop, handle) = (ClusterStop::default(), runtime.handle().clone());
        let runtime = NodeRuntime(Some(runtime));
        let prepared = handle.spawn(prepare(options, stop.clone(), handle.clone())).await;
        let prepared = prepared.unwrap_or_else(|error| Err(ClusterError::Servers(error.to_string())));
        let PreparedNode { parts, asked, signals, events, taker, monitors, silent } = prepared?;
        let (leases, partitions) = (parts.leases.clone(), parts.partitions.clone());
        handle.spawn(parts.definitions.clone().watch(stop.clone()));
        handle.spawn(leases.clone().watch(stop.clone()));
        handle.spawn(leases.clone().enter(stop.clone()));
        handle.spawn(hearing::hear(signals, leases.clone(), partitions.clone(), stop.clone()));
        handle.spawn(leases.clone().beat(stop.clone()));
        let (client, elsewhere) = Elsewhere::begin(Arc::new(SystemClock::default()), events);
        let servers = WatchedServers { monitors, silent, health: parts.health.clone() };
        handle.spawn(give_way(leases.clone(), servers, elsewhere.inbox(), stop.clone()));
        let router = Arc::new(Router::new(parts, elsewhere.clock()));
        handle.spawn(router.clone().answer_others(asked));
        for number in 0..router.places.partitions {
            handle.spawn(router.clone().hand_over(number));
        }
        let threads = Vec::new();
        let taker = Arc::new(taker);
        let mut node = ClusterNode {
            partitions,
            threads,
            leases,
            router: router.clone(),
            client,
            stop,
            #[cfg(test)]
            taker: taker.clone(),
            runtime,
        };
        let thread = std::thread::Builder::new().name("seriatim-router".to_owned());
        node.threads.push(thread.spawn(move || router.run(elsewhere))?);
        let thread = std::thread::Builder::new().name("seriatim-snapshots".to_owned());
        node.threads.push(thread.spawn(move || taker.run())?);
        for partition in &node.partitions {
            let (partition, name) =
                (partition.clone(), format!("seriatim-p{}", partition.status().partition));
            node.threads.push(std::thread::Builder::new().name(name).spawn(move || partition.run())?);
        }
        Ok(node)
    }

    /// Where a workflow of a queue is handled now.
    pub fn route(&self, queue: &QueueName, workflow: &WorkflowId) -> NodeRoute {
        let partitions = u16::try_from(self.partitions.len()).expect("there is a limit to their number");
        let partition = partition_of(queue, workflow, partitions);
        match self.engine(partition) {
            Some(client) => NodeRoute::Here(client),
            None => NodeRoute::Elsewhere { partition, owner: self.leases.owner(partition) },
        }
    }

    /// A client of the whole cluster: what is asked through it is done by whichever nodes have the partitions.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What can be asked of the node beside its messages.
    pub fn handle(&self) -> ClusterHandle {
        ClusterHandle { router: self.router.clone() }
    }

    /// The engine of a partition, if this node owns that.
    pub fn engine(&self, partition: u16) -> Option<Client> {
        self.partitions.get(usize::from(partition))?.client()
    }

    /// Every partition, as this node sees it.
    pub fn status(&self) -> Vec<PartitionStatus> {
        self.partitions.iter().map(|partition| partition.status()).collect()
    }

    /// The nodes that this one hears, itself among them.
    pub fn nodes(&self) -> Vec<String> {
        self.leases.nodes()
    }

    /// Gives every partition to other nodes, one after the other, and takes none any more.
    pub fn drain(&self) {
        self.leases.set_draining(true);
    }

    /// Gives up a log for a list of snapshots, as whoever has read it some time ago.
    #[cfg(test)]
    pub(crate) fn trim(&self, partition: u16, list: &SnapshotList) -> Result<(), String> {
        self.taker.trim(&self.partitions[usize::from(partition)], list)
    }

    /// Why a partition waits for its log, if it does.
    #[cfg(test)]
    pub(crate) fn log_trouble(&self, partition: u16) -> Option<String> {
        self.partitions[usize::from(partition)].trouble()
    }

    /// Does something while a snapshot of a partition's file is being written.
    #[cfg(test)]
    pub(crate) fn with_held_file<T>(&self, partition: u16, work: impl FnOnce() -> T) -> T {
        self.partitions[usize::from(partition)].file().held(work)
    }

    /// Takes partitions again after a drain, but for one that it says it cannot have.
    #[cfg(test)]
    pub(crate) fn come_back_without(&self, partition: u16) {
        self.leases.set_stopped(partition, true);
        self.leases.set_draining(false);
    }

    /// Is told every key of the bucket again, as by a watch that is begun anew.
    #[cfg(test)]
    pub(crate) async fn watch_anew(&self) {
        let told = self.leases.clone().watch(self.stop.clone());
        let runtime = self.runtime.0.as_ref().expect("it is not closed");
        let _ = runtime.spawn(async { tokio::time::timeout(Duration::from_millis(100), told).await }).await;
    }

    /// Says no more that the node is alive, which goes on.
    #[cfg(test)]
    pub(crate) fn fall_silent(&self) {
        self.leases.fall_silent();
    }

    /// Hears no more who has which partition.
    #[cfg(test)]
    pub(crate) fn set_deaf_to_leases(&self) {
        self.leases.is_deaf.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Hears no more which queues are made, or hears it again.
    #[cfg(test)]
    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        self.router.definitions.set_deaf(is_deaf);
    }

    /// Whether it knows of a queue that is not everywhere yet.
    #[cfg(test)]
    pub(crate) fn knows_queue(&self, name: &str) -> bool {
        let name = QueueName::new(name).expect("a test gives a name");
        !self.router.definitions.due(|known, _| *known == name).is_empty()
    }

    /// Reads which queues there are.
    #[cfg(test)]
    pub(crate) async fn read_definitions(&self) {
        self.router.definitions.load().await.unwrap();
    }

    /// Leaves the node as a process that hangs: it says nothing any more, and what it has goes on.
    #[cfg(test)]
    pub(crate) fn abandon(self) {
        self.leases.fall_silent();
        std::mem::forget(self);
    }

    /// Stops the node in good order: what was asked before is committed, and other nodes may take over at once.
    pub async fn close(self) {
        closing(self).await;
    }

    async fn close_all(mut self) {
        self.stop.say();
        let threads = std::mem::take(&mut self.threads);
        // A panic of one was said when it happened.
        let joined =
            tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join())));
        let _ = joined.await;
        let leases = self.leases.clone();
        if let Some(runtime) = &self.runtime.0 {
            let _ = runtime.spawn(async move { leases.leave().await }).await;
        }
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.stop.say();
    }
}

/// What talks to the servers, until it is dropped: wherever that is, it waits for nothing.
struct NodeRuntime(Option<Runtime>);

impl Drop for NodeRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

// These are compiled with the library: the code of an async function is made anew in each crate that awaits it, and with it
// the code of all that it awaits.

fn starting(options: ClusterOptions) -> BoxFuture<'static, Result<ClusterNode, ClusterError>> {
    Box::pin(ClusterNode::start_all(options))
}

fn closing(node: ClusterNode) -> BoxFuture<'static, ()> {
    Box::pin(node.close_all())
}

/// The NATS servers of a node that runs.
struct WatchedServers {
    /// Where they say how they are, and those of them that did not say it when the node was started.
    monitors: Vec<String>,
    silent: Vec<String>,
    health: Arc<ServerHealth>,
}

/// Stops a node when another process has begun to run as it, or when a server has come back that cannot keep a log.
async fn give_way(leases: Arc<Leases>, servers: WatchedServers, inbox: Inbox, stop: ClusterStop) {
    let WatchedServers { monitors, silent, health } = servers;
    let fault = tokio::select! {
        () = leases.has_namesake() => Fault::Namesake { node: leases.node().to_owned() },
        fault = servers::watch(&monitors, silent, &health) => fault,
    };
    tracing::error!(%fault, "the node stops");
    inbox.end(Unavailable::Stopped(fault));
    stop.say();
}

/// A node of which nothing runs yet.
struct PreparedNode {
    parts: RouterParts,
    /// What other nodes ask.
    asked: Subscriber,
    /// What all nodes tell.
    signals: Subscriber,
    /// What happens to workflows of its partitions.
    events: broadcast::Sender<Event>,
    taker: SnapshotTaker,
    /// Where the servers say how they are, and those of them that have not said it yet.
    monitors: Vec<String>,
    silent: Vec<String>,
}

/// Connects, checks, and opens everything of a node.
async fn prepare(
    options: ClusterOptions,
    stop: ClusterStop,
    runtime: tokio::runtime::Handle,
) -> Result<PreparedNode, ClusterError> {
    let silent = insist("ask the servers", || servers::check_all(&options.monitors)).await?;
    for differing in server_identity::compare(&options.servers, &options.monitors).await? {
        tracing::warn!(differing, "a server that keeps the logs may be monitored by nobody");
    }
    let client = insist("connect", || connect(&options)).await?;
    let signals = NodeSignals::new(client.clone(), &options.cluster);
    let mut heard = signals.listen().await?;
    insist("open the streams", || make_streams(&client, &options, &stop)).await?;
    let context = jetstream::new(client.clone());
    let incarnation = random();
    let leases = Arc::new(Leases::open(&context, signals, &options, incarnation).await?);
    let definitions = Arc::new(QueueDefinitions::new(leases.bucket()));
    let load = || async { definitions.load().await.map_err(ClusterError::Servers) };
    insist("read what queues there are", load).await?;
    let snapshots = Arc::new(Snapshots::open(&context, &options, leases.bucket(), stop.clone()).await?);
    runtime.spawn(snapshots.clone().watch());
    let nodes = Nodes::new(client.clone(), &options.cluster);
    let asked = nodes.listen(&options.node, incarnation).await?;
    let (moving, (events, _)) = (Arc::default(), broadcast::channel(limits::EVENTS_KEPT));
    let mut partitions = Vec::new();
    for number in 0..options.partitions {
        let version = leases.entry_version.clone();
        let log = JetStreamLog::open(&client, &context, &options, number, version, stop.clone()).await?;
        let parts = PartitionParts {
            path: options.folder.join(format!("partition-{number}.redb")),
            options: FollowerOptions::shared_by(usize::from(options.partitions)),
            log,
            leases: leases.clone(),
            clock: options.clock.clone(),
            runtime: runtime.clone(),
            stop: stop.clone(),
            moving: Arc::clone(&moving),
            definitions: definitions.clone(),
            events: events.clone(),
            snapshots: snapshots.clone(),
        };
        partitions.push(Arc::new(Partition::new(number, parts)));
    }
    let taken = (partitions.clone(), snapshots);
    let taker = SnapshotTaker::new(&options, taken, leases.clone(), runtime.clone(), stop.clone());
    hearing::check_name(&mut heard, &options).await?;
    let (node, monitors) = (options.node, options.monitors);
    let health = Arc::default();
    let parts = RouterParts { node, partitions, leases, nodes, definitions, health, runtime, stop };
    Ok(PreparedNode { parts, asked, signals: heard, events, taker, monitors, silent })
}

/// Asks again as long as the servers do not answer: those that are being started, have just formed their cluster, or lost one of
/// them, lose answers.
async fn insist<T, F>(what: &str, ask: impl Fn() -> F) -> Result<T, ClusterError>
where
    F: Future<Output = Result<T, ClusterError>>,
{
    let (clock, mut attempts) = (SystemClock::default(), 0_u32);
    let end = clock.elapsed() + limits::NODE_START_WAIT;
    loop {
        match ask().await {
            Err(ClusterError::Servers(why)) if clock.elapsed() < end => {
                attempts += 1;
                if attempts.is_power_of_two() {
                    tracing::warn!(what, why, attempts, "it could not be done, and is tried again");
                }
                pause(limits::NODE_START_PAUSE).await;
            }
            asked => return asked,
        }
    }
}

/// Sees to it that the bucket and the streams are there; those that are stay as they are.
async fn make_streams(
    client: &NatsClient,
    options: &ClusterOptions,
    stop: &ClusterStop,
) -> Result<(), ClusterError> {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(limits::STREAM_ANSWER);
    let signals = NodeSignals::new(client.clone(), &options.cluster);
    let leases = Leases::open(&context, signals, options, 0).await?;
    Snapshots::open(&context, options, leases.bucket(), stop.clone()).await?;
    for number in 0..options.partitions {
        let version = leases.entry_version.clone();
        JetStreamLog::open(client, &context, options, number, version, stop.clone()).await?;
    }
    Ok(())
}

async fn connect(options: &ClusterOptions) -> Result<NatsClient, ClusterError> {
    let name = format!("seriatim {} {}", options.cluster, options.node);
    let connecting = options.access.connect_options(name).await?.connect(&options.servers);
    connecting.await.map_err(|error| ClusterError::Servers(error.to_string()))
}
