//! A PostgreSQL table as a source: which of its rows are final, in their order, read and made into messages.
//!
//! Nothing in here knows a queue or a definition. Whoever asks keeps the number of the last row it has stored.

mod connection;
mod error;
mod outbox;
mod row;
mod sql;
mod table;
mod tls;
mod watermark;

pub(crate) use crate::postgres::connection::ConnectOptions;
pub(crate) use crate::postgres::connection::TlsMode;
pub(crate) use crate::postgres::connection::check_url;
pub(crate) use crate::postgres::error::SourceError;
pub(crate) use crate::postgres::outbox::Outbox;
pub(crate) use crate::postgres::outbox::OutboxLook;
pub(crate) use crate::postgres::outbox::Wakeup;
pub(crate) use crate::postgres::row::OutboxRow;
pub use crate::postgres::sql::OutboxColumns;
pub(crate) use crate::postgres::sql::TableName;
pub(crate) use crate::postgres::sql::check_name;
