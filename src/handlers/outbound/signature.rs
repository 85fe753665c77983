//! Signatures of posts, as the Standard Webhooks specification says: version 1, symmetric.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use sha2::Sha256;

use crate::definition::signing_secret;
use crate::error::Misuse;

/// A secret that posts are signed with. It never shows itself.
#[derive(Clone)]
pub(crate) struct SigningSecret(Vec<u8>);

impl SigningSecret {
    /// Reads a secret: `whsec_` and base64 of 24 to 64 bytes.
    ///
    /// # Errors
    /// [`Misuse`] says what is wrong, and nothing of the secret.
    pub(crate) fn parse(text: &str) -> Result<SigningSecret, Misuse> {
        signing_secret(text).map(SigningSecret)
    }

    fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            unreachable!("HMAC takes a key of any length")
        };
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The value of `webhook-signature`: one signature for each secret, so that a receiver can change to another.
pub(crate) fn signatures(secrets: &[SigningSecret], id: &str, timestamp: u64, body: &[u8]) -> String {
    let all: Vec<String> = secrets.iter().map(|secret| secret.sign(id, timestamp, body)).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = signatures(
            std::slice::from_ref(&secret),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn while_secrets_change_a_post_is_signed_with_each() {
        let secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
        let secrets = secrets.map(|text| SigningSecret::parse(text).unwrap());
        let both = signatures(&secrets, "m", 1, b"");
        let each: Vec<String> = secrets.iter().map(|secret| secret.sign("m", 1, b"")).collect();
        assert_eq!(both.split(' ').collect::<Vec<_>>(), each);
    }

    #[test]
    fn a_secret_that_is_wrong_is_not_shown() {
        for text in ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_%%%%"] {
            let error = SigningSecret::parse(text).unwrap_err();
            assert!(!error.to_string().contains("c2hvcnQ"), "{error}");
        }
    }
}
