//! What a story's senders bring: queues of every order and messages for them, by chance.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::engine::tests::crash::random::Random;
use crate::engine::tests::crash::story::IDS;
use crate::engine::tests::crash::story::message_id;
use crate::header::Headers;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::message::KeptBack;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::Backoff;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::GapAction;
use crate::queue::GapPolicy;
use crate::queue::LatePolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;

/// The highest position a message is sent for.
const POSITIONS: u64 = 10;
/// Lengths of bodies and states: none, short, and one that takes more than a page.
const LENGTHS: [usize; 8] = [0, 3, 20, 20, 60, 60, 300, 5_000];

/// The workflows of every queue.
pub(crate) const WORKFLOWS: [&str; 3] = ["a", "b", "c"];

pub(crate) const LOCK: Duration = Duration::from_secs(10);
pub(crate) const GAP: Duration = Duration::from_secs(20);
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// The queues of a story, each with its order.
pub(crate) const QUEUES: [(&str, Order); 4] = [
    ("position", Order::POSITION),
    ("after", Order::After),
    ("arrival", Order::Arrival),
    ("none", Order::None),
];

pub(crate) fn actor() -> Arc<Actor> {
    Arc::new(Actor::new("ada").expect("a good name"))
}

pub(crate) fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).expect("a good name")
}

pub(crate) fn workflow_id(random: &mut Random) -> WorkflowId {
    WorkflowId::new(random.pick(&WORKFLOWS)).expect("a good ID")
}

pub(crate) fn queue_options(order: Order, random: &mut Random) -> QueueOptions {
    let gap_then = random.pick(&[GapAction::Hold, GapAction::Skip, GapAction::Wait]);
    QueueOptions {
        order,
        lock: LOCK,
        delivery_count_max: random.pick(&[1, 2, 3]).try_into().expect("a small number"),
        exhausted: Some(random.pick(&[
            ExhaustedPolicy::Hold,
            ExhaustedPolicy::Skip,
            ExhaustedPolicy::Quarantine,
        ])),
        backoff: Backoff { first: Duration::from_secs(1), factor: 2, max: Duration::from_secs(8) },
        gap: GapPolicy { wait: GAP, then: gap_then },
        late: random.pick(&[LatePolicy::Ignore, LatePolicy::Refuse, LatePolicy::DeadLetter]),
        // In a chain the same IDs name predecessors in every workflow; a window would take them for duplicates.
        duplicate_window: (order != Order::After && random.chance(50)).then_some(WINDOW),
        time_to_live: random.chance(30).then_some(Duration::from_secs(120)),
        expired: random.pick(&[ExpiryPolicy::DeadLetter, ExpiryPolicy::Drop]),
        hold_on_defer: random.chance(30),
        keep_deferred: random.chance(30),
        forget_after: Duration::from_secs(90),
        delete_when_idle: random.chance(10).then_some(Duration::from_secs(200)),
        early_max: 8,
        history: random.chance(50).then(|| random.pick(&[Duration::from_secs(1), LOCK, GAP])),
        history_max: random.pick(&[1, 3, 1_000]),
        remember_cursor: random.pick(&[Duration::from_secs(1), GAP, Duration::from_secs(3_600)]),
        cursors_max: random.pick(&[0, 1, 1_000]),
        ..QueueOptions::default()
    }
}

pub(crate) fn bytes(random: &mut Random) -> Bytes {
    let len = random.pick(&LENGTHS);
    let dead_letter = random.pick(b"abcdefgh");
    Bytes::from(vec![dead_letter; len])
}

pub(crate) fn properties(random: &mut Random) -> Properties {
    let value = PropertyValue::Integer(random.below(100).try_into().expect("a small number"));
    match random.chance(30) {
        true => Properties::from([("n".to_owned(), value)]),
        false => Properties::new(),
    }
}

/// A number below `end`, rather a low one, so that gaps close.
fn low(random: &mut Random, end: u64) -> u64 {
    random.below(end).min(random.below(end))
}

fn kept_back(now: Timestamp, random: &mut Random) -> Option<KeptBack> {
    let span = random.chance(15).then(|| random.pick(&[Duration::from_secs(1), LOCK, GAP]))?;
    Some(if random.chance(66) { KeptBack::Until(now + span) } else { KeptBack::For(span) })
}

/// A message that fits the order, most of the time.
pub(crate) fn message(order: Order, now: Timestamp, random: &mut Random) -> NewMessage {
    let order = if random.chance(2) { Order::POSITION } else { order };
    let mut message_number = random.chance(40).then(|| random.below(IDS));
    let mut workflow = (order == Order::After || random.chance(90)).then(|| workflow_id(random));
    let place = match order {
        Order::Position { .. } if workflow.is_some() => {
            Place::Position(Position::new(1 + low(random, POSITIONS)).expect("a good position"))
        }
        Order::After => {
            let number = low(random, IDS);
            message_number = Some(number);
            Place::After(number.checked_sub(1).map(message_id))
        }
        _ => Place::Arrival,
    };
    if order == Order::None && random.chance(50) {
        workflow = None;
    }
    NewMessage {
        workflow_id: workflow,
        place,
        message_id: message_number.map(message_id),
        time_to_live: random.chance(20).then(|| random.pick(&[Duration::from_secs(5), GAP, LOCK])),
        kept_back: kept_back(now, random),
        headers: Headers { properties: properties(random), ..Headers::default() }.into(),
        body: bytes(random),
    }
}
