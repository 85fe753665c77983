//! Queues: options and counters.

use std::time::Duration;

use serde::Deserialize;

use crate::clock::Timestamp;
use crate::engine::rules::history::HistorySpan;
use crate::engine::rules::record;
use crate::engine::rules::record::QueueId;
use crate::id::Position;
use crate::id::QueueName;
use crate::limits;
use crate::queue;

#[derive(Debug, Deserialize)]
pub(crate) struct QueueRecord {
    id: QueueId,
    name: QueueName,
    options: QueueOptions,
    created_at: Timestamp,
    idle_check: Option<Timestamp>,
}

impl From<QueueRecord> for record::QueueRecord {
    fn from(old: QueueRecord) -> record::QueueRecord {
        record::QueueRecord {
            id: old.id,
            name: old.name,
            options: old.options.into(),
            created_at: old.created_at,
            idle_check: old.idle_check,
            // It stood in the daemon's own file, from which the daemon brings it when it starts.
            paused: false,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct QueueOptions {
    order: Order,
    lock: Duration,
    delivery_count_max: u32,
    spent: Option<Exhausted>,
    backoff: Backoff,
    gap: GapPolicy,
    late: Late,
    duplicate_window: Option<Duration>,
    time_to_live: Option<Duration>,
    expired: Expired,
    hold_on_defer: bool,
    forget_after: Duration,
    delete_when_idle: Option<Duration>,
    delete_with_messages: bool,
    body_bytes_max: usize,
    messages_max: u64,
    early_max: u64,
    early_bytes_max: u64,
}

impl From<QueueOptions> for queue::QueueOptions {
    fn from(old: QueueOptions) -> queue::QueueOptions {
        queue::QueueOptions {
            order: old.order.into(),
            lock: old.lock,
            delivery_count_max: old.delivery_count_max,
            exhausted: old.spent.map(queue::ExhaustedPolicy::from),
            backoff: old.backoff.into(),
            gap: old.gap.into(),
            late: old.late.into(),
            duplicate_window: old.duplicate_window,
            time_to_live: old.time_to_live,
            expired: old.expired.into(),
            hold_on_defer: old.hold_on_defer,
            forget_after: old.forget_after,
            delete_when_idle: old.delete_when_idle,
            delete_with_messages: old.delete_with_messages,
            body_bytes_max: old.body_bytes_max,
            messages_max: old.messages_max,
            early_max: old.early_max,
            early_bytes_max: old.early_bytes_max,
            keep_deferred: false,
            rate: None,
            dead_letters_max: limits::DEAD_LETTERS_MAX,
            history: None,
            history_max: limits::HISTORY_MAX,
            remember_cursor: limits::REMEMBER_CURSOR_DEFAULT,
            cursors_max: limits::CURSORS_MAX,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum Order {
    None,
    Arrival,
    Position { first: Position },
    After,
}

impl From<Order> for queue::Order {
    fn from(old: Order) -> queue::Order {
        match old {
            Order::None => queue::Order::None,
            Order::Arrival => queue::Order::Arrival,
            Order::Position { first } => queue::Order::Position { first },
            Order::After => queue::Order::After,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum Exhausted {
    Hold,
    Skip,
    Quarantine,
}

impl From<Exhausted> for queue::ExhaustedPolicy {
    fn from(old: Exhausted) -> queue::ExhaustedPolicy {
        match old {
            Exhausted::Hold => queue::ExhaustedPolicy::Hold,
            Exhausted::Skip => queue::ExhaustedPolicy::Skip,
            Exhausted::Quarantine => queue::ExhaustedPolicy::Quarantine,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Backoff {
    first: Duration,
    factor: u32,
    max: Duration,
}

impl From<Backoff> for queue::Backoff {
    fn from(old: Backoff) -> queue::Backoff {
        queue::Backoff { first: old.first, factor: old.factor, max: old.max }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct GapPolicy {
    wait: Duration,
    then: GapThen,
}

impl From<GapPolicy> for queue::GapPolicy {
    fn from(old: GapPolicy) -> queue::GapPolicy {
        queue::GapPolicy { wait: old.wait, then: old.then.into() }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum GapThen {
    Hold,
    Skip,
    Wait,
}

impl From<GapThen> for queue::GapAction {
    fn from(old: GapThen) -> queue::GapAction {
        match old {
            GapThen::Hold => queue::GapAction::Hold,
            GapThen::Skip => queue::GapAction::Skip,
            GapThen::Wait => queue::GapAction::Wait,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum Late {
    Ignore,
    Refuse,
    DeadLetter,
}

impl From<Late> for queue::LatePolicy {
    fn from(old: Late) -> queue::LatePolicy {
        match old {
            Late::Ignore => queue::LatePolicy::Ignore,
            Late::Refuse => queue::LatePolicy::Refuse,
            Late::DeadLetter => queue::LatePolicy::DeadLetter,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) enum Expired {
    DeadLetter,
    Drop,
}

impl From<Expired> for queue::ExpiryPolicy {
    fn from(old: Expired) -> queue::ExpiryPolicy {
        match old {
            Expired::DeadLetter => queue::ExpiryPolicy::DeadLetter,
            Expired::Drop => queue::ExpiryPolicy::Drop,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Tally {
    counts: Counts,
    used_at: Timestamp,
}

impl From<Tally> for record::QueueCounters {
    fn from(old: Tally) -> record::QueueCounters {
        record::QueueCounters {
            counts: old.counts.into(),
            used_at: old.used_at,
            history: HistorySpan::default(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Counts {
    ready: u64,
    locked: u64,
    early: u64,
    failed: u64,
    spent: u64,
    asked: u64,
    scheduled: u64,
    dead_lettered: u64,
    completed: u64,
    expired: u64,
    cancelled: u64,
    purged: u64,
    accepted: u64,
}

impl From<Counts> for record::Counts {
    fn from(old: Counts) -> record::Counts {
        record::Counts {
            ready: old.ready,
            locked: old.locked,
            early: old.early,
            retry: old.failed,
            exhausted: old.spent,
            by_consumer: old.asked,
            scheduled: old.scheduled,
            dead_lettered: old.dead_lettered,
            completed: old.completed,
            expired: old.expired,
            cancelled: old.cancelled,
            purged: old.purged,
            accepted: old.accepted,
        }
    }
}
