//! What goes wrong between a source and its server, each in a sentence that stands alone.

use std::error::Error as _;

use thiserror::Error;
use tokio_postgres::error::SqlState;

use crate::error::Misuse;
use crate::limits;

/// Why a source cannot go on.
#[derive(Debug, Error)]
pub(crate) enum SourceError {
    /// The server cannot be reached, or lets nobody in.
    #[error("cannot connect to PostgreSQL at {server}: {problem}")]
    Connect {
        /// Host and port, without user or password.
        server: String,
        /// What the server or the network says.
        problem: String,
    },
    /// A statement failed, or the connection broke.
    #[error("cannot read PostgreSQL table {table}: {problem}")]
    Read {
        /// The table.
        table: String,
        /// What the server says.
        problem: String,
    },
    /// Rows that were copied stay where they are.
    #[error("cannot delete copied rows of PostgreSQL table {table}: {problem}")]
    Delete {
        /// The table.
        table: String,
        /// What the server says.
        problem: String,
    },
    /// The table is not one that can be copied in order.
    #[error("cannot use PostgreSQL table {table}: {problem}")]
    Table {
        /// The table.
        table: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A row is no message.
    #[error("cannot copy row {id} of PostgreSQL table {table}: {problem}")]
    Row {
        /// The table.
        table: String,
        /// The row's number.
        id: i64,
        /// What is wrong with it.
        problem: String,
    },
    /// Something that is needed to connect cannot be used.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

/// What a server or a connection says, without the layers of the library around it.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(db_error) = error.as_db_error() {
        let hint = db_error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint}", db_error.message());
    }
    let mut problem = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !problem.contains(&text) {
            problem = format!("{problem}: {text}");
        }
        source = cause.source();
    }
    problem
}

/// What failed while connecting, with what helps against it.
pub(crate) fn refused(error: &tokio_postgres::Error) -> String {
    let problem = describe(error);
    match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            format!("{problem}: see to the user in `postgres` and to `password_file` or `password_env`")
        }
        _ => problem,
    }
}

/// The text for a server that does not answer.
pub(crate) fn late(what: &str) -> String {
    let most = match what {
        "connecting" => limits::SOURCE_CONNECT_MAX,
        _ => limits::SOURCE_STATEMENT_MAX,
    };
    format!("{what} took more than {} s", most.as_secs())
}
