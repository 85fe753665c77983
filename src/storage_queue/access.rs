//! Who asks, and what that allows.

use crate::actor::Actor;
use crate::engine::Client;
use crate::error::Misuse;
use crate::sas::Right;
use crate::sas::SignatureScope;
use crate::sas::StorageRights;
use crate::sas::StorageSignature;
use crate::storage_queue::policies;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::request::QueueRequest;
use crate::storage_queue::shared::StorageState;

/// What a request may do.
pub(crate) enum StorageAccess {
    /// Everything: it comes from this machine, and no signature is needed.
    Local,
    /// What its signature gives.
    Signed(StorageRights),
}

impl StorageAccess {
    /// Finds out. A signature that is shown has to be good, whether one is needed or not.
    pub(crate) async fn of(
        app_state: &StorageState,
        request: &QueueRequest,
    ) -> Result<StorageAccess, StorageRefusal> {
        let signed = request.signed();
        if signed.is_signed() {
            let now = app_state.clock.now();
            return Ok(StorageAccess::Signed(match app_state.signatures().check_storage(&signed, now)? {
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
        if app_state.keys.load().is_some() {
            let message = "sign the request with the key of an account, or show a shared access signature";
            return Err(StorageRefusal::forbidden("NoAuthenticationInformation", message));
        }
        Ok(StorageAccess::Local)
    }

    /// Refuses what is not allowed: one of the permissions is needed for something of this scope, and the right for
    /// the queue.
    pub(crate) fn check(
        &self,
        (permissions, scope): (&str, SignatureScope),
        right: Right,
        queue: Option<&str>,
    ) -> Result<(), StorageRefusal> {
        let StorageAccess::Signed(signed) = self else { return Ok(()) };
        if !signed.gives(permissions, scope) {
            let message = "the signature does not give this permission";
            return Err(StorageRefusal::forbidden("AuthorizationPermissionMismatch", message));
        }
        match queue {
            Some(queue) if !signed.rights.allows(right, queue) => {
                let message = format!("key {} lacks the right for this queue", signed.rights.name());
                Err(StorageRefusal::forbidden("AuthorizationFailure", message))
            }
            None if right == Right::Manage && !signed.rights.allows_everywhere(right) => {
                let message = format!(
                    "key {} lacks the right to manage, or reaches only some queues",
                    signed.rights.name()
                );
                Err(StorageRefusal::forbidden("AuthorizationFailure", message))
            }
            // Whatever names no queue shows no others than the key reaches.
            None if !signed.rights.may(right) => {
                let message = format!("key {} lacks the right to {}", signed.rights.name(), right.as_str());
                Err(StorageRefusal::forbidden("AuthorizationFailure", message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses whoever did not sign with the key itself.
    pub(crate) fn check_whole(&self) -> Result<(), StorageRefusal> {
        match self {
            StorageAccess::Signed(signed) if !signed.is_whole() => {
                let message = "only the account's key can sign for this";
                Err(StorageRefusal::forbidden("AuthorizationPermissionMismatch", message))
            }
            _ => Ok(()),
        }
    }

    /// A client that acts for who asks, so that it is written down who did what.
    pub(crate) fn acting(&self, client: &Client) -> Result<Client, Misuse> {
        let name = match self {
            StorageAccess::Local => "local",
            StorageAccess::Signed(signed) => signed.rights.name(),
        };
        Ok(client.acting_as(Actor::new(name)?))
    }

    /// Whether it may know of a queue.
    pub(crate) fn reaches(&self, queue: &str) -> bool {
        match self {
            StorageAccess::Local => true,
            StorageAccess::Signed(signed) => signed.rights.reaches(queue),
        }
    }
}
