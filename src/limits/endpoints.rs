//! The bounds of the endpoints that speak as Azure does: signatures, storage queues, AMQP and Service Bus.

use std::time::Duration;

use crate::limits::BODY_BYTES_MAX;
use crate::limits::LOCKS_MAX;
use crate::limits::RECEIVE_BYTES_MAX;

/// Longest token of a shared access signature: a resource, a name and a signature are a few hundred bytes.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// How far the date of a signed request may be from now, in either direction: as storage accounts have it.
pub const REQUEST_AGE_MAX: Duration = Duration::from_secs(15 * 60);

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

/// Most bytes of the head of a request to storage queues: metadata, what stands before each of their names, and what programs add.
pub const STORAGE_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most stored access policies of one storage queue, as Azure has it.
pub const STORAGE_POLICIES_MAX: usize = 5;

/// Most characters of the ID of a stored access policy, as Azure has it.
pub const STORAGE_POLICY_ID_CHARS_MAX: usize = 64;

/// Most rules for pages of other origins that the properties of the storage queues keep, as Azure has it.
pub const STORAGE_CORS_RULES_MAX: usize = 5;

/// Most bytes of the texts of all these rules, as Azure has it.
pub const STORAGE_CORS_BYTES_MAX: usize = 2 * 1024;

/// Most days for which the properties of the storage queues may ask to keep logs and metrics, as Azure has it.
pub const STORAGE_RETENTION_DAYS_MAX: u32 = 365;

/// Longest selector in bytes: programs write conditions of some hundred, and each message that is looked at is judged by all of it.
pub const SELECTOR_BYTES_MAX: usize = 4 * 1024;

/// Deepest nesting of a selector: reading and judging recurse. Chains of AND, OR and sums are not nested.
pub const SELECTOR_DEPTH_MAX: usize = 32;

/// Longest pattern of LIKE in a selector, in characters: each character of a text is compared with a bit for each of it.
pub const SELECTOR_PATTERN_CHARS_MAX: usize = 256;

/// Looks at messages of which none is selected, after which a link lets others have their turn.
pub const SERVICE_BUS_LOOKS_AT_ONCE: usize = 16;

/// Default lock of a queue that behaves like one of Service Bus.
pub const SERVICE_BUS_LOCK: Duration = Duration::from_secs(60);

/// Default window in which such a queue detects duplicates, if it does.
pub const SERVICE_BUS_DUPLICATE_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Longest window in which an administration client lets an entity detect duplicates, as Service Bus has it.
pub const SERVICE_BUS_DUPLICATE_WINDOW_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Deliveries known by token below which nobody looks for ones whose lock ran out.
pub const SERVICE_BUS_HOLDS_SWEPT_FROM: usize = 1_024;

/// Settled deliveries that are remembered, for a client that has not heard the answer and asks again.
pub const SERVICE_BUS_SETTLED_KEPT: usize = 4_096;

/// AMQP connections that may be open at once, as in a namespace of Service Bus.
pub const SERVICE_BUS_CONNECTIONS_MAX: usize = 5_000;

/// Deepest nesting of an AMQP value: nothing that clients send needs more than five, and reading recurses.
pub const AMQP_DEPTH_MAX: usize = 32;

/// Most values that are read out of one frame or section: as many as the largest request to schedule messages has, not a
/// bomb. They take 8 MiB.
pub const AMQP_VALUES_MAX: usize = 262_144;

/// Most data sections of one AMQP message: in a batch, each is a message, and a batch is sent as a whole. The largest
/// message of Service Bus has room for no more that say anything, so that its bytes are the limit.
pub const AMQP_DATA_SECTIONS_MAX: usize = 65_536;

/// Largest AMQP frame in bytes that is taken, as Service Bus.
pub const AMQP_FRAME_BYTES_MAX: u32 = 64 * 1024;

/// Most sessions of one AMQP connection, as Service Bus: some SDKs begin one for each link.
pub const AMQP_CHANNELS_MAX: u16 = 5_000;

/// Most links of one AMQP connection: SDKs open up to five for each session of Service Bus that they hold.
pub const AMQP_LINKS_MAX: usize = 16_384;

/// Most links of one AMQP session: there are SDKs that put all of a connection into one.
pub const AMQP_HANDLES_MAX: u32 = AMQP_LINKS_MAX as u32;

/// Longest name of an AMQP link in bytes: it is kept as long as the link, and the SDKs write a name and a UUID.
pub const AMQP_LINK_NAME_BYTES_MAX: usize = 512;

/// Longest tag of an AMQP delivery in bytes. The standard sets 32; there are SDKs that write a UUID as text, with 36.
pub const AMQP_TAG_BYTES_MAX: usize = 64;

/// Most deliveries of one AMQP connection that are unsettled in each direction: as many as an engine has locks.
pub const AMQP_UNSETTLED_MAX: usize = LOCKS_MAX;

/// Transfer frames an AMQP peer may send before the window is opened again; half of it is a whole large message.
pub const AMQP_INCOMING_WINDOW: u32 = 2_048;

/// Bytes of messages, and as many of answers, that may wait to be written to one AMQP peer: two of the largest messages of a queue with the default limit.
pub const AMQP_BUFFERED_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// Room that is kept for what is to be written to one AMQP peer when nothing is: thousands of connections that say nothing need no more.
pub const AMQP_IDLE_OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of messages that one AMQP peer has sent in part: clients send over all links of a connection at once, each a batch as large as
/// a message may be, and this is thirty of those.
pub const AMQP_PARTIAL_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Silence of an AMQP peer that is taken for its end is twice this: a peer is told to speak this often.
pub const AMQP_IDLE_MS: u32 = 120_000;

/// How long an AMQP peer may take to open its connection, and to answer that it is closed.
pub const AMQP_OPEN_MS_MAX: u64 = 30_000;

/// How long a connection to the AMQP endpoint may take until it is known what it speaks, TLS included: as long as an AMQP
/// peer may take to open its connection.
pub const AMQP_ARRIVAL_MAX: Duration = Duration::from_millis(AMQP_OPEN_MS_MAX);

/// Bytes that wait for TLS or a WebSocket to take them: four of what is read at once, and one of the largest frames.
pub const AMQP_PIPED_BYTES: usize = 64 * 1024;

/// Largest message of a WebSocket that carries AMQP: it is in memory as a whole before any of it is read. The SDKs send a
/// frame of AMQP, at most 64 KiB, in each; others may send what waits.
pub const AMQP_WEBSOCKET_MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes that a WebSocket reads ahead, and holds back of what it writes.
pub const AMQP_WEBSOCKET_BUFFER_BYTES: usize = 16 * 1024;

/// Bytes that are read of an AMQP connection at once; they are on the stack meanwhile.
pub const AMQP_READ_BYTES: usize = 16 * 1024;

/// How long an AMQP client may take nothing of what waits for it.
pub const AMQP_WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of one segment of TCP on the AMQP endpoint. Clients with a receive buffer of 8 KiB, as .NET's, announce an empty
/// window after each of the 64 KiB that the loopback takes otherwise, and are then sent something five times a second.
pub const AMQP_SEGMENT_BYTES: u32 = 4_096;

/// Connections that the system keeps for the AMQP endpoint before they are accepted.
pub const AMQP_BACKLOG: i32 = 1_024;

/// How long AMQP clients may take to say goodbye when the endpoint stops.
pub const AMQP_DRAIN_MAX: Duration = Duration::from_secs(5);

/// How long an AMQP connection may be without links, as in Service Bus.
pub const SERVICE_BUS_LINKLESS_MAX: Duration = Duration::from_secs(5 * 60);

/// Longest that a client may wait for the next session that has work, whatever it says.
pub const SERVICE_BUS_SESSION_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Messages without a session that become dead letters before whoever waits for the next session is answered: each takes some
/// commits, and whoever asks again goes on behind them.
pub const SERVICE_BUS_SESSIONLESS_PASSED_MAX: usize = 256;

/// Scheduled messages of one request that are cancelled at the same time: as many as share a commit well.
pub const SERVICE_BUS_CANCELS_TOGETHER: usize = 256;

/// How much larger than announced a message over a link of Service Bus may be: the SDK for Python fills batches to the last
/// byte and does not count the headers around them, a copy of those of the first message.
pub const SERVICE_BUS_BATCH_BYTES_BEYOND: u64 = 8 * 1024;

/// Largest message that a link of Service Bus takes, whatever its queue does: a body of 4 MiB, and its headers and properties. A
/// connection may have seven of them in part in memory.
pub const SERVICE_BUS_MESSAGE_BYTES_MAX: u64 = 4 * 1024 * 1024 + 128 * 1024;

/// Messages a client may send before the first is answered.
pub const SERVICE_BUS_SEND_CREDIT: u32 = 1_000;

/// Requests over one link that may be unanswered: credit for the next is given when an answer is handed over.
pub const SERVICE_BUS_REQUEST_CREDIT: u32 = 100;

/// Answers that wait for a client to take them; beyond it, they are dropped.
pub const SERVICE_BUS_REQUESTS_MAX: usize = 1_000;

/// Bytes of an answer that always finds room among those that wait for a client: as many of them may wait as requests.
pub const SERVICE_BUS_REPLY_SMALL: usize = 4 * 1024;

/// Bytes of answers of one connection that wait for its client to take them: two of the largest receives by number. Beyond it, an answer
/// that is not small says that the server is busy.
pub const SERVICE_BUS_REPLYING_BYTES: usize = 2 * RECEIVE_BYTES_MAX;

/// Bytes of messages and requests of one connection that wait for a commit; beyond it, nothing more is read of it.
pub const SERVICE_BUS_SENDING_BYTES: usize = 8 * 1024 * 1024;

/// Messages that a client sends as one, as a batch or for later: as many as the data sections of a batch.
pub const SERVICE_BUS_BATCH_MAX: usize = AMQP_DATA_SECTIONS_MAX;

/// How long a transaction of Service Bus may be open, as there.
pub const SERVICE_BUS_TRANSACTION_LASTS: Duration = Duration::from_secs(2 * 60);

/// Open transactions of one connection. Clients have one, or one for each of their threads.
pub const SERVICE_BUS_TRANSACTIONS_MAX: usize = 64;

/// Messages of one link that are sent together at most.
pub const SERVICE_BUS_GROUP_MAX: usize = 512;

/// Bytes after which messages that came together are sent although there are more.
pub const SERVICE_BUS_GROUP_BYTES: usize = 4 * 1024 * 1024;

/// Messages that are fetched for one link at once, whatever its credit: they wait in memory for room in its connection.
pub const SERVICE_BUS_FETCH_MAX: usize = 256;

/// Bytes of messages that were fetched for all links of one connection together and wait in memory for room in it: two of the largest
/// fetches. Beyond it, nothing is fetched, and what comes goes back.
pub const SERVICE_BUS_BACKLOG_BYTES: usize = 2 * RECEIVE_BYTES_MAX;

/// Bytes of these that each link may fetch at once, however many there are: a single message is seldom larger.
pub const SERVICE_BUS_BACKLOG_SHARE: usize = 64 * 1024;

/// How long nothing is fetched for a link when as many deliveries are handed out as may be, or no node of a cluster has the partition: it
/// asks again as soon as one of its own is settled, and after this because others may have been.
pub const SERVICE_BUS_PAUSE: Duration = Duration::from_millis(250);

/// Deliveries of a connection that are settled at once in place of a client that never settles them, when it has as many as may be: a
/// frame goes out for each.
pub const SERVICE_BUS_FORGOTTEN_AT_ONCE: usize = 256;

/// How long a client that holds a session may settle what it has before it is told that the next message is too large for
/// it, and the session is given back: shorter than people wait for an error, longer than most handlers run.
pub const SERVICE_BUS_TOO_LARGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Messages that are remembered as too large for their receivers: each is looked at when somebody asks what is blocked.
pub const SERVICE_BUS_TOO_LARGE_KNOWN: usize = 256;

/// How long a message counts as too large for its receivers after one has found it so: clients that are still there come
/// back much sooner.
pub const SERVICE_BUS_TOO_LARGE_REMEMBERED: Duration = Duration::from_secs(3_600);

/// Parts of a lock's duration by which a receiver's settlements are counted: the rate is known to within a sixty-fourth, and
/// takes no more memory however fast the receiver is.
pub const SERVICE_BUS_RATE_SLOTS: u64 = 64;

/// Messages of one link of which is remembered that they lost their lock there, and messages that it was given up to settle:
/// more than any client buffers.
pub const SERVICE_BUS_LOST_KEPT: usize = 4_096;

/// How many lock durations a receiver may be silent at most before what it let run out does not count against its window
/// any more: as long as the slowest handler that still settles is likely to run.
pub const SERVICE_BUS_SILENCE_LOCKS_MAX: u64 = 16;

/// For how many lock durations a new link starts with the window that the last one of its queue had.
pub const SERVICE_BUS_WINDOW_KEPT_LOCKS: u64 = 10;

/// How long a client waits for any session that has work, if it does not say.
pub const SERVICE_BUS_SESSION_WAIT: Duration = Duration::from_secs(60);

/// Messages that one request deletes at most, as in Service Bus.
pub const SERVICE_BUS_DELETES_MAX: usize = 4_000;

/// Messages that one such request passes over because they are younger than it says: they are locked meanwhile, and more than it deletes
/// are not worth that.
pub const SERVICE_BUS_DELETES_PASSED_MAX: usize = SERVICE_BUS_DELETES_MAX;

/// Messages one look shows at most.
pub const SERVICE_BUS_PEEK_MAX: usize = 256;

/// How long a link that looks at messages, and has been shown all, waits before it looks for more.
pub const SERVICE_BUS_BROWSE_EVERY: Duration = Duration::from_secs(1);

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

/// How long a connection may be without a token where there are keys: clients show one before they do anything else.
pub const SERVICE_BUS_STRANGER_MAX: Duration = Duration::from_secs(60);

/// The most links of a connection that has shown no token where there are keys: clients need two to show one.
pub const SERVICE_BUS_STRANGER_LINKS_MAX: usize = 16;

/// The most bytes of a request to a coordinator, or of one that shows a token.
pub const SERVICE_BUS_SMALL_REQUEST_BYTES_MAX: u64 = 64 * 1024;

/// The most bytes of an address: the longest path of an entity, and what may stand below one, are shorter.
pub const SERVICE_BUS_ADDRESS_BYTES_MAX: usize = 2 * 1_024;

/// Most AMQP deliveries that one frame may end with annotations or an error, because each gets a copy of them; SDKs end
/// one so, and with a plain outcome as many as there are.
pub const AMQP_RANGE_WITH_MORE_MAX: usize = 256;

/// How long an AMQP connection that has ended is still read, so that its last frames arrive.
pub const AMQP_LINGER: Duration = Duration::from_secs(2);

/// Largest document of an administration client: the longest rules of Service Bus are a few KiB.
pub const SERVICE_BUS_DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// Most namespaces that a document in XML declares, because each is compared with all around it: one a value of a filter, as
/// some clients of Service Bus write them.
pub const XML_NAMESPACES_MAX: usize = 512;

/// Most attributes of a document in XML, because each is compared with all of its element: three a value of a filter.
pub const XML_ATTRIBUTES_MAX: usize = 4_096;

/// Bytes of such documents that are read at once: 32 of the largest.
pub const SERVICE_BUS_DOCUMENTS_BYTES: usize = 8 * 1024 * 1024;

/// Most entries in one page of a list that an administration client asks for, as Service Bus has it.
pub const SERVICE_BUS_PAGE_MAX: usize = 100;

/// Longest text that a client keeps with an entity, as Service Bus has it.
pub const SERVICE_BUS_METADATA_CHARS_MAX: usize = 1_024;

/// Longest text of a field that is only returned: they are flags, numbers and spans.
pub const SERVICE_BUS_TOLD_CHARS_MAX: usize = 64;

/// Most authorization rules of one entity, as Service Bus has it.
pub const SERVICE_BUS_AUTHORIZATION_RULES_MAX: usize = 12;

/// Shortest time after which an idle entity is deleted, as Service Bus has it.
pub const SERVICE_BUS_IDLE_MIN: Duration = Duration::from_secs(5 * 60);

/// How often a message is forwarded at most, as Service Bus has it: a circle of entities ends so.
pub const SERVICE_BUS_FORWARDS_MAX: i64 = 4;

/// Most messages that are forwarded in one commit: enough that a disk is not what limits them.
pub const SERVICE_BUS_FORWARD_BATCH: usize = 64;

/// How often a node of a cluster looks whether another one has said something new of an entity.
pub const SERVICE_BUS_DESCRIPTIONS_LOOK: Duration = Duration::from_secs(1);

/// How long an entity that cannot forward waits until it tries again.
pub const SERVICE_BUS_FORWARD_RETRY: Duration = Duration::from_secs(5);
