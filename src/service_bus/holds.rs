//! Deliveries that clients hold, by the token that they know. A lock of Service Bus outlives its link: whoever knows the
//! token settles the message, on another connection too.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use crate::clock::Timestamp;
use crate::engine::DeliveryId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::limits;
use crate::mutex::Mutex;
use crate::service_bus::held_session::HeldSession;
use crate::service_bus::link_window::WindowPlace;

/// A lock token as a client knows it: a UUID, in the byte order of RFC 4122.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LockUuid(pub(crate) [u8; 16]);

impl LockUuid {
    /// The token of a delivery: of a message under a lock, which it may share with others, and which may be the same when the message
    /// comes again, as in a session. Each of them changes every byte, and every byte is ASCII: there are clients that compare tags as
    /// text, in which bytes that are no text look alike.
    pub(crate) fn of(delivery: DeliveryId) -> LockUuid {
        let mut all = [0; 28];
        all[..16].copy_from_slice(delivery.lock_token().as_bytes());
        all[16..24].copy_from_slice(&delivery.sequence_number().get().to_be_bytes());
        all[24..].copy_from_slice(&delivery.delivery_count().to_be_bytes());
        LockUuid(xxh3_128(&all).to_be_bytes().map(|byte| byte & 0x7f))
    }

    /// As a delivery tag, which is a GUID as .NET writes it: its first three numbers are little-endian.
    pub(crate) fn tag(self) -> [u8; 16] {
        let mut bytes = self.0;
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        bytes
    }
}

/// A message that a client holds.
#[derive(Clone, Debug)]
pub(crate) struct ClientHold {
    pub(crate) queue: QueueName,
    pub(crate) token: LockUuid,
    pub(crate) id: DeliveryId,
    pub(crate) is_dead_letter: bool,
    /// The session whose lock is its own, if there is one.
    pub(crate) session: Option<Weak<HeldSession>>,
    /// When its lock ends, as far as is known, in the clock's elapsed time: the wall clock may be set.
    pub(crate) ends_at: Duration,
    /// For how long it was locked last: the queue's options may have been changed.
    pub(crate) lasts: Duration,
    /// When its time to live is over; never, for a dead letter.
    pub(crate) expiry: Option<Expiry>,
    /// Its place in the window of the link over which it was sent, if that has one.
    pub(crate) in_window: Option<WindowPlace>,
    /// What settlements have set of it in the types of AMQP, if that is to be noted.
    pub(crate) set_before: Option<Bytes>,
}

/// When the time to live of a message is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    pub(crate) ends_at: Timestamp,
    /// By what its client was told; not later.
    pub(crate) reported_at: Timestamp,
}

impl ClientHold {
    /// The client wants to settle it, in time or not.
    pub(crate) fn note_activity(&self) {
        if let Some(place) = &self.in_window {
            place.note_activity();
        }
    }

    /// Whether its lock is that of its session.
    pub(crate) fn is_of_session(&self) -> bool {
        self.session.is_some()
    }

    /// Whether it may still be held at an instant. What is of a session is held as long as that is, however often it is renewed.
    fn may_be_held(&self, now: Duration) -> bool {
        self.ends_at > now || self.session.as_ref().is_some_and(|session| session.strong_count() > 0)
    }

    /// The message's number.
    pub(crate) fn number(&self) -> SequenceNumber {
        self.id.sequence_number()
    }
}

/// How a message was settled, to tell a client that asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientSettlementKind {
    Completed,
    Abandoned,
    Deferred,
    DeadLettered,
}

/// All holds of an endpoint.
#[derive(Default)]
pub(crate) struct ClientHolds {
    inside: Mutex<HoldsState>,
}

#[derive(Default)]
struct HoldsState {
    by_token: HashMap<LockUuid, ClientHold>,
    sweep_at: usize,
    /// What was settled last: a client that has not heard the answer asks again.
    settled: HashMap<LockUuid, ClientSettlementKind>,
    settled_in_order: VecDeque<LockUuid>,
}

impl ClientHolds {
    /// Notes holds that were handed out at `now`, in the clock's elapsed time.
    pub(crate) fn add(&self, holds: impl IntoIterator<Item = ClientHold>, now: Duration) {
        let mut inside = self.inside.lock();
        for hold in holds {
            inside.settled.remove(&hold.token);
            inside.by_token.insert(hold.token, hold);
        }
        if inside.by_token.len() > inside.sweep_at {
            inside.by_token.retain(|_, hold| hold.may_be_held(now));
            inside.sweep_at = limits::SERVICE_BUS_HOLDS_SWEPT_FROM.max(2 * inside.by_token.len());
        }
    }

    /// The hold of a token in a queue.
    pub(crate) fn get(&self, queue: &QueueName, token: LockUuid) -> Option<ClientHold> {
        self.inside.lock().by_token.get(&token).filter(|hold| hold.queue == *queue).cloned()
    }

    /// Notes until when, in the clock's elapsed time, a lock was prolonged.
    pub(crate) fn prolong(&self, token: LockUuid, ends_at: Duration) {
        if let Some(hold) = self.inside.lock().by_token.get_mut(&token) {
            hold.ends_at = ends_at;
        }
    }

    /// Notes that a message was settled.
    pub(crate) fn note_settled(&self, token: LockUuid, kind: ClientSettlementKind) {
        let mut inside = self.inside.lock();
        inside.by_token.remove(&token);
        if inside.settled.insert(token, kind).is_none() {
            inside.settled_in_order.push_back(token);
        }
        if inside.settled_in_order.len() > limits::SERVICE_BUS_SETTLED_KEPT
            && let Some(oldest) = inside.settled_in_order.pop_front()
        {
            inside.settled.remove(&oldest);
        }
    }

    /// Forgets a hold that has gone another way.
    pub(crate) fn forget(&self, token: LockUuid) {
        self.inside.lock().by_token.remove(&token);
    }

    /// How a message was settled, if that was lately.
    pub(crate) fn settled(&self, token: LockUuid) -> Option<ClientSettlementKind> {
        self.inside.lock().settled.get(&token).copied()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::token::LockToken;

    fn delivery(lock: LockToken, number: u64, delivery_count: u32) -> DeliveryId {
        DeliveryId { token: lock, sequence_number: SequenceNumber::new(number), delivery_count }
    }

    /// A hold of a message of the queue `q`.
    pub(crate) fn hold(byte: u8, ends_at_ms: u64) -> ClientHold {
        ClientHold {
            queue: QueueName::new("q").unwrap(),
            token: LockUuid([byte; 16]),
            id: delivery(LockToken::new(1, [7; 12]), 1, 1),
            is_dead_letter: false,
            session: None,
            ends_at: Duration::from_millis(ends_at_ms),
            lasts: Duration::ZERO,
            expiry: None,
            in_window: None,
            set_before: None,
        }
    }

    #[test]
    fn a_tag_is_the_token_as_dotnet_writes_a_guid() {
        let token = LockUuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(token.tag(), [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(LockUuid(token.tag()).tag(), token.0);
    }

    #[test]
    fn tokens_differ_also_as_text_and_by_halves() {
        let locks = [LockToken::new(1, [7; 12]), LockToken::new(1, [0xff; 12])];
        let tokens: Vec<LockUuid> = locks
            .into_iter()
            .flat_map(|lock| (0..5_000).map(move |number| (lock, number)))
            // Of one receive, each message locked for itself, and one that comes again: neighbours in all of it.
            .flat_map(|(lock, number)| {
                [delivery(lock, number, 1), delivery(lock.nth(1), number, 1), delivery(lock, number, 2)]
            })
            .map(LockUuid::of)
            .collect();
        assert_eq!(LockUuid::of(delivery(locks[0], 0, 1)), tokens[0], "it is always the same");
        let texts = tokens.iter().map(|token| String::from_utf8(token.tag().to_vec()));
        let texts: std::collections::BTreeSet<String> = texts.collect::<Result<_, _>>().expect("it is text");
        assert_eq!(texts.len(), tokens.len());
        for half in 0..2 {
            let halves: std::collections::BTreeSet<&[u8]> =
                tokens.iter().map(|token| &token.0[8 * half..8 * half + 8]).collect();
            assert_eq!(halves.len(), tokens.len(), "each half tells them apart");
        }
    }

    #[test]
    fn a_hold_is_known_until_it_is_settled_and_its_end_is_remembered() {
        let (holds, now, queue) = (ClientHolds::default(), Duration::ZERO, QueueName::new("q").unwrap());
        holds.add([hold(1, 10)], now);
        assert!(holds.get(&queue, LockUuid([1; 16])).is_some());
        assert!(holds.get(&QueueName::new("r").unwrap(), LockUuid([1; 16])).is_none());
        holds.note_settled(LockUuid([1; 16]), ClientSettlementKind::Completed);
        assert!(holds.get(&queue, LockUuid([1; 16])).is_none());
        assert_eq!(holds.settled(LockUuid([1; 16])), Some(ClientSettlementKind::Completed));
    }

    #[test]
    fn holds_that_ran_out_and_old_settlements_are_forgotten() {
        let holds = ClientHolds::default();
        let many = limits::SERVICE_BUS_HOLDS_SWEPT_FROM as u64;
        for number in 0..3 * many {
            let lock = LockToken::new(1, [7; 12]);
            let token = LockUuid::of(delivery(lock, number, 1));
            holds.add([ClientHold { token, ..hold(0, number) }], Duration::from_millis(number));
            holds
                .note_settled(LockUuid::of(delivery(lock, number << 32, 1)), ClientSettlementKind::Completed);
        }
        assert!(holds.inside.lock().by_token.len() <= limits::SERVICE_BUS_HOLDS_SWEPT_FROM + 1);
        assert!(holds.inside.lock().settled.len() <= limits::SERVICE_BUS_SETTLED_KEPT);
    }
}
