//! Options of a queue: order, delivery, retry, gap, duplicates, time to live, limits.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::error::Misuse;
use crate::id::Position;
use crate::limits;
pub use crate::rate::Rate;
pub use crate::rate::RatePeriod;

/// In which order the messages of one workflow are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Order {
    /// No order: every message is a workflow of its own, whatever its workflow ID.
    None,
    /// In the order of acceptance, which is the order of sequence numbers.
    #[default]
    Arrival,
    /// By the sender's positions: `first`, `first + 1` and so on, without gaps.
    Position {
        /// The position every workflow begins with.
        first: Position,
    },
    /// Each message names its predecessor by message ID.
    After,
}

impl Order {
    /// By position, beginning with 1.
    pub const POSITION: Order = Order::Position { first: Position::FIRST };

    /// Whether messages have places in their workflow that can be missing.
    pub(crate) fn has_places(self) -> bool {
        matches!(self, Order::Position { .. } | Order::After)
    }
}

/// What happens when a message's delivery count has reached the maximum and it failed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExhaustedPolicy {
    /// The message stays at the head, and its workflow is held until someone resumes it. For a message that is a
    /// workflow of its own, the same as to skip: nobody could name its workflow.
    Hold,
    /// The message is dead-lettered and the workflow goes on.
    Skip,
    /// The message and everything behind it in its workflow is dead-lettered, until someone resumes it. For a message
    /// that is a workflow of its own, the same as to skip.
    Quarantine,
}

/// What happens when a missing position has not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GapAction {
    /// The workflow is held until someone resumes it or declares the gap void.
    Hold,
    /// The workflow goes on with the lowest waiting message; what was skipped is recorded. In after-order, the message
    /// whose predecessor is unknown is dead-lettered instead.
    Skip,
    /// It keeps waiting; an event is raised each time the wait has passed again.
    Wait,
}

/// How long a gap may last, and what then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapPolicy {
    /// Time from the first message that waits behind the gap.
    pub wait: Duration,
    /// What happens then.
    pub then: GapAction,
}

/// What happens to a message whose position is already completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LatePolicy {
    /// The sender gets that as its receipt, and nothing is stored: a resend does no harm.
    #[default]
    Ignore,
    /// The sender is refused.
    Refuse,
    /// The message is dead-lettered.
    DeadLetter,
}

/// What happens to a message whose time to live is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExpiryPolicy {
    /// It is dead-lettered with the reason `TTLExpiredException`.
    #[default]
    DeadLetter,
    /// It is dropped, and counted.
    Drop,
}

/// Delays between the attempts of a failing message: exponential, with full jitter, capped.
///
/// The n-th delay is drawn evenly from zero to `first * factor^(n-1)`, at most `max`. Full jitter as described in
/// "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// Upper end of the first delay.
    pub first: Duration,
    /// Growth from one delay to the next, at least 1.
    pub factor: u32,
    /// Upper end of every delay.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_secs(1), factor: 2, max: Duration::from_secs(5 * 60) }
    }
}

impl Backoff {
    /// The delay after the `attempt`-th failure (1 is the first), with `entropy` as the only chance in it.
    pub fn delay(&self, attempt: u32, entropy: u64) -> Duration {
        let growth = u128::from(self.factor).saturating_pow(attempt.saturating_sub(1));
        let ceiling_ms = self.first.as_millis().saturating_mul(growth).min(self.max.as_millis());
        let ceiling_ms = u64::try_from(ceiling_ms).unwrap_or(u64::MAX - 1).min(u64::MAX - 1);
        Duration::from_millis(entropy % (ceiling_ms + 1))
    }
}

/// Options of a queue. Each is set by the method of its name, and read as a field.
///
/// ```
/// use seriatim::QueueOptions;
/// use seriatim::queue::ExhaustedPolicy;
///
/// let options = QueueOptions::by_position().delivery_count_max(3).exhausted(ExhaustedPolicy::Skip);
/// assert_eq!(options.delivery_count_max, 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueOptions {
    /// In which order the messages of one workflow are handled.
    pub order: Order,
    /// How long a lock lasts from the moment of hand-out, 1 s to 12 h.
    pub lock: Duration,
    /// After how many hand-outs a failing message is exhausted.
    pub delivery_count_max: u32,
    /// What happens then; `None` means `Hold` for ordered queues and `Skip` for `Order::None`.
    pub exhausted: Option<ExhaustedPolicy>,
    /// Delays between attempts when the consumer names none.
    pub backoff: Backoff,
    /// How long a missing message is waited for, and what then.
    pub gap: GapPolicy,
    /// What happens to a message whose position is already completed.
    pub late: LatePolicy,
    /// How long message IDs are remembered to detect duplicates; `None` detects none.
    pub duplicate_window: Option<Duration>,
    /// Time to live of messages; a message may ask for less, not for more.
    pub time_to_live: Option<Duration>,
    /// What happens to an expired message.
    pub expired: ExpiryPolicy,
    /// Whether a workflow waits for a message its consumer deferred, instead of going on without it.
    pub hold_on_defer: bool,
    /// How long an idle workflow with nothing stored is remembered, so that late duplicates are recognised; in order of
    /// position its cursor is remembered longer (`remember_cursor`).
    pub forget_after: Duration,
    /// Deletes the queue after this long without a send, receive, settle, schedule or peek, if nothing is known of any
    /// workflow: no messages, state, hold or dead letters, and no cursor younger than `forget_after`. Opening the file is a use, too. A
    /// queue that keeps something is looked at again after as long.
    pub delete_when_idle: Option<Duration>,
    /// Whether an idle queue is deleted although it stores messages.
    pub delete_with_messages: bool,
    /// Largest body in bytes.
    pub body_bytes_max: usize,
    /// Most messages the queue stores, dead letters not counted. A message for whose place stored ones wait, and what
    /// completions and redrives send, may exceed it by one eighth.
    pub messages_max: u64,
    /// Most early messages one workflow may have waiting.
    pub early_max: u64,
    /// Most bytes of early messages one workflow may have waiting.
    pub early_bytes_max: u64,
    /// Whether a message that its consumer defers has no time to live from then on, as in Service Bus: it stays until it
    /// is fetched by its number, and does not expire after it has come back either.
    pub keep_deferred: bool,
    /// How many messages are handed out at most in a span of time, whoever receives them; `None` is no limit. A
    /// change holds from the next hand-out. Messages that are fetched by their numbers are handed out at once and counted.
    pub rate: Option<Rate>,
    /// Most dead letters the queue keeps of messages that are exhausted. Once there are as many, an exhausted message stays in
    /// its workflow, which is held, whatever `exhausted` says; one without a workflow is tried again after the longest
    /// delay of the backoff.
    pub dead_letters_max: u64,
    /// How long a queue remembers how its messages ended; `None` remembers nothing.
    pub history: Option<Duration>,
    /// Most ended messages that it remembers, the newest.
    pub history_max: u64,
    /// How long the cursor of a forgotten workflow in order of position is remembered after `forget_after`, with the positions
    /// that were not completed, so that what comes late does not begin the workflow anew.
    pub remember_cursor: Duration,
    /// Most such cursors that the queue remembers; the oldest are forgotten first. 0 remembers none.
    pub cursors_max: u64,
}

impl Default for QueueOptions {
    fn default() -> QueueOptions {
        QueueOptions {
            order: Order::Arrival,
            lock: limits::LOCK_DEFAULT,
            delivery_count_max: limits::DELIVERY_COUNT_MAX,
            exhausted: None,
            backoff: Backoff::default(),
            gap: GapPolicy { wait: limits::GAP_WAIT_DEFAULT, then: GapAction::Hold },
            late: LatePolicy::Ignore,
            duplicate_window: None,
            time_to_live: None,
            expired: ExpiryPolicy::DeadLetter,
            hold_on_defer: false,
            forget_after: limits::FORGET_AFTER_DEFAULT,
            delete_when_idle: None,
            delete_with_messages: false,
            body_bytes_max: limits::BODY_BYTES_MAX,
            messages_max: limits::MESSAGES_MAX,
            early_max: limits::EARLY_MAX,
            early_bytes_max: limits::EARLY_BYTES_MAX,
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

/// Writes a method for each option, which sets it; what may be left out takes a value or `None`.
macro_rules! setters {
    ($($name:ident: $kind:ty,)*; $($may:ident: $some:ty,)*) => {
        impl QueueOptions {
            $(
                #[doc = concat!("The same options with another [`", stringify!($name), "`](QueueOptions::", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, $name: $kind) -> QueueOptions {
                    self.$name = $name;
                    self
                }
            )*
            $(
                #[doc = concat!("The same options with another [`", stringify!($may), "`](QueueOptions::", stringify!($may), "), or `None`.")]
                #[must_use]
                pub fn $may(mut self, $may: impl Into<Option<$some>>) -> QueueOptions {
                    self.$may = $may.into();
                    self
                }
            )*
        }
    };
}

setters! {
    order: Order,
    lock: Duration,
    delivery_count_max: u32,
    backoff: Backoff,
    gap: GapPolicy,
    late: LatePolicy,
    expired: ExpiryPolicy,
    hold_on_defer: bool,
    forget_after: Duration,
    delete_with_messages: bool,
    body_bytes_max: usize,
    messages_max: u64,
    early_max: u64,
    early_bytes_max: u64,
    keep_deferred: bool,
    dead_letters_max: u64,
    history_max: u64,
    remember_cursor: Duration,
    cursors_max: u64,
    ;
    exhausted: ExhaustedPolicy,
    duplicate_window: Duration,
    time_to_live: Duration,
    delete_when_idle: Duration,
    rate: Rate,
    history: Duration,
}

impl QueueOptions {
    /// Options of a queue ordered by position, beginning with 1.
    pub fn by_position() -> QueueOptions {
        QueueOptions { order: Order::POSITION, ..QueueOptions::default() }
    }

    /// What happens to an exhausted message, with the default for the order filled in.
    pub fn exhausted_policy(&self) -> ExhaustedPolicy {
        let default = if self.order == Order::None { ExhaustedPolicy::Skip } else { ExhaustedPolicy::Hold };
        self.exhausted.unwrap_or(default)
    }

    /// Most messages the queue stores when what drains it is stored: one eighth more than for senders, rounded up.
    pub(crate) fn drain_max(&self) -> u64 {
        self.messages_max.saturating_add(self.messages_max.div_ceil(limits::DRAIN_ROOM))
    }

    /// Checks that every option is within its limits.
    ///
    /// # Errors
    /// [`Misuse`] names the first option that is not.
    pub fn check(&self) -> Result<(), Misuse> {
        if self.lock < limits::LOCK_MIN || self.lock > limits::LOCK_MAX {
            return Err(Misuse::new("lock", "must be 1 s to 12 h"));
        }
        if self.delivery_count_max == 0 {
            return Err(Misuse::new("delivery_count_max", "must be at least 1"));
        }
        if self.backoff.factor == 0 {
            return Err(Misuse::new("backoff.factor", "must be at least 1"));
        }
        if self.history_max == 0 {
            return Err(Misuse::new("history_max", "must be at least 1"));
        }
        if self.cursors_max > limits::CURSORS_MAX {
            return Err(Misuse::new("cursors_max", format!("must be at most {}", limits::CURSORS_MAX)));
        }
        if self.body_bytes_max > limits::BODY_BYTES_CEILING {
            let problem = format!("must be at most {}", limits::BODY_BYTES_CEILING);
            return Err(Misuse::new("body_bytes_max", problem));
        }
        self.rate.map_or(Ok(()), Rate::check)?;
        self.check_durations()
    }

    fn check_durations(&self) -> Result<(), Misuse> {
        let durations = [
            ("backoff.first", Some(self.backoff.first)),
            ("backoff.max", Some(self.backoff.max)),
            ("gap.wait", Some(self.gap.wait)),
            ("duplicate_window", self.duplicate_window),
            ("time_to_live", self.time_to_live),
            ("forget_after", Some(self.forget_after)),
            ("delete_when_idle", self.delete_when_idle),
            ("history", self.history),
            ("remember_cursor", Some(self.remember_cursor)),
        ];
        for (field, duration) in durations {
            let Some(duration) = duration else { continue };
            if duration.is_zero() || duration > limits::DURATION_MAX {
                return Err(Misuse::new(field, "must be more than zero and at most 100 years"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_grows_and_is_never_above_its_cap() {
        let backoff =
            Backoff { first: Duration::from_millis(100), factor: 2, max: Duration::from_millis(450) };
        let ceiling = |attempt| (0..2_000).map(|entropy| backoff.delay(attempt, entropy)).max().unwrap();
        assert_eq!(ceiling(1), Duration::from_millis(100));
        assert_eq!(ceiling(2), Duration::from_millis(200));
        assert_eq!(ceiling(3), Duration::from_millis(400));
        assert_eq!(ceiling(4), Duration::from_millis(450));
        assert_eq!(ceiling(u32::MAX), Duration::from_millis(450));
    }

    #[test]
    fn options_out_of_range_are_refused_by_name() {
        let lock = QueueOptions { lock: Duration::from_millis(999), ..QueueOptions::default() };
        assert_eq!(lock.check().unwrap_err().field(), "lock");
        let count = QueueOptions { delivery_count_max: 0, ..QueueOptions::default() };
        assert_eq!(count.check().unwrap_err().field(), "delivery_count_max");
        let window = QueueOptions { duplicate_window: Some(Duration::MAX), ..QueueOptions::default() };
        assert_eq!(window.check().unwrap_err().field(), "duplicate_window");
        assert!(QueueOptions::default().check().is_ok());
    }
}

/// The kind of a cause of hold, without the message that it names. A workflow is held for at most one cause of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "daemon", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HoldKind {
    /// An operator did it.
    Operator,
    /// The retries of the message at its head are exhausted.
    #[serde(rename = "exhausted", alias = "spent")]
    Exhausted,
    /// A missing predecessor has not come in time.
    Gap,
    /// A predecessor in an after-ordered workflow ended without being completed.
    Predecessor,
    /// The retries of a message were exhausted, and everything behind it goes to the dead letters.
    Quarantine,
    /// Its dead letters are being put back in place; it resumes by itself.
    Redriving,
}

impl HoldKind {
    /// All of them.
    #[doc(hidden)]
    pub const ALL: [HoldKind; 6] = [
        HoldKind::Operator,
        HoldKind::Exhausted,
        HoldKind::Gap,
        HoldKind::Predecessor,
        HoldKind::Quarantine,
        HoldKind::Redriving,
    ];

    /// Its name in texts.
    pub fn as_str(self) -> &'static str {
        match self {
            HoldKind::Operator => "operator",
            HoldKind::Exhausted => "exhausted",
            HoldKind::Gap => "gap",
            HoldKind::Predecessor => "predecessor",
            HoldKind::Quarantine => "quarantine",
            HoldKind::Redriving => "redriving",
        }
    }
}

impl fmt::Display for HoldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
