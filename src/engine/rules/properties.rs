//! Properties that a settlement sets on a message.

use crate::engine::rules::command::Settlement;
use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::SettleRefusal;
use crate::header::Properties;
use crate::header::properties_len;
use crate::id::SequenceNumber;
use crate::limits;

impl Step<'_> {
    /// Properties are added with each attempt; together they stay within the limit of a send.
    pub(crate) fn check_properties(
        &self,
        workflow: &OpenWorkflow,
        sequence: SequenceNumber,
        settlement: &Settlement,
    ) -> Ruling<(), SettleRefusal> {
        let Some(properties) = settlement.properties() else { return Ok(()) };
        let content = self.records.content_listed(workflow.message_key(sequence))?;
        let mut together = content.headers.properties.clone();
        together.extend(properties.clone());
        match properties_len(&together) {
            bytes if bytes > limits::PROPERTIES_BYTES_MAX => {
                refuse(SettleRefusal::PropertiesTooLarge { bytes })
            }
            _ => Ok(()),
        }
    }
}

impl Settlement {
    /// The properties that it sets, if any.
    pub(crate) fn properties(&self) -> Option<&Properties> {
        match self {
            Settlement::Abandon { properties, .. }
            | Settlement::Defer { properties, .. }
            | Settlement::DeadLetter { properties, .. } => Some(properties),
            _ => None,
        }
        .filter(|properties| !properties.is_empty())
    }
}

impl OpenWorkflow {
    pub(crate) fn change_properties(
        &mut self,
        step: &mut Step<'_>,
        sequence: SequenceNumber,
        properties: Properties,
    ) -> Read<()> {
        if properties.is_empty() {
            return Ok(());
        }
        let key = self.message_key(sequence);
        let mut content = step.records.content_listed(key)?;
        content.headers.properties.extend(properties);
        step.write_content(key, Some(content))
    }
}
