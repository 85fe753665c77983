//! The form of a definition: every field a file may have. The schema is made from it, and files are read into it.
//!
//! What stands above a field here is what an editor shows.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::WireDuration;
use crate::api::options::DeliveryFields;
use crate::api::options::DuplicatesFields;
use crate::api::options::ExpiryFields;
use crate::api::options::GapFields;
use crate::api::options::IdleFields;
use crate::api::options::LimitsFields;
use crate::api::options::OrderWord;
use crate::api::options::RetryFields;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::TextOr;
use crate::definition::form_handler::HandlerForm;
use crate::definition::form_handler::NotifyForm;
use crate::definition::form_handler::ScheduleForm;
use crate::definition::form_outbox::OutboxForm;
use crate::definition::form_subscription::SubscriptionForm;
use crate::definition::value_spans::ValueSpans;
use crate::intake::HeaderName;
use crate::limits;

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
    pub(crate) order: Option<OrderWord>,
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
    #[serde(default)]
    pub(crate) delivery: DeliveryForm,
    /// What happens to a message that fails.
    #[serde(default)]
    pub(crate) retry: RetryForm,
    /// What happens when a message is missing, in a queue ordered by position or by predecessor.
    pub(crate) gap: Option<GapFields>,
    /// How long messages live.
    pub(crate) expiry: Option<ExpiryFields>,
    /// How a message that comes again is recognised.
    pub(crate) duplicates: Option<DuplicatesFields>,
    /// What happens to what nobody uses.
    pub(crate) idle: Option<IdleFields>,
    /// How much the queue takes.
    pub(crate) limits: Option<LimitsFields>,
    /// How long is remembered how each message has ended, to be looked up. Without it, nothing is remembered (`seriatim dev`
    /// remembers a day).
    pub(crate) history: Option<WireDuration>,
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
    /// Who is notified when a workflow is blocked.
    pub(crate) notify: Option<FileValue<NotifyForm>>,
    /// Where in the file everything stands.
    #[serde(skip)]
    pub(crate) spans: ValueSpans,
}

/// Where something is read; one of the three.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceForm {
    /// A JSON pointer (RFC 6901) into the body.
    pub(crate) pointer: Option<FileValue<String>>,
    /// A standard header.
    pub(crate) header: Option<FileValue<HeaderName>>,
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
    pub(crate) header: Option<FileValue<HeaderName>>,
    /// The name of one of the sender's own properties.
    pub(crate) property: Option<FileValue<String>>,
    /// The position every workflow begins with.
    #[schemars(range(min = 1, max = limits::NUMBER_END - 1), extend("default" = 1))]
    pub(crate) first: Option<FileValue<u64>>,
}

/// How messages are handed out, and how the handlers of this file take them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct DeliveryForm {
    /// How many messages, of different workflows, the handlers of this file have at once.
    #[schemars(range(min = 1, max = limits::CONCURRENCY_MAX), extend("default" = limits::CONCURRENCY_DEFAULT))]
    pub(crate) concurrency: Option<usize>,
    /// After how long a message comes back by itself that was deferred without saying until when. Without, it waits until
    /// it is fetched by number.
    pub(crate) defer_for: Option<WireDuration>,
    /// How long a handler may run: for so long its lock is renewed.
    #[schemars(extend("default" = "5m"))]
    pub(crate) renew_for: Option<WireDuration>,
    #[serde(flatten)]
    pub(crate) options: DeliveryFields,
}

/// What happens to a message that fails.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RetryForm {
    /// The delays between attempts, exactly; the last one repeats. Not together with `backoff`.
    #[schemars(length(min = 1, max = limits::RETRY_DELAYS_MAX))]
    pub(crate) delays: Option<Vec<WireDuration>>,
    #[serde(flatten)]
    pub(crate) options: RetryFields,
}
