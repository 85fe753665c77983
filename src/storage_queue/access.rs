//! Who asks, and what that allows.

use crate::actor::Actor;
use crate::engine::Client;
use crate::error::Misuse;
use crate::inbound::browser::check_no_browser;
use crate::sas::Right;
use crate::sas::Scope;
use crate::sas::StorageRights;
use crate::sas::StorageSignature;
use crate::storage_queue::policies;
use crate::storage_queue::refused::Refused;
use crate::storage_queue::request::QueueRequest;
use crate::storage_queue::shared::AppState;

/// What a request may do.
pub(crate) enum Access {
    /// Everything: it comes from this machine, and no signature is needed.
    Local,
    /// What its signature gives.
    Signed(StorageRights),
}

impl Access {
    /// Finds out. A signature that is shown has to be good, whether one is needed or not.
    pub(crate) async fn of(app_state: &AppState, request: &QueueRequest) -> Result<Access, Refused> {
        let signed = request.signed();
        if signed.is_signed() {
            let now = app_state.clock.now();
            return Ok(Access::Signed(match app_state.signatures.check_storage(&signed, now)? {
                StorageSignature::Whole(rights) => rights,
                StorageSignature::Part(part) => {
                    let policy = match (part.policy(), request.queue()) {
                        (Some(policy), Some(queue)) => {
                            policies::find(app_state.client(), queue, policy).await?
                        }
                        _ => None,
                    };
                    part.rights(policy, now)?
                }
            }));
        }
        if app_state.needs_signature {
            let message = "sign the request with the key of an account, or show a shared access signature";
            return Err(Refused::forbidden("NoAuthenticationInformation", message));
        }
        check_no_browser(&request.parts)?;
        Ok(Access::Local)
    }

    /// Refuses what is not allowed: one of the permissions is needed for something of this scope, and the right for
    /// the queue.
    pub(crate) fn check(
        &self,
        (permissions, scope): (&str, Scope),
        right: Right,
        queue: Option<&str>,
    ) -> Result<(), Refused> {
        let Access::Signed(signed) = self else { return Ok(()) };
        if !signed.gives(permissions, scope) {
            let message = "the signature does not give this permission";
            return Err(Refused::forbidden("AuthorizationPermissionMismatch", message));
        }
        match queue {
            Some(queue) if !signed.rights.allows(right, queue) => {
                let message = format!("key {} lacks the right for this queue", signed.rights.name());
                Err(Refused::forbidden("AuthorizationFailure", message))
            }
            None if right == Right::Manage && !signed.rights.allows_everywhere(right) => {
                let message = format!(
                    "key {} lacks the right to manage, or reaches only some queues",
                    signed.rights.name()
                );
                Err(Refused::forbidden("AuthorizationFailure", message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses whoever did not sign with the key itself.
    pub(crate) fn check_whole(&self) -> Result<(), Refused> {
        match self {
            Access::Signed(signed) if !signed.is_whole() => {
                let message = "only the account's key can sign for this";
                Err(Refused::forbidden("AuthorizationPermissionMismatch", message))
            }
            _ => Ok(()),
        }
    }

    /// A client that acts for who asks, so that it is written down who did what.
    pub(crate) fn acting(&self, client: &Client) -> Result<Client, Misuse> {
        let name = match self {
            Access::Local => "local",
            Access::Signed(signed) => signed.rights.name(),
        };
        Ok(client.acting_as(Actor::new(name)?))
    }

    /// Whether it may know of a queue.
    pub(crate) fn reaches(&self, queue: &str) -> bool {
        match self {
            Access::Local => true,
            Access::Signed(signed) => signed.rights.reaches(queue),
        }
    }
}
