//! The public interface of the engine: everything that can be asked of it.

pub(crate) mod accepted_workflow;
mod asking;
mod background;
mod bodies;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
pub(crate) mod client;
pub(crate) mod dead_letters;
pub(crate) mod delivery;
pub(crate) mod delivery_id;
pub(crate) mod events;
pub(crate) mod fanout;
mod filter_key;
pub(crate) mod hidden;
mod history;
mod known_topics;
mod once;
pub(crate) mod outcome;
pub(crate) mod queue;
mod queues;
pub(crate) mod received_message;
pub(crate) mod run;
mod runs;
pub(crate) mod scheduled;
pub(crate) mod settler;
pub(crate) mod settling;
pub(crate) mod topic;
pub(crate) mod topic_message;
pub(crate) mod topics;
#[cfg(feature = "daemon")]
pub(crate) mod transaction;
pub(crate) mod workflow;
