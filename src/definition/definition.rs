//! A definition: what one file says of a queue and of what handles its messages.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::definition::handler::HandlerDefinition;
use crate::definition::notice::NotifyDefinition;
use crate::definition::outbox::OutboxDefinition;
use crate::definition::read_subscription::SubscriptionDefinition;
use crate::definition::schedule::ScheduleDefinition;
use crate::definition::schema::schema_text;
use crate::id::QueueName;
use crate::intake::FieldSource;
use crate::intake::IntakeRule;
use crate::queue::QueueOptions;

/// A definition: what one file says of a queue and of what handles its messages.
///
/// Two definitions are equal when they say the same; where in their files they say it does not matter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// The queue.
    pub name: QueueName,
    /// The file.
    pub file: PathBuf,
    /// The topic whose subscription the queue is, if it is one.
    pub subscription: Option<SubscriptionDefinition>,
    /// The queue's options.
    pub options: QueueOptions,
    /// Where workflow, place and ID of its messages are read, and its exact retry delays.
    pub rule: Arc<IntakeRule>,
    /// How many messages its handlers have at once, all together.
    pub concurrency: usize,
    /// How long a handler may run: for so long its lock is renewed.
    pub renew_for: Duration,
    /// What handles its messages; none when clients receive them.
    pub handlers: Vec<HandlerDefinition>,
    /// What is sent at certain instants.
    pub schedules: Vec<ScheduleDefinition>,
    /// The table whose rows are copied into the queue, if there is one.
    pub outbox: Option<OutboxDefinition>,
    /// What the page hides of each message; in a pointer `*` stands for every member or element.
    pub redact: Vec<FieldSource>,
    /// Who is notified when a workflow is blocked.
    pub notify: Option<NotifyDefinition>,
}

impl Definition {
    /// The JSON schema of a definition file, for editors: `#:schema ./seriatim.schema.json` in its first line.
    pub fn schema() -> String {
        schema_text()
    }

    /// The handler of a subject: the one that names it, or the one that names none.
    pub fn handler(&self, subject: Option<&str>) -> Option<&HandlerDefinition> {
        let named = self
            .handlers
            .iter()
            .find(|handler| handler.subject.is_some() && handler.subject.as_deref() == subject);
        named.or_else(|| self.handlers.iter().find(|handler| handler.subject.is_none()))
    }
}
