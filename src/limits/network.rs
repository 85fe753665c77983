//! Bounds of what goes over the network: HTTP, AMQP, storage queues, and who asks elsewhere.

use std::time::Duration;

use crate::limits::BODY_BYTES_MAX;
use crate::limits::LOCKS_MAX;
use crate::limits::SEND_BATCH_BYTES_MAX;

/// How long a client of a daemon waits for a connection.
pub const REMOTE_CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a client of a daemon waits for an answer, beyond what it asked the daemon to wait.
pub const REMOTE_ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Largest answer, or line of one, a client of a daemon takes: a few of the largest bodies as base64.
pub const REMOTE_ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Largest refusal a client of a daemon reads: a page of text.
pub const REMOTE_PROBLEM_BYTES_MAX: usize = 64 * 1024;

/// Default of how many HTTP connections may be open at once: each takes a task, a socket and its buffers.
pub const HTTP_CONNECTIONS_MAX: usize = 1_024;

/// HTTP connections one address may have open at once, unless it is this machine: one client must not take all.
pub const HTTP_CONNECTIONS_PER_ADDRESS_MAX: usize = 256;

/// Most bytes of the head of an HTTP request; properties that need more go into the envelope of an NDJSON line.
pub const HTTP_HEAD_BYTES_MAX: usize = 8 * 1024;

/// How long the head of a request may take from its first byte, or from the connection's start.
pub const HTTP_HEAD_PATIENCE: Duration = Duration::from_secs(5);

/// How long a connection may be idle between requests: longer than clients keep one, so that they close it first.
pub const HTTP_IDLE_MAX: Duration = Duration::from_secs(75);

/// How long a client may take nothing of an answer that waits for it.
pub const HTTP_WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// How long a body may take beside the time its bytes are worth at [`HTTP_BODY_RATE_MIN`].
pub const HTTP_BODY_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes a second a body must bring on average, as the slowest mobile networks do.
pub const HTTP_BODY_RATE_MIN: usize = 4 * 1024;

/// Largest body of a request with messages: as large as the largest batch.
pub const HTTP_MESSAGES_BYTES_MAX: usize = SEND_BATCH_BYTES_MAX;

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

/// Port of the HTTP server.
pub const HTTP_PORT: u16 = 7700;

/// How long a connection whose body was refused is read to its end: long enough for the refusal to arrive.
pub const HTTP_LINGER: Duration = Duration::from_secs(2);

/// Longest token of a shared access signature: a resource, a name and a signature are a few hundred bytes.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// How far the date of a signed request may be from now, in either direction: as storage accounts have it.
pub const REQUEST_AGE_MAX: Duration = Duration::from_secs(15 * 60);

/// Port of the endpoint for storage queues, as emulators have it.
pub const STORAGE_QUEUE_PORT: u16 = 10_001;

/// Longest text of a message of a storage queue in bytes, as Azure has it.
pub const STORAGE_TEXT_BYTES_MAX: usize = 64 * 1024;

/// Largest body of a request to a storage queue: each character of the longest text may be written as an entity of
/// six bytes.
pub const STORAGE_BODY_BYTES_MAX: usize = 6 * STORAGE_TEXT_BYTES_MAX + 1024;

/// Bytes of bodies that the endpoint for storage queues reads at once: more than eighty of the largest.
pub const STORAGE_BODIES_BYTES: usize = 32 * 1024 * 1024;

/// Most messages one request to a storage queue receives or peeks, as Azure has it.
pub const STORAGE_MESSAGES_MAX: usize = 32;

/// Longest time a message of a storage queue is hidden, and its time to live when the sender names none, as Azure has it.
pub const STORAGE_WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long a message of a storage queue is hidden when its receiver does not say, as Azure has it.
pub const STORAGE_HIDDEN_DEFAULT: Duration = Duration::from_secs(30);

/// Most queues in one page of a listing of storage queues, as Azure has it.
pub const STORAGE_QUEUES_MAX: usize = 5_000;

/// Most bytes of names and values of one storage queue's metadata, as Azure has it.
pub const STORAGE_METADATA_BYTES_MAX: usize = 8 * 1024;

/// Default lock of a queue that behaves like one of Service Bus.
pub const SERVICE_BUS_LOCK: Duration = Duration::from_secs(60);

/// Default window in which such a queue detects duplicates, if it does.
pub const SERVICE_BUS_DUPLICATE_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Deliveries known by token below which nobody looks for ones whose lock ran out.
pub const SERVICE_BUS_HOLDS_SWEPT_FROM: usize = 1_024;

/// Settled deliveries that are remembered, for a client that has not heard the answer and asks again.
pub const SERVICE_BUS_SETTLED_KEPT: usize = 4_096;

/// Port of the AMQP endpoint.
pub const AMQP_PORT: u16 = 5672;

/// AMQP connections that may be open at once, as in a namespace of Service Bus.
pub const SERVICE_BUS_CONNECTIONS_MAX: usize = 5_000;

/// Deepest nesting of an AMQP value: nothing that clients send needs more than five, and reading recurses.
pub const AMQP_DEPTH_MAX: usize = 32;

/// Most values that are read out of one frame or section: enough for a page of lock tokens, not for a bomb.
pub const AMQP_VALUES_MAX: usize = 65_536;

/// Most data sections of one AMQP message: in a batch, each is a message, and a batch is sent as a whole.
pub const AMQP_DATA_SECTIONS_MAX: usize = 4_096;

/// Largest AMQP frame in bytes that is taken, as Service Bus.
pub const AMQP_FRAME_BYTES_MAX: u32 = 64 * 1024;

/// Most sessions of one AMQP connection, as Service Bus: some SDKs begin one for each link.
pub const AMQP_CHANNELS_MAX: u16 = 5_000;

/// Most links of one AMQP session: other SDKs put all of a connection into one.
pub const AMQP_HANDLES_MAX: u32 = 1_024;

/// Most links of one AMQP connection: as many as it has sessions, so that each may have one.
pub const AMQP_LINKS_MAX: usize = 5_000;

/// Longest name of an AMQP link in bytes: it is kept as long as the link, and the SDKs write a name and a UUID.
pub const AMQP_LINK_NAME_BYTES_MAX: usize = 512;

/// Longest tag of an AMQP delivery in bytes, which the standard sets.
pub const AMQP_TAG_BYTES_MAX: usize = 32;

/// Most deliveries of one AMQP connection that are unsettled: as many as an engine has locks.
pub const AMQP_UNSETTLED_MAX: usize = LOCKS_MAX;

/// Transfer frames an AMQP peer may send before the window is opened again; half of it is a whole large message.
pub const AMQP_INCOMING_WINDOW: u32 = 2_048;

/// Bytes that may wait to be written to one AMQP peer, and bytes of messages it has sent in part: two of the largest
/// messages of a queue with the default limit.
pub const AMQP_BUFFERED_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// Silence of an AMQP peer that is taken for its end is twice this: a peer is told to speak this often.
pub const AMQP_IDLE_MS: u32 = 120_000;

/// How long an AMQP peer may take to open its connection, and to answer that it is closed.
pub const AMQP_OPEN_MS_MAX: u64 = 30_000;

/// Bytes that are read of an AMQP connection at once; they are on the stack meanwhile.
pub const AMQP_READ_BYTES: usize = 16 * 1024;

/// How long an AMQP client may take nothing of what waits for it.
pub const AMQP_WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// How long AMQP clients may take to say goodbye when the endpoint stops.
pub const AMQP_DRAIN_MAX: Duration = Duration::from_secs(5);

/// How long an AMQP connection may be without links, as in Service Bus.
pub const SERVICE_BUS_LINKLESS_MAX: Duration = Duration::from_secs(5 * 60);

/// Links of one connection; an SDK opens up to five for each session it holds.
pub const SERVICE_BUS_LINKS_MAX: usize = 16_384;

/// Largest message that a link of Service Bus takes: the largest body a queue has by default, and what is said beside it.
pub const SERVICE_BUS_MESSAGE_BYTES_MAX: u64 = 1024 * 1024 + 128 * 1024;

/// Messages a client may send before the first is answered.
pub const SERVICE_BUS_SEND_CREDIT: u32 = 1_000;

/// Requests a client may make before the first is answered.
pub const SERVICE_BUS_REQUEST_CREDIT: u32 = 100;

/// Answers that wait for a client to take them; beyond it, they are dropped.
pub const SERVICE_BUS_REQUESTS_MAX: usize = 1_000;

/// Bytes of messages of one connection that wait for a commit; beyond it, nothing more is read of it.
pub const SERVICE_BUS_SENDING_BYTES: usize = 8 * 1024 * 1024;

/// Messages of one link that are sent together at most.
pub const SERVICE_BUS_GROUP_MAX: usize = 512;

/// Bytes after which messages that came together are sent although there are more.
pub const SERVICE_BUS_GROUP_BYTES: usize = 4 * 1024 * 1024;

/// Messages that are fetched for one link at once, whatever its credit: they wait in memory for room in its connection.
pub const SERVICE_BUS_FETCH_MAX: usize = 256;

/// How long a client waits for any session that has work, if it does not say.
pub const SERVICE_BUS_SESSION_WAIT: Duration = Duration::from_secs(60);

/// Messages one look shows at most.
pub const SERVICE_BUS_PEEK_MAX: usize = 256;

/// Messages one look may pass over to find those of a session.
pub const SERVICE_BUS_LOOKS_MAX: usize = 1_000_000;

/// Bytes of messages in one answer; a client asks again from where it ends.
pub const SERVICE_BUS_ANSWER_BYTES: usize = 768 * 1024;

/// Smallest limit of frames an AMQP peer may have, which the standard sets.
pub const AMQP_FRAME_BYTES_MIN: u32 = 512;

/// Shortest idle time-out an AMQP peer may have: it is sent a heartbeat twice as often.
pub const AMQP_PEER_IDLE_MS_MIN: u32 = 200;

/// Tokens of one connection that count at once; the SDKs show one for each entity.
pub const SERVICE_BUS_TOKENS_MAX: usize = 1_024;
/// Most AMQP deliveries that one frame may end with annotations or an error, because each gets a copy of them; SDKs end
/// one so, and with a plain outcome as many as there are.
pub const AMQP_RANGE_WITH_MORE_MAX: usize = 256;

/// How long an AMQP connection that has ended is still read, so that its last frames arrive.
pub const AMQP_LINGER: Duration = Duration::from_secs(2);
