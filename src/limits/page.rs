//! Bounds of the web page: what one screen shows, and how long somebody is known.

use std::time::Duration;

/// Workflows that are looked at, every few seconds, to count those that wait for a predecessor.
pub const GAP_LOOKS: usize = 2_048;

/// Minutes of which rates are kept: an hour tells whether something is new.
pub const RATE_MINUTES: usize = 60;

/// Queues of which rates are kept in memory: about a kilobyte each.
pub const RATE_QUEUES: usize = 1_000;

/// Rows of a list on one screen: more is behind a link, so that a screen stays below 300 kB.
pub const SCREEN_ROWS: usize = 50;

/// Rules that a screen shows of one subscription: a topic may have very many, and the API and the command line list all.
pub const SCREEN_RULES: usize = 20;

/// Messages that the picture of a workflow shows, from its head on.
pub const SCREEN_PLACES: usize = 40;

/// Messages that have ended in the picture of a workflow, newest first.
pub const SCREEN_ENDED: usize = 12;

/// Bytes of a body, as they are written into a screen, beyond which it is cut: the rest is downloaded.
pub const SCREEN_BODY_BYTES: usize = 96 * 1024;

/// Bytes of what a handler wrote in one attempt, as they are written into a screen.
pub const SCREEN_OUTPUT_BYTES: usize = 4 * 1024;

/// Workflows or dead letters that one request of a bulk action works on: progress is seen, and it can be interrupted.
pub const SCREEN_SLICE: usize = 100;

/// Pages of the API that one screen asks for when those before were empty: 50,000 workflows are looked at.
pub const SCREEN_LOOKS: usize = 5;

/// Bytes of a form: a selection of rows, or the body of a message that is edited, percent-encoded.
pub const FORM_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of forms that are read at once.
pub const FORMS_BYTES: usize = 32 * 1024 * 1024;

/// How long somebody who has shown a key is known: a working day.
pub const SESSION_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Sessions at once; beyond it, the oldest ends.
pub const SESSIONS_MAX: usize = 1_024;
