//! What a key signs with. It never shows itself.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use sha2::Sha256;

/// The text of a key, to sign with.
#[derive(Clone)]
pub(crate) struct KeySecret(Arc<str>);

impl KeySecret {
    pub(crate) fn new(text: &str) -> KeySecret {
        KeySecret(text.into())
    }

    /// Whether a signature in base64 is that of this text, as Service Bus signs: with the bytes of the key's text.
    /// Takes the same time wherever they differ.
    pub(crate) fn has_signed(&self, text: &str, signature: &str) -> bool {
        is_signed(self.0.as_bytes(), text, signature)
    }

    /// The same, as storage accounts sign: with the bytes that the key's text is the base64 of.
    pub(crate) fn has_signed_for_storage(&self, text: &str, signature: &str) -> bool {
        BASE64.decode(self.0.as_bytes()).is_ok_and(|key| is_signed(&key, text, signature))
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn is_signed(key: &[u8], text: &str, signature: &str) -> bool {
    let Ok(signature) = BASE64.decode(signature) else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("HMAC takes a key of any length")
    };
    mac.update(text.as_bytes());
    mac.verify_slice(&signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_one_text_and_one_key() {
        let secret = KeySecret::new("Jefe");
        let signature = "W9zBRr9gdU5qBCQIJcVtJ1oPOgPsmF00WsTsaCLbOSI=";
        assert!(!secret.has_signed("what do ya want for nothing?", signature), "another digest");
        let hex = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let bytes: Vec<u8> =
            (0..32).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
        let signature = BASE64.encode(bytes);
        assert!(secret.has_signed("what do ya want for nothing?", &signature), "as in RFC 4231");
        assert!(!secret.has_signed("what do ya want for something?", &signature));
        assert!(!KeySecret::new("jefe").has_signed("what do ya want for nothing?", &signature));
        assert!(!secret.has_signed("what do ya want for nothing?", ""));
        assert!(
            KeySecret::new("SmVmZQ==").has_signed_for_storage("what do ya want for nothing?", &signature)
        );
        assert!(!format!("{secret:?}").contains("Jefe"));
    }
}
