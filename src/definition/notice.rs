//! What a definition says of whom to tell when a workflow stands still.

use std::time::Duration;

use crate::definition::handler::Address;
use crate::definition::handler::Program;
use crate::definition::handler::Secret;

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
    Exec(Program),
    /// By a post.
    Http {
        /// Where to.
        address: Address,
        /// Where the secrets are with which posts are signed.
        secret: Option<Secret>,
    },
}
