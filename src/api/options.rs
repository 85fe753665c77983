//! The options of a queue as JSON, in the words of a definition.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::rate::WireRate;
use crate::api::time::WireDuration;
use crate::error::Misuse;
use crate::id::Position;
use crate::limits;
use crate::queue::Backoff;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::GapAction;
use crate::queue::GapPolicy;
use crate::queue::LatePolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::rate::Rate;

/// The options of a queue, in the words of a definition. What is not given has its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OptionsEnvelope {
    /// In which order the messages of one workflow are handled.
    #[schemars(extend("default" = "arrival"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderWord>,
    /// With order by position: the position every workflow begins with, 1 if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionFields>,
    /// How messages are handed out.
    pub delivery: DeliveryFields,
    /// What happens to a message that fails.
    pub retry: RetryFields,
    /// What happens when a message is missing, in a queue ordered by position or by predecessor.
    pub gap: GapFields,
    /// How long messages live.
    pub expiry: ExpiryFields,
    /// How a message that comes again is recognised.
    pub duplicates: DuplicatesFields,
    /// How much the queue takes.
    pub limits: LimitsFields,
    /// What happens to what nobody uses.
    pub idle: IdleFields,
    /// How long is remembered how messages have ended; without it, nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<WireDuration>,
}

/// In which order the messages of one workflow are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderWord {
    /// None: every message is a workflow of its own.
    None,
    /// The order of acceptance.
    Arrival,
    /// By the sender's positions.
    Position,
    /// Each message names its predecessor.
    After,
}

/// Where positions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionFields {
    /// The position every workflow begins with.
    pub first: u64,
}

/// How messages are handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeliveryFields {
    /// How long a lock lasts from the moment of hand-out: 1s to 12h. Handlers of a definition renew it by themselves.
    #[schemars(extend("default" = "30s", "x-min" = WireDuration(limits::LOCK_MIN), "x-max" = WireDuration(limits::LOCK_MAX)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<WireDuration>,
    /// After how many hand-outs a message that keeps failing is exhausted.
    #[schemars(range(min = 1, max = u32::MAX), extend("default" = limits::DELIVERY_COUNT_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_max: Option<u32>,
    /// Whether a workflow waits for a message that was deferred, instead of going on without it.
    #[schemars(extend("default" = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_on_defer: Option<bool>,
    /// How many messages are handed out at most in a span of time, whoever receives them: as in 100/s, 30/min or 10/h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<WireRate>,
    /// With a rate: how many at once after a pause. The default is what comes in one second, at least 1.
    #[schemars(range(min = 1, max = limits::RATE_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

/// What happens to a message that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryFields {
    /// Delays that grow, with full jitter: each is drawn from zero to its upper end. They hold where the consumer names no
    /// delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffFields>,
    /// What happens when the message was handed out as often as it may be. The default is hold, and skip in a queue
    /// without order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<ExhaustedPolicy>,
}

/// Delays that grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackoffFields {
    /// Upper end of the first delay.
    #[schemars(extend("default" = "1s"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<WireDuration>,
    /// Growth from one delay to the next.
    #[schemars(range(min = 1, max = 1_000), extend("default" = 2))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<u32>,
    /// Upper end of every delay.
    #[schemars(extend("default" = "5m"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<WireDuration>,
}

/// What happens when a message is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GapFields {
    /// How long it is waited for, from the first message that waits behind it.
    #[schemars(extend("default" = "10m"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WireDuration>,
    /// What happens then.
    #[schemars(extend("default" = "hold"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<GapAction>,
}

/// How long messages live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExpiryFields {
    /// Time to live of messages that ask for none or for more. Without it, messages do not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<WireDuration>,
    /// What happens to an expired message.
    #[schemars(extend("default" = "dead_letter"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<ExpiryPolicy>,
    /// Whether a message that its consumer defers has no time to live from then on, as in Service Bus.
    #[schemars(extend("default" = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_deferred: Option<bool>,
}

/// How a message that comes again is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DuplicatesFields {
    /// How long message IDs are remembered. Without it, duplicates are not looked for by message ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WireDuration>,
    /// What happens to a message whose place is completed already, in a queue ordered by position or by predecessor.
    #[schemars(extend("default" = "ignore"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LatePolicy>,
}

/// How much the queue takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsFields {
    /// Largest body in bytes.
    #[schemars(range(min = 0, max = limits::BODY_BYTES_CEILING), extend("default" = limits::BODY_BYTES_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes_max: Option<usize>,
    /// Most messages the queue stores, dead letters not counted.
    #[schemars(extend("default" = limits::MESSAGES_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_max: Option<u64>,
    /// Most early messages one workflow may have waiting.
    #[schemars(extend("default" = limits::EARLY_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_max: Option<u64>,
    /// Most dead letters the queue keeps of exhausted messages; beyond it, they hold their workflows.
    #[schemars(extend("default" = limits::DEAD_LETTERS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letters_max: Option<u64>,
    /// Most bytes of early messages one workflow may have waiting.
    #[schemars(extend("default" = limits::EARLY_BYTES_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_bytes_max: Option<u64>,
    /// Most ended messages that a queue with `history` remembers, the newest.
    #[schemars(range(min = 1), extend("default" = limits::HISTORY_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_max: Option<u64>,
    /// Most cursors of forgotten workflows that the queue remembers, the newest; 0 remembers none.
    #[schemars(range(max = limits::CURSORS_MAX), extend("default" = limits::CURSORS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursors_max: Option<u64>,
}

/// What happens to what nobody uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdleFields {
    /// How long an idle workflow with nothing stored is remembered, so that late duplicates are recognised.
    #[schemars(extend("default" = "7d"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget_after: Option<WireDuration>,
    /// How long the cursor of a forgotten workflow is remembered from then on, in order of position, so that what comes late
    /// does not begin the workflow anew.
    #[schemars(extend("default" = "30d"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember_cursor: Option<WireDuration>,
    /// Deletes the queue after this long without a send, receive, settle, schedule or peek; opening the store counts, too. Without it, it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_after: Option<WireDuration>,
    /// Whether an idle queue is deleted although it stores messages.
    #[schemars(extend("default" = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_with_messages: Option<bool>,
}

impl OptionsEnvelope {
    /// The options.
    ///
    /// # Errors
    /// [`Misuse`] names what does not go together. Limits are checked when a queue is created or changed.
    pub fn read(self) -> Result<QueueOptions, Misuse> {
        let defaults = QueueOptions::default();
        let (delivery, retry, idle) = (self.delivery, self.retry, self.idle);
        Ok(QueueOptions {
            order: self.read_order()?,
            lock: delivery.lock.map_or(defaults.lock, |span| span.0),
            delivery_count_max: delivery.count_max.unwrap_or(defaults.delivery_count_max),
            exhausted: retry.then,
            backoff: retry.backoff.unwrap_or_default().read(),
            gap: GapPolicy {
                wait: self.gap.wait.map_or(defaults.gap.wait, |span| span.0),
                then: self.gap.then.unwrap_or(defaults.gap.then),
            },
            late: self.duplicates.late.unwrap_or(defaults.late),
            duplicate_window: self.duplicates.window.map(|span| span.0),
            time_to_live: self.expiry.time_to_live.map(|span| span.0),
            expired: self.expiry.then.unwrap_or(defaults.expired),
            hold_on_defer: delivery.hold_on_defer.unwrap_or(defaults.hold_on_defer),
            forget_after: idle.forget_after.map_or(defaults.forget_after, |span| span.0),
            delete_when_idle: idle.delete_after.map(|span| span.0),
            delete_with_messages: idle.delete_with_messages.unwrap_or(defaults.delete_with_messages),
            body_bytes_max: self.limits.body_bytes_max.unwrap_or(defaults.body_bytes_max),
            messages_max: self.limits.messages_max.unwrap_or(defaults.messages_max),
            early_max: self.limits.early_max.unwrap_or(defaults.early_max),
            dead_letters_max: self.limits.dead_letters_max.unwrap_or(defaults.dead_letters_max),
            early_bytes_max: self.limits.early_bytes_max.unwrap_or(defaults.early_bytes_max),
            keep_deferred: self.expiry.keep_deferred.unwrap_or(defaults.keep_deferred),
            rate: read_rate(delivery.rate, delivery.burst)?,
            history: self.history.map(|span| span.0),
            history_max: self.limits.history_max.unwrap_or(defaults.history_max),
            remember_cursor: idle.remember_cursor.map_or(defaults.remember_cursor, |span| span.0),
            cursors_max: self.limits.cursors_max.unwrap_or(defaults.cursors_max),
        })
    }

    fn read_order(&self) -> Result<Order, Misuse> {
        match (self.order.unwrap_or(OrderWord::Arrival), self.position) {
            (OrderWord::Position, position) => {
                let first = position.map_or(Ok(Position::FIRST), |fields| Position::new(fields.first))?;
                Ok(Order::Position { first })
            }
            (_, Some(_)) => Err(Misuse::new("position", "goes with order = \"position\" only")),
            (OrderWord::None, None) => Ok(Order::None),
            (OrderWord::Arrival, None) => Ok(Order::Arrival),
            (OrderWord::After, None) => Ok(Order::After),
        }
    }

    /// Shows options, defaults included.
    pub fn show(options: &QueueOptions) -> OptionsEnvelope {
        let (order, position) = match options.order {
            Order::None => (OrderWord::None, None),
            Order::Arrival => (OrderWord::Arrival, None),
            Order::Position { first } => (OrderWord::Position, Some(PositionFields { first: first.get() })),
            Order::After => (OrderWord::After, None),
        };
        let backoff = options.backoff;
        OptionsEnvelope {
            order: Some(order),
            position,
            delivery: DeliveryFields {
                lock: Some(WireDuration(options.lock)),
                count_max: Some(options.delivery_count_max),
                hold_on_defer: Some(options.hold_on_defer),
                rate: options.rate.map(WireRate),
                burst: options.rate.map(Rate::burst),
            },
            retry: RetryFields {
                backoff: Some(BackoffFields {
                    first: Some(WireDuration(backoff.first)),
                    factor: Some(backoff.factor),
                    max: Some(WireDuration(backoff.max)),
                }),
                then: Some(options.exhausted_policy()),
            },
            gap: GapFields { wait: Some(WireDuration(options.gap.wait)), then: Some(options.gap.then) },
            expiry: ExpiryFields {
                time_to_live: options.time_to_live.map(WireDuration),
                then: Some(options.expired),
                keep_deferred: Some(options.keep_deferred),
            },
            duplicates: DuplicatesFields {
                window: options.duplicate_window.map(WireDuration),
                late: Some(options.late),
            },
            limits: LimitsFields {
                body_bytes_max: Some(options.body_bytes_max),
                messages_max: Some(options.messages_max),
                early_max: Some(options.early_max),
                dead_letters_max: Some(options.dead_letters_max),
                early_bytes_max: Some(options.early_bytes_max),
                history_max: Some(options.history_max),
                cursors_max: Some(options.cursors_max),
            },
            idle: IdleFields {
                forget_after: Some(WireDuration(options.forget_after)),
                remember_cursor: Some(WireDuration(options.remember_cursor)),
                delete_after: options.delete_when_idle.map(WireDuration),
                delete_with_messages: Some(options.delete_with_messages),
            },
            history: options.history.map(WireDuration),
        }
    }
}

impl BackoffFields {
    /// The delays.
    pub(crate) fn read(self) -> Backoff {
        let defaults = Backoff::default();
        Backoff {
            first: self.first.map_or(defaults.first, |span| span.0),
            factor: self.factor.unwrap_or(defaults.factor),
            max: self.max.map_or(defaults.max, |span| span.0),
        }
    }
}

/// A rate with its burst.
///
/// # Errors
/// [`Misuse`] for a burst without a rate.
pub(crate) fn read_rate(rate: Option<WireRate>, burst: Option<u32>) -> Result<Option<Rate>, Misuse> {
    match (rate, burst) {
        (Some(WireRate(rate)), burst) => Ok(Some(Rate { burst, ..rate })),
        (None, Some(_)) => Err(Misuse::new("burst", "goes with a rate")),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Options of which none is the default. It names them all, so that a new one does not compile without a value here.
    fn all_unlike_the_defaults() -> QueueOptions {
        let seconds = |seconds| Duration::from_secs(seconds);
        QueueOptions {
            order: Order::Position { first: Position::new(7).unwrap() },
            lock: seconds(31),
            delivery_count_max: 11,
            exhausted: Some(ExhaustedPolicy::Quarantine),
            backoff: Backoff { first: seconds(2), factor: 3, max: seconds(9) },
            gap: GapPolicy { wait: seconds(5), then: GapAction::Skip },
            late: LatePolicy::DeadLetter,
            duplicate_window: Some(seconds(600)),
            time_to_live: Some(seconds(601)),
            expired: ExpiryPolicy::Drop,
            hold_on_defer: true,
            forget_after: seconds(602),
            delete_when_idle: Some(seconds(86_400)),
            delete_with_messages: true,
            body_bytes_max: 1,
            messages_max: 2,
            early_max: 3,
            early_bytes_max: 4,
            keep_deferred: true,
            rate: Some(Rate { burst: Some(5), ..Rate::per_second(6) }),
            dead_letters_max: 7,
            history: Some(seconds(7 * 86_400)),
            history_max: 9,
            remember_cursor: seconds(60),
            cursors_max: 8,
        }
    }

    #[test]
    fn every_option_survives_the_way_out_and_back() {
        let options = all_unlike_the_defaults();
        let fields = |options: &QueueOptions| serde_json::to_value(options).unwrap();
        let (given, defaults) = (fields(&options), fields(&QueueOptions::default()));
        for (name, value) in given.as_object().unwrap() {
            assert_ne!(value, &defaults[name], "{name} has to be another value than its default");
        }
        let json = serde_json::to_string(&OptionsEnvelope::show(&options)).unwrap();
        let back: OptionsEnvelope = serde_json::from_str(&json).unwrap();
        assert_eq!(back.read().unwrap(), options);
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let options: OptionsEnvelope = serde_json::from_str("{}").unwrap();
        assert_eq!(options.read().unwrap(), QueueOptions::default());
        let options: OptionsEnvelope =
            serde_json::from_str(r#"{"order":"position","delivery":{"lock":"1m"}}"#).unwrap();
        let options = options.read().unwrap();
        assert_eq!((options.order, options.lock), (Order::POSITION, Duration::from_secs(60)));
    }

    #[test]
    fn a_position_without_that_order_is_refused() {
        let options: OptionsEnvelope = serde_json::from_str(r#"{"position":{"first":1}}"#).unwrap();
        assert_eq!(options.read().unwrap_err().field(), "position");
    }
}
