//! Every bound of the command line, each with its reason.

use std::time::Duration;

/// Lines of a feed that are sent in one request: as many as the engine takes in one commit.
pub(crate) const FEED_LINES_MAX: usize = seriatim::limits::SEND_BATCH_MAX;

/// Bytes of a feed's lines in one request; a line that is longer goes alone.
pub(crate) const FEED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes that are read of an input at once.
pub(crate) const INPUT_BUFFER_BYTES: usize = 1024 * 1024;

/// Longest line that is read: the largest body as base64, and its headers.
pub(crate) const LINE_BYTES_MAX: u64 = 96 * 1024 * 1024;

/// Longest body given as a file or on stdin; the daemon's limit is lower, and says so.
pub(crate) const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often messages that the daemon has no room for are sent again in a row, none of them accepted, before they count as refused.
pub(crate) const FEED_RETRIES_MAX: usize = 60;

/// Longest wait before it is sent again, whatever the daemon says.
pub(crate) const FEED_RETRY_WAIT_MAX: Duration = Duration::from_secs(60);

/// How long a daemon may take to end in order when whoever started it is gone: its NATS servers may be, too.
pub(crate) const ORPHAN_STOP: Duration = Duration::from_secs(3);

/// Entries of a listing that are asked for at once.
pub(crate) const PAGE: usize = 500;

/// Messages of an export that are asked for at once: each comes with its body.
pub(crate) const EXPORT_PAGE: usize = 100;

/// Workflows of an import that are told at once where they stand: each takes some requests, one after the other.
pub(crate) const CURSORS_AT_ONCE: usize = 16;

/// Workflows or dead letters one request of a bulk operation handles, so that it answers soon and can be interrupted.
pub(crate) const BULK_PAGE: usize = 200;

/// Letters of an error that stand in a table; `show` prints all.
pub(crate) const ERROR_LETTERS: usize = 80;

/// Newest attempts of a workflow of which is printed what their handlers wrote; `show` of one message prints all that is kept.
pub(crate) const OUTPUTS_SHOWN: usize = 3;

/// How long the queues of `dev` remember how messages have ended: as long as anybody tries something out.
pub(crate) const HISTORY_OF_DEV: Duration = Duration::from_secs(24 * 60 * 60);

/// Letters of a state that are printed.
pub(crate) const STATE_LETTERS: usize = 2_000;

/// Workflows that do not go on of which `top` shows the first: more than anybody reads down.
pub(crate) const TOP_ROWS: usize = 200;

/// Messages of a workflow that `top` shows: what a tall terminal has room for.
pub(crate) const TOP_MESSAGES: usize = 50;

/// How often `top` asks the daemon.
pub(crate) const TOP_INTERVAL: Duration = Duration::from_secs(1);

/// Keys that wait to be taken: those of a paste beyond it wait in the terminal.
pub(crate) const KEYS_WAITING: usize = 64;

/// How far the daemon's clock may be from ours before that is worth a warning.
pub(crate) const CLOCKS_APART: Duration = Duration::from_secs(5);

/// How long a daemon that a fault has stopped goes on answering that it has: as often as most look after its health.
pub(crate) const FAULT_SHOWN: Duration = Duration::from_secs(10);

/// How long after a signal another one is the same, handed on by whoever has started us; a person needs longer to insist.
pub(crate) const SAME_SIGNAL: Duration = Duration::from_millis(300);

/// Longest wait that is asked of the daemon at once: what it grants.
pub(crate) const RECEIVE_WAIT: Duration = seriatim::limits::HTTP_WAIT_MAX;
