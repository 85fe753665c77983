//! The form of the part of a definition that names an outbox from which messages are copied.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::WireDuration;
use crate::definition::file_value::FileValue;
use crate::limits;
use crate::postgres::OutboxColumns;

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
    pub(crate) columns: OutboxColumns,
    /// What becomes of rows that are copied.
    #[schemars(extend("default" = "keep"))]
    pub(crate) copied_rows: Option<FileValue<CopiedRowsWord>>,
    /// How often the table is looked at when it has nothing: 10ms to 1h.
    #[schemars(extend(
        "default" = "1s",
        "x-min" = WireDuration(limits::SOURCE_POLL_MIN),
        "x-max" = WireDuration(limits::SOURCE_POLL_MAX)
    ))]
    pub(crate) poll: Option<WireDuration>,
    /// A channel on which the database notifies of new rows (NOTIFY), so that they are looked for at once.
    pub(crate) channel: Option<FileValue<String>>,
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
