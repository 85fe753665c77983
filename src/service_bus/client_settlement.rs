//! How a client wants a message settled, and what it is answered.

use bytes::Bytes;

use crate::amqp::AmqpError;
use crate::amqp::DeliveryOutcome;
use crate::amqp::Map;
use crate::amqp::lookup;
use crate::header::Headers;
use crate::service_bus::holds::ClientSettlementKind;
use crate::service_bus::property::PropertyChanges;
use crate::service_bus::refusal::AmqpRefusal;

/// Reason of a dead letter for which the client gave none.
const NO_REASON: &str = "DeadLettered";

/// How a client wants a message settled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClientSettlement {
    Complete,
    Abandon(PropertyChanges),
    Defer(PropertyChanges),
    DeadLetter { reason: String, description: String, changes: PropertyChanges },
}

impl ClientSettlement {
    pub(crate) fn kind(&self) -> ClientSettlementKind {
        match self {
            ClientSettlement::Complete => ClientSettlementKind::Completed,
            ClientSettlement::Abandon(_) => ClientSettlementKind::Abandoned,
            ClientSettlement::Defer(_) => ClientSettlementKind::Deferred,
            ClientSettlement::DeadLetter { .. } => ClientSettlementKind::DeadLettered,
        }
    }

    /// What an outcome asks for; nothing when the message was not looked at.
    pub(crate) fn of(outcome: &DeliveryOutcome) -> Option<ClientSettlement> {
        match outcome {
            DeliveryOutcome::Accepted => Some(ClientSettlement::Complete),
            // The last two are what a coordinator says, and no client.
            DeliveryOutcome::Released | DeliveryOutcome::Declared(_) | DeliveryOutcome::InTransaction(..) => {
                None
            }
            DeliveryOutcome::Modified { undeliverable_here: true, annotations, .. } => {
                Some(ClientSettlement::Defer(PropertyChanges::read(annotations)))
            }
            DeliveryOutcome::Modified { annotations, .. } => {
                Some(ClientSettlement::Abandon(PropertyChanges::read(annotations)))
            }
            DeliveryOutcome::Rejected(error) => {
                let info = error.as_ref().map(|error| &error.info[..]).unwrap_or_default();
                Some(ClientSettlement::dead_letter(info, error.as_ref()))
            }
        }
    }

    /// How many bytes it sets of a message of which settlements have set `before`.
    ///
    /// # Errors
    /// What it sets is too large.
    pub(crate) fn bytes(&self, before: Option<&Bytes>) -> Result<usize, AmqpRefusal> {
        let (said, changes) = match self {
            ClientSettlement::Complete => return Ok(0),
            ClientSettlement::Abandon(changes) | ClientSettlement::Defer(changes) => (0, changes),
            ClientSettlement::DeadLetter { reason, description, changes } => {
                (reason.len() + description.len(), changes)
            }
        };
        let properties = changes.to_properties(before)?;
        Ok(said + Headers { properties, ..Headers::default() }.len())
    }

    /// A dead letter with this reason, or one that says that there is none.
    pub(crate) fn with_reason(reason: &str, description: &str, changes: PropertyChanges) -> ClientSettlement {
        let reason = if reason.is_empty() { NO_REASON } else { reason }.to_owned();
        ClientSettlement::DeadLetter { reason, description: description.to_owned(), changes }
    }

    fn dead_letter(
        info: &[(crate::amqp::Value, crate::amqp::Value)],
        error: Option<&AmqpError>,
    ) -> ClientSettlement {
        let text = |name: &str| lookup(info, name).and_then(|value| value.as_str()).map(str::to_owned);
        let mut changes = PropertyChanges::read(info);
        changes.remove("DeadLetterReason");
        changes.remove("DeadLetterErrorDescription");
        let given = error.and_then(|error| error.description.as_ref()).map(ToString::to_string);
        ClientSettlement::DeadLetter {
            reason: text("DeadLetterReason")
                .filter(|reason| !reason.is_empty())
                .unwrap_or(NO_REASON.to_owned()),
            description: text("DeadLetterErrorDescription").or(given).unwrap_or_default(),
            changes,
        }
    }
}

/// The answer to an outcome that was taken. An error in it would tell the client that its rejection failed.
pub(crate) fn echo(outcome: &DeliveryOutcome) -> DeliveryOutcome {
    match outcome {
        DeliveryOutcome::Rejected(_) => DeliveryOutcome::Rejected(None),
        DeliveryOutcome::Modified { delivery_failed, undeliverable_here, .. } => DeliveryOutcome::Modified {
            delivery_failed: *delivery_failed,
            undeliverable_here: *undeliverable_here,
            annotations: Map::new(),
        },
        other => other.clone(),
    }
}
