//! What can go wrong, in three kinds: a refusal is an answer, a fault stops the engine, a misuse names its field.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::id::MessageId;
use crate::id::Position;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::queue::HoldKind;

/// A value the caller passed that is not allowed, caught before it reaches the engine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {problem}")]
pub struct Misuse {
    field: Cow<'static, str>,
    problem: Cow<'static, str>,
}

impl Misuse {
    /// Names the field and what is wrong with it, as a fragment that follows the field's name.
    pub fn new(field: impl Into<Cow<'static, str>>, problem: impl Into<Cow<'static, str>>) -> Misuse {
        Misuse { field: field.into(), problem: problem.into() }
    }

    /// The field that is wrong.
    pub fn field(&self) -> &str {
        &self.field
    }
}

/// The disk, or what is on it, failed: the engine stops, and opening it again is the recovery.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A record's checksum is wrong, or its bytes make no sense.
    #[error("read a damaged record in table {table}: {detail}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The store could not read or write.
    #[error("use the store: {0}")]
    Store(Arc<redb::Error>),
    /// The operating system refused a file operation.
    #[error("use the file: {0}")]
    File(Arc<std::io::Error>),
    /// The file was deleted, moved or replaced while it was open: what is written to it now would be gone with it.
    #[error("find its file {path} where it was opened: {what}")]
    Lost {
        /// Where the file was.
        path: PathBuf,
        /// What happened to it.
        what: &'static str,
    },
    /// An assertion of the engine did not hold; nothing of that turn was written.
    #[error("keep its own promises (a defect of seriatim): {0}")]
    Defect(String),
}

/// Why an engine cannot answer at all.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The engine was closed.
    #[error("reach the engine: it is closed")]
    Closed,
    /// The engine stopped after a fault; open it again.
    #[error("reach the engine: it stopped because it failed to {0}")]
    Stopped(Fault),
    /// The workflow belongs to another partition. One machine is one partition: not returned yet.
    #[error("reach the owner of this workflow: it is another partition")]
    NotOwner,
}

/// The failure of one kind of operation.
#[derive(Clone, Debug, Error)]
pub enum OperationError<R: std::error::Error + 'static> {
    /// A normal answer: no. Nothing was changed.
    #[error(transparent)]
    Refused(R),
    /// A value that is not allowed; nothing was sent to the engine.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The engine is closed or has stopped. Whether the operation took effect is not known.
    #[error(transparent)]
    Unavailable(Unavailable),
}

impl<R: std::error::Error + 'static> OperationError<R> {
    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&R> {
        match self {
            OperationError::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl<R: std::error::Error + 'static> From<Unavailable> for OperationError<R> {
    fn from(unavailable: Unavailable) -> OperationError<R> {
        OperationError::Unavailable(unavailable)
    }
}

/// The failure to send, schedule or cancel.
pub type SendError = OperationError<SendRefusal>;
/// The failure to receive or to take a workflow.
pub type ReceiveError = OperationError<ReceiveRefusal>;
/// The failure to settle or renew a delivery.
pub type SettleError = OperationError<SettleRefusal>;
/// The failure to create, change or delete a queue.
pub type QueueError = OperationError<QueueRefusal>;
/// The failure to operate on a workflow, a dead letter or a queue's content.
pub type OperateError = OperationError<OperateRefusal>;

/// Any failure of any operation.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Opening failed.
    #[error(transparent)]
    Open(#[from] Arc<OpenError>),
    /// Sending failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Receiving failed.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Settling failed.
    #[error(transparent)]
    Settle(#[from] SettleError),
    /// Changing a queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Operating failed.
    #[error(transparent)]
    Operate(#[from] OperateError),
    /// A value was not allowed.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Error {
        Error::Open(Arc::new(error))
    }
}

/// The failure to open or create an engine's file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another engine has the file open.
    #[error("open {path}: {holder} has it open")]
    Held {
        /// The file.
        path: PathBuf,
        /// Who holds it, as `process 4711` or `this process`.
        holder: String,
    },
    /// The file is not an engine's file; it was not touched.
    #[error("open {path}: it is not a seriatim file ({detail})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What told so.
        detail: String,
    },
    /// The file is damaged, or a part of it is missing; it was not touched. [`verify`](crate::store::verify()) says what is damaged, and
    /// [`Check::Never`](crate::store::Check) opens it all the same.
    #[error(
        "open {path}: it is damaged: {detail}; restore a backup, or see what `seriatim verify` finds in it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        detail: String,
    },
    /// The file was written by a newer version; it was not touched.
    #[error("open {path}: it has format {found}, this version reads up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's format.
        found: u32,
        /// The newest format this version knows.
        known: u32,
    },
    /// The file was written by an older version and is too large to be looked at as it is; it was not touched.
    #[error(
        "open {path}: it has format {found} and is large; let an engine open it, or a copy of it, which makes it format \
         {known}, and look then"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The file's format.
        found: u32,
        /// The format of this version.
        known: u32,
    },
    /// The disk, or what is on it, failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Why a send was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SendRefusal {
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// Another message waits at this place.
    #[error("send message {}: its place is taken by message {by}", .index + 1)]
    PlaceTaken {
        /// Which message of the batch, from 0.
        index: usize,
        /// The message that has the place.
        by: SequenceNumber,
    },
    /// The position is settled already, and the queue refuses late messages.
    #[error("send message {}: its place is settled already", .index + 1)]
    AlreadySettled {
        /// Which message of the batch, from 0.
        index: usize,
    },
    /// The place does not fit the queue's order.
    #[error("send message {}: {detail}", .index + 1)]
    PlaceMismatch {
        /// Which message of the batch, from 0.
        index: usize,
        /// What the queue's order asks for.
        detail: String,
    },
    /// The body is larger than the queue allows.
    #[error("send message {}: its body has {bytes} bytes, the queue takes {bytes_max}", .index + 1)]
    BodyTooLarge {
        /// Which message of the batch, from 0.
        index: usize,
        /// Its size.
        bytes: usize,
        /// The queue's limit.
        bytes_max: usize,
    },
    /// Too many early messages wait in this workflow.
    #[error("send message {}: its workflow is full (early messages that wait in it: {early})", .index + 1)]
    WorkflowFull {
        /// Which message of the batch, from 0.
        index: usize,
        /// How many wait.
        early: u64,
    },
    /// The queue stores as many messages as it may.
    #[error("send: the queue is full (messages stored in it: {stored})")]
    QueueFull {
        /// How many it stores.
        stored: u64,
    },
    /// There is no scheduled message with this number, or it is not scheduled any more.
    #[error("message {0} is not scheduled: it never was, its instant has come, or it was cancelled")]
    NotScheduled(SequenceNumber),
    /// The sequence numbers of this file are used up.
    #[error("send: the sequence numbers are used up")]
    NumbersUsedUp,
    /// Another request was sent under this idempotency key, and its answer is still kept.
    #[error("send: the idempotency key {0:?} was used for another request")]
    KeyReused(String),
    /// As many answers are kept for idempotency keys as the queue may keep.
    #[error("send: the queue keeps {kept} answers for idempotency keys, more are not allowed")]
    TooManyKeys {
        /// How many it keeps.
        kept: u64,
    },
    /// The disk is nearly full, and what is left of it is kept for receiving, settling and purging.
    #[error(
        "send: the disk is nearly full, its last room is kept for draining; free some, or enlarge the disk"
    )]
    StorageFull,
}

impl SendRefusal {
    /// The same refusal, of another message of the batch.
    pub(crate) fn of_message(mut self, at: usize) -> SendRefusal {
        match &mut self {
            SendRefusal::PlaceTaken { index, .. }
            | SendRefusal::AlreadySettled { index }
            | SendRefusal::PlaceMismatch { index, .. }
            | SendRefusal::BodyTooLarge { index, .. }
            | SendRefusal::WorkflowFull { index, .. } => *index = at,
            SendRefusal::QueueNotFound(_)
            | SendRefusal::QueueFull { .. }
            | SendRefusal::NotScheduled(_)
            | SendRefusal::NumbersUsedUp
            | SendRefusal::KeyReused(_)
            | SendRefusal::TooManyKeys { .. }
            | SendRefusal::StorageFull => {}
        }
        self
    }
}

/// Why a receive was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReceiveRefusal {
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// There is no deferred message with this number.
    #[error("receive message {0}: it is not deferred")]
    MessageNotFound(SequenceNumber),
    /// Somebody holds the workflow.
    #[error("receive: the workflow is locked by another holder")]
    WorkflowLocked,
    /// The workflow is held.
    #[error("receive: the workflow is held")]
    WorkflowHeld,
    /// The lock on the taken workflow was lost.
    #[error("receive: the lock was lost")]
    LockLost,
    /// The queue has no order, so it has no workflows that could be taken by name.
    #[error("take a workflow of queue {0}: the queue has no order")]
    Unordered(QueueName),
    /// As many receivers wait as the engine allows.
    #[error("receive: {0} receivers wait already")]
    TooManyWaiting(usize),
    /// As many messages are handed out as the engine or the holder may have at once.
    #[error("receive: {0} deliveries are handed out, more are not allowed")]
    TooManyLocks(usize),
}

/// How a delivery was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SettledHow {
    /// It was completed.
    Completed,
    /// It was given back as a failed attempt.
    Abandoned,
    /// It was set aside.
    Deferred,
    /// It was moved aside for good.
    DeadLettered,
    /// It was given back as if it had not been handed out.
    Released,
}

impl fmt::Display for SettledHow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SettledHow::Completed => "completed",
            SettledHow::Abandoned => "abandoned",
            SettledHow::Deferred => "deferred",
            SettledHow::DeadLettered => "dead-lettered",
            SettledHow::Released => "released",
        })
    }
}

/// Why a settle or a renewal was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SettleRefusal {
    /// The lock is not held any more: it ran out, was released, or the engine was opened anew.
    #[error("settle: the lock was lost")]
    LockLost,
    /// The delivery was settled in the last minute, in another way than this.
    #[error("settle: the delivery is settled already (it was {how})")]
    AlreadySettled {
        /// How it was settled.
        how: SettledHow,
    },
    /// There is no such queue any more.
    #[error("settle: there is no such queue")]
    QueueNotFound,
    /// The delivery has no such message, or it was settled more than a minute ago.
    #[error("settle message {0}: the delivery does not hold it")]
    MessageNotFound(SequenceNumber),
    /// The message belongs to no workflow that could keep a state; the delivery is still held.
    #[error("set the state: the message belongs to no workflow")]
    NoWorkflow,
    /// The message's properties, with those of this settle, have more bytes than allowed; the delivery is still held.
    #[error("settle: the message's properties would have {bytes} bytes")]
    PropertiesTooLarge {
        /// How many bytes they would have.
        bytes: usize,
    },
    /// A message that should be sent with the settle was refused; the delivery is still held.
    #[error(transparent)]
    Send(SendRefusal),
}

/// Why a queue could not be created, changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum QueueRefusal {
    /// There is a queue of this name with other options.
    #[error("create queue {0}: it exists with other options")]
    QueueExists(QueueName),
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// The order cannot change while messages or workflows are stored, or cursors of forgotten ones remembered.
    #[error(
        "change the order of queue {0}: it stores messages, workflows or cursors; drain or purge it first"
    )]
    OrderInUse(QueueName),
    /// There are as many queues as a file may have.
    #[error("create a queue: there are {0} already")]
    TooManyQueues(usize),
    /// The disk is nearly full, and what is left of it is kept for receiving, settling and purging.
    #[error(
        "define queue {0}: the disk is nearly full, its last room is kept for draining; free some, or enlarge it"
    )]
    StorageFull(QueueName),
}

/// Why an operation on a workflow or dead letter was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OperateRefusal {
    /// There is no such queue.
    #[error("there is no queue {0}")]
    QueueNotFound(QueueName),
    /// There is no such workflow.
    #[error("there is no such workflow")]
    WorkflowNotFound,
    /// The queue has no order, so it has no workflows.
    #[error("queue {0} has no order, and so no workflows")]
    Unordered(QueueName),
    /// Somebody holds the workflow.
    #[error("the workflow is locked by a holder")]
    WorkflowLocked,
    /// The workflow is not held.
    #[error("resume: the workflow is not held")]
    NotHeld,
    /// The workflow is not held for this cause.
    #[error("resume: the workflow is not held for the cause {0}; leave the cause out to lift every hold")]
    NotHeldFor(HoldKind),
    /// The workflow is not locked.
    #[error("the workflow is not locked")]
    NotLocked,
    /// No message waits for a retry at the head of the workflow.
    #[error("no message waits for a retry at the head")]
    NothingWaits,
    /// The workflow has no message at its head.
    #[error("skip: the workflow has no message at its head")]
    NoHead,
    /// The position is not missing: it was settled, or its message is there.
    #[error("declare position {0} void: it is not missing")]
    NotMissing(Position),
    /// The queue's order knows no positions.
    #[error("declare a gap void: the queue has no positions")]
    NoPositions,
    /// There is no such dead letter.
    #[error("redrive message {0}: it is not a dead letter")]
    NotDeadLettered(SequenceNumber),
    /// The workflow has gone past the message's place, or is not held before it: give the message a new position, or hold
    /// the workflow before its place.
    #[error(
        "redrive message {0}: its workflow has gone past its place, or is not held before it; give it a new position \
         (--position; in after-order send its content as a new message), or hold the workflow first"
    )]
    PlacePassed(SequenceNumber),
    /// In after-order: nothing is known of the message's predecessor. Send that first.
    #[error(
        "redrive message {0}: its predecessor {1} is unknown; send that first, or redrive it if it is a dead letter too"
    )]
    PredecessorUnknown(SequenceNumber, MessageId),
    /// The dead letter is the original of a message that was edited and put back: it is kept to be looked at.
    #[error("redrive message {0}: it is the original of a message that was edited and put back already")]
    Original(SequenceNumber),
    /// The workflow is quarantined: what came back would be dead-lettered again. Resume it, or resume and redrive it.
    #[error("redrive message {0}: its workflow is quarantined; resume it first")]
    Quarantined(SequenceNumber),
    /// The message could not be sent anew.
    #[error(transparent)]
    Send(SendRefusal),
    /// There is no room for a backup where it goes.
    #[error(
        "back up: the copy needs up to {needed_bytes} bytes, and {free_bytes} are free for it; free some room first"
    )]
    StorageFull {
        /// What the copy needs, at most.
        needed_bytes: u64,
        /// What is free for it; the head room of the store is not.
        free_bytes: u64,
    },
}
