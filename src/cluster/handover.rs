//! A message of the outbox, with the one in it that is for a workflow of another partition.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::engine::elsewhere::decode;
use crate::engine::elsewhere::encode;
use crate::header::Headers;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::message::NewMessage;
use crate::message::Place;

/// The property with what is said of a message that is to be handed over.
const HANDOVER: &str = "seriatim-handover";

/// A message that is to be handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Handover {
    pub(crate) queue: QueueName,
    pub(crate) message: NewMessage,
}

impl Handover {
    /// The message of the outbox with it.
    pub(crate) fn wrap(mut self) -> NewMessage {
        let body = std::mem::replace(&mut self.message.body, Bytes::new());
        let workflow_id = self.message.workflow_id.as_ref().map(|id| line_of(&self.queue, id));
        let said = PropertyValue::Binary(Bytes::from(encode(&self)));
        let properties = [(HANDOVER.to_owned(), said)].into();
        NewMessage {
            workflow_id,
            place: Place::default(),
            message_id: None,
            time_to_live: None,
            kept_back: None,
            headers: Headers { properties, ..Headers::default() }.into(),
            body,
        }
    }

    /// What a message of the outbox is to hand over.
    pub(crate) fn unwrap(headers: &Headers, body: &Bytes) -> Option<Handover> {
        let Some(PropertyValue::Binary(said)) = headers.properties.get(HANDOVER) else { return None };
        let mut handover: Handover = decode(said)?;
        handover.message.body = body.clone();
        Some(handover)
    }
}

/// The line of the outbox for a workflow: any that is the same for it and, but for chance, for no other.
pub(crate) fn line_of(queue: &QueueName, id: &WorkflowId) -> WorkflowId {
    let mut hash = Xxh3::new();
    for text in [queue.as_str(), id.as_str()] {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    WorkflowId::new(format!("{:032x}", hash.digest128())).expect("it is short")
}
