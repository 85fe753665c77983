//! The daemon: definitions, handlers, schedules and servers around one engine.
//!
//! It opens the store in a data folder, reads every definition of a folder, and then does what they say until it is
//! stopped: `seriatim run`. Whoever wants it inside another program starts a [`Daemon`].

mod apply;
mod attempt;
mod blocked_monitor;
#[cfg(test)]
mod blocked_monitor_tests;
#[cfg(feature = "cluster")]
mod cluster_host;
#[cfg(feature = "cluster")]
mod cluster_store;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod daemon;
mod daemon_state;
mod data_dir;
mod endpoints;
mod error;
mod gaps;
mod gauges;
mod handler_factory;
mod handler_supervisor;
mod host;
mod membership;
mod message_store;
mod metrics;
mod notices;
mod notify;
mod options;
mod outbox_copier;
mod outbox_of_queue;
mod outbox_rows;
mod outbox_status;
mod outboxes;
mod rates;
mod reload_problem;
mod signals;
mod state_file;
mod systemd;
mod ticker;
#[cfg(test)]
mod ticker_tests;
mod watch;

pub use crate::daemon::attempt::ASSIGNMENT_SPANS;
pub use crate::daemon::daemon::Daemon;
pub use crate::daemon::error::DaemonError;
pub use crate::daemon::options::DaemonOptions;
#[doc(hidden)]
pub use crate::daemon::outbox_rows::OutboxRows;
pub use crate::daemon::signals::Signals;
