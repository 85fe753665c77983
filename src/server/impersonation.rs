//! What is asked of the engine on behalf of somebody.

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::actor::Actor;
use crate::engine::Client;
use crate::engine::Queue;
use crate::engine::Receipt;
use crate::engine::Topic;
use crate::error::Misuse;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::message::Message;
use crate::server::answer::HttpRefusal;
use crate::server::principal::Principal;
use crate::server::shared::SharedServer;

/// A client that acts for a caller, so that what is done is written down with who did it and why.
pub(crate) fn acting_as(
    client: &Client,
    principal: &Principal,
    reason: Option<&str>,
) -> Result<Client, Misuse> {
    let actor = Actor::new(principal.name())?;
    let actor = match reason {
        Some(reason) => actor.because(reason)?,
        None => actor,
    };
    Ok(client.acting_as(actor))
}

/// A client that acts for a caller who says no reason.
pub(crate) struct Acting(pub(crate) Client);

impl FromRequestParts<SharedServer> for Acting {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, shared: &SharedServer) -> Result<Acting, HttpRefusal> {
        let principal = Principal::from_request_parts(parts, shared).await?;
        Ok(Acting(acting_as(&shared.client, &principal, None)?))
    }
}

/// Sends once, however often it is asked with this key: the first answer is given again. The digest tells whether it is
/// the same request.
pub(crate) async fn send_once(
    queue: &Queue,
    key: &str,
    digest: [u8; 32],
    messages: Vec<Message>,
) -> Result<Vec<Receipt>, HttpRefusal> {
    Ok(queue.send_batch_once(key_of(key, digest)?, messages).await?)
}

/// The same of a topic.
pub(crate) async fn publish_once(
    topic: &Topic,
    key: &str,
    digest: [u8; 32],
    messages: Vec<Message>,
) -> Result<Vec<(QueueName, Receipt)>, HttpRefusal> {
    Ok(topic.send_batch_once(key_of(key, digest)?, messages).await?)
}

fn key_of(key: &str, digest: [u8; 32]) -> Result<IdempotencyKey, Misuse> {
    let (first, _) = digest.split_first_chunk().expect("a digest has more than eight bytes");
    IdempotencyKey::new(key, u64::from_be_bytes(*first))
}
