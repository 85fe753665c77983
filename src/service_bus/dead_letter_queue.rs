//! Dead letters, handed out: a queue of Service Bus's own beside each queue. Its locks live in memory, as all locks do;
//! what is completed is purged.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::engine::Client;
use crate::engine::EventKind;
use crate::engine::Events;
use crate::engine::MessageStatus;
use crate::engine::MessageView;
use crate::engine::Queue;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::holds::LockUuid;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;

/// The dead letters of all queues that somebody has out or has set aside.
pub(crate) struct DeadLetterQueues {
    client: Client,
    clock: Arc<dyn Clock>,
    by_queue: Mutex<HashMap<QueueName, DeadLetterQueue>>,
    /// Something came back to a dead-letter queue.
    returned: Notify,
}

/// What is known of the dead letters of one queue, beyond that they are stored.
#[derive(Default)]
struct DeadLetterQueue {
    out: HashMap<SequenceNumber, HeldDeadLetter>,
    /// How often a letter failed since it became one.
    failures: HashMap<SequenceNumber, u32>,
    /// How often a letter's lock ran out since it became one.
    losses: HashMap<SequenceNumber, usize>,
    deferred: BTreeMap<SequenceNumber, ()>,
}

/// A letter that somebody has.
struct HeldDeadLetter {
    token: LockUuid,
    until: Timestamp,
    was_deferred: bool,
}

/// A letter as it is handed out.
pub(crate) struct LockedDeadLetter {
    pub(crate) view: MessageView,
    pub(crate) token: LockUuid,
    pub(crate) locked_until: Timestamp,
    /// How often it failed since it became a dead letter.
    pub(crate) failures: u32,
    /// How often its lock ran out since then.
    pub(crate) times_lost: usize,
    /// When it was locked, by the clock that is never set.
    pub(crate) locked_at: Duration,
}

/// How a letter goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// It failed.
    Abandoned,
    /// It was not looked at.
    Released,
    /// It is set aside until it is asked for.
    Deferred,
}

impl DeadLetterQueues {
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>) -> DeadLetterQueues {
        DeadLetterQueues { client, clock, by_queue: Mutex::default(), returned: Notify::new() }
    }

    /// Takes up to `max` letters, waiting for the first up to `wait`, or until it is told to `hurry`. What it has taken
    /// it returns.
    pub(crate) async fn receive(
        &self,
        queue: &Queue,
        lock: Duration,
        max: usize,
        wait: Duration,
        hurry: &CancellationToken,
    ) -> Result<Vec<LockedDeadLetter>, AmqpRefusal> {
        let mut events = self.client.events();
        let waited = after(wait);
        tokio::pin!(waited);
        loop {
            let is_last = wait.is_zero() || hurry.is_cancelled();
            let returned = self.returned.notified();
            let dead_letters = self.take(queue, lock, max).await?;
            if !dead_letters.is_empty() || is_last {
                return Ok(dead_letters);
            }
            // Never while letters are being taken: they would be lost until their locks run out.
            tokio::select! {
                () = next_dead_letter(&mut events, queue.name()) => {}
                () = returned => {}
                () = self.until_freed(queue.name()) => {}
                () = hurry.cancelled() => {}
                () = &mut waited => return Ok(Vec::new()),
            }
        }
    }

    /// Takes letters that were set aside, all or none.
    pub(crate) async fn receive_deferred(
        &self,
        queue: &Queue,
        lock: Duration,
        numbers: &[SequenceNumber],
    ) -> Result<Vec<LockedDeadLetter>, AmqpRefusal> {
        let not_found = |number: &SequenceNumber| {
            AmqpRefusal::new(condition::MESSAGE_NOT_FOUND, format!("dead letter {number} is not deferred"))
        };
        {
            let mut dead_letter_queues = self.dead_letter_queues();
            let dead_letter_queue = dead_letter_queues.entry(queue.name().clone()).or_default();
            dead_letter_queue.free(self.clock.now());
            if let Some(missing) =
                numbers.iter().find(|number| !dead_letter_queue.deferred.contains_key(number))
            {
                return Err(not_found(missing));
            }
        }
        let mut dead_letters = Vec::new();
        for number in numbers {
            match self.take_one(queue, lock, *number, true).await? {
                Some(dead_letter) => dead_letters.push(dead_letter),
                None => {
                    dead_letters
                        .iter()
                        .for_each(|dead_letter| self.put_back(queue.name(), dead_letter, Return::Released));
                    return Err(not_found(number));
                }
            }
        }
        Ok(dead_letters)
    }

    async fn take(
        &self,
        queue: &Queue,
        lock: Duration,
        max: usize,
    ) -> Result<Vec<LockedDeadLetter>, AmqpRefusal> {
        let (mut taken, mut after) = (Vec::new(), None);
        while taken.len() < max {
            let page = queue.dead_letters(after.as_ref(), limits::HTTP_PAGE).await?;
            for dead_letter in &page {
                if taken.len() >= max {
                    break;
                }
                match self.take_one(queue, lock, dead_letter.sequence_number, false).await {
                    Ok(dead_letter) => taken.extend(dead_letter),
                    Err(refusal) if taken.is_empty() => return Err(refusal),
                    Err(_) => return Ok(taken),
                }
            }
            match page.len() {
                limits::HTTP_PAGE => after = page.into_iter().next_back(),
                _ => break,
            }
        }
        Ok(taken)
    }

    /// Takes one letter, unless somebody has it.
    async fn take_one(
        &self,
        queue: &Queue,
        lock: Duration,
        number: SequenceNumber,
        deferred: bool,
    ) -> Result<Option<LockedDeadLetter>, AmqpRefusal> {
        let (token, locked_at, now) =
            (LockUuid::of(self.client.token()?, number), self.client.elapsed(), self.clock.now());
        let locked_until = now + lock;
        let (failures, times_lost) = {
            let mut dead_letter_queues = self.dead_letter_queues();
            let dead_letter_queue = dead_letter_queues.entry(queue.name().clone()).or_default();
            dead_letter_queue.free(now);
            if dead_letter_queue.out.contains_key(&number)
                || dead_letter_queue.deferred.contains_key(&number) != deferred
            {
                return Ok(None);
            }
            if dead_letter_queue.out.len() >= limits::LOCKS_MAX {
                return Err(AmqpRefusal::new(condition::SERVER_BUSY, "too many dead letters are handed out"));
            }
            dead_letter_queue.deferred.remove(&number);
            dead_letter_queue
                .out
                .insert(number, HeldDeadLetter { token, until: locked_until, was_deferred: deferred });
            let failures = dead_letter_queue.failures.get(&number).copied().unwrap_or_default();
            (failures, dead_letter_queue.losses.get(&number).copied().unwrap_or_default())
        };
        let found = queue.peek(number, 1).await?.into_iter().next();
        let is_dead = |view: &MessageView| {
            view.sequence_number == number && matches!(view.status, MessageStatus::DeadLettered(_))
        };
        match found.filter(is_dead) {
            Some(view) => {
                Ok(Some(LockedDeadLetter { view, token, locked_until, failures, times_lost, locked_at }))
            }
            None => {
                self.dead_letter_queues().entry(queue.name().clone()).or_default().forget(number);
                Ok(None)
            }
        }
    }

    /// Removes a letter for good.
    pub(crate) async fn complete(
        &self,
        queue: &Queue,
        number: SequenceNumber,
        token: LockUuid,
    ) -> Result<(), AmqpRefusal> {
        self.check(queue.name(), number, token)?;
        let was_there = queue.purge_dead_letter(number).await?;
        self.forget(queue.name(), number);
        if was_there { Ok(()) } else { Err(AmqpRefusal::lock_lost()) }
    }

    /// Gives a letter back.
    pub(crate) fn give_back(
        &self,
        queue: &QueueName,
        number: SequenceNumber,
        token: LockUuid,
        how: Return,
    ) -> Result<(), AmqpRefusal> {
        self.check(queue, number, token)?;
        if let Some(dead_letter_queue) = self.dead_letter_queues().get_mut(queue) {
            dead_letter_queue.put_back(number, how);
        }
        self.returned.notify_waiters();
        Ok(())
    }

    pub(crate) fn put_back(&self, queue: &QueueName, dead_letter: &LockedDeadLetter, how: Return) {
        let _ = self.give_back(queue, dead_letter.view.sequence_number, dead_letter.token, how);
    }

    /// Prolongs the lock of a letter.
    pub(crate) fn renew(
        &self,
        queue: &QueueName,
        number: SequenceNumber,
        token: LockUuid,
        lock: Duration,
    ) -> Result<Timestamp, AmqpRefusal> {
        self.check(queue, number, token)?;
        let until = self.clock.now() + lock;
        if let Some(out) = self
            .dead_letter_queues()
            .get_mut(queue)
            .and_then(|dead_letter_queue| dead_letter_queue.out.get_mut(&number))
        {
            out.until = until;
        }
        Ok(until)
    }

    /// Whether nobody has a letter, and it is not set aside.
    pub(crate) fn is_free(&self, queue: &QueueName, number: SequenceNumber) -> bool {
        let now = self.clock.now();
        let mut dead_letter_queues = self.dead_letter_queues();
        let Some(dead_letter_queue) = dead_letter_queues.get_mut(queue) else { return true };
        dead_letter_queue.free(now);
        !dead_letter_queue.out.contains_key(&number) && !dead_letter_queue.deferred.contains_key(&number)
    }

    /// Whether a letter is set aside.
    pub(crate) fn is_deferred(&self, queue: &QueueName, number: SequenceNumber) -> bool {
        self.dead_letter_queues()
            .get(queue)
            .is_some_and(|dead_letter_queue| dead_letter_queue.deferred.contains_key(&number))
    }

    /// Forgets a letter that is there no more.
    pub(crate) fn forget(&self, queue: &QueueName, number: SequenceNumber) {
        self.dead_letter_queues().entry(queue.clone()).or_default().forget(number);
    }

    /// Whether a letter is held by this token.
    pub(crate) fn check(
        &self,
        queue: &QueueName,
        number: SequenceNumber,
        token: LockUuid,
    ) -> Result<(), AmqpRefusal> {
        let now = self.clock.now();
        let mut dead_letter_queues = self.dead_letter_queues();
        let dead_letter_queue = dead_letter_queues.get_mut(queue).ok_or_else(AmqpRefusal::lock_lost)?;
        dead_letter_queue.free(now);
        let is_held = dead_letter_queue.out.get(&number).is_some_and(|out| out.token == token);
        if is_held { Ok(()) } else { Err(AmqpRefusal::lock_lost()) }
    }

    /// Waits until the first lock of a queue's letters runs out.
    async fn until_freed(&self, queue: &QueueName) {
        let first = self
            .dead_letter_queues()
            .get(queue)
            .and_then(|dead_letter_queue| dead_letter_queue.out.values().map(|out| out.until).min());
        let never = std::future::pending::<()>();
        match first {
            None => never.await,
            Some(until) => {
                let left = until.since(self.clock.now()).max(Duration::from_millis(1));
                let _ = tokio::time::timeout(left, never).await;
            }
        }
    }

    fn dead_letter_queues(&self) -> MutexGuard<'_, HashMap<QueueName, DeadLetterQueue>> {
        self.by_queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeadLetterQueue {
    /// Takes back what was locked for too long.
    fn free(&mut self, now: Timestamp) {
        let lost: Vec<SequenceNumber> =
            self.out.iter().filter(|(_, out)| out.until <= now).map(|(number, _)| *number).collect();
        for number in lost {
            *self.losses.entry(number).or_default() += 1;
            self.put_back(number, Return::Abandoned);
        }
    }

    fn put_back(&mut self, number: SequenceNumber, how: Return) {
        let Some(out) = self.out.remove(&number) else { return };
        if how != Return::Released {
            *self.failures.entry(number).or_default() += 1;
        }
        if out.was_deferred || how == Return::Deferred {
            self.deferred.insert(number, ());
        }
    }

    fn forget(&mut self, number: SequenceNumber) {
        self.out.remove(&number);
        self.failures.remove(&number);
        self.losses.remove(&number);
        self.deferred.remove(&number);
    }
}

async fn after(wait: Duration) {
    let _ = tokio::time::timeout(wait, std::future::pending::<()>()).await;
}

/// Waits for a dead letter of a queue; also returns when some were missed.
async fn next_dead_letter(events: &mut Events, queue: &QueueName) {
    while let Some(Ok(event)) = events.next().await {
        if event.queue == *queue && matches!(event.kind, EventKind::DeadLettered { .. }) {
            return;
        }
    }
    // Missed or closed: the caller looks again, and a closed engine refuses that.
}
