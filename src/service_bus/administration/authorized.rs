//! Who asks, and what that allows.

use http::header;
use http::request::Parts;

use crate::actor::Actor;
use crate::engine::Client;
use crate::error::Misuse;
use crate::sas::Right;
use crate::sas::Rights;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::shared::EndpointState;

/// Who asks.
pub(crate) enum AdminAccess {
    /// Somebody on this machine, where no keys are needed.
    Local,
    /// Who has shown a token.
    Signed(Rights),
}

impl AdminAccess {
    /// Finds out, by the token in the header.
    pub(crate) fn of(shared: &EndpointState, parts: &Parts) -> Result<AdminAccess, AdminRefusal> {
        let Some(signatures) = &shared.signatures else { return Ok(AdminAccess::Local) };
        let token = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.ok_or_else(|| AdminRefusal::unauthorized("show a shared access signature"))?;
        Ok(AdminAccess::Signed(signatures.check(token, parts.uri.path(), shared.clock.now())?))
    }

    /// Refuses whoever may not do something with an entity.
    pub(crate) fn check(&self, right: Right, entity: &str) -> Result<(), AdminRefusal> {
        match self {
            AdminAccess::Local => Ok(()),
            AdminAccess::Signed(rights) if rights.allows(right, entity) => Ok(()),
            AdminAccess::Signed(rights) => {
                let (key, right) = (rights.name(), right.as_str());
                Err(AdminRefusal::unauthorized(&format!("key {key} does not allow to {right} on {entity}")))
            }
        }
    }

    /// Whether it may know of an entity.
    pub(crate) fn reaches(&self, entity: &str) -> bool {
        match self {
            AdminAccess::Local => true,
            AdminAccess::Signed(rights) => rights.allows(Right::Manage, entity),
        }
    }

    /// A client that acts for who asks, so that it is written down who did what.
    pub(crate) fn acting(&self, client: &Client) -> Result<Client, Misuse> {
        let name = match self {
            AdminAccess::Local => "local",
            AdminAccess::Signed(rights) => rights.name(),
        };
        Ok(client.acting_as(Actor::new(name)?))
    }
}
