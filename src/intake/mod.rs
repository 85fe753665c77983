//! How a message finds its queue, its workflow and its position, as the queue's definition says.

mod body;
mod handle;
mod rule;
#[cfg(test)]
mod rule_tests;
mod source;

pub use crate::intake::handle::Intake;
pub use crate::intake::rule::IntakeRule;
pub use crate::intake::rule::Sources;
pub use crate::intake::source::FieldSource;
pub use crate::intake::source::HeaderName;
pub use crate::intake::source::Pointer;
