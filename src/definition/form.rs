//! The form of a definition: every field a file may have. The schema is made from it, and files are read into it.
//!
//! What stands above a field here is what an editor shows.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::WireRate;
use crate::api::options::OrderWord;
use crate::definition::file_value::DurationText;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::TextOr;
use crate::definition::form_handler::HandlerForm;
use crate::definition::form_handler::NotifyForm;
use crate::definition::form_handler::ScheduleForm;
use crate::definition::form_outbox::OutboxForm;
use crate::definition::form_subscription::SubscriptionForm;
use crate::limits;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::GapAction;
use crate::queue::LatePolicy;

/// A definition: one file, one queue. An empty file is a queue with the file's name and the defaults.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Definition of a queue")]
pub(crate) struct QueueForm {
    /// Name of the queue: 1 to 128 letters, digits and . _ -, the first a letter or digit. Without it, the file's name
    /// without `.toml`.
    pub(crate) name: Option<FileValue<String>>,
    /// The topic whose subscription the queue is; without it, it is none.
    pub(crate) subscription: Option<FileValue<SubscriptionForm>>,
    /// In which order the messages of one workflow are handled.
    #[schemars(extend("default" = "arrival"))]
    pub(crate) order: Option<FileValue<OrderWord>>,
    /// Whether an order was given that is none.
    #[serde(skip)]
    pub(crate) is_order_wrong: bool,
    /// Where the workflow ID of a message is read: a JSON pointer into the body, or a table. Without it, the sender says
    /// it.
    pub(crate) key: Option<FileValue<TextOr<SourceForm>>>,
    /// Where the position of a message is read, in a queue ordered by position: a JSON pointer into the body, or a table.
    /// Without it, the sender says it.
    pub(crate) position: Option<FileValue<TextOr<PositionForm>>>,
    /// Where the message ID of the predecessor is read, in a queue with order = "after"; null or empty text there is the
    /// first message of a workflow. Without it, the sender says it.
    pub(crate) after: Option<FileValue<TextOr<SourceForm>>>,
    /// Where the message ID is read. Without it, the sender may say it.
    pub(crate) message_id: Option<FileValue<TextOr<SourceForm>>>,
    /// How messages are handed out.
    pub(crate) delivery: Option<DeliveryForm>,
    /// What happens to a message that fails.
    pub(crate) retry: Option<RetryForm>,
    /// What happens when a message is missing, in a queue ordered by position or by predecessor.
    pub(crate) gap: Option<FileValue<GapForm>>,
    /// How long messages live.
    pub(crate) expiry: Option<ExpiryForm>,
    /// How a message that comes again is recognised.
    pub(crate) duplicates: Option<DuplicatesForm>,
    /// What happens to what nobody uses.
    pub(crate) idle: Option<IdleForm>,
    /// How much the queue takes.
    pub(crate) limits: Option<LimitsForm>,
    /// How long is remembered how each message has ended, to be looked up. Without it, nothing is remembered (`seriatim dev`
    /// remembers a day).
    pub(crate) history: Option<FileValue<DurationText>>,
    /// What the page hides of each message: JSON pointers into the body, in which `*` stands for every member or element, or
    /// tables that name a property or a header. The API hides nothing.
    #[serde(default)]
    #[schemars(length(max = limits::REDACTIONS_MAX))]
    pub(crate) redact: Vec<FileValue<TextOr<SourceForm>>>,
    /// What handles the messages, one for each subject and at most one for every other subject. Without any, clients
    /// receive the messages over HTTP.
    #[serde(default)]
    #[schemars(length(max = limits::HANDLERS_MAX))]
    pub(crate) handler: Vec<FileValue<HandlerForm>>,
    /// Messages that are sent at the instants a cron line names.
    #[serde(default)]
    #[schemars(length(max = limits::SCHEDULES_MAX))]
    pub(crate) schedule: Vec<FileValue<ScheduleForm>>,
    /// A table of a database whose rows are copied into the queue.
    pub(crate) source: Option<FileValue<OutboxForm>>,
    /// Whom to tell when a workflow stands still.
    pub(crate) notify: Option<FileValue<NotifyForm>>,
}

/// Where something is read; one of the three.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceForm {
    /// A JSON pointer (RFC 6901) into the body.
    pub(crate) pointer: Option<FileValue<String>>,
    /// A standard header.
    pub(crate) header: Option<FileValue<HeaderWord>>,
    /// The name of one of the sender's own properties.
    pub(crate) property: Option<FileValue<String>>,
}

/// Where the position is read, and where it begins; at most one of the first three.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PositionForm {
    /// A JSON pointer (RFC 6901) into the body.
    pub(crate) pointer: Option<FileValue<String>>,
    /// A standard header.
    pub(crate) header: Option<FileValue<HeaderWord>>,
    /// The name of one of the sender's own properties.
    pub(crate) property: Option<FileValue<String>>,
    /// The position every workflow begins with.
    #[schemars(range(min = 1, max = limits::NUMBER_END - 1), extend("default" = 1))]
    pub(crate) first: Option<FileValue<u64>>,
}

/// A standard header.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HeaderWord {
    /// What the message is about.
    Subject,
    /// The ID of the message or request it belongs to.
    CorrelationId,
    /// Where an answer is expected.
    ReplyTo,
    /// The sender's ID of the message.
    MessageId,
    /// The MIME type of the body.
    ContentType,
}

/// How messages are handed out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryForm {
    /// How long a lock lasts from the moment of hand-out: 1s to 12h. Handlers of this file renew it by themselves.
    #[schemars(extend("default" = "30s"))]
    pub(crate) lock: Option<FileValue<DurationText>>,
    /// After how many hand-outs a message that keeps failing is given up.
    #[schemars(range(min = 1, max = u32::MAX), extend("default" = limits::DELIVERY_COUNT_MAX))]
    pub(crate) count_max: Option<FileValue<u32>>,
    /// How many messages, of different workflows, the handlers of this file have at once.
    #[schemars(range(min = 1, max = limits::CONCURRENCY_MAX), extend("default" = limits::CONCURRENCY_DEFAULT))]
    pub(crate) concurrency: Option<FileValue<usize>>,
    /// After how long a message comes back by itself that was deferred without saying until when. Without, it waits until
    /// it is fetched by number.
    pub(crate) defer_for: Option<FileValue<DurationText>>,
    /// How long a handler may run: for so long its lock is renewed.
    #[schemars(extend("default" = "5m"))]
    pub(crate) renew_for: Option<FileValue<DurationText>>,
    /// Whether a workflow waits for a message that was deferred, instead of going on without it.
    #[schemars(extend("default" = false))]
    pub(crate) hold_on_defer: Option<bool>,
    /// How many messages are handed out at most in a span of time, whoever receives them: as in 100/s, 30/min or 10/h.
    #[schemars(with = "Option<WireRate>")]
    pub(crate) rate: Option<FileValue<String>>,
    /// With a rate: how many at once after a pause. The default is what comes in one second, at least 1.
    #[schemars(range(min = 1, max = limits::RATE_MAX))]
    pub(crate) burst: Option<FileValue<u32>>,
}

/// What happens to a message that fails.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryForm {
    /// The delays between attempts, exactly; the last one repeats. Not together with `backoff`.
    #[schemars(length(min = 1, max = limits::RETRY_DELAYS_MAX))]
    pub(crate) delays: Option<FileValue<Vec<FileValue<DurationText>>>>,
    /// Delays that grow, with full jitter: each is drawn from zero to its upper end. Not together with `delays`.
    pub(crate) backoff: Option<FileValue<BackoffForm>>,
    /// What happens when the message was handed out as often as it may be. The default is hold, and skip in a queue
    /// without order.
    pub(crate) then: Option<FileValue<ExhaustedPolicy>>,
}

/// Delays that grow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackoffForm {
    /// Upper end of the first delay.
    #[schemars(extend("default" = "1s"))]
    pub(crate) first: Option<FileValue<DurationText>>,
    /// Growth from one delay to the next.
    #[schemars(range(min = 1, max = 1_000), extend("default" = 2))]
    pub(crate) factor: Option<FileValue<u32>>,
    /// Upper end of every delay.
    #[schemars(extend("default" = "5m"))]
    pub(crate) max: Option<FileValue<DurationText>>,
}

/// What happens when a message is missing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GapForm {
    /// How long it is waited for, from the first message that waits behind it.
    #[schemars(extend("default" = "10m"))]
    pub(crate) wait: Option<FileValue<DurationText>>,
    /// What happens then.
    #[schemars(extend("default" = "hold"))]
    pub(crate) then: Option<FileValue<GapAction>>,
}

/// How long messages live.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpiryForm {
    /// Time to live of messages that ask for none or for more. Without it, messages do not expire.
    pub(crate) time_to_live: Option<FileValue<DurationText>>,
    /// What happens to an expired message.
    #[schemars(extend("default" = "dead_letter"))]
    pub(crate) then: Option<FileValue<ExpiryPolicy>>,
    /// Whether a message that its consumer defers has no time to live from then on, as in Service Bus.
    #[schemars(extend("default" = false))]
    pub(crate) keep_deferred: Option<bool>,
}

/// How a message that comes again is recognised.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DuplicatesForm {
    /// How long message IDs are remembered. Without it, duplicates are not looked for by message ID.
    pub(crate) window: Option<FileValue<DurationText>>,
    /// What happens to a message whose place is completed already, in a queue ordered by position or by predecessor.
    #[schemars(extend("default" = "ignore"))]
    pub(crate) late: Option<FileValue<LatePolicy>>,
}

/// What happens to what nobody uses.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdleForm {
    /// How long an idle workflow with nothing stored is remembered, so that late duplicates are recognised.
    #[schemars(extend("default" = "7d"))]
    pub(crate) forget_after: Option<FileValue<DurationText>>,
    /// How long the cursor of a forgotten workflow is remembered from then on, in order of position, so that what comes late
    /// does not begin the workflow anew.
    #[schemars(extend("default" = "30d"))]
    pub(crate) remember_cursor: Option<FileValue<DurationText>>,
    /// Deletes the queue after this long without a send, receive, settle, schedule or peek. Without it, it stays.
    pub(crate) delete_after: Option<FileValue<DurationText>>,
    /// Whether an idle queue is deleted although it stores messages.
    #[schemars(extend("default" = false))]
    pub(crate) delete_with_messages: Option<bool>,
}

/// How much the queue takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsForm {
    /// Largest body in bytes.
    #[schemars(range(min = 0, max = limits::BODY_BYTES_CEILING), extend("default" = limits::BODY_BYTES_MAX))]
    pub(crate) body_bytes_max: Option<FileValue<usize>>,
    /// Most messages the queue stores, dead letters not counted.
    #[schemars(extend("default" = limits::MESSAGES_MAX))]
    pub(crate) messages_max: Option<FileValue<u64>>,
    /// Most early messages one workflow may have waiting.
    #[schemars(extend("default" = limits::EARLY_MAX))]
    pub(crate) early_max: Option<FileValue<u64>>,
    /// Most dead letters the queue keeps of exhausted messages; beyond it, they hold their workflows.
    #[schemars(extend("default" = limits::DEAD_LETTERS_MAX))]
    pub(crate) dead_letters_max: Option<FileValue<u64>>,
    /// Most bytes of early messages one workflow may have waiting.
    #[schemars(extend("default" = limits::EARLY_BYTES_MAX))]
    pub(crate) early_bytes_max: Option<FileValue<u64>>,
    /// Most ended messages that a queue with `history` remembers, the newest.
    #[schemars(range(min = 1), extend("default" = limits::HISTORY_MAX))]
    pub(crate) history_max: Option<FileValue<u64>>,
    /// Most cursors of forgotten workflows that the queue remembers, the newest; 0 remembers none.
    #[schemars(range(max = limits::CURSORS_MAX), extend("default" = limits::CURSORS_MAX))]
    pub(crate) cursors_max: Option<FileValue<u64>>,
}
