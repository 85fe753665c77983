//! Knows which workflows are in trouble, without ever looking at those that are not.
//!
//! Events say when a workflow gets into trouble; the monitor then looks at it from time to time until it is out of it.
//! Workflows that were in trouble before the daemon started are found by one walk through all of them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
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

/// What a trouble is about: it is over exactly when that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TroubleSubject {
    /// That this message is at the head.
    Head(SequenceNumber),
    /// The gap that is there since then.
    Gap(Timestamp),
    /// That it is held, and for no message.
    Hold,
}

/// How far the notice of a trouble is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeState {
    Unsent,
    /// It may have arrived, and may yet fail.
    Sending,
    Delivered,
}

/// A workflow in trouble.
#[derive(Clone, Debug)]
pub(crate) struct BlockedWorkflow {
    pub(crate) about: TroubleSubject,
    pub(crate) cause: BlockedCause,
    pub(crate) since: Timestamp,
    pub(crate) waiting: u64,
    pub(crate) reason: String,
    /// How old it was when it was noted; since then its age goes by a clock that nobody sets.
    pub(crate) age_noted: Duration,
    /// When it was noted, in the clock's elapsed time.
    pub(crate) noted_at: Duration,
    pub(crate) notice: NoticeState,
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
    fn noted(about: TroubleSubject, cause: BlockedCause, since: Timestamp, now: Moment) -> BlockedWorkflow {
        BlockedWorkflow {
            about,
            cause,
            since,
            waiting: 0,
            reason: String::new(),
            age_noted: now.wall.since(since),
            noted_at: now.elapsed,
            notice: NoticeState::Unsent,
        }
    }

    /// How old it is when the clock has run so long.
    fn age(&self, elapsed: Duration) -> Duration {
        self.age_noted + elapsed.saturating_sub(self.noted_at)
    }

    /// Takes over what an event says of the workflow. If the former trouble is over by that, it is returned; where the event leaves
    /// that open, the next look decides.
    fn hear(&mut self, heard: BlockedWorkflow) -> Option<BlockedWorkflow> {
        match (self.about, heard.about) {
            (before, after) if before == after => {
                (self.cause, self.reason) = (heard.cause, heard.reason);
                None
            }
            // An event of a gap says that nothing is left before it; one of a message may be of one behind the head.
            (TroubleSubject::Head(_) | TroubleSubject::Gap(_), TroubleSubject::Gap(_)) => {
                Some(std::mem::replace(self, heard))
            }
            _ => None,
        }
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

/// A workflow that is out of a trouble of which a notice was sent, or is being sent.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub(crate) queue: QueueName,
    pub(crate) workflow: WorkflowId,
    pub(crate) trouble: BlockedWorkflow,
    /// When it was seen.
    pub(crate) at: Timestamp,
}

impl Recovery {
    /// Whether the notice of the trouble itself is still being sent.
    fn is_early(&self) -> bool {
        self.trouble.notice == NoticeState::Sending
    }
}

/// The workflows in trouble.
#[derive(Default)]
pub(crate) struct BlockedMonitor {
    known: Mutex<BTreeMap<BlockedKey, BlockedWorkflow>>,
    /// Those out of it, of which no notification was sent yet. Locked after `known`, if both are.
    recovered: Mutex<Vec<Recovery>>,
    /// Whether one was not noted, because there were too many.
    has_overlooked: AtomicBool,
}

impl BlockedMonitor {
    /// Notes what an event says of a workflow.
    pub(crate) fn note(&self, event: &Event, now: Moment) {
        let Some(workflow) = event.workflow.clone() else { return };
        let (about, cause, since, reason) = match (&event.kind, event.sequence_number) {
            (EventKind::Blocked { reason, .. }, Some(head)) => {
                (TroubleSubject::Head(head), BlockedCause::Retry, event.at, reason.clone())
            }
            (EventKind::Held { reason, cause }, _) => {
                (held_about(cause), BlockedCause::Held, event.at, reason.clone())
            }
            (EventKind::Gap { since }, _) => {
                let reason = "a predecessor is missing".to_owned();
                (TroubleSubject::Gap(*since), BlockedCause::Gap, *since, reason)
            }
            _ => return,
        };
        let trouble = BlockedWorkflow { reason, ..BlockedWorkflow::noted(about, cause, since, now) };
        self.put((event.queue.clone(), workflow), trouble, event.at, BlockedWorkflow::hear);
    }

    /// Notes a trouble of a workflow; what it means for one that is known to be in trouble, `judge` says.
    fn put(
        &self,
        place: BlockedKey,
        seen: BlockedWorkflow,
        now: Timestamp,
        judge: impl FnOnce(&mut BlockedWorkflow, BlockedWorkflow) -> Option<BlockedWorkflow>,
    ) {
        let mut known = self.known.lock();
        if known.len() >= limits::TROUBLES_KNOWN && !known.contains_key(&place) {
            self.has_overlooked.store(true, Ordering::Relaxed);
            return;
        }
        let before = match known.entry(place.clone()) {
            Entry::Occupied(mut trouble) => judge(trouble.get_mut(), seen),
            Entry::Vacant(free) => {
                free.insert(seen);
                None
            }
        };
        self.note_recovery(&place, before, now);
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
                        let (place, trouble) =
                            ((view.name.clone(), id.clone()), trouble(workflow, cause, now));
                        // Whether a trouble that is known is over, the look at it says.
                        self.put(place, trouble, now.wall, |_, _| None);
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
        let places: Vec<(BlockedKey, TroubleSubject)> =
            self.known.lock().iter().map(|(place, trouble)| (place.clone(), trouble.about)).collect();
        for (place, about) in places {
            let (queue, workflow) = &place;
            if !membership.answers_for(queue, workflow) {
                continue;
            }
            let handle = client.queue(queue.as_str())?.workflow(workflow.as_str())?;
            let view = match handle.view().await {
                Ok(view) => view,
                // The queue is gone, and its troubles with it.
                Err(QueueError::Refused(_)) => None,
                Err(error) => return Err(error),
            };
            let is_asked_for = match (about, &view) {
                (TroubleSubject::Head(number), Some(view)) => hides_head(view, number),
                _ => false,
            };
            let first = match is_asked_for {
                true => handle.messages(0, 1).await?.first().map(|message| message.sequence_number),
                false => None,
            };
            self.judge(&place, about, (view.as_ref(), first), now);
        }
        Ok(())
    }

    /// Takes over what was seen of a workflow in trouble, with the first message in its line where that was asked for.
    fn judge(
        &self,
        place: &BlockedKey,
        about: TroubleSubject,
        (view, first): (Option<&WorkflowView>, Option<SequenceNumber>),
        now: Moment,
    ) {
        let mut known = self.known.lock();
        // Another trouble is judged by a look of its own.
        let Some(former) = known.get_mut(place).filter(|former| former.about == about) else { return };
        let seen = view.map(|view| (view, stop_cause(view)));
        let stays = view.is_some_and(|view| is_there(about, view, first));
        let over = match seen {
            // It may fail again, and the trouble is then as old as it was.
            Some((view, _)) if stays && first.is_some() && is_trying(view) => {
                former.waiting = view.messages;
                None
            }
            Some((view, Some(cause))) if stays => {
                (former.cause, former.reason, former.waiting) = (cause, reason(view), view.messages);
                None
            }
            Some((view, Some(cause))) => Some(std::mem::replace(former, trouble(view, cause, now))),
            Some((_, None)) | None => known.remove(place),
        };
        self.note_recovery(place, over, now.wall);
    }

    /// Has to be told with `known` locked: the notice of the trouble may end at any moment, and is then looked for there or here.
    fn note_recovery(&self, (queue, workflow): &BlockedKey, over: Option<BlockedWorkflow>, at: Timestamp) {
        if let Some(trouble) = over.filter(|trouble| trouble.notice != NoticeState::Unsent) {
            let (queue, workflow) = (queue.clone(), workflow.clone());
            self.put_recovery(Recovery { queue, workflow, trouble, at });
        }
    }

    /// The workflows that are out of the trouble whose notice has arrived; they count as notified from now on.
    pub(crate) fn take_recovered(&self) -> Vec<Recovery> {
        let mut recovered = self.recovered.lock();
        let (ready, kept): (Vec<Recovery>, Vec<Recovery>) =
            std::mem::take(&mut *recovered).into_iter().partition(|recovery| !recovery.is_early());
        *recovered = kept;
        ready
    }

    /// Keeps a recovery until it is notified, or too many are kept.
    pub(crate) fn put_recovery(&self, recovery: Recovery) {
        let mut recovered = self.recovered.lock();
        if recovered.len() < limits::TROUBLES_KNOWN {
            recovered.push(recovery);
        }
    }

    /// The workflows of a queue that have been in trouble for longer than `time_limit` when the clock has run for `elapsed`, and whose
    /// notice is to be sent now: how that ends is to be said with `end_notice`. One whose former trouble is still being notified comes
    /// after that, so that a workflow has at most one notice under way.
    pub(crate) fn take_unreported(
        &self,
        queue: &QueueName,
        time_limit: Duration,
        elapsed: Duration,
    ) -> Vec<(WorkflowId, BlockedWorkflow)> {
        let mut known = self.known.lock();
        let early: BTreeSet<WorkflowId> = {
            let recovered = self.recovered.lock();
            let early = recovered.iter().filter(|recovery| recovery.queue == *queue && recovery.is_early());
            early.map(|recovery| recovery.workflow.clone()).collect()
        };
        let mut unreported = Vec::new();
        for ((_, workflow), trouble) in known.iter_mut().filter(|((of, _), _)| of == queue) {
            let is_due = trouble.notice == NoticeState::Unsent && trouble.age(elapsed) >= time_limit;
            if is_due && !early.contains(workflow) {
                trouble.notice = NoticeState::Sending;
                unreported.push((workflow.clone(), trouble.clone()));
            }
        }
        unreported
    }

    /// Notes how the sending of a notice has ended, of the trouble that is there since then. If it has failed, it is sent again, and
    /// of a trouble that is over by now nothing more is told.
    pub(crate) fn end_notice(
        &self,
        queue: &QueueName,
        workflow: &WorkflowId,
        since: Timestamp,
        has_arrived: bool,
    ) {
        let is_it =
            |trouble: &BlockedWorkflow| trouble.since == since && trouble.notice == NoticeState::Sending;
        let mut known = self.known.lock();
        let place = (queue.clone(), workflow.clone());
        if let Some(trouble) = known.get_mut(&place).filter(|trouble| is_it(trouble)) {
            trouble.notice = if has_arrived { NoticeState::Delivered } else { NoticeState::Unsent };
            return;
        }
        let mut recovered = self.recovered.lock();
        let is_its = |recovery: &Recovery| {
            recovery.queue == *queue && recovery.workflow == *workflow && is_it(&recovery.trouble)
        };
        if let Some(index) = recovered.iter().position(is_its) {
            match has_arrived {
                true => recovered[index].trouble.notice = NoticeState::Delivered,
                false => drop(recovered.remove(index)),
            }
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

/// The trouble of a workflow that does not go on, if it begins now.
fn trouble(view: &WorkflowView, cause: BlockedCause, now: Moment) -> BlockedWorkflow {
    let about_gap = || view.gap.as_ref().map_or(TroubleSubject::Hold, |gap| TroubleSubject::Gap(gap.since));
    let (about, since) = match &view.status {
        WorkflowStatus::Held(hold) if hold.cause == HoldCause::Gap => (about_gap(), Some(hold.since)),
        WorkflowStatus::Held(hold) => (held_about(&hold.cause), Some(hold.since)),
        // Of a message that fails nobody knows since when; a gap may be older, and is no part of that.
        WorkflowStatus::Blocked { sequence_number, .. } => (TroubleSubject::Head(*sequence_number), None),
        _ => (about_gap(), view.gap.as_ref().map(|gap| gap.since)),
    };
    let (reason, waiting) = (reason(view), view.messages);
    let noted = BlockedWorkflow::noted(about, cause, since.unwrap_or(now.wall), now);
    BlockedWorkflow { reason, waiting, ..noted }
}

/// Whether its head is being tried.
fn is_trying(view: &WorkflowView) -> bool {
    matches!(view.status, WorkflowStatus::Locked { .. } | WorkflowStatus::Ready)
}

/// Whether a message that failed may be at its head without being named.
fn hides_head(view: &WorkflowView, number: SequenceNumber) -> bool {
    is_trying(view) || matches!(view.status, WorkflowStatus::Held(_)) && !names_in_hold(view, number)
}

/// Whether a hold says that this message is why.
fn names_in_hold(view: &WorkflowView, number: SequenceNumber) -> bool {
    view.holds.iter().any(|hold| is_held_for(&hold.cause, number))
}

/// Whether what a trouble is about is still there, with the first message in line where the view hides it.
fn is_there(about: TroubleSubject, view: &WorkflowView, first: Option<SequenceNumber>) -> bool {
    match about {
        TroubleSubject::Head(number) => match &view.status {
            WorkflowStatus::Blocked { sequence_number, .. } => *sequence_number == number,
            _ => first == Some(number) || names_in_hold(view, number),
        },
        TroubleSubject::Gap(since) => view.gap.as_ref().is_some_and(|gap| gap.since == since),
        TroubleSubject::Hold => matches!(view.status, WorkflowStatus::Held(_)),
    }
}

/// Whether a workflow stands still for this message, be it that others are held because it is no longer there.
fn is_held_for(cause: &HoldCause, number: SequenceNumber) -> bool {
    match cause {
        HoldCause::Exhausted(of) | HoldCause::Predecessor(of) | HoldCause::Quarantine(of) => *of == number,
        HoldCause::Operator | HoldCause::Gap | HoldCause::Redriving => false,
    }
}

fn held_about(cause: &HoldCause) -> TroubleSubject {
    match cause {
        HoldCause::Exhausted(number) => TroubleSubject::Head(*number),
        _ => TroubleSubject::Hold,
    }
}

fn reason(view: &WorkflowView) -> String {
    match &view.status {
        WorkflowStatus::Held(hold) => hold.reason.clone(),
        WorkflowStatus::Blocked { reason, .. } => reason.clone(),
        _ => "a predecessor is missing".to_owned(),
    }
}
