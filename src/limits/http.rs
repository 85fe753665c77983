//! Bounds of HTTP: what comes in, and who asks elsewhere.

use std::time::Duration;

use crate::limits::SEND_BATCH_BYTES_MAX;

/// How long a client of a daemon waits for a connection.
pub const REMOTE_CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a connection to one address of a name may take before the next is tried beside it, as RFC 8305 recommends.
pub const REMOTE_ADDRESS_STAGGER: Duration = Duration::from_millis(250);

/// Addresses of a name that are tried: with the last of them, more than half of [`REMOTE_CONNECT_MAX`] is left.
pub const REMOTE_ADDRESSES_MAX: usize = 16;

/// How long a client of a daemon waits for an answer to begin, beyond what it asked the daemon to wait, and then for each part
/// of it.
pub const REMOTE_ANSWER_WAIT: Duration = Duration::from_secs(60);

/// How long an answer may take in all while parts of it come in time: the largest one on a line of 75 kB a second.
pub const REMOTE_ANSWER_MAX: Duration = Duration::from_secs(60 * 60);

/// How long a client of a daemon asks again what may be asked again when nobody answers: a daemon that is started anew is back
/// by then.
pub const REMOTE_REPEAT_FOR: Duration = Duration::from_secs(10);

/// Its pauses between two tries, of which the last comes again and again: a connection that broke is there at once, and who
/// starts needs longer. With [`REMOTE_REPEAT_FOR`] they bound the tries, too.
pub const REMOTE_REPEAT_PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// How long a daemon that tells what happens is silent before it counts as gone: four heartbeats, so that one on a slow way
/// and a busy daemon are waited for.
pub const REMOTE_SILENCE_MAX: Duration = HTTP_HEARTBEAT.saturating_mul(4);

/// Largest answer, or line of one, a client of a daemon takes: a few of the largest bodies as base64.
pub const REMOTE_ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Largest refusal a client of a daemon reads: a page of text.
pub const REMOTE_PROBLEM_BYTES_MAX: usize = 64 * 1024;

/// Default of how many HTTP connections may be open at once: each takes a task, a socket and its buffers.
pub const HTTP_CONNECTIONS_MAX: usize = 1_024;

/// HTTP connections one address may have open at once, or one network of 64 bits of IPv6, unless it is this machine: one client must
/// not take all.
pub const HTTP_CONNECTIONS_PER_ADDRESS_MAX: usize = 256;

/// Of them, how many are kept for this machine (loopback, and a socket of the file system): others must not lock out its operator, who
/// needs one for the command line and a few for a browser.
pub const HTTP_CONNECTIONS_KEPT: usize = 16;

/// Most bytes of the head of an HTTP request; properties that need more go into the envelope of an NDJSON line.
pub const HTTP_HEAD_BYTES_MAX: usize = 8 * 1024;

/// How long the head of a request may take from its first byte, or from the connection's start.
pub const HTTP_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may be idle between requests: longer than clients keep one, so that they close it first.
pub const HTTP_IDLE_MAX: Duration = Duration::from_secs(75);

/// How long a client may take nothing of an answer that waits for it.
pub const HTTP_WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes a second that have to be taken, on average beside [`HTTP_WRITE_TIMEOUT`], of what waits to be written, as of a body: who takes a
/// few every half minute would keep a large answer in memory for ever.
pub const HTTP_ANSWER_RATE_MIN: u32 = 4 * 1024;

/// How long a body may take beside the time its bytes are worth at [`HTTP_BODY_RATE_MIN`].
pub const HTTP_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes a second a body must bring on average, as the slowest mobile networks do.
pub const HTTP_BODY_RATE_MIN: usize = 4 * 1024;

/// Largest body of a request with messages: as large as the largest batch.
pub const HTTP_MESSAGES_BYTES_MAX: usize = SEND_BATCH_BYTES_MAX;

/// Largest body of a message that is read before it is asked how much its queue takes.
pub const HTTP_BODY_SMALL_BYTES: u64 = 16 * 1024;

/// Largest body of any other request: a state, or what is sent with a completion, as base64.
pub const HTTP_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of all bodies that are being read or wait to be sent to the engine; beyond it, senders are told to come back.
pub const HTTP_BODIES_BYTES: usize = 256 * 1024 * 1024;

/// Longest wait of one receive over HTTP: what stands between client and server cuts longer ones.
pub const HTTP_WAIT_MAX: Duration = Duration::from_secs(60);

/// How long requests may take to end when the server stops.
pub const HTTP_DRAIN_MAX: Duration = Duration::from_secs(10);

/// Most keys of one server: every one is compared with each request.
pub const HTTP_KEYS_MAX: usize = 1_024;

/// Shortest key: 256 bits take 43 characters of base64, and a shorter text may be a password.
pub const HTTP_KEY_BYTES_MIN: usize = 43;

/// Workflows one HTTP request may look at to find those it asks for; it is told where to go on.
pub const HTTP_LOOKS_MAX: usize = 10_000;

/// Messages one HTTP request may look at to find those with a property; it is told where to go on.
pub const SEARCH_LOOKS: usize = 2_000;

/// Messages that a search looks at in one go: each comes with its body.
pub const SEARCH_PAGE: usize = 64;

/// Workflows that are looked at in one go, so that others are served between.
pub const HTTP_PAGE: usize = 256;

/// How often a listener to events hears something, so that what stands between does not take the connection for dead.
pub const HTTP_HEARTBEAT: Duration = Duration::from_secs(15);

/// Bytes of messages from which on a part of an NDJSON batch is sent to the engine while the next is read.
pub const HTTP_CHUNK_BYTES: usize = 2 * 1024 * 1024;

/// Parts of one NDJSON batch that are on their way to the disk at once: enough that reading never waits for it.
pub const HTTP_CHUNKS_UNDER_WAY: usize = 8;

/// Bytes of an NDJSON answer that wait for their client: many send everything before they read anything.
pub const HTTP_ANSWERS_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of an NDJSON answer from which on it is sent before the batch has ended.
pub const HTTP_ANSWER_HELD_BYTES: usize = 1024 * 1024;

/// How long a connection to a receiver of posts is kept for the next: shorter than receivers keep one, so that a post
/// seldom meets one that is being closed.
pub const OUTBOUND_IDLE_MAX: Duration = Duration::from_secs(15);

/// Bytes of properties that go into the headers of a post: a server takes a head of 8 KiB at least.
pub const PROPERTY_HEADERS_BYTES_MAX: usize = 4 * 1024;

/// How often an error that every connection meets is logged.
pub const COMPLAINTS_EVERY: Duration = Duration::from_secs(1);

/// Port of the HTTP server.
pub const HTTP_PORT: u16 = 7700;

/// How long a connection whose body was refused is read to its end: long enough for the refusal to arrive.
pub const HTTP_LINGER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use crate::limits;

    /// A number as people write it.
    fn written(number: usize) -> String {
        match number {
            0..1_000 => number.to_string(),
            _ => format!("{},{:03}", written(number / 1_000), number % 1_000),
        }
    }

    #[test]
    fn the_pages_say_the_limits_as_they_are() {
        let page = include_str!("../../docs/http.md");
        assert_eq!(limits::WORKFLOW_ID_CHARS_MAX, limits::MESSAGE_ID_CHARS_MAX, "they have one row");
        for (what, most) in [
            ("a workflow ID, a message ID", format!("{} characters", limits::WORKFLOW_ID_CHARS_MAX)),
            ("an idempotency key", format!("{} bytes", limits::IDEMPOTENCY_KEY_BYTES_MAX)),
            (
                "a subject, a content type, a correlation ID, a reply-to",
                format!("{} bytes", written(limits::HEADER_BYTES_MAX)),
            ),
            ("all properties of a message", format!("{} KiB", limits::PROPERTIES_BYTES_MAX >> 10)),
            ("the state of a workflow", format!("{} MiB", limits::STATE_BYTES_MAX >> 20)),
            ("locks at once, of one engine", written(limits::LOCKS_MAX)),
            ("receivers that wait, of one engine", written(limits::RECEIVERS_MAX)),
            (
                "idempotency keys that one queue remembers",
                written(usize::try_from(limits::IDEMPOTENCY_KEYS_MAX).unwrap()),
            ),
            ("keys in a file of keys", written(limits::HTTP_KEYS_MAX)),
            ("queues in one store", written(limits::QUEUES_MAX)),
        ] {
            let row = format!("| {what} | {most} |");
            assert!(page.contains(&row), "{row}");
        }
        let looks = format!("more than {} workflows or dead letters", written(limits::HTTP_LOOKS_MAX));
        assert!(page.contains(&looks), "{looks}");
        let page = include_str!("../../docs/definitions.md");
        let most =
            format!("at most {} handlers and {} schedules", limits::HANDLERS_MAX, limits::SCHEDULES_MAX);
        assert!(page.contains(&most), "{most}");
    }
}
