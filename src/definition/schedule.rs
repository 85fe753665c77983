//! What a definition says of a schedule.

use bytes::Bytes;

use crate::api::WireTime;
use crate::clock::Timestamp;
use crate::id::WorkflowId;
use crate::message::Message;
use crate::schedule::Cron;
use crate::schedule::MissedTicks;

/// Messages that are sent at the instants a cron line names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleDefinition {
    /// Its name, once in a definition.
    pub name: String,
    /// When it ticks.
    pub cron: Cron,
    /// What becomes of ticks that were missed.
    pub missed: MissedTicks,
    /// The workflow of its messages.
    pub workflow_id: Option<WorkflowId>,
    /// The subject of its messages.
    pub subject: Option<String>,
    /// The body of its messages, as JSON; empty without one.
    pub body: Bytes,
}

/// The property of a tick's message that holds its nominal instant.
pub(crate) const SCHEDULED_FOR: &str = "scheduled_for";

impl ScheduleDefinition {
    /// The message of a tick, known by its nominal instant: it carries the instant as the property `scheduled_for`, and
    /// in its message ID, so that a tick that is sent twice can be told from two ticks.
    pub fn message(&self, tick: Timestamp) -> Message {
        let instant = WireTime(tick).to_string();
        let mut message = Message::new(self.body.clone())
            .message_id(format!("{}/{instant}", self.name))
            .property(SCHEDULED_FOR, instant);
        if !self.body.is_empty() {
            message = message.content_type("application/json");
        }
        if let Some(id) = &self.workflow_id {
            message = message.workflow(id.as_str());
        }
        if let Some(subject) = &self.subject {
            message = message.subject(subject);
        }
        message
    }
}
