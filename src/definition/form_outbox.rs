//! The form of the part of a definition that names an outbox from which messages are copied.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::definition::file_value::DurationText;
use crate::definition::file_value::FileValue;

/// A table of a PostgreSQL database into which programs insert their messages: each row is copied into the queue once, in the
/// order of its number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutboxForm {
    /// The database, without a password: postgres://user@host:port/database.
    #[schemars(required)]
    pub(crate) postgres: Option<FileValue<String>>,
    /// The table, with its schema if it is not found without: outbox or sales.outbox.
    #[schemars(required)]
    pub(crate) table: Option<FileValue<String>>,
    /// Under which name is kept how far the table is copied. Another name copies the table from its beginning.
    #[schemars(extend("default" = "outbox"))]
    pub(crate) name: Option<FileValue<String>>,
    /// The file that holds the password.
    pub(crate) password_file: Option<FileValue<String>>,
    /// The environment variable of the daemon that holds the password.
    pub(crate) password_env: Option<FileValue<String>>,
    /// Whether the connection is encrypted and the server's certificate verified. Without it, it is unless the server is on
    /// this machine.
    pub(crate) tls: Option<FileValue<bool>>,
    /// The authorities that may have signed the server's certificate, as a PEM file; without it, those of the web.
    pub(crate) ca_file: Option<FileValue<String>>,
    /// Which column holds what.
    #[serde(default)]
    pub(crate) columns: ColumnsForm,
    /// What becomes of rows that are copied.
    #[schemars(extend("default" = "keep"))]
    pub(crate) copied_rows: Option<FileValue<CopiedRowsWord>>,
    /// How often the table is looked at when it has nothing: 10ms to 1h.
    #[schemars(extend("default" = "1s"))]
    pub(crate) poll: Option<FileValue<DurationText>>,
    /// A channel on which the database notifies of new rows (NOTIFY), so that they are looked for at once.
    pub(crate) channel: Option<FileValue<String>>,
}

/// Which column of an outbox holds what.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnsForm {
    /// The number of a row, given by a sequence: rows are copied in its order.
    #[schemars(extend("default" = "id"))]
    pub(crate) id: Option<FileValue<String>>,
    /// The body: json, jsonb, text or bytea.
    #[schemars(extend("default" = "body"))]
    pub(crate) body: Option<FileValue<String>>,
    /// The workflow ID. Without it, the queue's key says it, if it has one.
    pub(crate) workflow_id: Option<FileValue<String>>,
    /// The position, in a queue ordered by position.
    pub(crate) position: Option<FileValue<String>>,
    /// The message ID of the predecessor, in a queue with order = "after"; null is the first of a workflow.
    pub(crate) after: Option<FileValue<String>>,
    /// The message ID. Without it, it is the number of the row.
    pub(crate) message_id: Option<FileValue<String>>,
    /// The subject.
    pub(crate) subject: Option<FileValue<String>>,
    /// The properties, a JSON object of text, numbers, true and false.
    pub(crate) properties: Option<FileValue<String>>,
}

/// What becomes of rows that are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CopiedRowsWord {
    /// They stay as they are.
    #[default]
    Keep,
    /// They are deleted, once their messages are safe.
    Delete,
}
