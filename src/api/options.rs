//! The options of a queue as JSON, in the words of a definition.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::api::rate::WireRate;
use crate::api::time::WireDuration;
use crate::error::Misuse;
use crate::id::Position;
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
    /// In which order the messages of one workflow are handled: `arrival` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderWord>,
    /// With order by position: the position every workflow begins with, 1 if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionFields>,
    /// How messages are handed out.
    pub delivery: DeliveryFields,
    /// What happens to a message that failed.
    pub retry: RetryFields,
    /// What happens when a position is missing.
    pub gap: GapFields,
    /// What happens to messages that get old.
    pub expiry: ExpiryFields,
    /// How messages that come twice or late are recognised.
    pub duplicates: DuplicatesFields,
    /// How much the queue takes.
    pub limits: LimitsFields,
    /// What happens when nothing happens.
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
    /// How long a lock lasts, 1 s to 12 h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<WireDuration>,
    /// After how many hand-outs a failing message is exhausted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_max: Option<u32>,
    /// Whether a workflow waits for a message its consumer deferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_on_defer: Option<bool>,
    /// How many messages are handed out at most in a span of time, as in 100/s, 30/min or 10/h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<WireRate>,
    /// With a rate: how many at once after a pause. What comes in one second, at least 1, if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl DeliveryFields {
    fn read_rate(self) -> Result<Option<Rate>, Misuse> {
        match (self.rate, self.burst) {
            (Some(WireRate(rate)), burst) => Ok(Some(Rate { burst, ..rate })),
            (None, Some(_)) => Err(Misuse::new("burst", "goes with a rate")),
            (None, None) => Ok(None),
        }
    }
}

/// What happens to a message that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryFields {
    /// Delays between attempts when the consumer names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffFields>,
    /// What happens to a message that is exhausted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<ExhaustedPolicy>,
}

/// Exponential delays with full jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackoffFields {
    /// Upper end of the first delay.
    pub first: WireDuration,
    /// Growth from one delay to the next.
    #[serde(default = "factor_default")]
    pub factor: u32,
    /// Upper end of every delay.
    pub max: WireDuration,
}

fn factor_default() -> u32 {
    Backoff::default().factor
}

/// What happens when a position is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GapFields {
    /// How long a missing position is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WireDuration>,
    /// What happens then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<GapAction>,
}

/// What happens to messages that get old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExpiryFields {
    /// Time to live of messages; one may ask for less, not for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<WireDuration>,
    /// What happens to an expired message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<ExpiryPolicy>,
    /// Whether a message that its consumer defers has no time to live from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_deferred: Option<bool>,
}

/// How messages that come twice or late are recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DuplicatesFields {
    /// How long message IDs are remembered; without it, no duplicates are detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WireDuration>,
    /// What happens to a message whose position is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LatePolicy>,
}

/// How much the queue takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsFields {
    /// Largest body in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes_max: Option<usize>,
    /// Most messages the queue stores, dead letters not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_max: Option<u64>,
    /// Most early messages one workflow may have waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_max: Option<u64>,
    /// Most dead letters the queue keeps of exhausted messages; beyond it, they hold their workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letters_max: Option<u64>,
    /// Most bytes of early messages one workflow may have waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_bytes_max: Option<u64>,
    /// Most ended messages that it remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_max: Option<u64>,
    /// Most cursors of forgotten workflows that it remembers; 0 remembers none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursors_max: Option<u64>,
}

/// What happens when nothing happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdleFields {
    /// How long a workflow with nothing stored is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget_after: Option<WireDuration>,
    /// How long the cursor of a forgotten workflow in order of position is remembered from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember_cursor: Option<WireDuration>,
    /// Deletes the queue after this long without any use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_after: Option<WireDuration>,
    /// Whether it is deleted although it stores messages.
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
            backoff: retry.backoff.map_or(defaults.backoff, BackoffFields::read),
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
            rate: delivery.read_rate()?,
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
                    first: WireDuration(backoff.first),
                    factor: backoff.factor,
                    max: WireDuration(backoff.max),
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
    fn read(self) -> Backoff {
        Backoff { first: self.first.0, factor: self.factor, max: self.max.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn options_survive_the_way_out_and_back() {
        let options = QueueOptions {
            order: Order::Position { first: Position::new(7).unwrap() },
            exhausted: Some(ExhaustedPolicy::Quarantine),
            duplicate_window: Some(Duration::from_secs(600)),
            late: LatePolicy::DeadLetter,
            delete_when_idle: Some(Duration::from_secs(86_400)),
            history: Some(Duration::from_secs(7 * 86_400)),
            history_max: 9,
            remember_cursor: Duration::from_secs(60),
            cursors_max: 8,
            ..QueueOptions::default()
        };
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
