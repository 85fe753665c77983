//! Who asks, and what that allows.

use http::header;
use http::request::Parts;

use crate::actor::Actor;
use crate::engine::Client;
use crate::error::Misuse;
use crate::sas::Right;
use crate::sas::Rights;
use crate::service_bus::administration::refused::Refused;
use crate::service_bus::shared::Shared;

/// Who asks.
pub(crate) enum Access {
    /// Somebody on this machine, where no keys are needed.
    Local,
    /// Who has shown a token.
    Signed(Rights),
}

impl Access {
    /// Finds out, by the token in the header.
    pub(crate) fn of(shared: &Shared, parts: &Parts) -> Result<Access, Refused> {
        let Some(signatures) = &shared.signatures else { return Ok(Access::Local) };
        let token = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.ok_or_else(|| Refused::unauthorized("show a shared access signature"))?;
        Ok(Access::Signed(signatures.check(token, parts.uri.path(), shared.clock.now())?))
    }

    /// Refuses whoever may not do something with an entity.
    pub(crate) fn check(&self, right: Right, entity: &str) -> Result<(), Refused> {
        match self {
            Access::Local => Ok(()),
            Access::Signed(rights) if rights.allows(right, entity) => Ok(()),
            Access::Signed(rights) => {
                let (key, right) = (rights.name(), right.as_str());
                Err(Refused::unauthorized(&format!("key {key} does not allow to {right} on {entity}")))
            }
        }
    }

    /// Whether it may know of an entity.
    pub(crate) fn reaches(&self, entity: &str) -> bool {
        match self {
            Access::Local => true,
            Access::Signed(rights) => rights.allows(Right::Manage, entity),
        }
    }

    /// A client that acts for who asks, so that it is written down who did what.
    pub(crate) fn acting(&self, client: &Client) -> Result<Client, Misuse> {
        let name = match self {
            Access::Local => "local",
            Access::Signed(rights) => rights.name(),
        };
        Ok(client.acting_as(Actor::new(name)?))
    }
}
