//! Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or the process dies.

mod clock;
mod engine;
mod error;
mod header;
mod id;
pub mod limits;
mod message;
mod processor;
mod queue;
pub mod testing;
mod token;

pub use crate::clock::{Clock, SystemClock, Timestamp};
pub use crate::engine::{
    Abandon, Attempt, Client, Completion, Counts, DeadLetter, DeadLetterView, Deferral, Delivery, Durability,
    Ending, Engine, EngineBuilder, Event, EventKind, Events, Gap, Hold, HoldCause, MessageStatus,
    MessageView, Missed, Queue, QueueView, Receipt, Received, Redriven, Renewal, Run, TakenWorkflow,
    Workflow, WorkflowStatus, WorkflowView,
};
pub use crate::error::{
    Error, Fault, Misuse, OpenError, OperateError, OperateRefusal, OperationError, QueueError, QueueRefusal,
    ReceiveError, ReceiveRefusal, SendError, SendRefusal, SettleError, SettleRefusal, Unavailable,
};
pub use crate::header::{Headers, Properties, PropertyValue};
pub use crate::id::{MessageId, Position, QueueName, SequenceNumber, WorkflowId};
pub use crate::message::{Message, Place};
pub use crate::processor::{
    BatchHandler, BatchOutcome, Body, Context, Failure, Handler, Outcome, Processor, Raw, Running,
};
pub use crate::queue::{Backoff, Expired, GapPolicy, GapThen, Late, Order, QueueOptions, Spent};
pub use crate::token::LockToken;
