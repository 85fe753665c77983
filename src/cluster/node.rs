//! A node: connected to the servers, with a thread for each partition.

use std::sync::Arc;
use std::thread::JoinHandle;
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
use crate::cluster::node_means::NodeMeans;
use crate::cluster::nodes::Nodes;
use crate::cluster::options::ClusterOptions;
use crate::cluster::partition::Partition;
use crate::cluster::partition::PartitionStatus;
use crate::cluster::random::random;
use crate::cluster::router::Router;
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
use crate::engine::elsewhere::Elsewhere;
use crate::engine::elsewhere::Inbox;
use crate::engine::log::FollowerOptions;
use crate::error::Fault;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::shown::shown;
use crate::task::boxed;

/// Where a workflow is handled now.
#[derive(Clone, Debug)]
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
    threads: Vec<JoinHandle<()>>,
    router: Arc<Router>,
    client: Client,
    #[cfg(test)]
    taker: Arc<SnapshotTaker>,
    runtime: NodeRuntime,
}

shown!(ClusterNode {});

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
        let prepared = handle.spawn(boxed(prepare(options, stop.clone(), handle.clone()))).await;
        let prepared = prepared.unwrap_or_else(|error| Err(ClusterError::Servers(error.to_string())));
        let PreparedNode { router, client, elsewhere, asked, signals, taker, servers } = prepared?;
        let (router, taker) = (Arc::new(router), Arc::new(taker));
        let (leases, partitions) = (router.leases.clone(), router.partitions.clone());
        handle.spawn(boxed(router.definitions.clone().watch(stop.clone())));
        handle.spawn(boxed(leases.clone().watch(stop.clone())));
        handle.spawn(boxed(leases.clone().enter(stop.clone())));
        handle.spawn(boxed(hearing::hear(signals, leases.clone(), partitions.clone(), stop.clone())));
        handle.spawn(boxed(leases.clone().beat(stop.clone())));
        handle.spawn(boxed(give_way(leases, servers, elsewhere.inbox(), stop)));
        handle.spawn(boxed(router.clone().answer_others(asked)));
        for number in 0..router.places.partitions {
            handle.spawn(boxed(router.clone().hand_over(number)));
        }
        let mut node = ClusterNode {
            threads: Vec::new(),
            router: router.clone(),
            client,
            #[cfg(test)]
            taker: taker.clone(),
            runtime,
        };
        let thread = std::thread::Builder::new().name("seriatim-router".to_owned());
        node.threads.push(thread.spawn(move || router.run(elsewhere))?);
        let thread = std::thread::Builder::new().name("seriatim-snapshots".to_owned());
        node.threads.push(thread.spawn(move || taker.run())?);
        for partition in partitions {
            let name = format!("seriatim-p{}", partition.number());
            node.threads.push(std::thread::Builder::new().name(name).spawn(move || partition.run())?);
        }
        Ok(node)
    }

    /// Where a workflow of a queue is handled now.
    pub fn route(&self, queue: &QueueName, workflow: &WorkflowId) -> NodeRoute {
        let partition = partition_of(queue, workflow, self.router.places.partitions);
        match self.engine(partition) {
            Some(client) => NodeRoute::Here(client),
            None => NodeRoute::Elsewhere { partition, owner: self.router.leases.owner(partition) },
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
        self.router.partitions.get(usize::from(partition))?.client()
    }

    /// Every partition, as this node sees it.
    pub fn status(&self) -> Vec<PartitionStatus> {
        self.handle().status()
    }

    /// The nodes that this one hears, itself among them.
    pub fn nodes(&self) -> Vec<String> {
        self.handle().nodes()
    }

    /// Gives every partition to other nodes, one after the other, and takes none any more.
    pub fn drain(&self) {
        self.handle().drain();
    }

    /// Gives up a log for a list of snapshots, as whoever has read it some time ago.
    #[cfg(test)]
    pub(crate) fn trim(&self, partition: u16, list: &SnapshotList) -> Result<(), String> {
        self.taker.trim(&self.router.partitions[usize::from(partition)], list)
    }

    /// Why a partition waits for its log, if it does.
    #[cfg(test)]
    pub(crate) fn log_trouble(&self, partition: u16) -> Option<String> {
        self.router.partitions[usize::from(partition)].trouble()
    }

    /// Does something while a snapshot of a partition's file is being written.
    #[cfg(test)]
    pub(crate) fn with_held_file<T>(&self, partition: u16, work: impl FnOnce() -> T) -> T {
        self.router.partitions[usize::from(partition)].file().held(work)
    }

    /// Takes partitions again after a drain, but for one that it says it cannot have.
    #[cfg(test)]
    pub(crate) fn come_back_without(&self, partition: u16) {
        self.router.leases.set_stopped(partition, true);
        self.router.leases.set_draining(false);
    }

    /// Is told every key of the bucket again, as by a watch that is begun anew.
    #[cfg(test)]
    pub(crate) async fn watch_anew(&self) {
        let told = self.router.leases.clone().watch(self.router.stop.clone());
        let runtime = self.runtime.0.as_ref().expect("it is not closed");
        let _ = runtime
            .spawn(boxed(async { tokio::time::timeout(Duration::from_millis(100), told).await }))
            .await;
    }

    /// Says no more that the node is alive, which goes on.
    #[cfg(test)]
    pub(crate) fn fall_silent(&self) {
        self.router.leases.fall_silent();
    }

    /// Hears no more who has which partition.
    #[cfg(test)]
    pub(crate) fn set_deaf_to_leases(&self) {
        self.router.leases.is_deaf.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Hears no other node any more, as without NATS between them, but what is written down.
    #[cfg(test)]
    pub(crate) fn set_deaf_to_others(&self) {
        self.router.leases.is_deaf_to_others.store(true, std::sync::atomic::Ordering::Relaxed);
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
        self.router.leases.fall_silent();
        std::mem::forget(self);
    }

    /// Stops the node in good order: what was asked before is committed, and other nodes may take over at once.
    pub async fn close(self) {
        closing(self).await;
    }

    async fn close_all(mut self) {
        self.router.stop.say();
        let threads = std::mem::take(&mut self.threads);
        // A panic of one was said when it happened.
        let joined =
            tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join())));
        let _ = joined.await;
        let leases = self.router.leases.clone();
        if let Some(runtime) = &self.runtime.0 {
            let _ = runtime.spawn(boxed(async move { leases.leave().await })).await;
        }
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.router.stop.say();
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
    router: Router,
    /// A client of the whole cluster, and what is asked through it.
    client: Client,
    elsewhere: Elsewhere,
    /// What other nodes ask.
    asked: Subscriber,
    /// What all nodes tell.
    signals: Subscriber,
    taker: SnapshotTaker,
    servers: WatchedServers,
}

/// Connects, checks, and opens everything of a node.
async fn prepare(
    options: ClusterOptions,
    stop: ClusterStop,
    runtime: tokio::runtime::Handle,
) -> Result<PreparedNode, ClusterError> {
    if options.partitions > limits::PARTITIONS_EXACT {
        tracing::warn!(
            partitions = options.partitions,
            exact = limits::PARTITIONS_EXACT,
            "sequence numbers of a cluster with so many partitions are above 2^53: clients in JavaScript round them"
        );
    }
    let wait = options.start_wait;
    let silent = insist("ask the servers", wait, || servers::check_all(&options.monitors)).await?;
    for differing in server_identity::compare(&options.servers, &options.monitors).await? {
        tracing::warn!(differing, "a server that keeps the logs may be monitored by nobody");
    }
    let client = insist("connect", wait, || connect(&options)).await?;
    let own_signals = NodeSignals::new(client.clone(), &options.cluster);
    let mut signals = own_signals.listen().await?;
    insist("open the streams", wait, || make_streams(&client, &options, &stop)).await?;
    let context = jetstream::new(client.clone());
    let incarnation = random();
    let leases = || Leases::open(&context, own_signals.clone(), &options, incarnation);
    let leases = Arc::new(insist("open the leases", wait, leases).await?);
    let definitions = Arc::new(QueueDefinitions::new(leases.bucket()));
    let load = || async { definitions.load().await.map_err(ClusterError::Servers) };
    insist("read what queues there are", wait, load).await?;
    let snapshots = || Snapshots::open(&context, &options, leases.bucket(), stop.clone());
    let snapshots = Arc::new(insist("open the snapshots", wait, snapshots).await?);
    runtime.spawn(boxed(snapshots.clone().watch()));
    let nodes = Nodes::new(client.clone(), &options.cluster);
    let asked = nodes.listen(&options.node, incarnation).await?;
    let means = NodeMeans {
        options: FollowerOptions::shared_by(usize::from(options.partitions)),
        leases,
        definitions,
        snapshots,
        events: broadcast::channel(limits::EVENTS_KEPT).0,
        moving: Arc::default(),
        clock: options.clock.clone(),
        runtime,
        stop: stop.clone(),
    };
    let mut partitions = Vec::new();
    for number in 0..options.partitions {
        let version = || means.leases.entry_version.clone();
        let log = || JetStreamLog::open(&client, &context, &options, number, version(), stop.clone());
        let log = insist("open the log of a partition", wait, log).await?;
        let path = options.folder.join(format!("partition-{number}.redb"));
        partitions.push(Arc::new(Partition::new(number, path, log, means.clone())));
    }
    let taker = SnapshotTaker::new(options.snapshots, partitions.clone(), means.clone());
    hearing::check_name(&mut signals, &options).await?;
    let (client, elsewhere) = Elsewhere::begin(Arc::new(SystemClock::default()), means.events.clone());
    let router = Router::new(partitions, nodes, means, elsewhere.clock());
    let servers = WatchedServers { monitors: options.monitors, silent, health: router.health.clone() };
    Ok(PreparedNode { router, client, elsewhere, asked, signals, taker, servers })
}

/// Asks again as long as the servers do not answer: those that are being started, have just formed their cluster, or lost one of
/// them, lose answers.
async fn insist<T, F>(what: &str, wait: Duration, ask: impl Fn() -> F) -> Result<T, ClusterError>
where
    F: Future<Output = Result<T, ClusterError>>,
{
    let (clock, mut attempts) = (SystemClock::default(), 0_u32);
    let end = clock.elapsed() + wait;
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
    let connecting = options.access.connect_options(name, options.lease).await?.connect(&options.servers);
    connecting.await.map_err(|error| ClusterError::Servers(error.to_string()))
}
