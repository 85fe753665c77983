//! Posting to an address outside: checked, without redirects and proxies.

mod connector;
pub(crate) mod headers;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
pub(crate) mod outbound;
mod retry_after;
pub(crate) mod signature;
mod target;
