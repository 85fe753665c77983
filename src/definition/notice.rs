//! What a definition says of whom to tell when a workflow stands still.

use std::time::Duration;

use crate::definition::handler::ProgramDefinition;
use crate::definition::handler::SecretSource;
use crate::definition::handler::WebhookDefinition;

/// Whom to tell when a workflow stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotifyDefinition {
    /// How long a workflow has to be blocked, held or without its next message.
    pub after: Duration,
    /// How long one attempt to tell may take.
    pub timeout: Duration,
    /// How somebody is told.
    pub by: Notice,
}

/// How somebody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// By a program, which reads what happened as JSON.
    Exec(ProgramDefinition),
    /// By a post.
    Http {
        /// Where to.
        address: WebhookDefinition,
        /// Where the secrets are with which posts are signed.
        secret: Option<SecretSource>,
    },
}
