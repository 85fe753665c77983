//! What is asked of the engine on behalf of somebody.

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::actor::Actor;
use crate::engine::Client;
use crate::error::Misuse;
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
