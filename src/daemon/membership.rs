//! What the daemon knows of its cluster, if it is a node of one. Without the feature `cluster` it never is.

#[cfg(feature = "cluster")]
use crate::cluster::ClusterHandle;
use crate::daemon::error::DaemonError;
use crate::engine::Client;
use crate::engine::CommitStats;
use crate::engine::QueueView;
use crate::error::Error;
use crate::error::OperationError;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;

/// What the daemon knows of its cluster, if it is a node of one.
#[derive(Clone, Default)]
pub(crate) struct Membership {
    #[cfg(feature = "cluster")]
    pub(crate) handle: Option<ClusterHandle>,
}

/// What a node of a cluster says by its handle, and a daemon alone without one.
macro_rules! of_cluster {
    ($membership:ident, |$handle:ident| $of_cluster:expr, $alone:expr) => {{
        #[cfg(feature = "cluster")]
        if let Some($handle) = &$membership.handle {
            return $of_cluster;
        }
        $alone
    }};
}

#[cfg_attr(not(feature = "cluster"), expect(unused_variables, reason = "a daemon alone needs none of them"))]
impl Membership {
    /// Whether the daemon is a node of a cluster.
    pub(crate) fn is_of_cluster(&self) -> bool {
        of_cluster!(self, |_handle| true, false)
    }

    /// The name of the cluster, if the daemon is a node of one.
    pub(crate) fn cluster(&self) -> Option<String> {
        of_cluster!(self, |handle| Some(handle.cluster().to_owned()), None)
    }

    /// Whether a workflow is looked after here: on a cluster, by the node that has its partition.
    pub(crate) fn has(&self, queue: &QueueName, workflow: &WorkflowId) -> bool {
        of_cluster!(self, |handle| handle.has(queue, workflow), true)
    }

    /// Whether a workflow is looked after here, and what has it answers: a partition that waits for its log does not.
    pub(crate) fn answers_for(&self, queue: &QueueName, workflow: &WorkflowId) -> bool {
        of_cluster!(self, |handle| handle.answers_for(queue, workflow), true)
    }

    /// Looks at one of [`clients`](Membership::clients), on a cluster for a limited time: its log may just have begun to take nothing.
    pub(crate) async fn look<T, E: From<Unavailable>>(
        &self,
        look: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        of_cluster!(self, |_handle| ClusterHandle::in_time(look).await, look.await)
    }

    /// How many messages wait beside a workflow that is looked after here to be handed over to other partitions; `None` when
    /// it is looked after elsewhere, or that is not known.
    pub(crate) async fn outbox_of(&self, queue: &QueueName, workflow: &WorkflowId) -> Option<u64> {
        of_cluster!(self, |handle| handle.outbox_of(queue, workflow).await, Some(0))
    }

    /// Clients of all that is looked after here and answers: on a cluster, of the partitions that this node has, but for those that
    /// wait for their logs.
    pub(crate) fn clients(&self, client: &Client) -> Vec<Client> {
        of_cluster!(
            self,
            |handle| handle.engines_that_answer().into_iter().map(|(_, engine)| engine).collect(),
            vec![client.clone()]
        )
    }

    /// The partitions that no node goes on with; none without a cluster.
    pub(crate) fn missing(&self) -> Vec<u16> {
        of_cluster!(self, |handle| handle.missing(), Vec::new())
    }

    /// The numbers of the partitions that are looked after here and answer; none without a cluster.
    pub(crate) fn partitions(&self) -> Vec<u16> {
        of_cluster!(
            self,
            |handle| handle.engines_that_answer().into_iter().map(|(number, _)| number).collect(),
            Vec::new()
        )
    }

    /// Whether something that may be done twice is tried again after so many attempts. On a cluster it is as long as it is not known
    /// whether it was done: a node that was asked may have died.
    pub(crate) fn tries_again(&self, error: &DaemonError, attempts: u32) -> bool {
        let DaemonError::Engine(error) = error else { return false };
        let is_unknown = matches!(
            error,
            Error::Unavailable(_)
                | Error::Queue(OperationError::Unavailable(_))
                | Error::Send(OperationError::Unavailable(_))
                | Error::Operate(OperationError::Unavailable(_))
        );
        let tries = self.is_of_cluster() && is_unknown && attempts < limits::BEGIN_ATTEMPTS;
        if tries {
            tracing::warn!(%error, "the cluster has not done what a node needs, and is asked again");
        }
        tries
    }

    /// By which sources a node of the cluster has last begun to place the messages of a queue that it placed otherwise before, and the
    /// revision of that note; 0 without one.
    pub(crate) async fn sources_of(&self, queue: &QueueName) -> Result<(u64, Option<String>), Unavailable> {
        of_cluster!(self, |handle| handle.sources_of(queue).await, Ok((0, None)))
    }

    /// Notes that for the other nodes, if there are some, and if none of them has since a revision. Returns that of the note.
    pub(crate) async fn note_sources_behind(
        &self,
        queue: &QueueName,
        sources: &str,
        behind: u64,
    ) -> Result<u64, Unavailable> {
        of_cluster!(self, |handle| handle.note_sources_behind(queue, sources, behind).await, Ok(behind))
    }

    /// Notes that for the other nodes, whatever they have noted.
    pub(crate) async fn note_sources(&self, queue: &QueueName, sources: &str) -> Result<(), Unavailable> {
        of_cluster!(self, |handle| handle.note_sources(queue, sources).await, Ok(()))
    }

    /// Puts what was noted before in the place of a note, unless another node has noted something since.
    pub(crate) async fn take_back_sources(
        &self,
        queue: &QueueName,
        before: Option<&str>,
        noted: u64,
    ) -> Result<(), Unavailable> {
        of_cluster!(self, |handle| handle.take_back_sources(queue, before, noted).await, Ok(()))
    }

    /// The queues, with what is in the partitions that are looked after here; `None` without a cluster.
    pub(crate) async fn queues(&self) -> Option<Vec<QueueView>> {
        of_cluster!(self, |handle| Some(handle.queues().await), None)
    }

    /// What commits have cost.
    pub(crate) fn commits(&self, client: &Client) -> CommitStats {
        of_cluster!(self, |handle| handle.meters().commits, client.commit_stats())
    }

    /// Whether the node is part of its cluster, or why not.
    ///
    /// # Errors
    /// What is in the way, in words.
    pub(crate) fn ready(&self) -> Result<(), String> {
        of_cluster!(self, |handle| handle.problem().map_or(Ok(()), Err), Ok(()))
    }
}
