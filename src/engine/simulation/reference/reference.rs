//! The reference: all queues, the time, and the next number.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::clock::Timestamp;
use crate::engine::crash::rows::Rows;
use crate::engine::rules::command::Command;
use crate::engine::rules::command::Receipt;
use crate::engine::rules::record::Status;
use crate::engine::simulation::plain::Forgotten;
use crate::engine::simulation::reference::naive::Naive;
use crate::engine::simulation::reference::naive::State;
use crate::engine::simulation::view::Finding;
use crate::engine::simulation::view::expect;
use crate::id::QueueName;
use crate::queue::QueueOptions;

/// Everything the contract knows.
#[derive(Default)]
pub(crate) struct Reference {
    pub(crate) queues: BTreeMap<QueueName, Naive>,
    /// Queues whose order it does not know.
    pub(crate) chained: BTreeMap<QueueName, QueueOptions>,
    /// What was answered under idempotency keys: the request's digest, the receipts, and until when that is kept.
    pub(crate) answers: BTreeMap<(QueueName, String), (u64, Vec<Receipt>, Timestamp)>,
    pub(crate) now: Timestamp,
    /// The highest number that was given.
    pub(crate) last: u64,
}

impl Reference {
    /// Time has come to `now`, in one turn or in several: then somebody may have been served before all was done that
    /// was due.
    pub(crate) fn advance(&mut self, now: Timestamp, in_several: bool) {
        self.now = now;
        for queue in self.queues.values_mut() {
            queue.advance(now);
            queue.in_several = in_several;
        }
    }

    /// A workflow was forgotten: that is allowed when nothing was stored of it for long enough.
    pub(crate) fn forget(&mut self, forgotten: &Forgotten) -> Finding {
        let Forgotten { queue, stream: key, is_back } = forgotten;
        let Some(queue) = self.queues.get_mut(queue) else { return Ok(()) };
        let since = queue.flows.get(key).and_then(|flow| flow.idle_since);
        let is_idle = since.is_some_and(|since| since + queue.options.forget_after <= queue.now);
        let is_held = queue.lock(key).is_some();
        expect(is_idle && !is_held, || format!("R {key:?} was forgotten, and was idle since {since:?}"))?;
        queue.flows.remove(key);
        if *is_back {
            queue.close(key);
        }
        Ok(())
    }

    pub(crate) fn delete(&mut self, queue: &QueueName) {
        self.queues.remove(queue);
        self.chained.remove(queue);
        self.answers.retain(|(of, _), _| of != queue);
    }

    /// The process was lost, and with it all locks: what was handed out has failed.
    pub(crate) fn restart(&mut self, now: Timestamp) {
        self.now = now;
        for queue in self.queues.values_mut() {
            let mut out = Vec::new();
            for (key, flow) in &mut queue.flows {
                out.extend(flow.lock.take().map(|lock| (key.clone(), lock.out)));
            }
            queue.advance(now);
            for (key, out) in out {
                out.into_iter().for_each(|seq| queue.fail(seq, None));
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
        for (name, naive) in &self.queues {
            let id = rows.queues.values().find(|queue| queue.name == *name).map(|queue| queue.id);
            let stored = rows.messages.iter().filter(|(key, _)| Some(key.queue) == id);
            let stored: Vec<(u64, u32, State)> = stored
                .map(|(key, message)| (key.sequence.get(), message.delivery_count, state_of(&message.status)))
                .collect();
            let mut expected: Vec<(u64, u32, State)> =
                naive.messages.iter().map(|m| (m.seq, m.count, m.state.clone())).collect();
            expected.sort_unstable_by_key(|(seq, _, _)| *seq);
            let different = stored.iter().zip(&expected).find(|(one, other)| one != other);
            expect(different.is_none() && stored.len() == expected.len(), || {
                let (here, there) = (stored.len(), expected.len());
                format!("R {name}: {here} are stored, {there} expected; {different:?}")
            })?;
        }
        Ok(())
    }
}

/// The queue that a receiver waits for.
fn awaited(command: &Command) -> Option<&QueueName> {
    match command {
        Command::Receive { queue, .. } | Command::ReceiveRun { queue, .. } | Command::Take { queue, .. } => {
            Some(queue)
        }
        _ => None,
    }
}

fn state_of(status: &Status) -> State {
    match status {
        Status::Ready => State::Ready,
        Status::Scheduled { due } => State::Scheduled(*due),
        Status::Failed { due } => State::Failed(*due),
        Status::Asked { due, aside } => State::Asked { due: *due, aside: *aside },
        Status::Locked { fetched } => State::Locked(fetched.map(|deferred| (deferred.due, deferred.aside))),
        Status::DeadLettered(_) => State::Dead,
    }
}
