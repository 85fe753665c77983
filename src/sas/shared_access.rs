//! Shared access signatures of storage accounts: a part of what a key allows, given away.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::sas::address_range::AddressRange;
use crate::sas::keys::AccessKey;
use crate::sas::refusal::SignatureRefusal;
use crate::sas::signatures::Rights;
use crate::sas::storage_request::StorageRequest;
use crate::sas::storage_request::StorageRights;
use crate::sas::storage_request::read_instant;

/// Terms that a queue keeps under a name. A signature that names them says only what they leave open, so that they can be
/// changed and taken back after it was given away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessPolicy {
    /// When what it allows begins.
    pub(crate) start: Option<Timestamp>,
    /// When it ends.
    pub(crate) expiry: Option<Timestamp>,
    /// The permissions, one letter each.
    pub(crate) permissions: Option<String>,
}

/// A signature that a known key has made. What it is worth is found out with the policy that it names.
#[derive(Clone, Debug)]
pub(crate) struct SharedAccess {
    key: Arc<AccessKey>,
    own: AccessPolicy,
    scopes: String,
    policy: Option<String>,
}

impl SharedAccess {
    /// Reads the terms of a request whose signature is the key's.
    pub(crate) fn read(
        request: &StorageRequest<'_>,
        key: &Arc<AccessKey>,
        scopes: &str,
    ) -> Result<SharedAccess, SignatureRefusal> {
        if let Some(addresses) = request.field("sip").filter(|text| !text.is_empty()) {
            let addresses: AddressRange = addresses.parse()?;
            // Of whom nobody knows where he asks from, nobody can say that he may.
            if !request.peer.is_some_and(|peer| addresses.contains(peer)) {
                return Err(SignatureRefusal::Address);
            }
        }
        if request.field("ss").is_some_and(|services| !services.contains('q')) {
            return Err(SignatureRefusal::Elsewhere);
        }
        if !request.over_tls && request.field("spr").is_some_and(|protocols| !allow_http(protocols)) {
            return Err(SignatureRefusal::Protocol);
        }
        let policy = request.field("si").map(str::to_owned);
        if policy.is_some() && request.field("srt").is_some() {
            return Err(SignatureRefusal::Malformed);
        }
        let term = |name| request.field(name).filter(|text| !text.is_empty());
        let own = AccessPolicy {
            start: term("st").map(read_instant).transpose()?,
            expiry: term("se").map(read_instant).transpose()?,
            permissions: term("sp").map(str::to_owned),
        };
        Ok(SharedAccess { key: key.clone(), own, scopes: scopes.to_owned(), policy })
    }

    /// The name of the policy without which it is worth nothing, if it names one.
    pub(crate) fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// What it allows now, with the terms of the policy that it names. Each term is said once, there or here.
    pub(crate) fn rights(
        self,
        policy: Option<AccessPolicy>,
        now: Timestamp,
    ) -> Result<StorageRights, SignatureRefusal> {
        let stored = match (&self.policy, policy) {
            (None, _) => AccessPolicy::default(),
            (Some(_), Some(policy)) => policy,
            (Some(_), None) => return Err(SignatureRefusal::Policy),
        };
        let start = either(self.own.start, stored.start)?;
        let until = either(self.own.expiry, stored.expiry)?.ok_or(SignatureRefusal::Malformed)?;
        let permissions =
            either(self.own.permissions, stored.permissions)?.ok_or(SignatureRefusal::Malformed)?;
        if until <= now || start.is_some_and(|start| now < start) {
            return Err(SignatureRefusal::Expired);
        }
        Ok(StorageRights::of_part(Rights::new(self.key, until), permissions, self.scopes))
    }
}

fn either<T>(own: Option<T>, stored: Option<T>) -> Result<Option<T>, SignatureRefusal> {
    match (own, stored) {
        (Some(_), Some(_)) => Err(SignatureRefusal::Policy),
        (own, stored) => Ok(own.or(stored)),
    }
}

/// Whether the protocols that a signature is for include HTTP; without any, both are meant.
fn allow_http(protocols: &str) -> bool {
    protocols.is_empty() || protocols.split(',').any(|protocol| protocol == "http")
}
