//! How what a look shows looks to outsiders: queues, workflows, messages, dead letters, events, what is blocked.

mod audit;
mod blocked;
mod daemon;
mod event;
mod history;
mod message;
mod queue;
mod workflow;

pub use crate::wire::views::audit::AuditView;
pub use crate::wire::views::blocked::BlockedCause;
pub use crate::wire::views::blocked::BlockedView;
pub use crate::wire::views::blocked::NextAction;
pub use crate::wire::views::daemon::ClockStepView;
pub use crate::wire::views::daemon::DefinitionView;
pub use crate::wire::views::daemon::HeldBackCause;
pub use crate::wire::views::daemon::HeldBackView;
pub use crate::wire::views::daemon::ScheduleView;
pub use crate::wire::views::daemon::StatusView;
pub use crate::wire::views::event::EventView;
pub use crate::wire::views::history::EndingWord;
pub use crate::wire::views::history::HistoryView;
pub use crate::wire::views::message::DeadLetterEntry;
pub use crate::wire::views::message::DeadLetterReason;
pub use crate::wire::views::message::MessageEnvelope;
pub use crate::wire::views::message::MessageWord;
pub use crate::wire::views::queue::CountsView;
pub use crate::wire::views::queue::QueueEnvelope;
pub use crate::wire::views::workflow::GapView;
pub use crate::wire::views::workflow::HoldView;
pub use crate::wire::views::workflow::HoldWord;
pub use crate::wire::views::workflow::WorkflowEnvelope;
pub use crate::wire::views::workflow::WorkflowWord;
