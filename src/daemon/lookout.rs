//! Knows which workflows are in trouble, without ever looking at those that are not.
//!
//! Events say when a workflow gets into trouble; the lookout then looks at it from time to time until it is out of it.
//! Workflows that were in trouble before the daemon started are found by one walk through all of them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::Client;
use crate::engine::Event;
use crate::engine::EventKind;
use crate::engine::QueueView;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::error::QueueError;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;

/// Why a workflow does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Its head failed and waits for its retry.
    Retry,
    /// A predecessor is missing.
    Gap,
    /// Somebody has to resume it.
    Held,
}

impl Cause {
    /// Its name in metrics and notices.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cause::Retry => "retry",
            Cause::Gap => "gap",
            Cause::Held => "held",
        }
    }

    /// Why a workflow does not go on; `None` when it does.
    pub(crate) fn of(view: &WorkflowView) -> Option<Cause> {
        match &view.status {
            WorkflowStatus::Held(_) => Some(Cause::Held),
            WorkflowStatus::Blocked { .. } => Some(Cause::Retry),
            // A retry that is being tried right now is not over yet.
            WorkflowStatus::Locked { .. } if view.gap.is_none() => None,
            _ => view.gap.map(|_| Cause::Gap),
        }
    }
}

/// A workflow in trouble.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) cause: Cause,
    pub(crate) since: Timestamp,
    pub(crate) waiting: u64,
    pub(crate) reason: String,
    /// Whether somebody was told.
    pub(crate) is_told: bool,
}

/// Troubles in numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles {
    pub(crate) by_cause: BTreeMap<(QueueName, Cause), u64>,
    pub(crate) age_max: Duration,
    pub(crate) waiting_max: u64,
}

type Place = (QueueName, WorkflowId);

/// The workflows in trouble.
#[derive(Default)]
pub(crate) struct Lookout {
    known: Mutex<BTreeMap<Place, Trouble>>,
}

impl Lookout {
    /// Notes what an event says of a workflow.
    pub(crate) fn note(&self, event: &Event) {
        let Some(workflow) = event.workflow.clone() else { return };
        let (cause, reason) = match &event.kind {
            EventKind::Blocked { reason, .. } => (Cause::Retry, reason.clone()),
            EventKind::Held { reason, .. } => (Cause::Held, reason.clone()),
            EventKind::Gap { .. } => (Cause::Gap, "a predecessor is missing".to_owned()),
            _ => return,
        };
        self.put((event.queue.clone(), workflow), cause, event.at, reason);
    }

    fn put(&self, place: Place, cause: Cause, since: Timestamp, reason: String) {
        let mut known = self.known();
        if known.len() >= limits::TROUBLES_KNOWN && !known.contains_key(&place) {
            return;
        }
        let trouble = Trouble { cause, since, waiting: 0, reason: reason.clone(), is_told: false };
        let trouble = known.entry(place).or_insert(trouble);
        (trouble.cause, trouble.reason) = (cause, reason);
    }

    /// Walks through all workflows of all queues, page by page, and notes those in trouble.
    pub(crate) async fn walk(&self, client: &Client, now: Timestamp) -> Result<(), QueueError> {
        for view in all_queues(client).await? {
            let queue = client.queue(view.name.as_str())?;
            let mut after: Option<WorkflowId> = None;
            loop {
                let page = queue.workflows(after.as_ref(), limits::PAGE_MAX).await?;
                let Some(last) = page.last() else { break };
                after = last.workflow_id.clone();
                for workflow in &page {
                    if let (Some(id), Some(cause)) = (&workflow.workflow_id, Cause::of(workflow)) {
                        let since = since(workflow).unwrap_or(now);
                        self.put((view.name.clone(), id.clone()), cause, since, reason(workflow));
                    }
                }
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks again at the workflows in trouble, and forgets those that are out of it.
    pub(crate) async fn look_again(&self, client: &Client) -> Result<(), QueueError> {
        let places: Vec<Place> = self.known().keys().cloned().collect();
        for (queue, workflow) in places {
            let seen = match client.queue(queue.as_str())?.workflow(workflow.as_str())?.view().await {
                Ok(seen) => seen,
                // The queue is gone, and its troubles with it.
                Err(QueueError::Refused(_)) => None,
                Err(error) => return Err(error),
            };
            let still = seen.as_ref().and_then(|view| Some((Cause::of(view)?, view)));
            let mut known = self.known();
            let place = (queue, workflow);
            match (still, known.get_mut(&place)) {
                (Some((cause, view)), Some(trouble)) => {
                    (trouble.cause, trouble.waiting) = (cause, view.messages + view.early);
                    trouble.reason = reason(view);
                }
                (None, Some(_)) if !seen.as_ref().is_some_and(is_trying) => drop(known.remove(&place)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The workflows of a queue that have been in trouble for longer than `patience` and nobody was told of; they count
    /// as told from now on.
    pub(crate) fn take_untold(
        &self,
        queue: &QueueName,
        patience: Duration,
        now: Timestamp,
    ) -> Vec<(WorkflowId, Trouble)> {
        let mut known = self.known();
        let mut untold = Vec::new();
        for ((_, workflow), trouble) in known.iter_mut().filter(|((of, _), _)| of == queue) {
            if !trouble.is_told && now.since(trouble.since) >= patience {
                trouble.is_told = true;
                untold.push((workflow.clone(), trouble.clone()));
            }
        }
        untold
    }

    /// Takes back that somebody was told, because telling failed.
    pub(crate) fn put_back(&self, queue: &QueueName, workflow: &WorkflowId) {
        if let Some(trouble) = self.known().get_mut(&(queue.clone(), workflow.clone())) {
            trouble.is_told = false;
        }
    }

    /// All troubles in numbers.
    pub(crate) fn count(&self, now: Timestamp) -> Troubles {
        let mut troubles = Troubles::default();
        for ((queue, _), trouble) in self.known().iter() {
            *troubles.by_cause.entry((queue.clone(), trouble.cause)).or_default() += 1;
            troubles.age_max = troubles.age_max.max(now.since(trouble.since));
            troubles.waiting_max = troubles.waiting_max.max(trouble.waiting);
        }
        troubles
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<Place, Trouble>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All queues, page by page.
pub(crate) async fn all_queues(client: &Client) -> Result<Vec<QueueView>, Unavailable> {
    let mut queues: Vec<QueueView> = Vec::new();
    loop {
        let after = queues.last().map(|view| view.name.clone());
        let page = client.queues(after.as_ref(), limits::PAGE_MAX).await?;
        if page.is_empty() {
            return Ok(queues);
        }
        queues.extend(page);
    }
}

/// Whether its head is being tried: it may fail again, and the trouble is then as old as it was.
fn is_trying(view: &WorkflowView) -> bool {
    matches!(view.status, WorkflowStatus::Locked { .. } | WorkflowStatus::Ready)
}

fn since(view: &WorkflowView) -> Option<Timestamp> {
    match &view.status {
        WorkflowStatus::Held(hold) => Some(hold.since),
        _ => view.gap.map(|gap| gap.since),
    }
}

fn reason(view: &WorkflowView) -> String {
    match &view.status {
        WorkflowStatus::Held(hold) => hold.reason.clone(),
        WorkflowStatus::Blocked { reason, .. } => reason.clone(),
        _ => "a predecessor is missing".to_owned(),
    }
}
