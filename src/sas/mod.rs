//! Keys and what is signed with them: tokens of Service Bus, and requests to storage accounts.

mod address_range;
mod keys;
mod pattern;
mod refusal;
mod right;
mod secret;
mod shared_access;
pub(crate) mod signatures;
mod storage;
mod storage_request;
mod token;

pub(crate) use crate::sas::keys::AccessKey;
pub(crate) use crate::sas::keys::Keys;
pub(crate) use crate::sas::refusal::SignatureRefusal;
pub(crate) use crate::sas::right::Right;
pub(crate) use crate::sas::shared_access::AccessPolicy;
pub(crate) use crate::sas::signatures::Rights;
pub(crate) use crate::sas::signatures::Signatures;
pub(crate) use crate::sas::storage::StorageSignature;
pub(crate) use crate::sas::storage_request::SignatureScope;
pub(crate) use crate::sas::storage_request::StorageRequest;
pub(crate) use crate::sas::storage_request::StorageRights;
pub(crate) use crate::sas::storage_request::parse_instant;
pub(crate) use crate::sas::storage_request::read_instant;
