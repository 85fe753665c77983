//! Settling deliveries by their IDs.

use axum::extract::State;

use crate::engine::DeliveryId;
use crate::error::Misuse;
use crate::message::Message;
use crate::server::answer::Answer;
use crate::server::answer::Refused;
use crate::server::answer::no_content;
use crate::server::named::Named;
use crate::server::named::Told;
use crate::server::shared::House;
use crate::server::shared::Shared;
use crate::wire::OutcomeEnvelope;

pub(crate) async fn complete(
    State(shared): State<Shared>,
    named: Named,
    Told(outcome): Told<OutcomeEnvelope>,
) -> Answer {
    let (queue, id) = (named.queue()?, delivery(&named)?);
    let completion = outcome.completion(|queue, message| placed(&shared, queue, message))?;
    queue.kept().complete(id, completion).await?;
    no_content()
}

/// The delivery that is settled.
fn delivery(named: &Named) -> Result<DeliveryId, Refused> {
    Ok(named.text("delivery")?.parse()?)
}

/// A message to send, at its place.
fn placed(house: &House, queue: &str, message: Message) -> Result<Message, Misuse> {
    house.place.place(&crate::id::QueueName::new(queue)?, message)
}
