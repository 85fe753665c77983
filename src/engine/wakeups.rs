//! Receivers that wait: who is served when a workflow becomes ready, and who has waited long enough.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock::Timestamp;
use crate::engine::letter::LetterHandle;
use crate::engine::rules::waits_for::WaitsFor;
use crate::limits;
use crate::token::LockToken;

/// Below this many receivers, or sleepers, nobody looks for ones that have gone.
const SWEEP_FROM: usize = 1_024;

/// A receiver that waits, to be applied again.
pub(crate) struct Waiter {
    pub(crate) letter: LetterHandle,
    /// When it has waited long enough, in the clock's elapsed time.
    pub(crate) until: Duration,
}

impl Waiter {
    fn waits_for(&self) -> &WaitsFor {
        self.letter.waits_for().expect("only what waits for something is parked")
    }
}

/// A receiver's place among those that wait: lower came earlier.
pub(crate) type WaiterPlace = u64;

/// All receivers that wait, in the order in which they came.
#[derive(Default)]
pub(crate) struct Wakeups {
    waiters: BTreeMap<WaiterPlace, Waiter>,
    waiting: BTreeMap<WaitsFor, BTreeSet<WaiterPlace>>,
    deadlines: BTreeSet<(Duration, WaiterPlace)>,
    /// Those who can be told that they have waited long enough; several may ask for more of one workflow.
    by_token: BTreeMap<LockToken, BTreeSet<WaiterPlace>>,
    next_place: WaiterPlace,
    /// How many may come before those are looked for who have left.
    sweep_in: usize,
    /// Who sleeps until when, in the clock's elapsed time.
    sleepers: BTreeMap<(Duration, WaiterPlace), oneshot::Sender<()>>,
    sweep_sleepers_at: usize,
    /// Whose receivers have to be served in the next turn, because this one has done enough.
    pub(crate) later: BTreeSet<WaitsFor>,
    /// Whose receivers a rate keeps waiting, and when there is room again, in engine time.
    paced: BTreeMap<WaitsFor, Timestamp>,
    paced_until: BTreeSet<(Timestamp, WaitsFor)>,
}

impl Wakeups {
    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Lets go of those who have left, before another comes: now and then, and the more often the less room there is.
    pub(crate) fn sweep(&mut self) {
        if self.sweep_in == 0 {
            self.take_where(|waiter| waiter.letter.is_left());
            let (waiting, room) =
                (self.waiters.len(), limits::RECEIVERS_MAX.saturating_sub(self.waiters.len()));
            self.sweep_in = SWEEP_FROM.max(waiting.min(room));
        }
        self.sweep_in -= 1;
    }

    pub(crate) fn park(&mut self, waiter: Waiter) {
        self.next_place += 1;
        self.put_back(self.next_place, waiter);
    }

    /// Puts a receiver back to its place: there was nothing for it after all.
    pub(crate) fn put_back(&mut self, place: WaiterPlace, waiter: Waiter) {
        self.waiting.entry(waiter.waits_for().clone()).or_default().insert(place);
        self.deadlines.insert((waiter.until, place));
        if let Some(token) = waiter.letter.token() {
            self.by_token.entry(token).or_default().insert(place);
        }
        self.waiters.insert(place, waiter);
    }

    /// Takes out the receiver that has waited longest and still does.
    pub(crate) fn next(&mut self, waits_for: &WaitsFor) -> Option<(WaiterPlace, Waiter)> {
        loop {
            let place = *self.waiting.get(waits_for)?.first()?;
            let waiter = self.take(place);
            if !waiter.letter.is_left() {
                return Some((place, waiter));
            }
        }
    }

    fn take(&mut self, place: WaiterPlace) -> Waiter {
        let waiter = self.waiters.remove(&place).expect("every listed receiver waits");
        self.deadlines.remove(&(waiter.until, place));
        if let Some(token) = waiter.letter.token() {
            take_out(&mut self.by_token, &token, place);
        }
        take_out(&mut self.waiting, waiter.waits_for(), place);
        waiter
    }

    fn take_where(&mut self, wanted: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let places: Vec<WaiterPlace> =
            self.waiters.iter().filter(|(_, waiter)| wanted(waiter)).map(|(place, _)| *place).collect();
        places.into_iter().map(|place| self.take(place)).collect()
    }

    /// Lets somebody sleep. Time is the engine's everywhere, so that a test moves one clock.
    pub(crate) fn sleep_until(&mut self, until: Duration, slot: oneshot::Sender<()>) {
        if self.sleepers.len() >= self.sweep_sleepers_at {
            self.sleepers.retain(|_, slot| !slot.is_closed());
            self.sweep_sleepers_at = SWEEP_FROM.max(2 * self.sleepers.len());
        }
        self.next_place += 1;
        self.sleepers.insert((until, self.next_place), slot);
    }

    /// Wakes those who have slept long enough.
    pub(crate) fn wake_sleepers(&mut self, elapsed: Duration) {
        while let Some(sleeper) = self.sleepers.first_entry()
            && sleeper.key().0 <= elapsed
        {
            let _ = sleeper.remove().send(());
        }
    }

    /// When the first receiver has waited long enough, or the first sleeper has slept long enough.
    pub(crate) fn first_deadline(&self) -> Option<Duration> {
        let receiver = self.deadlines.first().map(|(until, _)| *until);
        let sleeper = self.sleepers.first_key_value().map(|((until, _), _)| *until);
        [receiver, sleeper].into_iter().flatten().min()
    }

    /// Takes out the receivers that have waited long enough, but for those of whom the next turn says whether there is anything.
    pub(crate) fn take_expired(&mut self, elapsed: Duration) -> Vec<Waiter> {
        let expired =
            self.deadlines.iter().take_while(|(until, _)| *until <= elapsed).map(|(_, place)| *place);
        let is_told = |place: &WaiterPlace| !self.later.contains(self.waiters[place].waits_for());
        let places: Vec<WaiterPlace> = expired.filter(is_told).collect();
        places.into_iter().map(|place| self.take(place)).collect()
    }

    /// Takes out the receivers that wait under a token.
    pub(crate) fn withdraw(&mut self, token: LockToken) -> Vec<Waiter> {
        let places = self.by_token.get(&token).cloned().unwrap_or_default();
        places.into_iter().map(|place| self.take(place)).collect()
    }

    /// Notes that a rate keeps receivers waiting until an instant of engine time.
    pub(crate) fn pace(&mut self, waits_for: WaitsFor, until: Timestamp) {
        if let Some(before) = self.paced.insert(waits_for.clone(), until) {
            self.paced_until.remove(&(before, waits_for.clone()));
        }
        self.paced_until.insert((until, waits_for));
    }

    /// Whose receivers no rate keeps waiting any more: first those of whoever has waited longest, so that it goes round among them.
    pub(crate) fn take_paced(&mut self, now: Timestamp) -> Vec<WaitsFor> {
        let mut woken = Vec::new();
        while self.paced_until.first().is_some_and(|(until, _)| *until <= now)
            && let Some((_, waits_for)) = self.paced_until.pop_first()
        {
            self.paced.remove(&waits_for);
            woken.push(waits_for);
        }
        woken.sort_by_key(|waits_for| self.waiting.get(waits_for).and_then(|places| places.first().copied()));
        woken
    }

    /// When there is room again for the first receivers that a rate keeps waiting; nobody wakes up for those who have gone.
    pub(crate) fn first_paced(&mut self) -> Option<Timestamp> {
        while let Some((until, waits_for)) = self.paced_until.first() {
            if self.waiting.contains_key(waits_for) {
                return Some(*until);
            }
            if let Some((_, waits_for)) = self.paced_until.pop_first() {
                self.paced.remove(&waits_for);
            }
        }
        None
    }

    pub(crate) fn is_waited_for(&self, waits_for: &WaitsFor) -> bool {
        self.waiting.contains_key(waits_for)
    }

    /// What anybody waits for in any queue.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &WaitsFor> {
        self.waiting.keys().filter(|waits_for| !matches!(waits_for, WaitsFor::AcceptedWorkflow(_)))
    }

    /// Takes out whoever waits for something in a queue. Whoever waits for the workflow that it has accepted still has that.
    pub(crate) fn take_of_queues(&mut self) -> Vec<Waiter> {
        self.take_where(|waiter| !matches!(waiter.waits_for(), WaitsFor::AcceptedWorkflow(_)))
    }

    pub(crate) fn take_all(&mut self) -> Vec<Waiter> {
        self.take_where(|_| true)
    }
}

/// Takes out a place of those that are listed under a key.
fn take_out<K: Ord>(listed: &mut BTreeMap<K, BTreeSet<WaiterPlace>>, key: &K, place: WaiterPlace) {
    if let Some(places) = listed.get_mut(key) {
        places.remove(&place);
        if places.is_empty() {
            listed.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::letter::WorkWait;
    use crate::engine::letter::letter;
    use crate::engine::rules::verbs::ReceiveFromWorkflow;
    use crate::id::QueueName;

    #[test]
    fn everybody_who_waits_under_a_token_can_be_told_that_it_was_long_enough() {
        let (mut wakeups, token) = (Wakeups::default(), LockToken::new(1, [0; 12]));
        let verb = ReceiveFromWorkflow { queue: QueueName::new("q").unwrap(), token, max: 1 };
        let mut answers = Vec::new();
        for _ in 0..2 {
            let work_wait = WorkWait { token: Some(token), ..WorkWait::new(&verb, Duration::MAX) };
            let (letter, answer) = letter(verb.clone(), Some(work_wait), |_| ());
            answers.push(answer);
            wakeups.park(Waiter { letter, until: Duration::MAX });
        }
        assert_eq!(wakeups.withdraw(token).len(), 2);
        assert_eq!((wakeups.withdraw(token).len(), wakeups.len()), (0, 0));
    }

    #[test]
    fn who_does_not_sleep_any_more_is_forgotten_long_before_it_would_wake() {
        let mut wakeups = Wakeups::default();
        for second in 0..10 * SWEEP_FROM as u64 {
            let (slot, _) = oneshot::channel();
            wakeups.sleep_until(Duration::from_secs(second), slot);
            assert!(wakeups.sleepers.len() <= SWEEP_FROM);
        }
    }
}
