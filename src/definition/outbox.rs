//! What a definition says of an outbox from which messages are copied.

use std::path::PathBuf;
use std::time::Duration;

use crate::definition::handler::SecretSource;
use crate::postgres::OutboxColumns;

/// The name of an outbox that is given none.
pub(crate) const DEFAULT_NAME: &str = "outbox";

/// A table of a PostgreSQL database whose rows are copied into the queue, each once, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxDefinition {
    /// Under which name is kept how far it is copied.
    pub name: String,
    /// The database, without a password.
    pub url: String,
    /// The table, with its schema if one is given.
    pub table: String,
    /// Where the password is, if there is one.
    pub password: Option<SecretSource>,
    /// Whether the connection is encrypted and the server verified.
    pub tls: bool,
    /// The authorities that may have signed the server's certificate; without it, those of the web.
    pub ca_file: Option<PathBuf>,
    /// Which column holds what.
    pub columns: OutboxColumns,
    /// Whether a row's number is its message ID: no column holds one, and the queue reads none out of the message.
    pub numbers_are_ids: bool,
    /// Whether rows that are copied are deleted.
    pub delete_copied: bool,
    /// How often it is looked at when it has nothing.
    pub poll: Duration,
    /// A channel on which the database notifies of new rows.
    pub channel: Option<String>,
}

impl OutboxDefinition {
    /// Whether the message ID of a row can only be in its message: no column holds one, and the queue reads one there.
    pub(crate) fn ids_are_read(&self) -> bool {
        !self.numbers_are_ids && self.columns.message_id.is_none()
    }
}
