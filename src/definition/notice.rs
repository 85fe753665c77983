//! Who is notified when a workflow is blocked, as a definition says it.

use std::time::Duration;

use crate::definition::handler::ProgramDefinition;
use crate::definition::handler::SecretSource;
use crate::definition::handler::WebhookDefinition;

/// Who is notified when a workflow is blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotifyDefinition {
    /// How long a workflow has to be blocked, held or without its next message.
    pub after: Duration,
    /// How long one notification may take.
    pub timeout: Duration,
    /// How the notification is sent.
    pub by: Notice,
}

/// How the notification is sent.
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
