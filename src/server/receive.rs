//! Receiving: messages under a lock, waited for if there are none.

use std::time::Duration;

use axum::extract::State;

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

/// A message on its way out, its handle let go of: from now on its ID settles it, or the token of its run.
struct ReceivedResponse {
    token: LockToken,
    /// None in a run, whose messages are settled from the first on and not one by one.
    id: Option<DeliveryId>,
    message: ReceivedMessage,
    locked_until: Timestamp,
    lasts: Duration,
}

impl ReceivedResponse {
    fn keep(delivery: Delivery) -> ReceivedResponse {
        let (message, locked_until) = (delivery.message().clone(), delivery.locked_until());
        let (token, (_, lasts)) = (delivery.lock_token(), delivery.lock_time());
        ReceivedResponse { token, id: Some(delivery.keep()), message, locked_until, lasts }
    }

    fn keep_run(run: Run) -> Vec<ReceivedResponse> {
        let (messages, locked_until) = (run.messages().to_vec(), run.locked_until());
        let (_, lasts) = run.lock_time();
        let token = run.keep();
        messages
            .into_iter()
            .map(|message| ReceivedResponse { token, id: None, message, locked_until, lasts })
            .collect()
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
        match request.run {
            false if request.dead_letters => {
                let deliveries = queue.receive_dead_letters(max, wait).await?;
                Ok(deliveries.into_iter().map(ReceivedResponse::keep).collect())
            }
            true => {
                Ok(queue.receive_run(max, wait).await?.map(ReceivedResponse::keep_run).unwrap_or_default())
            }
            false => {
                let deliveries = queue.receive_many(max, wait).await?;
                Ok::<_, HttpRefusal>(deliveries.into_iter().map(ReceivedResponse::keep).collect())
            }
        }
    };
    let handed = tokio::select! {
        handed = received => handed?,
        () = shared.stopping.cancelled() => Vec::new(),
    };
    let run = handed.first().filter(|_| request.run).map(|first| first.token.to_string());
    json(&ReceiveResponse { run, deliveries: show(&queue, handed, request.state, request.raw).await? })
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
    let handed = deliveries.into_iter().map(ReceivedResponse::keep).collect();
    let deliveries = show(&queue, handed, request.state, request.raw).await?;
    json(&ReceiveResponse { run: None, deliveries })
}

async fn show(
    queue: &Queue,
    handed: Vec<ReceivedResponse>,
    with_state: bool,
    raw: bool,
) -> Result<Vec<DeliveryEnvelope>, HttpRefusal> {
    if handed.is_empty() {
        return Ok(Vec::new());
    }
    // The order of a queue cannot change while it stores messages, and those that are handed out are stored.
    let by_position = matches!(queue.view().await?.options.order, Order::Position { .. });
    let mut shown = Vec::with_capacity(handed.len());
    for ReceivedResponse { token, id, message, locked_until, lasts } in &handed {
        let mut envelope = DeliveryEnvelope::show(queue.name(), message, by_position);
        envelope = envelope.with_lock(*locked_until, *lasts);
        if raw {
            envelope = envelope.with_raw_body(&message.body);
        }
        envelope.lock_token = Some(token.to_string());
        envelope.delivery = id.map(|id| id.to_string());
        if let (true, true, Some(workflow)) = (with_state, message.has_workflow(), &message.workflow_id) {
            envelope = envelope.with_state(queue.workflow(workflow)?.state().await?.as_ref());
        }
        shown.push(envelope);
    }
    Ok(shown)
}
