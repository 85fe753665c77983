//! The form of handlers, schedules and notices in a definition.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::WireDuration;
use crate::api::WireRate;
use crate::definition::file_value::FileValue;
use crate::limits;
use crate::schedule::MissedTicks;

/// What handles messages: one of exec, persistent, http and forward.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandlerForm {
    /// The subject whose messages it handles, exactly. Without it, it handles every subject that has no handler.
    pub(crate) subject: Option<FileValue<String>>,
    /// A program and its arguments, started for each message in the folder of this file. Exit code 0 completes the message,
    /// 75 retries it, 65 dead-letters it, any other has failed.
    #[schemars(length(min = 1))]
    pub(crate) exec: Option<FileValue<Vec<String>>>,
    /// A program and its arguments that runs on: for each message it reads one line of JSON and writes one.
    #[schemars(length(min = 1))]
    pub(crate) persistent: Option<FileValue<Vec<String>>>,
    /// A URL to which each message is posted, signed as Standard Webhooks say. 2xx completes the message.
    pub(crate) http: Option<FileValue<String>>,
    /// Another queue to which each message is sent: a queue of this folder, in one transaction with the completion, or
    /// http://host:port/queue of another daemon.
    pub(crate) forward: Option<FileValue<String>>,
    /// How long one attempt may take, at most `delivery.renew_for`.
    #[schemars(extend("default" = "30s"))]
    pub(crate) timeout: Option<FileValue<WireDuration>>,
    /// How many messages it is handed at most in a span of time: as in 100/s, 30/min or 10/h. While it is used up, nothing is
    /// handed out to the handlers of this file, because the subject of a message is known only when it is handed out.
    pub(crate) rate: Option<WireRate>,
    /// With a rate: how many at once after a pause. The default is what comes in one second, at least 1.
    #[schemars(range(min = 1, max = limits::RATE_MAX))]
    pub(crate) burst: Option<FileValue<u32>>,
    /// Environment variables of the program.
    pub(crate) env: Option<FileValue<BTreeMap<String, String>>>,
    /// Names of environment variables of the daemon that the program gets too. Of the others it gets PATH, HOME, LANG
    /// and TZ only.
    pub(crate) pass_env: Option<FileValue<Vec<String>>>,
    /// With exec: how many bytes of the end of each output are kept of one attempt.
    #[schemars(
        range(min = 1, max = limits::ANSWER_BYTES_MAX),
        extend("default" = limits::OUTPUT_BYTES_MAX)
    )]
    pub(crate) output_bytes_max: Option<FileValue<usize>>,
    /// With persistent: how many processes run at once.
    #[schemars(range(min = 1, max = limits::PROCESSES_MAX), extend("default" = 1))]
    pub(crate) processes: Option<FileValue<usize>>,
    /// With persistent: how many messages one process may hold at once. With more than one, it answers them by id, in any
    /// order; what waits in it is on the clock of its attempt.
    #[schemars(range(min = 1, max = limits::CONCURRENCY_MAX), extend("default" = limits::IN_FLIGHT_DEFAULT))]
    pub(crate) in_flight_max: Option<FileValue<usize>>,
    /// With http: the file that holds the secret with which posts are signed, as whsec_ and base64. With several, one a
    /// line, posts are signed with each, so that the receiver can change from one to the other.
    pub(crate) secret_file: Option<FileValue<String>>,
    /// With http: the environment variable of the daemon that holds the secret.
    pub(crate) secret_env: Option<FileValue<String>>,
    /// With forward to another daemon: the file that holds the key for it.
    pub(crate) key_file: Option<FileValue<String>>,
    /// With forward to another daemon: the environment variable of the daemon that holds the key.
    pub(crate) key_env: Option<FileValue<String>>,
    /// With a URL: whether it may lead to a private address, such as 127.0.0.1 or 10.0.0.1.
    #[schemars(extend("default" = false))]
    pub(crate) allow_private: Option<FileValue<bool>>,
    /// With a URL: the PEM file of the authorities that are trusted, instead of the public ones.
    pub(crate) ca_file: Option<FileValue<String>>,
    /// With forward: whether a message keeps its position. Both queues are then ordered by position.
    #[schemars(extend("default" = false))]
    pub(crate) keep_position: Option<FileValue<bool>>,
}

/// Messages that are sent at the instants a cron line names. Each has the property scheduled_for and the message ID
/// name/instant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleForm {
    /// Name of the schedule: 1 to 64 letters, digits and . _ -, once in a file.
    #[schemars(required)]
    pub(crate) name: Option<FileValue<String>>,
    /// When it ticks: five fields (minute, hour, day of month, month, weekday), six with seconds first, or @hourly, @daily,
    /// @weekly, @monthly, @yearly.
    #[schemars(required)]
    pub(crate) cron: Option<FileValue<String>>,
    /// The time zone of the line, by its IANA name.
    #[schemars(extend("default" = "UTC"))]
    pub(crate) time_zone: Option<FileValue<String>>,
    /// What becomes of ticks that were missed, because the daemon did not run.
    #[schemars(extend("default" = "once"))]
    pub(crate) missed: Option<FileValue<MissedTicks>>,
    /// The workflow the messages belong to. Without it they belong to none, unless the queue has a key.
    pub(crate) workflow_id: Option<FileValue<String>>,
    /// The subject of the messages.
    pub(crate) subject: Option<FileValue<String>>,
    /// The body of the messages: any value, sent as JSON. Without it, the body is empty.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) body: Option<FileValue<toml::Value>>,
}

/// Who is notified when a workflow is blocked: one of exec and http.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotifyForm {
    /// How long a workflow has to be blocked, held or without its next message before the notification.
    #[schemars(extend("default" = "15m"))]
    pub(crate) after: Option<WireDuration>,
    /// A program and its arguments; it reads what happened as JSON.
    #[schemars(length(min = 1))]
    pub(crate) exec: Option<FileValue<Vec<String>>>,
    /// A URL to which it is posted as JSON.
    pub(crate) http: Option<FileValue<String>>,
    /// How long one attempt may take.
    #[schemars(extend("default" = "30s"))]
    pub(crate) timeout: Option<WireDuration>,
    /// With exec: environment variables of the program.
    pub(crate) env: Option<FileValue<BTreeMap<String, String>>>,
    /// With exec: names of environment variables of the daemon that the program gets too.
    pub(crate) pass_env: Option<FileValue<Vec<String>>>,
    /// With http: the file that holds the secret with which posts are signed, as in a handler.
    pub(crate) secret_file: Option<FileValue<String>>,
    /// With http: the environment variable of the daemon that holds the secret.
    pub(crate) secret_env: Option<FileValue<String>>,
    /// With http: whether the URL may lead to a private address, such as 127.0.0.1 or 10.0.0.1.
    #[schemars(extend("default" = false))]
    pub(crate) allow_private: Option<FileValue<bool>>,
    /// With http: the PEM file of the authorities that are trusted, instead of the public ones.
    pub(crate) ca_file: Option<FileValue<String>>,
}
