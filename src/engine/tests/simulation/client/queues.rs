//! Queues of every kind, with times so short that they meet each other.

use std::time::Duration;

use crate::engine::tests::crash::random::Random;
use crate::id::Position;
use crate::id::QueueName;
use crate::queue::Backoff;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::GapAction;
use crate::queue::GapPolicy;
use crate::queue::LatePolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;

/// Most queues of one simulation.
const QUEUES_MAX: u64 = 3;

/// The queues of one simulation, each with its order.
pub(crate) fn queues(random: &mut Random) -> Vec<(QueueName, Order)> {
    let first = Position::new(random.pick(&[1, 1, 1, 7])).expect("a good position");
    let position = Order::Position { first };
    let orders = [position, position, Order::Arrival, Order::After, Order::After, Order::None];
    let count = 1 + random.below(QUEUES_MAX);
    let queue = |number| QueueName::new(format!("q{number}")).expect("a good name");
    (0..count).map(|number| (queue(number), random.pick(&orders))).collect()
}

fn seconds(random: &mut Random, choices: &[u64]) -> Duration {
    Duration::from_secs(random.pick(choices))
}

/// Options of a queue of this order.
pub(crate) fn options(order: Order, random: &mut Random) -> QueueOptions {
    QueueOptions {
        order,
        lock: seconds(random, &[1, 2, 5, 10]),
        delivery_count_max: random.pick(&[1, 2, 2, 3, 10]),
        exhausted: random.chance(80).then(|| {
            random.pick(&[ExhaustedPolicy::Hold, ExhaustedPolicy::Skip, ExhaustedPolicy::Quarantine])
        }),
        backoff: Backoff { first: seconds(random, &[1, 2]), factor: 2, max: seconds(random, &[3, 5]) },
        gap: GapPolicy {
            wait: seconds(random, &[1, 5, 10]),
            then: random.pick(&[GapAction::Hold, GapAction::Skip, GapAction::Wait]),
        },
        late: random.pick(&[
            LatePolicy::Ignore,
            LatePolicy::Ignore,
            LatePolicy::Refuse,
            LatePolicy::DeadLetter,
        ]),
        duplicate_window: window(order, random),
        time_to_live: random.chance(15).then(|| seconds(random, &[2, 20, 60])),
        expired: random.pick(&[ExpiryPolicy::DeadLetter, ExpiryPolicy::Drop]),
        hold_on_defer: random.chance(30),
        keep_deferred: random.chance(30),
        forget_after: seconds(random, &[1, 10, 3_600]),
        delete_when_idle: random.chance(5).then(|| seconds(random, &[5, 60])),
        delete_with_messages: random.chance(30),
        messages_max: random.pick(&[6, 1_000, 1_000, 1_000]),
        early_max: random.pick(&[2, 1_000, 1_000, 1_000]),
        dead_letters_max: random.pick(&[1, 3, 1_000, 1_000, 1_000]),
        history: random.chance(50).then(|| seconds(random, &[1, 5, 60, 3_600])),
        history_max: random.pick(&[1, 4, 1_000, 1_000]),
        remember_cursor: seconds(random, &[1, 10, 60, 3_600]),
        cursors_max: random.pick(&[0, 1, 2, 1_000, 1_000, 1_000]),
        ..QueueOptions::default()
    }
}

/// In a chain the same IDs name predecessors in every workflow, and a window would take them for duplicates.
fn window(order: Order, random: &mut Random) -> Option<Duration> {
    (order != Order::After && random.chance(50)).then(|| seconds(random, &[1, 5, 30]))
}
