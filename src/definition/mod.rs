//! Definitions: files that declare a queue and what handles its messages.

mod address;
mod credential;
mod credential_digest;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod definition;
mod diagnostic;
mod file_value;
mod form;
mod form_handler;
mod form_outbox;
mod form_subscription;
mod grammar;
mod handler;
mod notice;
mod outbox;
mod program;
mod public;
mod read;
mod read_handlers;
mod read_options;
mod read_outbox;
mod read_schedules;
mod read_secret;
mod read_sources;
mod read_subscription;
mod schedule;
mod schema;
mod set;
mod suggest;
#[cfg(test)]
mod tests;
mod together;
mod url;
mod value_spans;

pub(crate) use crate::definition::credential::bearer;
pub(crate) use crate::definition::credential::signing_secret;
pub use crate::definition::credential_digest::CredentialDigest;
pub use crate::definition::definition::Definition;
pub use crate::definition::diagnostic::Diagnostic;
pub use crate::definition::handler::ForwardTarget;
pub use crate::definition::handler::HandlerDefinition;
pub use crate::definition::handler::HandlerSpec;
pub use crate::definition::handler::ProgramDefinition;
pub use crate::definition::handler::SecretSource;
pub use crate::definition::handler::WebhookDefinition;
pub use crate::definition::notice::Notice;
pub use crate::definition::notice::NotifyDefinition;
pub use crate::definition::outbox::OutboxDefinition;
pub use crate::definition::read_subscription::SubscriptionDefinition;
pub use crate::definition::schedule::ScheduleDefinition;
pub(crate) use crate::definition::set::DefiningFile;
pub use crate::definition::set::Definitions;
pub use crate::definition::set::LoadError;
pub use crate::definition::set::SetDifference;
pub(crate) use crate::definition::url::Url;
pub use crate::postgres::OutboxColumns;
