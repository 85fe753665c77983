//! Transactions as AMQP has them (part 4 of its core specification): declared with a coordinator, filled with sends and
//! settlements, and discharged. What belongs to one waits here and is asked of the engine as one; until then nothing of it
//! has happened.

use std::collections::BTreeSet;
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
use crate::engine::TransactionError;
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
use crate::service_bus::transactions::OpenTransaction;
use crate::service_bus::transactions::TransactionPart;
use crate::service_bus::transactions::link_is_over;

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
                let ended = self.transactions.end(&transaction, now_ms)?;
                match ended {
                    _ if fails => self.amqp.settle(link, delivery, DeliveryOutcome::Accepted),
                    OpenTransaction { missing: Some(refusal), .. } => {
                        self.answer_discharge(link, delivery, Err(CommitFailure::RolledBack(refusal)));
                    }
                    OpenTransaction { parts, bytes, .. } => self.commit(link, delivery, (parts, bytes)),
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

    fn commit(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        (parts, bytes): (Vec<TransactionPart>, usize),
    ) {
        // What the client requested outside of it, before its end, goes to the engine before it.
        self.send_groups();
        self.send_settlements();
        let shared = self.shared.clone();
        self.sending_bytes += bytes;
        self.start(async move {
            let committed = shared.commit(&parts).await;
            move |connection_task: &mut ConnectionTask| {
                connection_task.sending_bytes -= bytes;
                if committed.is_err() {
                    senders_of(&parts)
                        .into_iter()
                        .for_each(|link| connection_task.check_order(link, Vec::new()));
                }
                connection_task.answer_discharge(link, delivery, committed);
            }
        });
    }

    fn answer_discharge(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        committed: Result<(), CommitFailure>,
    ) {
        match committed {
            Ok(()) => self.amqp.settle(link, delivery, DeliveryOutcome::Accepted),
            Err(CommitFailure::RolledBack(refusal)) => {
                let what = format!("nothing of the transaction was done: {refusal}");
                let error = AmqpError::new(condition::ROLLED_BACK, what);
                self.amqp.settle(link, delivery, DeliveryOutcome::Rejected(Some(error)));
            }
            // What is rejected was rolled back; whoever hears nothing knows that it is in doubt.
            Err(CommitFailure::InDoubt(refusal)) => self.detach(link, refusal),
        }
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
        // What it came in may be much larger, and would be kept as long as the transaction is open.
        let payload = Bytes::copy_from_slice(payload);
        let added = self.shared.read_all(&entity, format, &payload).and_then(|messages| {
            let parts =
                messages.into_iter().map(|message| TransactionPart::Send(link, Arc::clone(&entity), message));
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
                self.refuse_delivery(link, (delivery, settled), Some(&transaction), refusal);
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
        let Some(receiver) = self.receiver(link) else {
            return self.note_missing(settled, Some(&transaction), &link_is_over());
        };
        let hold = receiver.unsettled.get(&delivery).cloned();
        let outcome = outcome.unwrap_or(DeliveryOutcome::Released);
        let added = hold.ok_or_else(AmqpRefusal::lock_lost).and_then(|hold| {
            hold.note_activity();
            let settlement = ClientSettlement::of(&outcome);
            let before = hold.set_before.as_ref();
            let bytes = settlement.as_ref().map_or(Ok(0), |settlement| settlement.bytes(before))?;
            let part = TransactionPart::Settle(hold, settlement);
            self.transactions.add(&transaction, now_ms, (vec![part], bytes))
        });
        // With either answer the delivery is settled for its client, which still has the message.
        let shared = self.shared.clone();
        if let Some(receiver) = self.receiver(link) {
            receiver.note_in_transaction(delivery, &shared.holds);
        }
        match added {
            Ok(()) => {
                if !settled {
                    let outcome = DeliveryOutcome::InTransaction(transaction, Box::new(echo(&outcome)));
                    self.amqp.settle(link, delivery, outcome);
                }
                self.note_settled(link);
            }
            Err(refusal) => self.refuse_delivery(link, (delivery, settled), Some(&transaction), refusal),
        }
    }

    /// Notes that a transaction, if there is one, misses what its client has settled, and so hears nothing of.
    pub(crate) fn note_missing(&mut self, settled: bool, transaction: Option<&Bytes>, refusal: &AmqpRefusal) {
        if let Some(transaction) = transaction.filter(|_| settled) {
            self.transactions.note_missing(transaction, refusal.clone());
        }
    }
}

/// The links over which messages of a transaction came.
fn senders_of(parts: &[TransactionPart]) -> BTreeSet<LinkId> {
    let sender = |part: &TransactionPart| match part {
        TransactionPart::Send(link, ..) => Some(*link),
        TransactionPart::Settle(..) => None,
    };
    parts.iter().filter_map(sender).collect()
}

/// Why a transaction is not said to be done.
enum CommitFailure {
    RolledBack(AmqpRefusal),
    /// Nobody knows whether it was done.
    InDoubt(AmqpRefusal),
}

impl From<TransactionError> for CommitFailure {
    fn from(error: TransactionError) -> CommitFailure {
        match error.may_be_done() {
            true => CommitFailure::InDoubt(error.into()),
            false => CommitFailure::RolledBack(error.into()),
        }
    }
}

impl EndpointState {
    /// Does everything, or nothing.
    async fn commit(&self, parts: &[TransactionPart]) -> Result<(), CommitFailure> {
        let transaction = self.transaction(parts).map_err(CommitFailure::RolledBack)?;
        let sent = parts.iter().filter(|part| matches!(part, TransactionPart::Send(..))).count();
        let committed = transaction.commit().await;
        let (accepted, refused) = if committed.is_ok() { (sent, 0) } else { (0, sent) };
        self.meters.note_received(accepted, refused);
        committed?;
        parts.iter().for_each(|part| self.note_part(part));
        Ok(())
    }

    fn transaction(&self, parts: &[TransactionPart]) -> Result<Transaction, AmqpRefusal> {
        let mut transaction = Transaction::new(self.client.clone());
        for part in parts {
            match part {
                TransactionPart::Send(_, entity, message) => match &entity.topic {
                    Some(topic) => transaction.publish(topic, published(message.clone())?),
                    None => transaction.send(entity.name(), message.clone())?,
                },
                TransactionPart::Settle(hold, settlement) => {
                    self.add_settlement(&mut transaction, hold, settlement.as_ref())?;
                }
            }
        }
        Ok(transaction)
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

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::amqp::message::encode_value;
    use crate::amqp::tests::peer;
    use crate::amqp::tests::peer::Performative;
    use crate::amqp::tests::peer::Role;
    use crate::amqp::tests::peer::Target;
    use crate::clock::SystemClock;
    use crate::engine::Engine;
    use crate::error::SendError;
    use crate::error::Unavailable;
    use crate::message::Message;
    use crate::service_bus::address::EntityAddress;
    use crate::service_bus::tests::bare::attach;
    use crate::service_bus::tests::socketless;

    #[tokio::test]
    async fn a_discharged_transaction_counts_as_sent_until_it_is_committed() {
        let engine = Engine::in_memory().open().await.unwrap();
        let queue = socketless::unordered(engine.client()).await;
        let shared = socketless::endpoint(engine.client(), Arc::new(SystemClock::default())).await;
        let EntityAddress::Entity(path) = EntityAddress::read("q") else { unreachable!("it is a queue") };
        let entity = Arc::new(shared.entity(&path).await.unwrap());
        let mut connection_task = socketless::opened(shared);
        let link = LinkId { channel: 0, handle: 0, serial: 0 };
        let transaction = connection_task.transactions.declare(link, 0).unwrap();
        let part = TransactionPart::Send(link, entity, Message::new("x"));
        connection_task.transactions.add(&transaction, 0, (vec![part], 5_000)).unwrap();
        let mut discharge = BytesMut::new();
        let fields = Value::List(vec![Value::Binary(transaction), Value::Boolean(false)]);
        encode_value(&mut discharge, &Value::described(Value::Ulong(DISCHARGE.1), fields));
        connection_task.coordinate(link, DeliveryNumber(0), &discharge.freeze());
        assert_eq!(connection_task.sending_bytes, 5_000);
        connection_task.settle_down().await;
        assert_eq!(connection_task.sending_bytes, 0);
        assert_eq!(queue.view().await.unwrap().counts.stored(), 1);
    }

    #[tokio::test]
    async fn what_a_transaction_refuses_to_settle_takes_no_room_of_its_session() {
        let (_engine, mut connection_task) = socketless::in_session(1).await;
        let link = *connection_task.links.keys().next().expect("it has a receiver");
        let unknown = Bytes::from_static(b"never declared");
        connection_task.settle_in(link, (DeliveryNumber(0), false), Some(DeliveryOutcome::Accepted), unknown);
        assert_eq!(socketless::unsettled(&connection_task), 0);
        let left = connection_task.receiver(link).map(|receiver| receiver.take_left().len());
        assert_eq!(left, Some(1), "its client still has it");
    }

    /// What a client with a coordinator hears when a transaction that it discharges ends so.
    async fn heard_after(why: Unavailable) -> Vec<Performative> {
        let engine = Engine::in_memory().open().await.unwrap();
        let shared = socketless::endpoint(engine.client(), Arc::new(SystemClock::default())).await;
        let mut connection_task = socketless::opened(shared);
        let target = Some(Target { coordinator: true, ..Target::default() });
        let coordinator = peer::Attach { target, ..peer::attach("coordinator", 0, Role::Sender) };
        connection_task.hear(&[attach(coordinator)]).await;
        let link = *connection_task.links.keys().next().expect("it has a coordinator");
        connection_task.written();
        let failure = TransactionError::from(SendError::Unavailable(why)).into();
        connection_task.answer_discharge(link, DeliveryNumber(0), Err(failure));
        connection_task.settle_down().await;
        connection_task.written()
    }

    #[tokio::test]
    async fn what_may_have_been_committed_is_not_said_to_be_rolled_back() {
        let heard = heard_after(Unavailable::Unanswered("the node has gone".to_owned())).await;
        let error = heard.iter().find_map(|frame| match frame {
            Performative::Detach(detach) => detach.error.as_ref(),
            _ => None,
        });
        let error = error.unwrap_or_else(|| panic!("its coordinator has ended: {heard:?}"));
        assert_eq!(error.condition.to_string(), condition::INTERNAL);
        let why = format!("{error:?}");
        assert!(why.contains("whether it was done is not known") && !why.contains("nothing"), "{why}");
    }
}
