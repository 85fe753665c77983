//! The engine: rules, store and the one thread that writes. Outsiders see only its face, the client.

mod admission;
#[cfg(feature = "store-alone")]
pub(crate) mod bare_store;
mod client;
mod clocks;
mod commits;
#[cfg(feature = "cluster")]
pub(crate) mod elsewhere;
#[cfg(feature = "cluster")]
mod follower;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod history;
mod inbox;
mod left_answers;
mod letter;
mod lingering;
#[cfg(feature = "cluster")]
pub(crate) mod log;
#[cfg(all(test, feature = "cluster"))]
mod look_samples;
#[cfg(feature = "cluster")]
mod looks;
mod messages;
mod meter;
mod open;
mod page;
mod places;
mod query;
mod rules;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod threads;
mod timers;
mod turn;
mod upcoming;
mod verify;
mod view;
mod wakeups;
mod writer;

pub use crate::engine::client::accepted_workflow::AcceptedWorkflow;
pub use crate::engine::client::client::Client;
pub use crate::engine::client::delivery::Delivery;
pub(crate) use crate::engine::client::delivery::DeliveryHold;
pub use crate::engine::client::delivery::Renewal;
pub use crate::engine::client::delivery_id::DeliveryId;
pub use crate::engine::client::events::Events;
pub use crate::engine::client::events::EventsLag;
pub use crate::engine::client::hidden::Hidden;
pub use crate::engine::client::outcome::Outcome;
pub use crate::engine::client::queue::Queue;
pub use crate::engine::client::received_message::ReceivedMessage;
pub use crate::engine::client::run::Run;
pub use crate::engine::client::settler::Settler;
pub use crate::engine::client::settling::Abandon;
pub use crate::engine::client::settling::Completion;
pub use crate::engine::client::topic::SubscriptionView;
pub use crate::engine::client::topic::Topic;
pub use crate::engine::client::topic::TopicView;
#[cfg(feature = "daemon")]
pub(crate) use crate::engine::client::topic_message::ActionChanges;
#[cfg(feature = "daemon")]
pub(crate) use crate::engine::client::topic_message::TopicMessage;
#[cfg(feature = "daemon")]
pub(crate) use crate::engine::client::transaction::Transaction;
#[cfg(feature = "daemon")]
pub(crate) use crate::engine::client::transaction::TransactionError;
pub use crate::engine::client::workflow::Workflow;
pub use crate::engine::client::workflow::WorkflowRedrive;
pub use crate::engine::meter::COMMIT_SECONDS;
pub use crate::engine::meter::CommitStats;
pub use crate::engine::open::Check;
pub use crate::engine::open::Durability;
pub use crate::engine::open::Engine;
pub use crate::engine::open::EngineBuilder;
pub use crate::engine::rules::audit::AuditEntry;
pub use crate::engine::rules::audit::AuditVerb;
pub use crate::engine::rules::claim::Claim;
pub use crate::engine::rules::edit::EDITED;
pub use crate::engine::rules::effect::Event;
pub use crate::engine::rules::effect::EventKind;
pub use crate::engine::rules::history::HistoryEnding;
pub use crate::engine::rules::history::HistoryEntry;
pub use crate::engine::rules::holds::Hold;
pub use crate::engine::rules::holds::HoldCause;
pub use crate::engine::rules::output::Output;
pub use crate::engine::rules::receipt::Receipt;
pub use crate::engine::rules::record::Attempt;
pub use crate::engine::rules::record::Counts;
pub use crate::engine::rules::record::DeadLetter;
pub use crate::engine::rules::redriven::Redriven;
pub use crate::engine::store::caught::quiet_caught_panics;
pub use crate::engine::store::compact::Compaction;
pub use crate::engine::store::compact::compact;
pub use crate::engine::store::lock_file::LockFile;
pub use crate::engine::store::space::StorageRoom;
pub use crate::engine::verify::report::Damage;
pub use crate::engine::verify::report::Verification;
pub use crate::engine::verify::report::VerifyProgress;
pub use crate::engine::verify::report::VerifyStep;
pub use crate::engine::verify::verify::verify;
pub use crate::engine::view::ChainPlace;
pub use crate::engine::view::DeadLetterView;
pub use crate::engine::view::Deferral;
pub use crate::engine::view::Gap;
pub use crate::engine::view::MessageStatus;
pub use crate::engine::view::MessageView;
pub use crate::engine::view::QueueView;
pub use crate::engine::view::WorkflowStatus;
pub use crate::engine::view::WorkflowView;
