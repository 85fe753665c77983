//! What can be asked of a node beside its messages: who owns what, and who is to.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::cluster::looking::add_queue;
use crate::cluster::metering::ClusterMeters;
use crate::cluster::partition::PartitionState;
use crate::cluster::partition::PartitionStatus;
use crate::cluster::router::Router;
use crate::engine::Client;
use crate::engine::QueueView;
use crate::error::QueueError;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::own_queues::OUTBOX_QUEUE;
use crate::shown::shown;

/// What can be asked of a node beside its messages. Cheap to clone; it answers as long as the node runs.
#[derive(Clone)]
pub struct ClusterHandle {
    pub(crate) router: Arc<Router>,
}

shown!(ClusterHandle {});

impl ClusterHandle {
    /// The name of the cluster.
    pub fn cluster(&self) -> &str {
        self.router.nodes.cluster()
    }

    /// The name of the node.
    pub fn node(&self) -> &str {
        &self.router.node
    }

    /// The nodes that this one hears, itself among them; none when it hears nobody.
    pub fn nodes(&self) -> Vec<String> {
        self.router.leases.nodes()
    }

    /// Why nothing that is sent may be acknowledged at the moment, in a sentence; `None` as far as all is well. It is known some
    /// seconds after servers are down.
    pub fn problem(&self) -> Option<String> {
        match self.nodes().is_empty() {
            true => Some("the node does not hear its cluster: no NATS server answers".to_owned()),
            false => self.router.health.problem(),
        }
    }

    /// The partitions with which no node goes on that is heard.
    pub fn missing(&self) -> Vec<u16> {
        let router = &self.router;
        (0..router.places.partitions).filter(|number| router.check_goes_on(*number).is_err()).collect()
    }

    /// Every partition, as this node sees it.
    pub fn status(&self) -> Vec<PartitionStatus> {
        self.router.partitions.iter().map(|partition| partition.status()).collect()
    }

    /// The engines of the partitions that this node owns, by their numbers.
    pub fn engines(&self) -> Vec<(u16, Client)> {
        let numbered = (0..self.router.places.partitions).zip(&self.router.partitions);
        numbered.filter_map(|(number, partition)| Some((number, partition.client()?))).collect()
    }

    /// Those of the engines that answer.
    pub(crate) fn engines_that_answer(&self) -> Vec<(u16, Client)> {
        let numbered = (0..self.router.places.partitions).zip(&self.router.partitions);
        numbered.filter_map(|(number, partition)| Some((number, partition.client_that_answers()?))).collect()
    }

    /// How many messages the partition of a workflow has to hand over to others; `None` when this node does not have it.
    pub(crate) async fn outbox_of(&self, queue: &QueueName, workflow: &WorkflowId) -> Option<u64> {
        let router = &self.router;
        let partition = router.partition(router.places.workflow(queue, workflow));
        let engine = partition.client_that_answers()?;
        match ClusterHandle::in_time(engine.queue(OUTBOX_QUEUE).ok()?.view()).await {
            Ok(view) => Some(view.counts.stored() - view.counts.dead_lettered),
            // Nothing was ever sent to another partition.
            Err(QueueError::Refused(_)) => Some(0),
            Err(_) => None,
        }
    }

    /// Whether this node owns the partition of a workflow.
    pub fn has(&self, queue: &QueueName, workflow: &WorkflowId) -> bool {
        self.router.partition(self.router.places.workflow(queue, workflow)).client().is_some()
    }

    /// Whether this node owns the partition of a workflow, and that answers.
    pub(crate) fn answers_for(&self, queue: &QueueName, workflow: &WorkflowId) -> bool {
        let partition = self.router.partition(self.router.places.workflow(queue, workflow));
        partition.client_that_answers().is_some()
    }

    /// The queues, with what they have in the partitions that this node owns.
    /// One that goes to another node at this moment is left out, and so is one that waits for its log.
    pub async fn queues(&self) -> Vec<QueueView> {
        let mut all: BTreeMap<QueueName, QueueView> = BTreeMap::new();
        let engines = self.engines_that_answer();
        let looks = engines.iter().map(|(_, engine)| ClusterHandle::in_time(engine.all_queues()));
        for view in join_all(looks).await.into_iter().flat_map(Result::unwrap_or_default) {
            match all.get_mut(&view.name) {
                Some(known) => add_queue(known, &view),
                None => drop(all.insert(view.name.clone(), view)),
            }
        }
        all.into_values().collect()
    }

    /// What the node has counted.
    pub fn meters(&self) -> ClusterMeters {
        let nodes = self.nodes().len() as u64;
        let mut meters = ClusterMeters { nodes, ..ClusterMeters::default() };
        for partition in &self.router.partitions {
            let status = partition.status();
            match status.state {
                PartitionState::Owner => meters.owned += 1,
                PartitionState::Following => meters.lag += status.lag,
                PartitionState::Stopped(_) => meters.stopped += 1,
            }
            let (takeovers, commits) = partition.meter().read();
            meters.takeovers += takeovers;
            meters.commits.add(&commits);
            meters.appends.add(&partition.log().server().appends());
        }
        meters
    }

    /// Gives every partition to other nodes, one after the other, and takes none any more.
    pub fn drain(&self) {
        self.router.leases.set_draining(true);
    }

    /// Waits for an engine of this node no longer than whoever asks it over the cluster does: it may wait for its log, and that is
    /// known only after some attempts.
    ///
    /// # Errors
    /// [`Unavailable::Unanswered`] after that, and whatever the look ends with.
    pub(crate) async fn in_time<T, E: From<Unavailable>>(
        look: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let looked = tokio::time::timeout(limits::OWN_ANSWER, look).await;
        looked.unwrap_or_else(|_| {
            let why = format!("the engine has not answered for {:?}", limits::OWN_ANSWER);
            Err(Unavailable::Unanswered(why).into())
        })
    }
}
