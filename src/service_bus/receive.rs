//! Messages that go out: fetched when a client has given credit, never before.

use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::amqp::LinkId;
use crate::amqp::Outgoing;
use crate::amqp::Unsent;
use crate::engine::Delivery;
use crate::engine::Queue;
use crate::error::ReceiveError;
use crate::id::SequenceNumber;
use crate::limits;
use crate::service_bus::dead::Letter;
use crate::service_bus::entity::Entity;
use crate::service_bus::holds::Held;
use crate::service_bus::holds::Hold;
use crate::service_bus::holds::Token;
use crate::service_bus::links::Parcel;
use crate::service_bus::outgoing;
use crate::service_bus::outgoing::State;
use crate::service_bus::refusal::Refusal;
use crate::service_bus::refusal::condition;
use crate::service_bus::shared::Shared;
use crate::service_bus::talk::Talk;

/// What was fetched; nothing, if that was cancelled.
type Fetched = Option<Result<Vec<Parcel>, Refusal>>;

/// How deliveries are handed to a client.
pub(crate) struct Handing {
    /// Whether their lock is that of their session.
    pub(crate) is_of_session: bool,
    /// Whether they are gone once they are sent.
    pub(crate) deletes: bool,
    /// Whether they had been set aside.
    pub(crate) state: State,
}

impl Shared {
    /// Makes parcels of deliveries. Their locks are kept; those that are deleted are completed first.
    pub(crate) async fn pack(
        &self,
        queue: &Queue,
        mut deliveries: Vec<Delivery>,
        Handing { is_of_session, deletes, state }: Handing,
    ) -> Result<Vec<Parcel>, Refusal> {
        if deletes && !deliveries.is_empty() {
            queue.complete_all(&mut deliveries).await?;
        }
        let mut parcels = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            let locked_until = delivery.locked_until();
            let mut message = outgoing::Outgoing::handed(delivery.message());
            message.state = state;
            message.locked_until = (!deletes && !is_of_session).then_some(locked_until);
            let payload = message.encode();
            let id = delivery.keep();
            let token = match is_of_session {
                true => Token::shared(id.lock_token(), id.sequence_number()),
                false => Token::of(id.lock_token()),
            };
            let queue = queue.name().clone();
            let hold = Hold { queue, token, held: Held::Message(id), is_of_session, until: locked_until };
            parcels.push(Parcel { hold: (!deletes).then_some(hold), payload });
        }
        self.note_holds(&parcels);
        Ok(parcels)
    }

    /// Makes parcels of dead letters.
    pub(crate) async fn pack_letters(
        &self,
        queue: &Queue,
        letters: Vec<Letter>,
        deletes: bool,
    ) -> Result<Vec<Parcel>, Refusal> {
        let mut parcels = Vec::with_capacity(letters.len());
        for letter in letters {
            let number: SequenceNumber = letter.view.sequence_number;
            let mut message = outgoing::Outgoing::seen(&letter.view, letter.failures);
            message.locked_until = (!deletes).then_some(letter.locked_until);
            let payload = message.encode();
            if deletes {
                self.shelves.complete(queue, number, letter.token).await?;
            }
            let hold = Hold {
                queue: queue.name().clone(),
                token: letter.token,
                held: Held::DeadLetter(number),
                is_of_session: false,
                until: letter.locked_until,
            };
            parcels.push(Parcel { hold: (!deletes).then_some(hold), payload });
        }
        self.note_holds(&parcels);
        Ok(parcels)
    }

    fn note_holds(&self, parcels: &[Parcel]) {
        self.holds.add(parcels.iter().filter_map(|parcel| parcel.hold.clone()), self.clock.now());
    }

    /// Gives back what could not be sent, as if it had not been handed out. What a client may already have heard of as
    /// deleted is gone.
    pub(crate) async fn give_back(&self, parcels: Vec<Parcel>) {
        // Last first, so that none waits behind one that was given back before it.
        for hold in parcels.into_iter().rev().filter_map(|parcel| parcel.hold) {
            if let Err(refusal) = self.release(&hold).await {
                tracing::debug!(%refusal, "give back a message");
            }
        }
    }
}

impl Talk {
    /// Fetches messages for every receiver that has credit. Those for which there is no room stay hungry.
    pub(crate) fn feed_receivers(&mut self) {
        if self.amqp.has_room() {
            std::mem::take(&mut self.hungry).into_iter().for_each(|link| self.feed(link));
        }
    }

    fn feed(&mut self, link: LinkId) {
        self.send_backlog(link);
        let (credit, has_room) = (self.amqp.credit(link) as usize, self.amqp.has_room());
        let Some(receiver) = self.receiver(link).filter(|receiver| receiver.fetching.is_none()) else {
            return;
        };
        if receiver.drains && credit == 0 {
            receiver.drains = false;
            return self.amqp.drained(link);
        }
        if !receiver.backlog.is_empty() || !has_room {
            self.hungry.insert(link);
            return;
        }
        let mut max = credit.min(limits::SERVICE_BUS_FETCH_MAX);
        if receiver.session.is_some() {
            max = max.min(limits::TAKEN_AHEAD_MAX.saturating_sub(receiver.unsettled.len()));
        }
        let wait = if receiver.drains { Duration::ZERO } else { limits::RECEIVE_WAIT };
        match max {
            0 if receiver.drains => self.finish_draining(link),
            0 => {}
            _ => self.fetch(link, max, wait),
        }
    }

    fn finish_draining(&mut self, link: LinkId) {
        if let Some(receiver) = self.receiver(link) {
            receiver.drains = false;
            self.amqp.drained(link);
        }
    }

    fn fetch(&mut self, link: LinkId, max: usize, wait: Duration) {
        let shared = self.shared.clone();
        let Some(receiver) = self.receiver(link) else { return };
        let (entity, deletes, session) =
            (receiver.entity.clone(), receiver.deletes, receiver.session.clone());
        let cancel = CancellationToken::new();
        receiver.fetching = Some(cancel.clone());
        self.start(async move {
            let queue = &entity.queue;
            let fetched = match &session {
                _ if entity.is_dead_letters => fetch_letters(&shared, &entity, max, wait, &cancel).await,
                Some(session) => {
                    cancel.run_until_cancelled(session.taken.receive(max, wait)).await.map(as_refusal)
                }
                None => cancel.run_until_cancelled(queue.receive_many(max, wait)).await.map(as_refusal),
            };
            let fetched: Fetched = match fetched {
                Some(Ok(Work::Deliveries(deliveries))) => {
                    let is_of_session = session.is_some();
                    let handing = Handing { is_of_session, deletes, state: State::Active };
                    Some(shared.pack(queue, deliveries, handing).await)
                }
                Some(Ok(Work::Letters(letters))) => Some(shared.pack_letters(queue, letters, deletes).await),
                Some(Err(refusal)) => Some(Err(refusal)),
                None => None,
            };
            move |talk: &mut Talk| talk.fetched(link, fetched, wait.is_zero())
        });
    }

    fn fetched(&mut self, link: LinkId, fetched: Fetched, was_last: bool) {
        let parcels = match fetched {
            Some(Ok(parcels)) => parcels,
            Some(Err(refusal)) => return self.fetch_failed(link, refusal),
            None => Vec::new(),
        };
        let Some(receiver) = self.receiver(link) else {
            return self.start_giving_back(parcels);
        };
        receiver.fetching = None;
        // What asked without waiting and got nothing has had all there is.
        let is_all = was_last && parcels.is_empty() && receiver.backlog.is_empty() && receiver.drains;
        receiver.backlog.extend(parcels);
        self.hungry.insert(link);
        self.send_backlog(link);
        if is_all {
            self.finish_draining(link);
        }
    }

    fn fetch_failed(&mut self, link: LinkId, refusal: Refusal) {
        if self.receiver(link).is_some() {
            tracing::debug!(%refusal, "end a receiver");
            let refusal = match refusal.condition {
                // What it was attached to was deleted.
                condition::NOT_FOUND | condition::SESSION_LOCK_LOST | condition::SERVER_BUSY => refusal,
                _ => Refusal::new(condition::DETACH_FORCED, refusal.to_string()),
            };
            self.detach(link, refusal);
        }
    }

    pub(crate) fn start_giving_back(&mut self, parcels: Vec<Parcel>) {
        if parcels.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        self.start(async move {
            shared.give_back(parcels).await;
            |_: &mut Talk| {}
        });
    }

    /// Sends what was fetched, as far as there is room.
    fn send_backlog(&mut self, link: LinkId) {
        let mut unsendable = Vec::new();
        while let Some(parcel) = self.receiver(link).and_then(|receiver| receiver.backlog.pop_front()) {
            let tag = parcel.hold.as_ref().map_or([0; 16], |hold| hold.token.tag());
            let outgoing = Outgoing {
                tag: Bytes::copy_from_slice(&tag),
                payload: parcel.payload.clone(),
                format: 0,
                settled: parcel.hold.is_none(),
            };
            match self.amqp.send(link, outgoing) {
                Ok(delivery) => {
                    self.shared.meters.note_delivered(1);
                    if let (Some(receiver), Some(hold)) = (self.receiver(link), parcel.hold) {
                        receiver.unsettled.insert(delivery, hold);
                    }
                }
                Err(Unsent::NoRoom) => {
                    if let Some(receiver) = self.receiver(link) {
                        receiver.backlog.push_front(parcel);
                    }
                    break;
                }
                // The client has taken its credit back, or takes no message of this size.
                Err(_) => unsendable.push(parcel),
            }
        }
        self.start_giving_back(unsendable);
    }
}

/// What was fetched.
enum Work {
    Deliveries(Vec<Delivery>),
    Letters(Vec<Letter>),
}

fn as_refusal(received: Result<Vec<Delivery>, ReceiveError>) -> Result<Work, Refusal> {
    Ok(Work::Deliveries(received?))
}

async fn fetch_letters(
    shared: &Shared,
    entity: &Entity,
    max: usize,
    wait: Duration,
    cancel: &CancellationToken,
) -> Option<Result<Work, Refusal>> {
    let receiving = shared.shelves.receive(&entity.queue, entity.options.lock, max, wait);
    Some(cancel.run_until_cancelled(receiving).await?.map(Work::Letters))
}
