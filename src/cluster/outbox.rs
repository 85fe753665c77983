//! What a completion sends to workflows of other partitions: it is kept in a queue of the sending partition, in the same entry as
//! the completion, and handed over from there by whoever owns that (`handing_over`).
//!
//! The messages for one workflow are one line of that queue, so that none is handed over before those that were sent earlier.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::cluster::placing::CommandPlace;
use crate::cluster::placing::OUTBOX_QUEUE;
use crate::cluster::router::Router;
use crate::cluster::router::nonsense;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::CompletionCommand;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::Settlement;
use crate::engine::elsewhere::decode;
use crate::engine::elsewhere::encode;
use crate::engine::elsewhere::verbs;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::error::Unavailable;
use crate::header::Headers;
use crate::header::PropertyValue;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::NewMessage;
use crate::message::Place;
use crate::queue::QueueOptions;

/// The property with what is said of a message that is to be handed over.
const HANDOVER: &str = "seriatim-handover";

type QueueSends = (QueueName, Vec<NewMessage>);

/// A message that is to be handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Handover {
    pub(crate) queue: QueueName,
    pub(crate) message: NewMessage,
}

impl Handover {
    /// The message of the outbox with it.
    fn wrap(mut self) -> NewMessage {
        let body = std::mem::replace(&mut self.message.body, Bytes::new());
        let workflow_id = self.message.workflow_id.as_ref().map(|id| line_of(&self.queue, id));
        let said = PropertyValue::Binary(Bytes::from(encode(&self)));
        let properties = [(HANDOVER.to_owned(), said)].into();
        NewMessage {
            workflow_id,
            place: Place::default(),
            message_id: None,
            time_to_live: None,
            schedule_at: None,
            headers: Headers { properties, ..Headers::default() },
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
fn line_of(queue: &QueueName, id: &WorkflowId) -> WorkflowId {
    let mut hash = Xxh3::new();
    for text in [queue.as_str(), id.as_str()] {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    WorkflowId::new(format!("{:032x}", hash.digest128())).expect("it is short")
}

impl Router {
    /// A command as one partition can do it: what it sends to others goes to the outbox. Refused with a reply when there is no
    /// queue to send to.
    ///
    /// # Errors
    /// [`Unavailable`] when there is no outbox yet, and none can be made.
    pub(crate) async fn through_outbox(
        &self,
        mut command: Command,
    ) -> Result<Result<Command, Reply>, Unavailable> {
        let (token, completion) = match &mut command {
            Command::Settle(verbs::Settle {
                token, settlement: Settlement::Complete(completion), ..
            }) => (*token, completion),
            Command::SettleRun(verbs::SettleRun { token, settlement, .. }) => {
                (*token, &mut settlement.completion)
            }
            _ => return Ok(Ok(command)),
        };
        let own = self.places.token(token);
        let is_foreign = |queue: &QueueName, message: &NewMessage| matches!(self.places.message(queue, message), CommandPlace::One(partition) if partition != own);
        let mut foreign = Vec::new();
        for (queue, messages) in &completion.sends {
            if messages.iter().any(|message| is_foreign(queue, message)) {
                foreign.push(queue.clone());
            }
        }
        if foreign.is_empty() {
            return Ok(Ok(command));
        }
        for queue in foreign {
            // Later nobody would be there to be told.
            if !self.definitions.is_there(&queue).await? {
                let refusal = SettleRefusal::Send(SendRefusal::QueueNotFound(queue));
                return Ok(Err(Reply::Settle(Err(refusal))));
            }
        }
        self.make_outbox().await?;
        wrap_foreign(completion, is_foreign);
        Ok(Ok(command))
    }

    /// Has the queue of the outbox in every partition.
    async fn make_outbox(&self) -> Result<(), Unavailable> {
        if self.has_outbox.load(Ordering::Acquire) {
            return Ok(());
        }
        let options = QueueOptions {
            delivery_count_max: u32::MAX,
            lock: limits::OUTBOX_LOCK,
            body_bytes_max: limits::BODY_BYTES_CEILING,
            ..QueueOptions::default()
        };
        let name = QueueName::new(OUTBOX_QUEUE).expect("it is a name");
        let command = Command::CreateQueue(verbs::CreateQueue { name, options: Box::new(options) });
        match self.define(command).await? {
            Reply::Queue(Ok(_)) => self.has_outbox.store(true, Ordering::Release),
            _ => return Err(nonsense()),
        }
        Ok(())
    }
}

/// Puts those that are for another partition into messages of the outbox, each where it was.
fn wrap_foreign(completion: &mut CompletionCommand, is_foreign: impl Fn(&QueueName, &NewMessage) -> bool) {
    let outbox = QueueName::new(OUTBOX_QUEUE).expect("it is a name");
    let mut sends: Vec<QueueSends> = Vec::new();
    for (queue, messages) in std::mem::take(&mut completion.sends) {
        for message in messages {
            let (to, message) = match is_foreign(&queue, &message) {
                true => (&outbox, Handover { queue: queue.clone(), message }.wrap()),
                false => (&queue, message),
            };
            match sends.last_mut() {
                Some((last, together)) if last == to => together.push(message),
                _ => sends.push((to.clone(), vec![message])),
            }
        }
    }
    completion.sends = sends;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    #[test]
    fn what_is_for_others_is_wrapped_where_it_was_and_unwrapped_as_it_was() {
        let message = |workflow: &str| Message::new("body").workflow(workflow).subject("s").check().unwrap();
        let (q, r) = (QueueName::new("q").unwrap(), QueueName::new("r").unwrap());
        let mut completion = CompletionCommand {
            sends: vec![(q.clone(), vec![message("own"), message("other"), message("own")]), (r, vec![])],
            ..CompletionCommand::default()
        };
        let is_foreign =
            |_: &QueueName, message: &NewMessage| message.workflow_id == WorkflowId::new("other").ok();
        wrap_foreign(&mut completion, is_foreign);
        let queues: Vec<&str> = completion.sends.iter().map(|(queue, _)| queue.as_str()).collect();
        assert_eq!(queues, ["q", OUTBOX_QUEUE, "q"], "receipts come in the order of the messages");
        let wrapped = &completion.sends[1].1[0];
        let unwrapped = Handover::unwrap(&wrapped.headers, &wrapped.body).unwrap();
        assert_eq!(unwrapped, Handover { queue: q.clone(), message: message("other") });
        assert_eq!(wrapped.workflow_id, Some(line_of(&q, &WorkflowId::new("other").unwrap())));
        assert!(Handover::unwrap(&Headers::default(), &Bytes::new()).is_none());
    }
}
