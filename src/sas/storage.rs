//! Requests to a storage account: signed whole with its key, or carrying a signature that gives a part of it away.

use jiff::fmt::rfc2822::DateTimeParser;

use crate::clock::Timestamp;
use crate::limits;
use crate::sas::refusal::SignatureRefusal;
use crate::sas::shared_access::SharedAccess;
use crate::sas::signatures::Rights;
use crate::sas::signatures::Signatures;
use crate::sas::storage_request::Scheme;
use crate::sas::storage_request::StorageRequest;
use crate::sas::storage_request::StorageRights;
use crate::sas::storage_request::millis;

/// What the name of an account ends with in the paths of its secondary endpoint.
const SECONDARY: &str = "-secondary";

/// A signature that a key has made.
#[derive(Clone, Debug)]
pub(crate) enum StorageSignature {
    /// The key signed the request itself.
    Whole(StorageRights),
    /// It gave a part away to who asks.
    Part(SharedAccess),
}

impl Signatures {
    /// The account that the first part of a path names: itself, or the one whose secondary endpoint it is.
    pub(crate) fn account<'a>(&self, named: &'a str) -> &'a str {
        match named.strip_suffix(SECONDARY) {
            Some(account) if self.signing(named).is_none() => account,
            _ => named,
        }
    }

    /// Checks what a request shows: the signature of its account's key, or one that the key has made.
    pub(crate) fn check_storage(
        &self,
        request: &StorageRequest<'_>,
        now: Timestamp,
    ) -> Result<StorageSignature, SignatureRefusal> {
        match request.headers.contains_key("authorization") {
            true => self.check_shared_key(request, now).map(StorageSignature::Whole),
            false => self.check_part(request).map(StorageSignature::Part),
        }
    }

    fn check_shared_key(
        &self,
        request: &StorageRequest<'_>,
        now: Timestamp,
    ) -> Result<StorageRights, SignatureRefusal> {
        let (scheme, shown) =
            request.header("authorization").split_once(' ').ok_or(SignatureRefusal::Malformed)?;
        let scheme = match scheme {
            "SharedKey" => Scheme::SharedKey,
            "SharedKeyLite" => Scheme::SharedKeyLite,
            _ => return Err(SignatureRefusal::Malformed),
        };
        let (account, signature) = shown.split_once(':').ok_or(SignatureRefusal::Malformed)?;
        if account != self.account(request.account) {
            return Err(SignatureRefusal::Elsewhere);
        }
        let (key, secret) = self.signing(account).ok_or(SignatureRefusal::Unknown)?;
        let is_signed =
            |path: &String| secret.has_signed_for_storage(&request.signed(scheme, account, path), signature);
        if !request.paths(account).iter().any(is_signed) {
            return Err(SignatureRefusal::Unknown);
        }
        let date = match request.header("x-ms-date") {
            "" => request.header("date"),
            date => date,
        };
        let date = DateTimeParser::new().parse_timestamp(date).map_err(|_| SignatureRefusal::Malformed)?;
        let date = millis(date);
        // Whoever overhears a request could repeat it for ever otherwise.
        if date + limits::REQUEST_AGE_MAX < now || now + limits::REQUEST_AGE_MAX < date {
            return Err(SignatureRefusal::Expired);
        }
        let until = date + limits::REQUEST_AGE_MAX;
        Ok(StorageRights::of_whole(Rights::new(key.clone(), until)))
    }

    fn check_part(&self, request: &StorageRequest<'_>) -> Result<SharedAccess, SignatureRefusal> {
        let signature = request.field("sig").ok_or(SignatureRefusal::Malformed)?;
        let account = self.account(request.account);
        let (key, secret) = self.signing(account).ok_or(SignatureRefusal::Unknown)?;
        let (signed, scopes) = match (request.field("srt"), request.queue) {
            (Some(scopes), _) => (request.signed_for_account(account), scopes),
            (None, Some(queue)) => (request.signed_for_queue(account, queue), "co"),
            (None, None) => return Err(SignatureRefusal::Elsewhere),
        };
        match secret.has_signed_for_storage(&signed, signature) {
            true => SharedAccess::read(request, key, scopes),
            false => Err(SignatureRefusal::Unknown),
        }
    }
}
