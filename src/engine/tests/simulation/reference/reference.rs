//! The reference: all queues, the time, and the next number.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::clock::Timestamp;
use crate::engine::rules::command::RunSettlement;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::ClockInstants;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::Suspicion;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::plain::Cleared;
use crate::engine::tests::simulation::plain::Forgotten;
use crate::engine::tests::simulation::reference::again::Delivery;
use crate::engine::tests::simulation::reference::again::Done;
use crate::engine::tests::simulation::reference::naive::Cause;
use crate::engine::tests::simulation::reference::naive::Flow;
use crate::engine::tests::simulation::reference::naive::Message;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::reference::naive::Suspect;
use crate::engine::tests::simulation::reference::topics::NaiveTopic;
use crate::engine::tests::simulation::reference::topics::Published;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::header::Properties;
use crate::id::QueueName;
use crate::queue::HoldKind;
use crate::queue::QueueOptions;
use crate::token::LockToken;

/// Everything the contract knows.
#[derive(Default)]
pub(crate) struct Reference {
    pub(crate) queues: BTreeMap<QueueName, Naive>,
    /// Whether it knows no queue's order: what takes several steps is beyond it.
    pub(crate) is_blind: bool,
    /// Queues whose order it does not know.
    pub(crate) chained: BTreeMap<QueueName, QueueOptions>,
    /// What was answered under idempotency keys: the request's digest, the receipts, and until when that is kept.
    pub(crate) answers: BTreeMap<(QueueName, String), (u64, Vec<Receipt>, Timestamp)>,
    pub(crate) topics: BTreeMap<QueueName, NaiveTopic>,
    /// The same of topics.
    pub(crate) published: BTreeMap<(QueueName, String), Published>,
    /// The properties with which messages were accepted.
    pub(crate) properties: BTreeMap<u64, Properties>,
    /// What was settled lately, and how.
    pub(crate) settled: BTreeMap<Delivery, Done<Settlement>>,
    /// How runs were settled the last time, each with the message it began with.
    pub(crate) runs: BTreeMap<LockToken, (u64, Done<RunSettlement>)>,
    pub(crate) now: Timestamp,
    pub(crate) clocks: ClockInstants,
    /// The highest number that was given.
    pub(crate) last: u64,
}

impl Reference {
    /// Time has come to `now`, in one turn or in several: then somebody may have been served before all was done that
    /// was due.
    pub(crate) fn advance(&mut self, now: ClockInstants, in_several: bool) {
        (self.now, self.clocks) = (now.engine, now);
        for queue in self.queues.values_mut() {
            queue.advance(now);
            queue.in_several = in_several;
        }
    }

    /// What one turn forgets: workflows leave what they remember, then the oldest of that goes, then some begin again.
    pub(crate) fn clear_up(&mut self, cleared: &Cleared) -> Finding {
        cleared.forgotten.iter().try_for_each(|forgotten| self.forget(forgotten))?;
        self.lapse_all(&cleared.lapsed)?;
        cleared.forgotten.iter().for_each(|forgotten| self.come_back(forgotten));
        Ok(())
    }

    /// A workflow was forgotten: that is allowed when nothing was stored of it for long enough.
    fn forget(&mut self, forgotten: &Forgotten) -> Finding {
        let Forgotten { queue, stream: key, .. } = forgotten;
        let Some(queue) = self.queues.get_mut(queue) else { return Ok(()) };
        let since = queue.flows.get(key).and_then(|flow| flow.idle_since);
        let is_idle = since.is_some_and(|since| since + queue.options.forget_after <= queue.now);
        let is_held = queue.lock(key).is_some();
        expect(is_idle && !is_held, || format!("R {key:?} was forgotten, and was idle since {since:?}"))?;
        let flow = queue.flows.remove(key).unwrap_or_default();
        if !flow.completed.is_empty() || !flow.given_up.is_empty() {
            let Flow { completed, given_up, cursor, done, .. } = flow;
            let forgotten_at = Some(queue.now);
            let left = Flow { completed, given_up, cursor, done, forgotten_at, ..Flow::default() };
            queue.flows.insert(key.clone(), left);
        }
        Ok(())
    }

    /// A workflow that was forgotten is used again: what is still remembered of it is its own.
    fn come_back(&mut self, forgotten: &Forgotten) {
        if let Some(queue) = self.queues.get_mut(&forgotten.queue).filter(|_| forgotten.is_back) {
            queue.close(&forgotten.stream);
        }
    }

    /// The places of forgotten workflows were forgotten, the oldest first.
    fn lapse_all(&mut self, lapsed: &[(QueueName, WorkflowRef)]) -> Finding {
        let since = |(queue, key): &(QueueName, WorkflowRef)| {
            self.queues.get(queue).and_then(|queue| queue.flows.get(key)).and_then(|flow| flow.forgotten_at)
        };
        let mut lapsed: Vec<_> = lapsed.iter().map(|one| (since(one), one)).collect();
        lapsed.sort_unstable();
        lapsed.into_iter().try_for_each(|(_, (queue, key))| self.lapse(queue, key))
    }

    /// The places of a forgotten workflow were forgotten: that is allowed when they are old enough, or there are too many and
    /// they are the oldest.
    fn lapse(&mut self, queue: &QueueName, key: &WorkflowRef) -> Finding {
        let Some(queue) = self.queues.get_mut(queue) else { return Ok(()) };
        let remembered = queue.flows.iter().filter_map(|(of, flow)| Some((flow.forgotten_at?, of)));
        let mut remembered: Vec<(Timestamp, &WorkflowRef)> = remembered.collect();
        remembered.sort_unstable();
        // A workflow in which nothing was settled leaves nothing to remember.
        let Some((since, _)) = remembered.iter().find(|(_, of)| *of == key) else { return Ok(()) };
        let is_old = *since + queue.options.remember_cursor <= queue.now;
        let is_oldest = remembered.first().is_some_and(|(_, of)| *of == key);
        let is_too_many = remembered.len() as u64 > queue.options.cursors_max;
        expect(is_old || (is_too_many && is_oldest), || {
            format!("R the cursor of {key:?} was forgotten, it was remembered since {since}")
        })?;
        queue.flows.remove(key);
        Ok(())
    }

    pub(crate) fn delete(&mut self, queue: &QueueName) {
        self.unsubscribe(queue);
        self.queues.remove(queue);
        self.chained.remove(queue);
        self.answers.retain(|(of, _), _| of != queue);
        self.settled.retain(|_, done| done.queue != *queue);
        self.runs.retain(|_, (_, done)| done.queue != *queue);
    }

    /// The process was lost, and with it all locks: what was handed out has failed.
    pub(crate) fn restart(&mut self, now: ClockInstants) {
        (self.now, self.clocks) = (now.engine, now);
        self.settled.clear();
        self.runs.clear();
        for queue in self.queues.values_mut() {
            let mut out = Vec::new();
            for (key, flow) in &mut queue.flows {
                out.extend(flow.lock.take().map(|lock| (key.clone(), lock)));
            }
            queue.advance(now);
            for (key, lock) in out {
                queue.fail_all(&lock);
                queue.close(&key);
            }
        }
    }

    /// Nobody waits for what is there.
    pub(crate) fn check_waiting<'a>(&self, waiting: impl Iterator<Item = &'a Command>) -> Finding {
        let awaited: BTreeSet<&QueueName> = waiting.filter_map(awaited).collect();
        for queue in awaited {
            let offering = self.queues.get(queue).map(Naive::offering).unwrap_or_default();
            expect(offering.is_empty(), || {
                format!("R somebody waits although {offering:?} offer something")
            })?;
        }
        Ok(())
    }

    /// Every message is where the engine says it is, and counted as often.
    pub(crate) fn compare(&self, rows: &Rows) -> Finding {
        self.compare_topics(rows)?;
        for (name, naive) in &self.queues {
            let id = rows.queues.values().find(|queue| queue.name == *name).map(|queue| queue.id);
            let stored = rows.messages.iter().filter(|(key, _)| Some(key.queue) == id);
            let stored: Vec<(u64, Shown)> =
                stored.map(|(key, message)| (key.sequence.get(), shown(message))).collect();
            let mut expected: Vec<(u64, Shown)> =
                naive.messages.iter().map(|m| (m.seq, shown_of(m))).collect();
            expected.sort_unstable_by_key(|(seq, _)| *seq);
            let different = stored.iter().zip(&expected).find(|(one, other)| one != other);
            expect(different.is_none() && stored.len() == expected.len(), || {
                let (here, there) = (stored.len(), expected.len());
                format!("R {name}: {here} are stored, {there} expected; {different:?}")
            })?;
            let Some(id) = id else { continue };
            naive.compare_places(id, rows)?;
            let remembered = naive.flows.iter().filter_map(|(key, flow)| Some((key, flow.forgotten_at?)));
            let remembered: Vec<_> =
                remembered.map(|(key, since)| (key, naive.first_missing(key), since)).collect();
            let cursors = rows.cursors.iter().filter(|(key, _)| key.queue == id);
            let cursors: Vec<_> =
                cursors.map(|(key, cursor)| (&key.stream, cursor.next, cursor.since)).collect();
            expect(remembered == cursors, || {
                format!("R {name}: {cursors:?} are remembered, expected: {remembered:?}")
            })?;
            for (key, workflow) in rows.workflows.iter().filter(|(key, _)| key.queue == id) {
                let holds: Vec<HoldKind> = workflow.rare.holds.iter().map(|hold| hold.cause.kind()).collect();
                let expected: Vec<HoldKind> = naive.held(&key.stream).into_iter().map(Cause::kind).collect();
                expect(holds == expected, || {
                    format!("R {key:?} is held for {holds:?}, expected: {expected:?}; {workflow:?}")
                })?;
                let set_at = naive.flows.get(&key.stream).and_then(|flow| flow.state_set_at);
                expect(workflow.rare.state_set_at == set_at, || {
                    format!("R the state of {key:?} was set at {set_at:?}; {workflow:?}")
                })?;
            }
        }
        Ok(())
    }
}

/// The queue that a receiver waits for.
fn awaited(command: &Command) -> Option<&QueueName> {
    match command {
        Command::Receive(verbs::Receive { queue, .. })
        | Command::ReceiveRun(verbs::ReceiveRun { queue, .. })
        | Command::AcceptWorkflow(verbs::AcceptWorkflow { queue, .. }) => Some(queue),
        _ => None,
    }
}

/// What is compared of a message.
type Shown = (u32, bool, Suspect, State);

fn shown_of(message: &Message) -> Shown {
    (message.count, message.has_extra, message.suspect, message.state.clone())
}

fn shown(message: &MessageRecord) -> Shown {
    let suspect = match message.rare.suspicion {
        Suspicion::None => Suspect::No,
        Suspicion::Counted => Suspect::New,
        Suspicion::Alone => Suspect::Known,
    };
    (message.delivery_count, message.rare.has_extra, suspect, state_of(&message.status))
}

fn state_of(status: &Status) -> State {
    match status {
        Status::Ready => State::Ready,
        Status::Scheduled { due } => State::Scheduled(*due),
        Status::Failed { due } => State::Failed(*due),
        Status::ByConsumer { due, aside } => State::ByConsumer { due: *due, aside: *aside },
        Status::Locked { fetched } => State::Locked(fetched.map(|deferred| (deferred.due, deferred.aside))),
        Status::DeadLettered(_) => State::Dead,
    }
}
