//! Bounds of sources: how much is read of a PostgreSQL table at once, and how long is waited for its server.

use std::time::Duration;

/// Rows that are copied in one transaction: with the source's own message they fit into one completion.
pub const SOURCE_ROWS_AT_ONCE: usize = 1_000;

/// Bytes of rows that are copied in one transaction, and so are in memory at once; a single row may have more.
pub const SOURCE_BYTES_AT_ONCE: usize = 8 * 1024 * 1024;

/// The longest text in a column beside the body that is read: no ID, subject or properties of a message can be as long.
pub const SOURCE_TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Most messages that wait beside a source for other partitions before no more is copied: a few turns of it.
pub const SOURCE_OUTBOX_MAX: u64 = 5_000;

/// How often a table is looked at, unless its definition says otherwise: a look that finds nothing costs the server about
/// a tenth of a millisecond.
pub const SOURCE_POLL_DEFAULT: Duration = Duration::from_secs(1);

/// The shortest time between two looks at a table that has nothing: more often is a notification's work.
pub const SOURCE_POLL_MIN: Duration = Duration::from_millis(10);

/// The longest time between two looks at a table.
pub const SOURCE_POLL_MAX: Duration = Duration::from_secs(60 * 60);

/// How soon a table is looked at again while a transaction that is still open keeps rows back.
pub const SOURCE_HELD_POLL: Duration = Duration::from_millis(100);

/// The first wait after a source has failed; it doubles with each failure that follows.
pub const SOURCE_RETRY_FIRST: Duration = Duration::from_millis(250);

/// The longest wait after a source has failed.
pub const SOURCE_RETRY_MAX: Duration = Duration::from_secs(30);

/// How long connecting to a PostgreSQL server may take.
pub const SOURCE_CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long one statement of a source may take: a server that says nothing for so long is gone.
pub const SOURCE_STATEMENT_MAX: Duration = Duration::from_secs(60);

/// How long connections may be silent before the server is asked whether it is there.
pub const SOURCE_KEEPALIVE: Duration = Duration::from_secs(30);

/// Rows that are counted to say how far a source is behind; where there are more, the answer says so.
pub const SOURCE_LAG_ROWS: i64 = 10_000;

/// Transactions that are remembered as being waited for: a server has no more connections.
pub const SOURCE_TRANSACTIONS_MAX: usize = 10_000;

/// Bytes of the name of a table, a column or a channel: longer ones PostgreSQL cuts off.
pub const POSTGRES_NAME_BYTES_MAX: usize = 63;
