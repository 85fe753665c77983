//! Messages of one workflow, one at a time, in order, even when they arrive shuffled, fail, or the process dies;
//! everything else runs in parallel.
//!
//! An [`Engine`] keeps queues in one file. A [`Message`] names the workflow it belongs to, and perhaps its position
//! there or its predecessor. A [`Queue`] hands out [`Delivery`]s under a lock, one at a time for each workflow, in order;
//! you settle each, or let a [`Processor`] run a handler and settle by its [`Outcome`]. A message that fails stays at the
//! head of its workflow until it is retried, skipped, or an operator decides. What is acknowledged is on disk.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), seriatim::Error> {
//! use std::time::Duration;
//! use seriatim::{Engine, Message, QueueOptions};
//!
//! let engine = Engine::in_memory().open().await?;
//! let orders = engine.client().create_queue("orders", QueueOptions::by_position()).await?;
//! orders.send(Message::new("paid").workflow("order-17").position(2)).await?; // early: 1 is missing
//! orders.send(Message::new("created").workflow("order-17").position(1)).await?;
//!
//! let mut first = orders.receive(Duration::ZERO).await?.expect("position 1 is ready");
//! assert_eq!(first.message().body, "created");
//! assert!(orders.receive(Duration::ZERO).await?.is_none()); // one at a time
//! first.complete().await?;
//! let mut second = orders.receive(Duration::ZERO).await?.expect("position 2 is ready now");
//! second.complete().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | to ... | see |
//! |---|---|
//! | open a file, or an engine in memory | [`Engine`], [`EngineBuilder`]; what the file promises: [`store`] |
//! | create a queue or a topic | [`Client`], [`QueueOptions`] and the choices in [`queue`]; rules of subscriptions: [`topic`] |
//! | send | [`Queue::send`], [`Message`], [`Receipt`]; the parts of a message: [`message`] |
//! | receive and settle yourself | [`Queue::receive`], [`Delivery`]; several at once: [`Run`]; a whole workflow: [`AcceptedWorkflow`] |
//! | settle by ID, renew locks, redrive dead letters | [`delivery`] |
//! | let handlers run | [`Processor`], [`Handler`], [`Outcome`], and [`processor`] for typed bodies and batches |
//! | look at queues, workflows and messages | [`Queue`], [`Workflow`], and what they return: [`view`]; follow changes: [`event`] |
//! | operate: hold, resume, skip, purge | [`Workflow`]; who did it: [`Actor`] |
//! | test ordered code | [`testing`]: a clock that you move, an engine in memory, a drain |
//! | know a bound or a default | [`limits`] |
//!
//! # Errors
//!
//! Errors come in three kinds: a *refusal* is an answer, typed per operation ([`SendRefusal`](error::SendRefusal),
//! [`SettleRefusal`](error::SettleRefusal) and so on); a [`Misuse`] names the field that is wrong; a [`Fault`] stops the
//! engine, and opening the file again is the recovery. Each becomes an [`Error`], so that one `?` does for all.
//!
//! # Features
//!
//! `default-features = false` is the library alone. `head-room` refuses sends before the disk is full. `daemon` adds definitions in
//! files, handlers and the HTTP server (module `daemon`), `cluster` more than one machine (module `cluster`), and `cli` the `seriatim`
//! binary; the last two are the default. `otlp` exports spans.
//!
//! The repository's `docs/lifecycle.md` shows the states of a message, `docs/ARCHITECTURE.md` how this is built.

#![forbid(unsafe_code)]

mod actor;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod amqp;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod api;
pub mod clock;
#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "daemon")]
pub mod daemon;
mod deadlines;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod definition;
mod engine;
pub mod error;
mod filter;
#[cfg(feature = "daemon")]
mod handlers;
mod header;
pub mod id;
#[cfg(feature = "daemon")]
mod inbound;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod intake;
pub mod limits;
mod lookup;
pub mod message;
mod mutex;
#[cfg(feature = "daemon")]
mod own_queues;
#[cfg(feature = "daemon")]
mod page;
#[cfg(feature = "daemon")]
mod postgres;
pub mod processor;
pub mod queue;
mod rate;
#[cfg(feature = "daemon")]
mod records;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod remote;
#[cfg(feature = "daemon")]
mod sas;
#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod schedule;
mod seldom;
#[cfg(feature = "daemon")]
mod selector;
#[cfg(feature = "daemon")]
mod server;
#[cfg(feature = "daemon")]
mod service_bus;
mod shown;
#[cfg(feature = "daemon")]
mod storage_queue;
mod task;
pub mod testing;
#[cfg(feature = "daemon")]
mod tls_connector;
mod token;
pub mod topic;
#[cfg(feature = "daemon")]
mod xml;

pub use crate::actor::Actor;
pub use crate::clock::{Clock, SystemClock, Timestamp};
#[cfg(feature = "store-alone")]
#[doc(hidden)]
pub use crate::engine::bare_store::BareStore;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use crate::engine::fuzz;
pub use crate::engine::{
    Abandon, AcceptedWorkflow, Client, Completion, Delivery, Engine, EngineBuilder, Event, Outcome, Queue,
    Receipt, ReceivedMessage, Run, Topic, Workflow,
};
pub use crate::error::{Error, Fault, Misuse, Unavailable};
pub use crate::id::{MessageId, Position, QueueName, SequenceNumber, WorkflowId};
pub use crate::message::Message;
pub use crate::processor::{Context, Failure, Handler, Processor, Raw};
pub use crate::queue::{Order, QueueOptions};
#[cfg(all(fuzzing, feature = "daemon"))]
#[doc(hidden)]
pub use crate::service_bus::fuzz_administration;

/// Receiving without a lock, settling by ID, renewing locks and redriving dead letters.
pub mod delivery {
    pub use crate::engine::{Claim, DeliveryId, EDITED, Hidden, Redriven, Renewal, Settler, WorkflowRedrive};
}

/// Events of an engine, and their subscription.
pub mod event {
    pub use crate::engine::{Event, EventKind, Events, EventsLag};
}

/// The file of an engine: how durable a commit is, how much room there is, and whether what is stored is sound.
pub mod store {
    pub use crate::engine::{
        COMMIT_SECONDS, Check, CommitStats, Compaction, Damage, Durability, LockFile, StorageRoom,
        Verification, VerifyProgress, VerifyStep, compact, quiet_caught_panics, verify,
    };
}

/// Queues, workflows, messages, their history and the audit, as queries return them.
pub mod view {
    pub use crate::engine::{
        Attempt, AuditEntry, AuditVerb, ChainPlace, Counts, DeadLetter, DeadLetterView, Deferral, Gap,
        HistoryEnding, HistoryEntry, Hold, HoldCause, MessageStatus, MessageView, Output, QueueView,
        SubscriptionView, TopicView, WorkflowStatus, WorkflowView,
    };
}

/// The examples of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
