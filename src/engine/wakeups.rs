//! Receivers that wait: who is served when a workflow becomes ready, and who has waited long enough.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use crate::engine::inbox::ReplySlot;
use crate::engine::rules::command::Command;
use crate::id::QueueName;
use crate::token::LockToken;

/// What a receiver waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitsFor {
    /// Work in a queue.
    Queue(QueueName),
    /// Work in the workflow that it has taken whole.
    Taken(LockToken),
}

impl WaitsFor {
    /// What a command that found nothing waits for; `None` for a command that never waits.
    pub(crate) fn of(command: &Command) -> Option<WaitsFor> {
        match command {
            Command::Receive { queue, .. }
            | Command::ReceiveRun { queue, .. }
            | Command::Take {
                queue,
                workflow: None,
                ..
            } => Some(WaitsFor::Queue(queue.clone())),
            Command::ReceiveTaken { token, .. } => Some(WaitsFor::Taken(*token)),
            _ => None,
        }
    }
}

/// A receiver that waits, with its command to be applied again.
pub(crate) struct Waiter {
    pub(crate) command: Command,
    pub(crate) slot: ReplySlot,
    /// When it has waited long enough, in the clock's elapsed time.
    pub(crate) until: Duration,
}

/// All receivers that wait, in the order in which they came.
#[derive(Default)]
pub(crate) struct Wakeups {
    waiting: BTreeMap<WaitsFor, VecDeque<Waiter>>,
    count: usize,
}

impl Wakeups {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn park(&mut self, waits_for: WaitsFor, waiter: Waiter) {
        self.count += 1;
        self.waiting.entry(waits_for).or_default().push_back(waiter);
    }

    /// Puts a receiver back to the front: there was nothing for it after all.
    pub(crate) fn put_back(&mut self, waits_for: WaitsFor, waiter: Waiter) {
        self.count += 1;
        self.waiting.entry(waits_for).or_default().push_front(waiter);
    }

    /// The receiver that has waited longest and still does.
    pub(crate) fn next(&mut self, waits_for: &WaitsFor) -> Option<Waiter> {
        let queue = self.waiting.get_mut(waits_for)?;
        let mut found = None;
        while let Some(waiter) = queue.pop_front() {
            self.count -= 1;
            if !waiter.slot.is_closed() {
                found = Some(waiter);
                break;
            }
        }
        if queue.is_empty() {
            self.waiting.remove(waits_for);
        }
        found
    }

    /// When the first receiver has waited long enough.
    pub(crate) fn first_deadline(&self) -> Option<Duration> {
        self.waiting.values().flatten().map(|waiter| waiter.until).min()
    }

    /// Takes out the receivers that have waited long enough, or have gone.
    pub(crate) fn take_expired(&mut self, elapsed: Duration) -> Vec<Waiter> {
        let mut expired = Vec::new();
        for queue in self.waiting.values_mut() {
            let waiters = std::mem::take(queue);
            for waiter in waiters {
                if waiter.until <= elapsed || waiter.slot.is_closed() {
                    expired.push(waiter);
                } else {
                    queue.push_back(waiter);
                }
            }
        }
        self.waiting.retain(|_, queue| !queue.is_empty());
        self.count -= expired.len();
        expired
    }

    pub(crate) fn take_all(&mut self) -> Vec<Waiter> {
        self.count = 0;
        std::mem::take(&mut self.waiting)
            .into_values()
            .flatten()
            .collect()
    }
}
