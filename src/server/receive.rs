//! Receiving: messages under a lock, waited for if there are none.

use std::time::Duration;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::Delivery;
use crate::engine::Queue;
use crate::limits;
use crate::queue::Order;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::json;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::shared::Shared;
use crate::wire::DeliveryEnvelope;
use crate::wire::WireDuration;
use crate::wire::WireTime;

/// What a receiver asks for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReceiveRequest {
    /// How many messages at most; 1 if it is not given, 1,024 at most.
    max: Option<usize>,
    /// How long to wait for the first, at most a minute; without it, not at all.
    wait: Option<WireDuration>,
}

/// What was handed out.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReceiveAnswer {
    /// The messages; none when none came in time.
    deliveries: Vec<DeliveryEnvelope>,
}

pub(crate) async fn receive(
    State(shared): State<Shared>,
    named: Named,
    Told(request): Told<ReceiveRequest>,
) -> Answer {
    let queue = named.queue()?;
    let max = request.max.unwrap_or(1).min(limits::RECEIVE_MAX);
    let wait = request.wait.map_or(Duration::ZERO, |wait| wait.0).min(limits::HTTP_WAIT_MAX);
    let deliveries = tokio::select! {
        received = queue.receive_many(max, wait) => received?,
        () = shared.stopping.cancelled() => Vec::new(),
    };
    json(&ReceiveAnswer { deliveries: hand_out(&queue, deliveries).await? })
}

/// Shows deliveries, and lets go of their handles: from now on their IDs settle them.
async fn hand_out(queue: &Queue, deliveries: Vec<Delivery>) -> Result<Vec<DeliveryEnvelope>, Refused> {
    if deliveries.is_empty() {
        return Ok(Vec::new());
    }
    let by_position = matches!(queue.view().await?.options.order, Order::Position { .. });
    let show = |delivery: Delivery| {
        let mut shown = DeliveryEnvelope::show(queue.name(), delivery.message(), by_position);
        shown.locked_until = Some(WireTime(delivery.locked_until()));
        shown.lock_token = Some(delivery.lock_token().to_string());
        shown.delivery = Some(delivery.keep().to_string());
        shown
    };
    Ok(deliveries.into_iter().map(show).collect())
}
