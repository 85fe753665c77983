//! Bounds and defaults that users see or several modules share, each with its reason; one that tunes a single file stands
//! there.

use std::time::Duration;

mod cluster;
mod endpoints;
mod http;
mod page;
mod postgres;
mod processing;
mod receiving;
mod topics;

pub use crate::limits::cluster::*;
#[doc(hidden)]
pub use crate::limits::endpoints::*;
#[doc(hidden)]
pub use crate::limits::http::*;
#[doc(hidden)]
pub use crate::limits::page::*;
#[doc(hidden)]
pub use crate::limits::postgres::*;
pub use crate::limits::processing::*;
pub use crate::limits::receiving::*;
pub use crate::limits::topics::*;

/// Most steps of one transaction: as many messages as Service Bus takes in one, each with a settlement, and room to spare. They
/// are one turn, for which everybody else waits.
pub const TRANSACTION_STEPS_MAX: usize = 1_024;

/// Longest name of a queue in bytes: a name is also a file name of a definition and a part of a URL.
pub const QUEUE_NAME_BYTES_MAX: usize = 128;

/// Longest workflow ID in characters, as Service Bus session IDs; in UTF-8 a character has up to four bytes.
pub const WORKFLOW_ID_CHARS_MAX: usize = 128;

/// Longest message ID in characters, as Service Bus.
pub const MESSAGE_ID_CHARS_MAX: usize = 128;

/// Longest text of an idempotency key in bytes, as a message ID.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;

/// How long the answer to a send with an idempotency key is kept to be given again: longer than any client that has
/// heard nothing goes on trying.
pub const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Most answers that one queue, or all topics together, keep for idempotency keys; beyond it, a send with a new key is
/// refused, because forgetting one early would break its promise. It allows 1,600 such sends a second.
pub const IDEMPOTENCY_KEYS_MAX: u64 = 1_000_000;

/// Longest subject, content type, correlation ID or reply-to in bytes: headers are kept in memory while handed out.
pub const HEADER_BYTES_MAX: usize = 1024;

/// All names and values of a message's properties together, in bytes, as Service Bus.
pub const PROPERTIES_BYTES_MAX: usize = 64 * 1024;

/// What an endpoint keeps of a message beside its body and what it has words for, in bytes: four times the properties,
/// because those of one letter need so much room in AMQP, and what AMQP says beside them.
pub const KEPT_BYTES_MAX: usize = 4 * PROPERTIES_BYTES_MAX;

/// Most bytes of what a handler wrote that stay with one attempt: the end of a deep stack trace.
pub const OUTPUT_KEPT_BYTES_MAX: usize = 4 * 1024;

/// Most bytes of that in all attempts of one message together, the newest first: a message's record is written anew with
/// each hand-out and each failure.
pub const OUTPUTS_KEPT_BYTES_MAX: usize = 8 * 1024;

/// Longest reason and description of a dead letter that a receiver gives, in characters: as Service Bus has it.
pub const DEAD_LETTER_TEXT_CHARACTERS_MAX: usize = 4_096;

/// Longest failure reason or hold reason in bytes: it is shown in one line.
pub const REASON_BYTES_MAX: usize = 1024;

/// Longest description in bytes of what an operator does, enough for a stack trace's top.
pub const DESCRIPTION_BYTES_MAX: usize = 4096;

/// Longest name of an actor in bytes: it is shown in one column.
pub const ACTOR_BYTES_MAX: usize = 128;

/// Entries of the audit that are kept; with each one more, the oldest is dropped. At 200 bytes each they take 20 MB.
pub const AUDIT_KEPT: u64 = 100_000;

/// The newest entries of the audit that are looked through for those of one workflow, each time that somebody looks at it.
pub const AUDIT_LOOKS: u64 = 2_000;

/// Default of how many ended messages a queue remembers that has a history: with their rows in three tables they take
/// some tens of MB.
pub const HISTORY_MAX: u64 = 100_000;

/// Most cursors of forgotten workflows that a queue may remember, and its default: with their rows in two tables they take
/// about 1 GB.
pub const CURSORS_MAX: u64 = 10_000_000;

/// Default of how long the cursor of a forgotten workflow is remembered: longer than anybody resends.
pub const REMEMBER_CURSOR_DEFAULT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How often at most remembered cursors are looked through for what is too old: what one look removes is cheaper than many looks.
pub const CURSORS_FORGET_EVERY: Duration = Duration::from_secs(1);

/// How often at most a history is looked through for what is too old: what one look removes is cheaper than many looks.
pub const HISTORY_FORGET_EVERY: Duration = Duration::from_secs(1);

/// Default of the largest body of a message in bytes; a queue may set another up to [`BODY_BYTES_CEILING`].
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The largest body any queue may allow: a body is written in one commit and read in one piece.
pub const BODY_BYTES_CEILING: usize = 64 * 1024 * 1024;

/// Largest state of one workflow in bytes, as a premium Service Bus session.
pub const STATE_BYTES_MAX: usize = 1024 * 1024;

/// Most queues in one file: their options and counters are read at open and kept in memory.
pub const QUEUES_MAX: usize = 10_000;

/// Most messages in one `send_batch` or one `complete_with`: one command must not own a whole turn.
pub const SEND_BATCH_MAX: usize = 1_024;

/// Most bytes of bodies and headers in one command, so that a turn's memory stays bounded.
pub const SEND_BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most deliveries that are completed together: as many as one receive may hand out.
pub const COMPLETE_ALL_MAX: usize = RECEIVE_MAX;

/// Most deliveries that the holder of a whole workflow has at once: each is listed in the holding's record.
pub const ACCEPTED_AHEAD_MAX: usize = 256;

/// How long nothing has to be asked before the engine moves what its journal has to where it stays: longer than the breaks
/// between two requests of somebody who is at work.
pub const IDLE_AFTER: Duration = Duration::from_millis(500);

/// How often the hot loop looks for the next request before it sleeps, where requests follow each other at once: for some fifty
/// millionths of a second, if nothing else is to run.
pub const LINGER_LOOKS: usize = 200;

/// Up to which wait of the hot loop lingering is worth it: as long as [`LINGER_LOOKS`] take, and as being woken took.
pub const LINGER_WAIT: Duration = Duration::from_micros(120);

/// How long a settlement is remembered, so that it is answered as it was when it is asked again: longer than any client that
/// has heard nothing goes on asking.
pub const SETTLEMENTS_KEPT_FOR: Duration = Duration::from_secs(60);

/// Most settlements that are remembered, the oldest makes room: with 64 bytes each, more for one that says more, and an
/// index once somebody asks for one, they take 17 to 60 MB. It is a minute of 4,000 settlements a second.
pub const SETTLEMENTS_KEPT: usize = if cfg!(test) { 2_048 } else { 262_144 };

/// Shortest lock: below it, renewing costs more than handling.
pub const LOCK_MIN: Duration = Duration::from_secs(1);

/// Longest lock: a holder that died is noticed within half a day.
pub const LOCK_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Default lock.
pub const LOCK_DEFAULT: Duration = Duration::from_secs(30);

/// Default of the highest delivery count, as Service Bus.
pub const DELIVERY_COUNT_MAX: u32 = 10;

/// Attempts that stay with a message, newest last: enough to see a pattern, small enough to rewrite each time.
pub const ATTEMPTS_KEPT: usize = 8;

/// Default wait for a missing position before the gap policy acts.
pub const GAP_WAIT_DEFAULT: Duration = Duration::from_secs(10 * 60);

/// Default of how many early messages one workflow may have waiting.
pub const EARLY_MAX: u64 = 1_000_000;

/// Default of how many bytes of early messages one workflow may have waiting.
pub const EARLY_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Default of how many messages a queue may store.
pub const MESSAGES_MAX: u64 = 100_000_000;

/// Default of how many dead letters a queue may keep: more than anybody looks through, and a tenth of what it may store, so
/// that what nobody looks at does not fill the disk.
pub const DEAD_LETTERS_MAX: u64 = 10_000_000;

/// The part of a queue's limit by which drains may exceed it, as a divisor: enough for the messages that stored ones wait
/// for, and for what completions send, so that a full queue can always be drained.
pub const DRAIN_ROOM: u64 = 8;

/// Default time after which an idle workflow with nothing stored forgets its cursor.
pub const FORGET_AFTER_DEFAULT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Longest time to live, delay, window or idle time: beyond it, "never" is meant.
pub const DURATION_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// First sequence number and position that are refused: the top 16 bits are reserved for the partition, and a
/// number near the end of its range must never wrap.
pub const NUMBER_END: u64 = 1 << 48;

/// Settled links of an after-ordered workflow that are remembered, so that a resend is recognised.
pub const LINKS_KEPT: u64 = 1_000_000;

/// Links dropped at most when a message of an after-ordered workflow is settled: more than one, so that what a jump of the
/// cursor left behind is caught up with.
pub const LINKS_TRIMMED: usize = 16;

/// Early messages one command may join to the run at the head; the rest follows in the next turns.
pub const EXTEND_MAX: usize = 4_096;

/// Most messages of a rate in its time, and of its burst: more than one thread hands out in a second anyway.
pub const RATE_MAX: u32 = 1_000_000;

/// Places that one command may take out of a run again, because one before them was given back; the rest follows in the next
/// turns. Fewer than it may join: each changes several rows.
pub const SHORTEN_MAX: usize = 1_024;

/// Messages one sweep (quarantine, redrive, purge, recovery) moves in one turn, so that others are served between.
pub const SWEEP_MAX: usize = 512;

/// Requests the inbox takes before senders wait: more would only lengthen the queue in memory.
pub const INBOX_MAX: usize = 4_096;

/// Bytes of bodies for which a request takes a further place in the inbox, so that memory is bounded too (256 MiB).
pub const INBOX_PLACE_BYTES: usize = 64 * 1024;

/// Longest sleep of the hot loop while something is due later: the wall clock can be set meanwhile.
pub const SLEEP_MAX: Duration = Duration::from_secs(10);

/// Requests one turn takes from the inbox; a turn's memory and latency stay bounded.
pub const TURN_MAX: usize = 1_024;

/// Rows one turn writes before it leaves the rest to the next: commands that each move many messages would hold all up for seconds.
pub const TURN_ROWS_MAX: usize = 1 << 20;

/// Rows that refused transactions and dry runs may have changed before the room that they took is given back.
pub(crate) const TAKEN_BACK_MAX: usize = if cfg!(test) { 1 << 9 } else { 1 << 16 };

/// Reminders one turn handles before it serves requests.
pub const REMINDERS_PER_TURN: usize = 1_024;

/// Receivers that may wait at once.
pub const RECEIVERS_MAX: usize = 65_536;

/// Entries one page of a listing holds at most.
pub const PAGE_MAX: usize = 1_000;

/// Causes of an error that are followed to find the innermost.
pub const CAUSES_MAX: usize = 16;

/// Events a slow reader of the event stream may lag behind before it is told that it missed some.
pub const EVENTS_KEPT: usize = 4_096;

/// Largest difference between the wall clock and the time that has passed that counts as drift: what is more is a step,
/// which somebody made or a machine that slept.
pub const CLOCK_STEP: Duration = Duration::from_secs(60);

/// How long a forward step of the wall clock has to last before given instants follow it: longer than a glitch that time
/// synchronisation mends.
pub const CLOCK_STEP_LASTS: Duration = Duration::from_secs(30);

/// Turns that may wait for the commit before theirs, and share one then, so that on a slow disk nobody waits for two before his own.
pub const TURNS_A_COMMIT: usize = 4;

/// Bytes of a turn's changes from which on the next is prepared while they are committed. Preparing less takes less time than a
/// commit: requests that come meanwhile wait shorter if they share the next one.
pub const COMMIT_ALONGSIDE_BYTES: u64 = 32 * 1024;

/// So many commits keep the pages that they free before these are given back together: few of them wait for that, and the list of
/// these pages, of which every commit writes a part anew, stays short.
pub const COMMITS_KEEP_PAGES: u32 = 24;

/// With so many bytes of journal rows they give back what they have freed sooner.
pub const BYTES_KEEP_PAGES: usize = 1024 * 1024;

/// Bytes of room for journal rows that are kept from one commit to the next: more than a turn usually writes, and little of
/// what the engine takes.
pub const JOURNAL_ROOM_KEPT: usize = 2 * 1024 * 1024;

/// Bytes of journal rows that fill a generation: large enough that a flush meets its neighbours in a leaf, small
/// enough to be flushed without a stall, and to be kept in memory several times over.
pub const GENERATION_BYTES: u64 = 12 * 1024 * 1024;

/// Full generations that stay in the journal, and their rows in memory: what is settled within them never costs more
/// than its journal row.
pub const GENERATIONS: usize = 4;

/// Queues and workflows of which is remembered, for each table, where their flushed rows are; beyond it, all are
/// forgotten and asked again.
pub const PREFIXES_KNOWN: usize = 65_536;

/// About how many bytes of a table's flushed rows are kept after they were read; beyond it, all are forgotten and read again. The
/// next few of each of ten thousand lines find room in it.
pub const ROWS_READ_BYTES: u64 = 8 * 1024 * 1024;

/// Largest body that is laid beside others which are sent with it: copying it costs less than giving back memory of its own to
/// another thread.
pub const BODY_SMALL_BYTES: usize = 1_024;

/// Bytes of memory that small bodies share which are sent together, and which the last of them keeps: at least sixteen of them, and
/// little for a message that waits for long.
pub const BODY_BLOCK_BYTES: usize = 16 * 1_024;

/// Bytes after which no further rows are read together with one that was asked for: what is large is read when it is needed.
pub const READ_ON_BYTES: usize = 64 * 1024;

/// Memory redb may use for pages it has read or written: the leaves that a flush comes back to. However much there is, most of it
/// is soon pages of the journal as they were written.
pub const STORE_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Default of the head room: bytes of the disk that are kept free for receiving, settling and purging, more than the
/// window over the journal, so that a backlog can be drained.
pub const HEAD_ROOM_BYTES: u64 = 64 * 1024 * 1024;

/// Smallest head room: a flush of even the smallest window has to find place in it.
pub const HEAD_ROOM_BYTES_MIN: u64 = 4 * 1024 * 1024;

/// Bytes of the disk that one byte of a message may take: in the journal, in its table, and in pages that are written
/// anew beside the old ones.
pub const ROOM_PER_BYTE: u64 = 4;

/// Bytes of the disk that a message or a command takes beside its own: rows, and a part of the pages they are on.
pub const ROOM_PER_MESSAGE: u64 = 2 * 1024;

/// With fewer free bytes than this a commit may not find room: more than a small one writes with its part of a flush.
pub const ROOM_SCARCE_BYTES: u64 = 1024 * 1024;

/// How long a tick of a schedule waits before it looks again whether the disk has room for what it sends.
pub const TICK_WAITS_FOR_ROOM: Duration = Duration::from_secs(10);

/// How long an engine that closes waits for a backup to end, which looks for that between two commits of the copy.
pub(crate) const COPY_END: Duration = Duration::from_secs(10);

/// How often an engine that has nothing to do looks whether its file is still there, and how much room the disk has.
pub const DISK_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Damages of a file that a report names; beyond it, they are only counted.
pub const DAMAGES_KEPT: usize = 1_000;

/// Default of how large a file is checked page by page when it is opened: what can be read within about a second from
/// a slow disk, and within a tenth of it from memory.
pub const CHECK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Most bytes of a file of an older format that is looked at without being opened as a store: it is upgraded in memory,
/// which takes up to a few times as much.
pub const LOOK_OLDER_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Default of how long one attempt of a handler may take.
pub const HANDLER_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Default of how many bytes of a program's output are read: an answer with a few messages to send.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Characters of a line of foreign output that go into a reason: half of what a reason may have, in plain text.
pub const FOREIGN_LINE_CHARS_MAX: usize = 512;

/// How long a program that was asked to end may take, before it is killed.
pub const CHILD_GRACE: Duration = Duration::from_secs(2);

/// How long handlers that outlast the drain may take to end once they are told to, before they are dropped: longer than
/// programs may take that were asked to end.
pub const GIVE_UP_GRACE: Duration = Duration::from_secs(3);

/// How long the output of a program that has exited is still read: only somebody it left behind can hold it open.
pub const OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// Longest state of a workflow that is handed to a program in a variable: the kernel takes 128 KiB for one.
pub const STATE_VARIABLE_BYTES_MAX: usize = 96 * 1024;

/// Most processes of one persistent handler: each is a child of the daemon.
pub const PROCESSES_MAX: usize = 256;

/// Default of how many messages one child of a persistent handler may hold: enough to keep its pipe full, few enough to
/// fail with it.
pub const IN_FLIGHT_DEFAULT: usize = 64;

/// Bytes that wait to be written to one child; beyond it, messages wait, or go to another.
pub const OUTGOING_BYTES_MAX: usize = 1024 * 1024;

/// Longest answer of a handler in bytes: the largest state as base64, and messages to send.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest line of a child's complaints that is passed on whole; a longer one is passed on in parts.
pub const COMPLAINT_BYTES_MAX: usize = 16 * 1024;

/// How long the extra child for suspects is kept that has nothing to do: a poison message comes back after its backoff.
pub const EXTRA_CHILD_IDLE: Duration = Duration::from_secs(10);

/// Deaths in a row, without an answer between, after which a child is not started again at once.
pub const QUICK_DEATHS_MAX: u32 = 5;

/// How long a child rests after so many deaths; it doubles with each further one.
pub const RESTART_REST: Duration = Duration::from_secs(1);

/// How long a child rests at most: a program that was repaired is in use within half a minute.
pub const RESTART_REST_MAX: Duration = Duration::from_secs(30);

/// Changes of the clocks that are looked through for the next tick of a cron line: a few a year, for a few decades.
pub const CLOCK_CHANGES_MAX: usize = 256;

/// How late a tick may be and still count as on time: a schedule that was down for less has missed nothing.
pub const TICK_GRACE: Duration = Duration::from_secs(60);

/// Most definition files in a folder: each may run handlers of its own, and all are read at every reload.
pub const DEFINITIONS_MAX: usize = 1_000;

/// Largest definition file in bytes: what is larger was not written by a person.
pub const DEFINITION_BYTES_MAX: u64 = 256 * 1024;

/// Most mistakes that are collected of one file: whoever has corrected these checks again.
pub const MISTAKES_MAX: usize = 100;

/// Most handlers of one definition, one a subject: they are looked through in a map.
pub const HANDLERS_MAX: usize = 256;

/// Most values of a message that a definition hides where people look.
pub const REDACTIONS_MAX: usize = 64;

/// Most schedules of one definition.
pub const SCHEDULES_MAX: usize = 256;

/// Longest name of a schedule in bytes: with an instant behind it, it is a message ID.
pub const SCHEDULE_NAME_BYTES_MAX: usize = 64;

/// Most exact retry delays of one definition; the last one repeats.
pub const RETRY_DELAYS_MAX: usize = 64;

/// Default of how long a workflow has to stand still before somebody is told.
pub const NOTIFY_AFTER_DEFAULT: Duration = Duration::from_secs(15 * 60);

/// How long the processes that an earlier daemon left behind may take to die once they are killed; what takes longer
/// hangs in the kernel.
pub const FENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Looks after which what does not stop is killed all the same, and nobody is waited for who becomes another program: half
/// a second is long for both.
pub const FENCE_LOOKS_TO_STOP: u128 = 50;

/// How often is looked whether killed processes are gone.
pub const FENCE_LOOK_EVERY: Duration = Duration::from_millis(10);

/// Shortest and longest secret that posts are signed with, in bytes, as Standard Webhooks say.
pub const SECRET_BYTES_MIN: usize = 24;

/// See [`SECRET_BYTES_MIN`].
pub const SECRET_BYTES_MAX: usize = 64;

/// Longest delay a receiver of posts may ask for: beyond it, nobody would look for the message any more.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Ticks a schedule sends in one transaction, fewer where its queue has less room; what is left follows at once.
pub const TICKS_AT_ONCE: usize = 256;

/// How long the folder of definitions has to be quiet before it is read again: an editor writes in several steps.
pub const RELOAD_SETTLES: Duration = Duration::from_millis(100);

/// How often workflows in trouble are looked at: they wait for minutes, and each look is a request.
pub const BLOCKED_MONITOR_INTERVAL: Duration = Duration::from_secs(5);

/// Notifications of a queue that are sent at once: each may be a process, and many workflows get into trouble together.
pub const NOTICES_AT_ONCE: usize = 16;

/// Workflows in trouble that are known, and recoveries that are kept until they are told; beyond it, an operator has enough to do.
pub const TROUBLES_KNOWN: usize = 10_000;

/// Workflows that may stand still of which the engine keeps the IDs, about 20 MB; beyond it they are found by looking at all,
/// which is quick where so many of them stand still.
pub const STANDING_KNOWN: usize = 100_000;

/// Next ticks of a schedule that are shown: enough to see a weekly rhythm begin, or a change of the clocks.
pub const TICKS_SHOWN: usize = 5;

/// After how many looks at workflows in trouble schedules are looked at too: once a minute, because only somebody who purges
/// their queue can take them away.
pub const LOOKS_BETWEEN_SCHEDULES: u64 = 12;

/// How often a node of a cluster tries what it needs to begin, or to change its definitions, before it gives up: each attempt waits
/// for a takeover.
pub const BEGIN_ATTEMPTS: u32 = 4;

/// How often the lock of a store is looked at while somebody holds it, before it counts as another daemon's.
pub const LOCK_LOOKS: u32 = 40;

/// How long between two such looks: a child needs milliseconds from its start to its program.
pub const LOCK_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Shortest time a message is hidden when it is handed out without a lock: as long as the shortest lock.
pub const HIDDEN_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_tells_for_how_long_a_key_is_remembered_says_the_window() {
        assert_eq!(IDEMPOTENCY_WINDOW, Duration::from_secs(600), "the texts below have to say the new one");
        for text in [
            include_str!("cli/arguments/send.rs"),
            include_str!("engine/client/once.rs"),
            include_str!("../docs/cluster.md"),
            include_str!("../docs/definitions.md"),
            include_str!("../docs/guides/idempotent-handlers.md"),
            include_str!("../docs/http.md"),
            include_str!("../docs/topics.md"),
        ] {
            assert!(text.contains("ten minutes"), "{text}");
        }
    }
}
