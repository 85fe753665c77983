//! The prefetch window of a link: how many messages ahead a receiver is sent once it has let locks run out in its buffer.
//!
//! Pure: it knows numbers and instants in milliseconds, and is told both. Clients handle what they buffer first in, first
//! out: a message after which nothing sent later was settled is still in the buffer, and only those count.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;

use crate::id::SequenceNumber;
use crate::limits;

/// A delivery's place among those of its link: lower was sent earlier.
pub(crate) type DeliveryPlace = u64;

/// How many messages a link has in flight, and how many it may have.
#[derive(Debug)]
pub(crate) struct PrefetchWindow {
    lock_ms: u64,
    /// Whether the client has ever given credit for more than one message, or has had more than one in use.
    is_ahead: bool,
    /// None, until a lock runs out in the client's buffer.
    size: Option<Size>,
    next_place: DeliveryPlace,
    /// What counts as in use: what was sent after everything that the client has settled, refused or renewed.
    in_use: BTreeMap<DeliveryPlace, InFlight>,
    /// What was overtaken, and whose lock still runs.
    overtaken: BTreeMap<DeliveryPlace, InFlight>,
    /// The locks that still run, by their end.
    deadlines: BTreeSet<(u64, DeliveryPlace)>,
    /// How many of those in use have lost their lock.
    expired: usize,
    /// What has lost its lock and does not count any more, because the client was silent.
    written_off: BTreeSet<DeliveryPlace>,
    /// Messages that have lost their lock on this link and were not settled on it since.
    lost: BTreeSet<SequenceNumber>,
    settlements: TimelySettlements,
    /// When the client last settled, was refused, or renewed, or was sent something when it had nothing in use.
    active_at_ms: u64,
    /// The longest that the client has had something in use and sent nothing.
    quiet_ms_max: u64,
    /// After how many lock durations of silence what has lost its lock does not count any more. None until the client has
    /// shown that it is slower than that: until then, after one and a half times as long as it ever was quiet.
    silence_locks: Option<u64>,
    losses: u64,
}

/// A delivery that the client has not settled.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    message: SequenceNumber,
    /// When its lock ends; none when it has ended.
    until_ms: Option<u64>,
}

/// How many messages may be in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    messages: usize,
    /// Below this each settlement in time makes it larger by one.
    fast_below: usize,
    /// Settlements in time since it has become larger, where as many as it is large make it larger by one.
    since_grown: usize,
}

impl PrefetchWindow {
    /// Of a link whose locks last so long; `inherited` is the window that others of its queue had lately.
    pub(crate) fn new(now_ms: u64, lock_ms: u64, inherited: Option<usize>) -> PrefetchWindow {
        let lock_ms = lock_ms.max(1);
        PrefetchWindow {
            lock_ms,
            is_ahead: false,
            size: inherited.map(Size::first),
            next_place: 0,
            in_use: BTreeMap::new(),
            overtaken: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            expired: 0,
            written_off: BTreeSet::new(),
            lost: BTreeSet::new(),
            settlements: TimelySettlements::new(lock_ms),
            active_at_ms: now_ms,
            quiet_ms_max: 0,
            silence_locks: None,
            losses: 0,
        }
    }

    /// Notes how much credit the client gives.
    pub(crate) fn note_credit(&mut self, credit: usize) {
        self.is_ahead |= credit > 1;
    }

    /// The window, if there is one.
    pub(crate) fn size(&self) -> Option<usize> {
        self.size.filter(|_| self.is_ahead).map(|size| size.messages)
    }

    /// How many locks have ever run out in the client's buffer.
    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// How many more messages may be sent; those that were lost before may find less room.
    pub(crate) fn room(&mut self, now_ms: u64) -> usize {
        self.expire(now_ms);
        self.write_off(now_ms);
        self.size().map_or(usize::MAX, |size| size.saturating_sub(self.in_use.len()))
    }

    /// Whether a message may be sent that has lost its lock so often, here or elsewhere.
    pub(crate) fn admits(&mut self, now_ms: u64, message: SequenceNumber, times_lost: usize) -> bool {
        if !self.is_ahead {
            return true;
        }
        let (room, in_use) = (self.room(now_ms), self.in_use.len());
        let size = self.size().unwrap_or(usize::MAX);
        let is_below_half = !self.lost.contains(&message) || in_use < (size / 2).max(1);
        let is_safe = times_lost < 2 || (in_use <= (size / 4).max(1) && self.expired == 0);
        room > 0 && is_below_half && is_safe
    }

    /// Notes a message that is sent, or about to be, and until when it is locked.
    pub(crate) fn add(&mut self, message: SequenceNumber, until_ms: u64) -> DeliveryPlace {
        let place = self.next_place;
        self.next_place += 1;
        if self.in_use.is_empty() {
            self.active_at_ms = self.active_at_ms.max(until_ms.saturating_sub(self.lock_ms));
        }
        self.in_use.insert(place, InFlight { message, until_ms: Some(until_ms) });
        self.deadlines.insert((until_ms, place));
        // A client that asks for one before it settles the one before is sent ahead, too.
        self.is_ahead |= self.in_use.len() > 1;
        place
    }

    /// Notes that a message was not sent after all.
    pub(crate) fn take_back(&mut self, place: DeliveryPlace) {
        self.remove(place);
    }

    /// Notes that the client wants to settle a delivery, in time or not.
    pub(crate) fn note_activity(&mut self, now_ms: u64, place: DeliveryPlace) {
        self.expire(now_ms);
        self.remove(place);
        self.overtake(place);
        self.touch(now_ms);
        if self.written_off.remove(&place) {
            let doubled = self.silence_locks.map_or(1, |locks| 2 * locks);
            self.silence_locks = Some(doubled.min(limits::SERVICE_BUS_SILENCE_LOCKS_MAX));
        }
    }

    /// Notes that the client has settled a message while it was locked.
    pub(crate) fn note_settled(&mut self, now_ms: u64, message: SequenceNumber) {
        self.settlements.note(now_ms);
        self.lost.remove(&message);
        if let Some(size) = &mut self.size {
            size.grow();
        }
    }

    /// Notes that the client has renewed a lock: that message is in a handler, and so is, or was, what was sent before it.
    pub(crate) fn note_renewed(&mut self, now_ms: u64, place: DeliveryPlace, until_ms: u64) {
        self.expire(now_ms);
        let known = self.in_use.get_mut(&place).or_else(|| self.overtaken.get_mut(&place));
        let Some(delivery) = known else { return };
        match delivery.until_ms.replace(until_ms) {
            Some(before_ms) => drop(self.deadlines.remove(&(before_ms, place))),
            // It was renewed in time, and the answer came after the end that the lock had before.
            None => self.expired -= 1,
        }
        self.deadlines.insert((until_ms, place));
        self.overtake(place);
        self.touch(now_ms);
    }

    /// When there may be more room although the client says nothing.
    pub(crate) fn wakes_at(&self) -> Option<u64> {
        match self.expired {
            0 => self.deadlines.first().map(|(until_ms, _)| *until_ms),
            _ => Some(self.silent_at()),
        }
    }

    /// Notes which locks have run out by now.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        while let Some((until_ms, place)) = self.deadlines.first().copied()
            && until_ms <= now_ms
        {
            self.deadlines.pop_first();
            let lost = match self.in_use.get_mut(&place) {
                Some(delivery) => {
                    delivery.until_ms = None;
                    self.expired += 1;
                    let message = delivery.message;
                    self.shrink();
                    message
                }
                None => match self.overtaken.remove(&place) {
                    Some(delivery) => delivery.message,
                    None => continue,
                },
            };
            keep_latest(&mut self.lost, lost);
        }
    }

    fn shrink(&mut self) {
        if !self.is_ahead {
            return;
        }
        self.losses += 1;
        let half = self.settlements.count() / 2;
        self.size = Some(match self.size {
            None => Size::first(half.max(1)),
            Some(size) => size.shrunk(half.max(1)),
        });
    }

    fn touch(&mut self, now_ms: u64) {
        self.quiet_ms_max = self.quiet_ms_max.max(now_ms.saturating_sub(self.active_at_ms));
        self.active_at_ms = now_ms;
    }

    fn silent_at(&self) -> u64 {
        let lasts_ms = match (self.silence_locks, self.quiet_ms_max) {
            (None, 0) => self.lock_ms,
            // No two handlers are equally quick.
            (None, quiet_ms) => (quiet_ms + quiet_ms / 2).min(self.lock_ms),
            (Some(locks), _) => self.lock_ms.saturating_mul(locks),
        };
        self.active_at_ms.saturating_add(lasts_ms)
    }

    /// What has lost its lock does not count any more when the client has been silent for long: some look at their own clock
    /// and say nothing.
    fn write_off(&mut self, now_ms: u64) {
        if self.expired == 0 || now_ms < self.silent_at() {
            return;
        }
        self.expired = 0;
        let written_off = &mut self.written_off;
        self.in_use.retain(|place, delivery| {
            if delivery.until_ms.is_none() {
                keep_latest(written_off, *place);
            }
            delivery.until_ms.is_some()
        });
    }

    fn remove(&mut self, place: DeliveryPlace) {
        let Some(delivery) = self.in_use.remove(&place).or_else(|| self.overtaken.remove(&place)) else {
            return;
        };
        match delivery.until_ms {
            Some(until_ms) => drop(self.deadlines.remove(&(until_ms, place))),
            None => self.expired -= 1,
        }
    }

    /// What was sent before a place is in a handler, or forgotten, and not in the buffer.
    fn overtake(&mut self, place: DeliveryPlace) {
        let later = self.in_use.split_off(&place);
        for (place, delivery) in std::mem::replace(&mut self.in_use, later) {
            match delivery.until_ms {
                Some(_) => drop(self.overtaken.insert(place, delivery)),
                None => self.expired -= 1,
            }
        }
    }
}

impl Size {
    fn first(messages: usize) -> Size {
        Size { messages, fast_below: usize::MAX, since_grown: 0 }
    }

    fn shrunk(self, to: usize) -> Size {
        match to < self.messages {
            true => Size { messages: to, fast_below: to.max(self.messages / 2), since_grown: 0 },
            false => self,
        }
    }

    fn grow(&mut self) {
        self.since_grown += 1;
        if self.messages < self.fast_below || self.since_grown >= self.messages {
            self.messages = (self.messages + 1).min(limits::LOCKS_MAX);
            self.since_grown = 0;
        }
    }
}

/// How many messages were settled in time during the lock duration before the last that was.
#[derive(Debug)]
struct TimelySettlements {
    slot_ms: u64,
    /// Parts of the time in which some were settled, and how many.
    by_slot: VecDeque<(u64, usize)>,
}

impl TimelySettlements {
    fn new(lock_ms: u64) -> TimelySettlements {
        TimelySettlements {
            slot_ms: lock_ms.div_ceil(limits::SERVICE_BUS_RATE_SLOTS),
            by_slot: VecDeque::new(),
        }
    }

    fn note(&mut self, now_ms: u64) {
        let slot = now_ms / self.slot_ms;
        match self.by_slot.back_mut() {
            Some((last, count)) if *last >= slot => *count += 1,
            _ => self.by_slot.push_back((slot, 1)),
        }
        while self.by_slot.front().is_some_and(|(first, _)| first + limits::SERVICE_BUS_RATE_SLOTS <= slot) {
            self.by_slot.pop_front();
        }
    }

    fn count(&self) -> usize {
        self.by_slot.iter().map(|(_, count)| count).sum()
    }
}

/// Keeps one more, and as many as are kept at most.
fn keep_latest<T: Ord>(set: &mut BTreeSet<T>, one: T) {
    set.insert(one);
    if set.len() > limits::SERVICE_BUS_LOST_KEPT {
        set.pop_first();
    }
}
