//! Whether a secret was changed, told without keeping it.

use std::fmt;

use sha2::Digest;
use sha2::Sha256;

/// Of what a handler's definition points at, so that a reading tells whether it was changed since another: who signs or asks
/// with it has read it once.
#[derive(Clone, PartialEq, Eq)]
pub struct CredentialDigest([u8; 32]);

impl CredentialDigest {
    /// Of a secret or key, and of the authorities in a file; each empty if there is none.
    pub(crate) fn new(secret: &str, authorities: &[u8]) -> CredentialDigest {
        let digest = Sha256::new()
            .chain_update((secret.len() as u64).to_le_bytes())
            .chain_update(secret)
            .chain_update(authorities);
        CredentialDigest(digest.finalize().into())
    }
}

impl fmt::Debug for CredentialDigest {
    /// Shows nothing: a key may be so short that it can be guessed from its digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialDigest(..)")
    }
}
