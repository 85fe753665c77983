//! Receiving: messages under a lock, waited for if there are none.

use std::time::Duration;

use axum::extract::State;
use bytes::Bytes;

use crate::api::DeliveryEnvelope;
use crate::api::ReceiveDeferredRequest;
use crate::api::ReceiveRequest;
use crate::api::ReceiveResponse;
use crate::clock::Timestamp;
use crate::engine::Delivery;
use crate::engine::DeliveryId;
use crate::engine::Queue;
use crate::engine::ReceivedMessage;
use crate::engine::Run;
use crate::id::SequenceNumber;
use crate::limits;
use crate::queue::Order;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::JsonBody;
use crate::server::extract::PathParams;
use crate::server::shared::SharedServer;
use crate::token::LockToken;

/// Messages on their way out. They are given back as if they had not been handed out if the answer with them is not made; from
/// then on the ID of each settles it, or the token of their run.
#[derive(Default)]
struct HandedOut {
    deliveries: Vec<Delivery>,
    /// Its messages are settled from the first on and not one by one.
    run: Option<Run>,
}

/// The lock of a message that is handed out.
struct HeldLock {
    token: LockToken,
    until: Timestamp,
    lasts: Duration,
}

/// What is shown of a message beside what every receiver is told.
#[derive(Clone, Copy)]
struct ReceiveDetail {
    state: bool,
    raw: bool,
    /// Whether all messages are shown or none, so that too much is refused; else what is too much is given back.
    whole: bool,
}

impl HandedOut {
    fn apart(deliveries: Vec<Delivery>) -> HandedOut {
        HandedOut { deliveries, run: None }
    }

    fn together(run: Option<Run>) -> HandedOut {
        HandedOut { deliveries: Vec::new(), run }
    }

    /// Each message with its lock, and its ID unless it is one of a run.
    fn messages(&self) -> impl Iterator<Item = (&ReceivedMessage, HeldLock, Option<DeliveryId>)> {
        let of_run = self.run.iter().flat_map(|run| {
            let (token, until, (_, lasts)) = (run.lock_token(), run.locked_until(), run.lock_time());
            run.messages().iter().map(move |message| (message, HeldLock { token, until, lasts }, None))
        });
        let apart = self.deliveries.iter().map(|delivery| {
            let (token, until) = (delivery.lock_token(), delivery.locked_until());
            let (_, lasts) = delivery.lock_time();
            (delivery.message(), HeldLock { token, until, lasts }, Some(delivery.id()))
        });
        of_run.chain(apart)
    }

    /// Keeps the first for who is answered with them. The rest is given back in its order, as workflows line up anew.
    fn keep(mut self, shown: usize) {
        let rest = self.deliveries.split_off(shown.min(self.deliveries.len()));
        rest.into_iter().for_each(Delivery::give_back);
        for delivery in self.deliveries.drain(..) {
            delivery.keep();
        }
        if let Some(run) = self.run.take() {
            run.keep();
        }
    }
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        // The last first: what is given back goes before what is ready.
        self.deliveries.drain(..).rev().for_each(Delivery::give_back);
        if let Some(run) = self.run.take() {
            run.give_back();
        }
    }
}

pub(crate) async fn receive(
    State(shared): State<SharedServer>,
    extract: PathParams,
    JsonBody(request): JsonBody<ReceiveRequest>,
) -> HttpResult {
    let queue = extract.queue()?;
    let max = match request.max.unwrap_or(1) {
        0 => return Err(HttpRefusal::misuse("max", "is zero, and a receive takes one message at least")),
        max => max.min(limits::RECEIVE_MAX),
    };
    let wait = request.wait.map_or(Duration::ZERO, |wait| wait.0).min(limits::HTTP_WAIT_MAX);
    if request.run && request.dead_letters {
        return Err(HttpRefusal::misuse("run", "is of messages, and dead letters are received one by one"));
    }
    let received = async {
        Ok::<_, HttpRefusal>(match request.run {
            false if request.dead_letters => HandedOut::apart(queue.receive_dead_letters(max, wait).await?),
            false => HandedOut::apart(queue.receive_many(max, wait).await?),
            true => HandedOut::together(queue.receive_run(max, wait).await?),
        })
    };
    let handed = tokio::select! {
        handed = received => handed?,
        () = shared.stopping.cancelled() => HandedOut::default(),
    };
    answer(&queue, handed, ReceiveDetail { state: request.state, raw: request.raw, whole: false }).await
}

pub(crate) async fn receive_deferred(
    extract: PathParams,
    JsonBody(request): JsonBody<ReceiveDeferredRequest>,
) -> HttpResult {
    let queue = extract.queue()?;
    let numbers: Vec<SequenceNumber> =
        request.sequence_numbers.into_iter().map(SequenceNumber::new).collect();
    let deliveries = match request.dead_letters {
        true => queue.receive_deferred_dead_letters(&numbers).await?,
        false => queue.receive_deferred(&numbers).await?,
    };
    let detail = ReceiveDetail { state: request.state, raw: request.raw, whole: true };
    answer(&queue, HandedOut::apart(deliveries), detail).await
}

/// The answer with what was handed out, as far as there is room in it, which is let go of last: who leaves meanwhile leaves
/// nothing locked.
async fn answer(queue: &Queue, handed: HandedOut, detail: ReceiveDetail) -> HttpResult {
    let run = handed.run.as_ref().map(|run| run.lock_token().to_string());
    let deliveries = show(queue, &handed, detail).await?;
    let shown = deliveries.len();
    let answer = json(&ReceiveResponse { run, deliveries })?;
    handed.keep(shown);
    Ok(answer)
}

async fn show(
    queue: &Queue,
    handed: &HandedOut,
    detail: ReceiveDetail,
) -> Result<Vec<DeliveryEnvelope>, HttpRefusal> {
    if handed.messages().next().is_none() {
        return Ok(Vec::new());
    }
    // The order of a queue cannot change while it stores messages, and those that are handed out are stored.
    let by_position = matches!(queue.options().await?.order, Order::Position { .. });
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for (message, HeldLock { token, until, lasts }, id) in handed.messages() {
        let is_too_much = detail.state && id.is_some() && bytes >= limits::RECEIVE_BYTES_MAX;
        match is_too_much {
            true if detail.whole => return Err(too_much()),
            true => break,
            false => {}
        }
        let mut envelope = DeliveryEnvelope::show(queue.name(), message, by_position).with_lock(until, lasts);
        if detail.raw {
            envelope = envelope.with_raw_body(&message.body);
        }
        envelope.lock_token = Some(token.to_string());
        envelope.delivery = id.map(|id| id.to_string());
        bytes += message.body.len();
        // All of a run have the same state.
        let with_state = detail.state && message.has_workflow() && (id.is_some() || shown.is_empty());
        if let (true, Some(workflow)) = (with_state, &message.workflow_id) {
            let state = queue.workflow(workflow)?.state().await?;
            bytes += state.as_ref().map_or(0, Bytes::len);
            envelope = envelope.with_state(state.as_ref());
        }
        shown.push(envelope);
    }
    Ok(shown)
}

fn too_much() -> HttpRefusal {
    let most = limits::RECEIVE_BYTES_MAX / (1024 * 1024);
    let detail = format!("have more than {most} MiB with their states: ask for fewer, or without `state`");
    HttpRefusal::misuse("sequence_numbers", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::message::Message;
    use crate::queue::QueueOptions;

    #[tokio::test]
    async fn what_is_handed_out_and_not_answered_is_offered_again_uncounted_and_in_order() {
        let engine = Engine::in_memory().open().await.unwrap();
        let client = engine.client();
        let queue = client.create_queue("orders", QueueOptions::default()).await.unwrap();
        queue.send_batch((1..=3).map(|number| Message::new(number.to_string()))).await.unwrap();
        // It stands for a look that fails, and for a client that leaves meanwhile.
        let detail = ReceiveDetail { state: true, raw: false, whole: false };
        let nowhere = client.queue("nowhere").unwrap();
        let handed = HandedOut::apart(queue.receive_many(3, Duration::ZERO).await.unwrap());
        assert!(answer(&nowhere, handed, detail).await.is_err());
        let run = queue.receive_run(1, Duration::ZERO).await.unwrap();
        drop(answer(&queue, HandedOut::together(run), detail));

        let handed = HandedOut::apart(queue.receive_many(3, Duration::ZERO).await.unwrap());
        let seen: Vec<_> =
            handed.messages().map(|(message, ..)| (message.body.clone(), message.delivery_count)).collect();
        assert_eq!(seen, [("1".into(), 1), ("2".into(), 1), ("3".into(), 1)]);
        answer(&queue, handed, detail).await.unwrap();
        assert!(queue.receive(Duration::ZERO).await.unwrap().is_none(), "what was answered stays locked");
    }
}
