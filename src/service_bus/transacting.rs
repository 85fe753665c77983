//! Transactions as AMQP has them (part 4 of its core specification): declared with a coordinator, filled with sends and
//! settlements, and discharged. What belongs to one waits here and is asked of the engine as one; until then nothing of it
//! has happened.

use std::sync::Arc;

use bytes::Bytes;

use crate::amqp::AmqpError;
use crate::amqp::DeliveryNumber;
use crate::amqp::DeliveryOutcome;
use crate::amqp::LinkId;
use crate::amqp::Value;
use crate::amqp::message::MessageBody;
use crate::amqp::message::Sections;
use crate::engine;
use crate::engine::Transaction;
use crate::header::Properties;
use crate::service_bus::client_settlement::ClientSettlement;
use crate::service_bus::client_settlement::echo;
use crate::service_bus::connection_task::ConnectionTask;
use crate::service_bus::elapsed::elapsed_ms;
use crate::service_bus::holds::ClientHold;
use crate::service_bus::links::EndpointLink;
use crate::service_bus::published::published;
use crate::service_bus::refusal::AmqpRefusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::transactions::TransactionPart;

const DECLARE: (&str, u64) = ("amqp:declare:list", 0x31);
const DISCHARGE: (&str, u64) = ("amqp:discharge:list", 0x32);

/// What is asked of a coordinator.
enum CoordinatorRequest {
    Declare,
    Discharge { transaction: Bytes, fails: bool },
}

impl CoordinatorRequest {
    fn read(payload: &Bytes) -> Result<CoordinatorRequest, AmqpRefusal> {
        let wrong =
            || AmqpRefusal::new(condition::INVALID_FIELD, "a coordinator takes declare and discharge only");
        let MessageBody::Value(Value::Described(described)) = Sections::parse(payload)?.body()? else {
            return Err(wrong());
        };
        let (descriptor, fields) = *described;
        let is = |(name, number)| descriptor == Value::Ulong(number) || descriptor.as_str() == Some(name);
        let Value::List(fields) = fields else { return Err(wrong()) };
        match fields.first() {
            _ if is(DECLARE) => Ok(CoordinatorRequest::Declare),
            Some(Value::Binary(transaction)) if is(DISCHARGE) => Ok(CoordinatorRequest::Discharge {
                transaction: transaction.clone(),
                fails: fields.get(1) == Some(&Value::Boolean(true)),
            }),
            _ => Err(wrong()),
        }
    }
}

impl ConnectionTask {
    /// Does what is asked of a coordinator.
    pub(crate) fn coordinate(&mut self, link: LinkId, delivery: DeliveryNumber, payload: &Bytes) {
        self.grant_requests(link);
        let now_ms = elapsed_ms(&*self.shared.clock);
        let declared = CoordinatorRequest::read(payload).and_then(|request| match request {
            CoordinatorRequest::Declare => Ok(Some(self.transactions.declare(link, now_ms)?)),
            CoordinatorRequest::Discharge { transaction, fails } => {
                let parts = self.transactions.end(&transaction, now_ms)?;
                match fails {
                    true => self.amqp.settle(link, delivery, DeliveryOutcome::Accepted),
                    false => self.commit(link, delivery, parts),
                }
                Ok(None)
            }
        });
        match declared {
            Ok(Some(transaction)) => self.amqp.settle(link, delivery, DeliveryOutcome::Declared(transaction)),
            Ok(None) => {}
            Err(refusal) => self.amqp.settle(link, delivery, DeliveryOutcome::Rejected(Some(refusal.into()))),
        }
    }

    fn commit(&mut self, link: LinkId, delivery: DeliveryNumber, parts: Vec<TransactionPart>) {
        // What the client requested outside of it, before its end, goes to the engine before it.
        self.send_groups();
        self.send_completions();
        let shared = self.shared.clone();
        self.start(async move {
            let committed = shared.commit(&parts).await;
            move |connection_task: &mut ConnectionTask| {
                let outcome = match committed {
                    Ok(()) => DeliveryOutcome::Accepted,
                    Err(refusal) => {
                        let what = format!("nothing of the transaction was done: {refusal}");
                        DeliveryOutcome::Rejected(Some(AmqpError::new(condition::ROLLED_BACK, what)))
                    }
                };
                connection_task.amqp.settle(link, delivery, outcome);
            }
        });
    }

    /// Takes a message, or a batch of them, of a transaction.
    pub(crate) fn post(
        &mut self,
        link: LinkId,
        (delivery, settled): (DeliveryNumber, bool),
        (format, payload): (u32, &Bytes),
        transaction: Bytes,
    ) {
        let Some(EndpointLink::Sender(sender)) = self.links.get(&link) else { return };
        let (entity, now_ms) = (Arc::new(sender.entity.clone()), elapsed_ms(&*self.shared.clock));
        let added = self.shared.read_all(&entity, format, payload).and_then(|messages| {
            let parts =
                messages.into_iter().map(|message| TransactionPart::Send(Arc::clone(&entity), message));
            self.transactions.add(&transaction, now_ms, (parts.collect(), payload.len()))
        });
        match added {
            Ok(()) if settled => {}
            Ok(()) => {
                let outcome =
                    DeliveryOutcome::InTransaction(transaction, Box::new(DeliveryOutcome::Accepted));
                self.amqp.settle(link, delivery, outcome);
            }
            Err(refusal) => {
                self.refuse_delivery(link, (delivery, settled), refusal);
                if settled {
                    return;
                }
            }
        }
        self.replenish(link);
    }

    /// Settles a message with a transaction.
    pub(crate) fn settle_in(
        &mut self,
        link: LinkId,
        (delivery, settled): (DeliveryNumber, bool),
        outcome: Option<DeliveryOutcome>,
        transaction: Bytes,
    ) {
        let now_ms = elapsed_ms(&*self.shared.clock);
        let Some(receiver) = self.receiver(link) else { return };
        let hold = receiver.unsettled.get(&delivery).cloned();
        let outcome = outcome.unwrap_or(DeliveryOutcome::Released);
        let added = hold.ok_or_else(AmqpRefusal::lock_lost).and_then(|hold| {
            hold.note_activity();
            let part = TransactionPart::Settle(hold, ClientSettlement::of(&outcome));
            self.transactions.add(&transaction, now_ms, (vec![part], 0))
        });
        match added {
            Ok(()) => {
                if let Some(receiver) = self.receiver(link) {
                    receiver.unsettled.remove(&delivery);
                }
                if !settled {
                    let outcome = DeliveryOutcome::InTransaction(transaction, Box::new(echo(&outcome)));
                    self.amqp.settle(link, delivery, outcome);
                }
                self.note_settled(link);
            }
            Err(refusal) => self.refuse_delivery(link, (delivery, settled), refusal),
        }
    }
}

impl EndpointState {
    /// Does everything, or nothing.
    async fn commit(&self, parts: &[TransactionPart]) -> Result<(), AmqpRefusal> {
        let mut transaction = Transaction::new(self.client.clone());
        for part in parts {
            match part {
                TransactionPart::Send(entity, message) => match &entity.topic {
                    Some(topic) => transaction.publish(topic, published(message.clone())?),
                    None => transaction.send(entity.name(), message.clone())?,
                },
                TransactionPart::Settle(hold, settlement) => {
                    self.add_settlement(&mut transaction, hold, settlement.as_ref())?;
                }
            }
        }
        let sent = parts.iter().filter(|part| matches!(part, TransactionPart::Send(..))).count();
        let committed = transaction.commit().await;
        let (accepted, refused) = if committed.is_ok() { (sent, 0) } else { (0, sent) };
        self.meters.note_received(accepted, refused);
        committed?;
        parts.iter().for_each(|part| self.note_part(part));
        Ok(())
    }

    fn add_settlement(
        &self,
        transaction: &mut Transaction,
        hold: &ClientHold,
        settlement: Option<&ClientSettlement>,
    ) -> Result<(), AmqpRefusal> {
        match settlement {
            None => {
                transaction.end_with(&hold.queue, hold.id, (engine::Outcome::Release, Properties::new()))?;
            }
            Some(ClientSettlement::Complete) => transaction.complete(&hold.queue, hold.id)?,
            Some(settlement) => {
                transaction.end_with(&hold.queue, hold.id, self.ending(hold, settlement.clone())?)?;
            }
        }
        Ok(())
    }

    /// Notes what has happened.
    fn note_part(&self, part: &TransactionPart) {
        let TransactionPart::Settle(hold, settlement) = part else { return };
        self.meters.note_settled(1);
        match settlement {
            Some(settlement) => drop(self.note(hold, settlement.kind(), Ok(()))),
            None => self.holds.forget(hold.token),
        }
    }
}
