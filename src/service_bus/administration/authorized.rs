//! Who asks, and what that allows.

use http::HeaderValue;
use http::header;
use http::request::Parts;

use crate::actor::Actor;
use crate::engine::Client;
use crate::error::Misuse;
use crate::sas::Right;
use crate::sas::Rights;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::shared::EndpointState;
use crate::service_bus::slashed::entity_name;

/// Who asks.
pub(crate) enum AdminAccess {
    /// Somebody on this machine, where no keys are needed.
    Local,
    /// Who has shown tokens.
    Signed(ShownTokens),
}

/// The tokens of a request.
pub(crate) struct ShownTokens {
    /// What the first allows, which is for what the request is about.
    rights: Rights,
    /// All of them; clients show others for what an entity would forward to.
    texts: Vec<String>,
}

/// The headers with tokens for what messages, or dead letters, would go on to.
const SUPPLEMENTARY: [&str; 2] =
    ["servicebussupplementaryauthorization", "servicebusdlqsupplementaryauthorization"];

impl AdminAccess {
    /// Finds out, by the token in the header.
    pub(crate) fn of(shared: &EndpointState, parts: &Parts) -> Result<AdminAccess, AdminRefusal> {
        let Some(signatures) = shared.signatures() else { return Ok(AdminAccess::Local) };
        let text_of = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
        let token = parts.headers.get(header::AUTHORIZATION).and_then(text_of);
        let token = token.ok_or_else(|| AdminRefusal::unauthorized("show a shared access signature"))?;
        let rights = signatures.check(&token, parts.uri.path(), shared.clock.now())?;
        let supplementary = SUPPLEMENTARY.iter().filter_map(|name| text_of(parts.headers.get(*name)?));
        let texts = [token].into_iter().chain(supplementary).collect();
        Ok(AdminAccess::Signed(ShownTokens { rights, texts }))
    }

    /// Refuses whoever may not manage an entity, which was asked for by a name that may differ in case.
    pub(crate) fn check_manages(&self, entity: &str, asked: &str) -> Result<(), AdminRefusal> {
        match self {
            AdminAccess::Signed(shown) if !shown.rights.allows(Right::Manage, entity) => {
                Err(shown.refusal(Right::Manage, asked))
            }
            _ => Ok(()),
        }
    }

    /// Refuses whoever may not send to an entity, so that no other forwards to it in their name: one of their tokens has to be
    /// for it.
    pub(crate) fn check_sends(
        &self,
        shared: &EndpointState,
        entity: &str,
        asked: &str,
    ) -> Result<(), AdminRefusal> {
        let (AdminAccess::Signed(shown), Some(signatures)) = (self, shared.signatures()) else {
            return Ok(());
        };
        let (resource, now) = (entity_name(entity), shared.clock.now());
        let allows = |token: &String| {
            let rights = signatures.check(token, &resource, now);
            rights.is_ok_and(|rights| rights.allows(Right::Send, entity))
        };
        match shown.texts.iter().any(allows) {
            true => Ok(()),
            false => Err(shown.refusal(Right::Send, asked)),
        }
    }

    /// Whether it may know of an entity.
    pub(crate) fn reaches(&self, entity: &str) -> bool {
        match self {
            AdminAccess::Local => true,
            AdminAccess::Signed(shown) => shown.rights.allows(Right::Manage, entity),
        }
    }

    /// A client that acts for who asks, so that it is written down who did what.
    pub(crate) fn acting(&self, client: &Client) -> Result<Client, Misuse> {
        let name = match self {
            AdminAccess::Local => "local",
            AdminAccess::Signed(shown) => shown.rights.name(),
        };
        Ok(client.acting_as(Actor::new(name)?))
    }
}

impl ShownTokens {
    fn refusal(&self, right: Right, entity: &str) -> AdminRefusal {
        let (key, right) = (self.rights.name(), right.as_str());
        AdminRefusal::unauthorized(&format!("no token of key {key} allows to {right} on {entity}"))
    }
}
