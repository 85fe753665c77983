//! Why a signature is not accepted.

use thiserror::Error;

/// Why a signature is not accepted. No more is said to who shows it, so that nobody learns which keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum SignatureRefusal {
    /// It is no token, or not one of this kind.
    #[error("the token is not `SharedAccessSignature sr=..&sig=..&se=..&skn=..`")]
    Malformed,
    /// No key of this name made this signature.
    #[error("the signature is not that of a key of this daemon")]
    Unknown,
    /// It was good until some time ago.
    #[error("the token has expired")]
    Expired,
    /// It is for something else.
    #[error("the token is for another resource")]
    Elsewhere,
    /// It is for HTTPS, and the request came over HTTP.
    #[error("the signature is for requests over HTTPS only, and this one came over HTTP")]
    Protocol,
    /// It is for other addresses than that of who asks.
    #[error("the signature is not for requests from this address")]
    Address,
    /// The policy that it names is not there, or says what it says itself.
    #[error(
        "the signature names a stored access policy that the queue does not have, or both say the same term"
    )]
    Policy,
}
