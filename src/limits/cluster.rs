//! Bounds of logs that several nodes share, and of what follows them.

use std::time::Duration;

/// About how many bytes a file that follows a log is given before it is synced: redb uses no freed page again before
/// that. A sync for each 16 MiB costs nothing that can be measured.
pub const UNSYNCED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How often it is looked for an entry that the servers of a log must have before it counts as lost: a server that lags
/// has caught up by then.
pub const LOG_LOOKS_MAX: u32 = 20;

/// How many readers of a log have to miss the same entry before it is asked for by its position.
pub const LOG_READERS_MAX: u32 = 2;

/// How often the servers of a log are asked again before it is said in the log of the node: for about 150 ms.
pub const LOG_ATTEMPTS_QUIET: u32 = 4;

/// How often the servers of a log are asked for what can wait, before another log is looked after: for about a second where they say
/// at once that they cannot answer.
pub const LOG_ATTEMPTS_FEW: u32 = 8;

/// Bytes of an entry that the servers of a log have to take: with the headers of its message, the most that NATS advises.
pub const LOG_ENTRY_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of changes after which a turn takes no further command when a log is before the file: what the last command writes
/// comes on top, and all of it has to stay below [`LOG_ENTRY_BYTES`]. It is as much as a thousand small messages write.
pub const LOG_TURN_BYTES: u64 = 768 * 1024;

/// Most bytes of bodies and headers in one command when a log is before the file: beside them, [`LOG_ROWS_BYTES`] of rows, and those
/// of the turn before it, fit into an entry.
pub const LOG_COMMAND_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Bytes of rows of messages that an entry has room for beside what one command carries: those of as many messages as a batch may
/// have, with the longest IDs that there are. What its rows take beyond counts as if the command carried it.
pub const LOG_ROWS_BYTES: usize = 4 * 1024 * 1024;

/// For how many bytes the rows of a message count beside the IDs in them: those of one with a reminder, whose ID is remembered,
/// have up to 440.
pub const LOG_MESSAGE_ROWS_BYTES: usize = 512;

/// Requests through one node that are under way to one partition, as many that go to all of them, and as many that are of no certain one;
/// beyond it, whoever asks waits for [`PLACE_WAIT`]. They fill a turn of an engine; one partition that does not answer takes no place of
/// another: what is done in parts has a place of each of its partitions until its part there has ended.
pub const ROUTED_MAX: usize = 1_024;

/// Requests of other nodes that a node has under way in one partition: as many as two nodes may ask.
pub const ASKED_MAX: usize = 2_048;

/// How long a request waits for a place while as many as may be under way are. It is as long as an append takes on disks that are busy;
/// meanwhile, requests that come later wait behind it. After that, requests of the partition are refused until there is a place.
pub const PLACE_WAIT: Duration = Duration::from_secs(1);

/// Which part of the places, one in so many, has to be free before a request waits for one again after another has waited in vain: of a
/// partition that does not answer some become free now and then, as requests are given up, and each would keep all others waiting once more.
pub const PLACES_FREE_PART: usize = 4;

/// How long it is looked for whoever has a partition before whoever asks is told that nobody has it: several takeovers.
pub const ROUTE_WAIT: Duration = Duration::from_secs(10);

/// The pause before it is looked for the owner of a partition again.
pub const ROUTE_PAUSE: Duration = Duration::from_millis(20);

/// How long another node may take to answer, beside the time for which it may wait for work.
pub const NODE_ANSWER: Duration = Duration::from_secs(10);

/// How long NATS may take to do what is asked of it, with the time in which that waits for room in the queue of the connection.
pub const NATS_ANSWER: Duration = Duration::from_secs(5);

/// How long a server of NATS may take to let a node in: another is tried then.
pub const NATS_CONNECT: Duration = Duration::from_secs(2);

/// How often a server of NATS is asked at most whether it is still there: one that has not answered three times counts as gone, and
/// a machine that is busy may take its time.
pub const NATS_PING_MIN: Duration = Duration::from_secs(1);

/// How long an engine of this node may take to answer, beside the time for which it may wait for work: servers that have lost one of
/// them take up to ten seconds until they agree who leads a log, and whoever waits three times as long waits for servers that are down.
pub const OWN_ANSWER: Duration = Duration::from_secs(30);

/// How long a receiver waits in the same partitions before it is looked anew who has which: it bounds how long one that has
/// moved is not waited for.
pub const RECEIVE_SLICE: Duration = Duration::from_secs(5);

/// How long a receiver waits for one source of work before it looks at the next as well: most answer much sooner, and what
/// comes later is not lost to it.
pub const RECEIVE_STEP: Duration = Duration::from_millis(100);

/// How long a receiver waits for sources of work that are late, once others have answered: as long as an append takes on disks
/// that are busy.
pub const RECEIVE_LATE: Duration = Duration::from_secs(1);

/// How often in a row an entry is offered to the servers in vain before the partition counts as one that waits for its log: a
/// server that is busy answers before.
pub const LOG_TROUBLE_ATTEMPTS: u32 = 6;

/// How long a partition that is given to another node keeps other partitions from being given: one that waits for its log would
/// keep them for ever.
pub const MOVE_WAIT: Duration = Duration::from_secs(2);

/// For how long a partition that is given to another node hands out nothing more while what is locked is settled: longer than most
/// handlers take. What is locked then is handed out again by the other.
pub const MOVE_DRAIN: Duration = Duration::from_secs(5);

/// Bytes of cache, and of a generation, that a file has at least which follows one of many partitions.
pub const FOLLOWER_BYTES_MIN: u64 = 1024 * 1024;

/// Messages of one partition that are under way to others: about as many as fill a turn of theirs.
pub const OUTBOX_HANDOVERS: usize = 64;

/// How long a message of an outbox is locked: longer than asking another partition takes at most.
pub const OUTBOX_LOCK: Duration = Duration::from_secs(60);

/// The pause before a message is handed over again, and before it is looked again whether there is an outbox.
pub const OUTBOX_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause before a message without a workflow is handed over again: each is twice as long as the one before.
pub const OUTBOX_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Most messages that a partition keeps in mind of another's outbox, which have been handed over and may be asked for again:
/// many times as many as are under way at once from one partition. Beyond it they wait in the outbox.
pub const HANDOVERS_KEPT_MAX: usize = 1_000;

/// Most messages of which another partition is told at once that they are settled in the outbox: as many as settle while one is handed
/// over, with room for those of an owner before.
pub const HANDOVERS_SETTLED_MAX: usize = 256;

/// The pause before a message is handed over again by an owner that another partition takes for deposed: if it is, it knows by then.
pub const OUTBOX_PAUSE_DEPOSED: Duration = Duration::from_secs(30);

/// How many snapshots of a partition are kept: if the newest is found damaged, the one before is there, and the log from it on.
pub const SNAPSHOTS_KEPT: usize = 2;

/// Entries of a log after which a snapshot is taken, however small they are: a node reads as many in about a minute.
pub const SNAPSHOT_ENTRIES: u64 = 500_000;

/// About how many bytes of a log a snapshot is taken after, at least: a node reads as many in some seconds. It is taken after
/// more when the last one has more, so that no more is written for snapshots than for the log.
pub const SNAPSHOT_LOG_BYTES: u64 = 256 * 1024 * 1024;

/// How often a node looks whether a snapshot is to be taken: an owner that appends all the time writes some hundred MiB meanwhile.
pub const SNAPSHOT_LOOK: Duration = Duration::from_secs(5);

/// Bytes of a snapshot in one message of NATS: one is under way at a time, and any server takes as many.
pub const SNAPSHOT_PIECE_BYTES: usize = 512 * 1024;

/// Partitions of a cluster unless it says otherwise: enough for as many nodes, or for fewer that grow.
pub const PARTITIONS: u16 = 16;

/// Partitions of a cluster: each is a stream, and a file and a thread on each node.
pub const PARTITIONS_MAX: u16 = 1_024;

/// Partitions of a cluster whose sequence numbers are exact where numbers are floating-point, as in JavaScript: below 2^53.
pub const PARTITIONS_EXACT: u16 = 32;

/// Bytes of the name of a cluster or a node: names of streams are made of them.
pub const CLUSTER_NAME_BYTES_MAX: usize = 64;

/// How long an owner may be silent before others take over.
pub const LEASE: Duration = Duration::from_secs(1);

/// For how many leases at most a node leaves a partition to others that was taken away from it while it was alive: it waits twice as
/// long each time, so that two nodes which do not hear each other do not take it from each other all the time.
pub const LOSS_WAIT_LEASES_MAX: u32 = 32;

/// After how many leases without such a loss it waits no more: some times the longest wait, so that a fight that goes on is known as one.
pub const LOSS_QUIET_LEASES: u32 = 128;

/// For how many leases no node was heard that reads no newer version of entries, before they are written in one: longer than a node
/// takes that is started again.
pub const ENTRY_VERSION_LEASES: u32 = 20;

/// How long a node that starts waits for an answer about its streams before it asks again: servers that have just formed their
/// cluster lose some.
pub const STREAM_ANSWER: Duration = Duration::from_secs(2);

/// How long it asks again: what NATS servers that are started together need until they have found each other.
pub const NODE_START_WAIT: Duration = Duration::from_secs(30);

/// The pause before it asks again: a server that is being started refuses connections at once.
pub const NODE_START_PAUSE: Duration = Duration::from_millis(250);

/// How often the NATS servers are asked whether they can keep a log: one may be started again with another configuration, and
/// what it acknowledges before counts.
pub const SERVER_LOOK: Duration = Duration::from_secs(2);

/// How often it is looked whether a NATS server that was started on this machine is ready, every 20 ms: half a minute.
pub const LOCAL_NATS_LOOKS: u32 = 1_500;

/// How long whoever takes over a partition waits to hear what queues there are before it asks for all of them: longer than it
/// takes while nothing is wrong.
pub const DEFINITIONS_WAIT: Duration = Duration::from_millis(200);

/// Names of queues and topics that a cluster has, or had once: each stays in the bucket and in the memory of each node, and is read
/// when a node starts. It is twice as many as queues there can be.
pub const DEFINED_NAMES_MAX: usize = 20_000;

/// How often a change of a queue is judged anew because somebody else has changed the same queue at that moment: as many nodes may
/// begin at once with the same definitions.
pub const DEFINE_ATTEMPTS: u32 = 16;

/// How long after the first partition has changed a queue the bucket may not have it before that partition takes it back: as long as
/// servers take that agree anew who leads the bucket.
pub const DEFINITION_AHEAD: Duration = Duration::from_secs(10);

/// How often a daemon that is stopped looks whether its partitions are other nodes', at intervals of 50 ms: fifteen seconds, in which
/// what is locked is waited for ([`MOVE_DRAIN`]), and many more move than a node has. What it still has then is taken over as from a node that died.
pub const DRAIN_LOOKS: u32 = 300;

/// The shortest lease that can be asked for: below it, an fsync that takes long looks like a death.
pub const LEASE_MIN: Duration = Duration::from_millis(200);
