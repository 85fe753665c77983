//! Messages that stand still because those who receive them announce less than they have: remembered for a while, because
//! the engine knows nothing of it and operators ask.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::mutex::Mutex;

/// A message that was too large for the last receiver that came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OversizeEntry {
    /// Its bytes on the wire.
    pub(crate) bytes: u64,
    /// What the receiver takes at most.
    pub(crate) bytes_max: u64,
    /// When it was first too large for somebody.
    pub(crate) since: Timestamp,
    /// When it was last.
    last_at: Timestamp,
}

/// The messages that are too large for their receivers; the one that was so longest ago is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct TooLargeMessages {
    known: Mutex<BTreeMap<(QueueName, SequenceNumber), OversizeEntry>>,
}

impl TooLargeMessages {
    /// Notes that a message was too large for a receiver; whether that is news.
    fn note(
        &self,
        queue: &QueueName,
        number: SequenceNumber,
        (bytes, bytes_max): (u64, u64),
        now: Timestamp,
    ) -> bool {
        let mut known = self.known.lock();
        known.retain(|_, message| is_fresh(message, now));
        let place = (queue.clone(), number);
        if !known.contains_key(&place)
            && known.len() >= limits::SERVICE_BUS_TOO_LARGE_KNOWN
            && let Some(oldest) = known.iter().min_by_key(|(_, message)| message.last_at)
        {
            let oldest = oldest.0.clone();
            known.remove(&oldest);
        }
        let before = known.get(&place).map(|message| message.since);
        let since = before.unwrap_or(now);
        known.insert(place, OversizeEntry { bytes, bytes_max, since, last_at: now });
        before.is_none()
    }

    /// Notes a message that stands still because of its size, and says it once in the log: clients come back again and again. A dead
    /// letter keeps nobody waiting, so it is not looked for among what is blocked.
    pub(crate) fn tell(
        &self,
        queue: &QueueName,
        number: SequenceNumber,
        (bytes, bytes_max): (u64, u64),
        (is_dead, now): (bool, Timestamp),
    ) {
        match is_dead || self.note(queue, number, (bytes, bytes_max), now) {
            true => tracing::warn!(
                %queue, %number, bytes, bytes_max,
                "a message is larger than its receiver takes: nothing behind it is sent before it"
            ),
            false => tracing::debug!(%queue, %number, bytes, bytes_max, "a message is too large again"),
        }
    }

    /// Forgets a message: somebody has received it.
    pub(crate) fn forget(&self, queue: &QueueName, number: SequenceNumber) {
        let mut known = self.known.lock();
        if !known.is_empty() {
            known.remove(&(queue.clone(), number));
        }
    }

    /// Those of a queue, in order of number.
    pub(crate) fn of(&self, queue: &QueueName, now: Timestamp) -> Vec<(SequenceNumber, OversizeEntry)> {
        let known = self.known.lock();
        let from = (queue.clone(), SequenceNumber::new(0));
        let of_queue = known.range(from..).take_while(|((of, _), _)| of == queue);
        let fresh = of_queue.filter(|(_, message)| is_fresh(message, now));
        fresh.map(|((_, number), message)| (*number, *message)).collect()
    }
}

fn is_fresh(message: &OversizeEntry, now: Timestamp) -> bool {
    now.since(message.last_at) < limits::SERVICE_BUS_TOO_LARGE_REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_message_is_news_once_and_is_forgotten_when_it_goes_or_after_a_while() {
        let (messages, queue) = (TooLargeMessages::default(), QueueName::new("q").unwrap());
        let number = SequenceNumber::new(7);
        assert!(messages.note(&queue, number, (2_000, 1_000), at(10)));
        assert!(!messages.note(&queue, number, (2_000, 1_500), at(20)), "the second time is no news");
        let known = messages.of(&queue, at(20));
        assert_eq!(known.len(), 1);
        assert_eq!((known[0].0, known[0].1.since, known[0].1.bytes_max), (number, at(10), 1_500));
        assert!(messages.of(&QueueName::new("r").unwrap(), at(20)).is_empty());
        let late = at(20) + limits::SERVICE_BUS_TOO_LARGE_REMEMBERED;
        assert!(messages.of(&queue, late).is_empty(), "nobody came to it for a while");
        assert!(messages.note(&queue, number, (2_000, 1_000), late));
        messages.forget(&queue, number);
        assert!(messages.of(&queue, late).is_empty());
    }

    #[test]
    fn a_limited_number_is_known_and_the_oldest_is_forgotten_first() {
        let (messages, queue) = (TooLargeMessages::default(), QueueName::new("q").unwrap());
        let many = limits::SERVICE_BUS_TOO_LARGE_KNOWN as u64 + 1;
        for number in 0..many {
            messages.note(&queue, SequenceNumber::new(number), (2, 1), at(number));
        }
        let known = messages.of(&queue, at(many));
        assert_eq!((known.len(), known[0].0), (limits::SERVICE_BUS_TOO_LARGE_KNOWN, SequenceNumber::new(1)));
    }
}
