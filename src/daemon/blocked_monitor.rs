//! Knows which workflows are in trouble, without ever looking at those that are not.
//!
//! Events say when a workflow gets into trouble; the monitor then looks at it from time to time until it is out of it.
//! Workflows that were in trouble before the daemon started are found by one walk through all of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::api::views::BlockedCause;
use crate::clock::Timestamp;
use crate::daemon::membership::Membership;
use crate::engine::Client;
use crate::engine::Deferral;
use crate::engine::Event;
use crate::engine::EventKind;
use crate::engine::HoldCause;
use crate::engine::WorkflowStatus;
use crate::engine::WorkflowView;
use crate::error::QueueError;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::mutex::Mutex;

/// Why a workflow does not go on, as far as somebody has to know: its retries, a gap or a hold. `None` when it does.
pub(crate) fn stop_cause(view: &WorkflowView) -> Option<BlockedCause> {
    match &view.status {
        WorkflowStatus::Held(_) => Some(BlockedCause::Held),
        // Its consumer wants it so.
        WorkflowStatus::Blocked { why: Deferral::ByConsumer, .. } => None,
        WorkflowStatus::Blocked { .. } => Some(BlockedCause::Retry),
        // A retry that is being tried right now is not over yet.
        WorkflowStatus::Locked { .. } if view.gap.is_none() => None,
        _ => view.gap.as_ref().map(|_| BlockedCause::Gap),
    }
}

/// A workflow in trouble.
#[derive(Clone, Debug)]
pub(crate) struct BlockedWorkflow {
    pub(crate) cause: BlockedCause,
    pub(crate) since: Timestamp,
    pub(crate) waiting: u64,
    pub(crate) reason: String,
    /// The message it is about, if it is about one: the trouble is over when another is at the head.
    pub(crate) head: Option<SequenceNumber>,
    /// How old it was when it was noted; since then its age goes by a clock that nobody sets.
    pub(crate) age_noted: Duration,
    /// When it was noted, in the clock's elapsed time.
    pub(crate) noted_at: Duration,
    /// Since when the gap is there that it is about, if it is about one.
    pub(crate) gap: Option<Timestamp>,
    /// Whether a notification was sent.
    pub(crate) is_reported: bool,
}

/// A moment: by the wall clock as far as the engine believes it, and by the clock that nobody sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    pub(crate) elapsed: Duration,
}

impl Moment {
    /// The present one.
    pub(crate) fn of(client: &Client) -> Moment {
        Moment { wall: client.wall_now(), elapsed: client.elapsed() }
    }
}

impl BlockedWorkflow {
    /// One of which only this is known.
    fn noted(cause: BlockedCause, since: Timestamp, now: Moment) -> BlockedWorkflow {
        BlockedWorkflow {
            cause,
            since,
            waiting: 0,
            reason: String::new(),
            head: None,
            age_noted: now.wall.since(since),
            noted_at: now.elapsed,
            gap: None,
            is_reported: false,
        }
    }

    /// How old it is when the clock has run so long.
    fn age(&self, elapsed: Duration) -> Duration {
        self.age_noted + elapsed.saturating_sub(self.noted_at)
    }

    /// Takes over what was seen of the workflow. If that is another trouble, the former one is over, and returned.
    fn update(&mut self, seen: BlockedWorkflow) -> Option<BlockedWorkflow> {
        let (head, gap) = (seen.head.or(self.head), seen.gap.or(self.gap));
        if self.head.is_some_and(|before| head != Some(before))
            || self.gap.is_some_and(|before| gap != Some(before))
        {
            return Some(std::mem::replace(self, seen));
        }
        (self.cause, self.reason, self.head, self.gap) = (seen.cause, seen.reason, head, gap);
        None
    }
}

/// Troubles in numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockedCounts {
    pub(crate) by_cause: BTreeMap<(QueueName, BlockedCause), u64>,
    pub(crate) age_max: Duration,
    pub(crate) waiting_max: u64,
}

type BlockedKey = (QueueName, WorkflowId);

/// A workflow that is out of the trouble that was notified.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub(crate) queue: QueueName,
    pub(crate) workflow: WorkflowId,
    pub(crate) trouble: BlockedWorkflow,
    /// When it was seen.
    pub(crate) at: Timestamp,
}

/// The workflows in trouble.
#[derive(Default)]
pub(crate) struct BlockedMonitor {
    known: Mutex<BTreeMap<BlockedKey, BlockedWorkflow>>,
    /// Those out of it, of which no notification was sent yet.
    recovered: Mutex<Vec<Recovery>>,
    /// Whether one was not noted, because there were too many.
    has_overlooked: AtomicBool,
}

impl BlockedMonitor {
    /// Notes what an event says of a workflow.
    pub(crate) fn note(&self, event: &Event, now: Moment) {
        let Some(workflow) = event.workflow.clone() else { return };
        let (cause, since, reason, head) = match &event.kind {
            EventKind::Blocked { reason, .. } => {
                (BlockedCause::Retry, event.at, reason.clone(), event.sequence_number)
            }
            EventKind::Held { reason, cause } => {
                (BlockedCause::Held, event.at, reason.clone(), held_for(cause))
            }
            EventKind::Gap { since } => {
                (BlockedCause::Gap, *since, "a predecessor is missing".to_owned(), None)
            }
            _ => return,
        };
        let gap = (cause == BlockedCause::Gap).then_some(since);
        let trouble = BlockedWorkflow { reason, head, gap, ..BlockedWorkflow::noted(cause, since, now) };
        self.put((event.queue.clone(), workflow), trouble, event.at);
    }

    fn put(&self, place: BlockedKey, seen: BlockedWorkflow, now: Timestamp) {
        let mut known = self.known.lock();
        if known.len() >= limits::TROUBLES_KNOWN && !known.contains_key(&place) {
            self.has_overlooked.store(true, Ordering::Relaxed);
            return;
        }
        let before = match known.entry(place.clone()) {
            Entry::Occupied(mut trouble) => trouble.get_mut().update(seen),
            Entry::Vacant(free) => {
                free.insert(seen);
                None
            }
        };
        drop(known);
        self.note_recovery(place, before, now);
    }

    /// Whether some were not noted and there is room for them by now: a walk finds them.
    pub(crate) fn takes_overlooked(&self) -> bool {
        self.known.lock().len() <= limits::TROUBLES_KNOWN / 2
            && self.has_overlooked.swap(false, Ordering::Relaxed)
    }

    /// Walks through all workflows of all queues that are looked after here, page by page, and notes those in trouble.
    pub(crate) async fn walk(
        &self,
        client: &Client,
        membership: &Membership,
        now: Moment,
    ) -> Result<(), QueueError> {
        for client in membership.clients(client) {
            self.walk_through(&client, membership, now).await?;
        }
        Ok(())
    }

    async fn walk_through(
        &self,
        client: &Client,
        membership: &Membership,
        now: Moment,
    ) -> Result<(), QueueError> {
        for view in membership.look(client.all_queues()).await? {
            let queue = client.queue(view.name.as_str())?;
            let (mut after, mut pages): (Option<WorkflowId>, usize) = (None, 0);
            loop {
                let page = membership.look(queue.workflows(after.as_ref(), limits::PAGE_MAX)).await?;
                let Some(last) = page.last() else { break };
                pages += 1;
                after = last.workflow_id.clone();
                for workflow in &page {
                    if let (Some(id), Some(cause)) = (&workflow.workflow_id, stop_cause(workflow)) {
                        let since = since(workflow).unwrap_or(now.wall);
                        let trouble = trouble(workflow, cause, since, now);
                        self.put((view.name.clone(), id.clone()), trouble, now.wall);
                    }
                }
                if after.is_none() {
                    break;
                }
            }
            // So that who asks what is blocked need not look at all of them again.
            for _ in 0..=pages {
                if membership.look(queue.standing_workflows(None, 1)).await?.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks again at the workflows in trouble, and forgets those that are out of it.
    pub(crate) async fn look_again(
        &self,
        client: &Client,
        membership: &Membership,
        now: Moment,
    ) -> Result<(), QueueError> {
        // Another node looks after those from now on.
        self.known.lock().retain(|(queue, workflow), _| membership.has(queue, workflow));
        let places: Vec<BlockedKey> = self.known.lock().keys().cloned().collect();
        for (queue, workflow) in places {
            if !membership.answers_for(&queue, &workflow) {
                continue;
            }
            let handle = client.queue(queue.as_str())?.workflow(workflow.as_str())?;
            let seen = match handle.view().await {
                Ok(seen) => seen,
                // The queue is gone, and its troubles with it.
                Err(QueueError::Refused(_)) => None,
                Err(error) => return Err(error),
            };
            let still = seen.as_ref().and_then(|view| Some((stop_cause(view)?, view)));
            // It may fail again, and the trouble is then as old as it was.
            let tried = match seen.as_ref().is_some_and(is_trying) {
                true => handle.messages(0, 1).await?.first().map(|message| message.sequence_number),
                false => None,
            };
            let mut known = self.known.lock();
            let place = (queue, workflow);
            match (still, known.get_mut(&place)) {
                (Some((cause, view)), Some(known_trouble)) => {
                    // Of a message that fails nobody knows since when; a gap may be older, and is no part of that.
                    let since = if cause == BlockedCause::Retry { None } else { since(view) };
                    let before = known_trouble.update(trouble(view, cause, since.unwrap_or(now.wall), now));
                    known_trouble.waiting = view.messages;
                    drop(known);
                    self.note_recovery(place, before, now.wall);
                }
                (None, Some(trouble)) if tried.is_none() || tried != trouble.head => {
                    let trouble = known.remove(&place);
                    drop(known);
                    self.note_recovery(place, trouble, now.wall);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn note_recovery(&self, (queue, workflow): BlockedKey, trouble: Option<BlockedWorkflow>, at: Timestamp) {
        if let Some(trouble) = trouble.filter(|trouble| trouble.is_reported) {
            self.put_recovery(Recovery { queue, workflow, trouble, at });
        }
    }

    /// The workflows that are out of the trouble that was notified; they count as notified from now on.
    pub(crate) fn take_recovered(&self) -> Vec<Recovery> {
        std::mem::take(&mut *self.recovered.lock())
    }

    /// Keeps a recovery until it is notified, or too many are kept.
    pub(crate) fn put_recovery(&self, recovery: Recovery) {
        let mut recovered = self.recovered.lock();
        if recovered.len() < limits::TROUBLES_KNOWN {
            recovered.push(recovery);
        }
    }

    /// The workflows of a queue that have been in trouble for longer than `time_limit` when the clock has run for `elapsed`, and were
    /// not reported; they count as reported from then on.
    pub(crate) fn take_unreported(
        &self,
        queue: &QueueName,
        time_limit: Duration,
        elapsed: Duration,
    ) -> Vec<(WorkflowId, BlockedWorkflow)> {
        let mut known = self.known.lock();
        let mut unreported = Vec::new();
        for ((_, workflow), trouble) in known.iter_mut().filter(|((of, _), _)| of == queue) {
            if !trouble.is_reported && trouble.age(elapsed) >= time_limit {
                trouble.is_reported = true;
                unreported.push((workflow.clone(), trouble.clone()));
            }
        }
        unreported
    }

    /// Takes back that a notification was sent, because it failed.
    pub(crate) fn put_back(&self, queue: &QueueName, workflow: &WorkflowId) {
        if let Some(trouble) = self.known.lock().get_mut(&(queue.clone(), workflow.clone())) {
            trouble.is_reported = false;
        }
    }

    /// All troubles in numbers, when the clock has run so long.
    pub(crate) fn count(&self, elapsed: Duration) -> BlockedCounts {
        let mut troubles = BlockedCounts::default();
        for ((queue, _), trouble) in self.known.lock().iter() {
            *troubles.by_cause.entry((queue.clone(), trouble.cause)).or_default() += 1;
            troubles.age_max = troubles.age_max.max(trouble.age(elapsed));
            troubles.waiting_max = troubles.waiting_max.max(trouble.waiting);
        }
        troubles
    }
}

/// The trouble of a workflow that does not go on.
fn trouble(view: &WorkflowView, cause: BlockedCause, since: Timestamp, now: Moment) -> BlockedWorkflow {
    let gap = view.gap.as_ref().map(|gap| gap.since).filter(|_| cause == BlockedCause::Gap);
    let (reason, head) = (reason(view), head(view));
    BlockedWorkflow { reason, head, gap, ..BlockedWorkflow::noted(cause, since, now) }
}

/// Whether its head is being tried.
fn is_trying(view: &WorkflowView) -> bool {
    matches!(view.status, WorkflowStatus::Locked { .. } | WorkflowStatus::Ready)
}

/// The message at the head of a workflow that does not go on, if it does not because of that.
fn head(view: &WorkflowView) -> Option<SequenceNumber> {
    match &view.status {
        WorkflowStatus::Held(hold) => held_for(&hold.cause),
        WorkflowStatus::Blocked { sequence_number, .. } => Some(*sequence_number),
        _ => None,
    }
}

fn held_for(cause: &HoldCause) -> Option<SequenceNumber> {
    match cause {
        HoldCause::Exhausted(number) => Some(*number),
        _ => None,
    }
}

fn since(view: &WorkflowView) -> Option<Timestamp> {
    match &view.status {
        WorkflowStatus::Held(hold) => Some(hold.since),
        _ => view.gap.as_ref().map(|gap| gap.since),
    }
}

fn reason(view: &WorkflowView) -> String {
    match &view.status {
        WorkflowStatus::Held(hold) => hold.reason.clone(),
        WorkflowStatus::Blocked { reason, .. } => reason.clone(),
        _ => "a predecessor is missing".to_owned(),
    }
}
