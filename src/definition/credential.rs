//! What a definition only points at: secrets, keys and certificates. Read when a definition is, and again when it is put
//! in force, by the same code.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderValue;

use crate::definition::credential_digest::CredentialDigest;
use crate::definition::handler::ForwardTarget;
use crate::definition::handler::HandlerSpec;
use crate::definition::handler::SecretSource;
use crate::error::Misuse;
use crate::limits;

/// What the text of a secret begins with that posts are signed with.
const PREFIX: &str = "whsec_";

impl HandlerSpec {
    /// Reads the secret, key and authorities it points at. What cannot be read is a mistake of its own.
    pub(crate) fn credentials(&self) -> CredentialDigest {
        let (address, secret) = match self {
            HandlerSpec::Http { address, secret } => (Some(address), secret.as_ref()),
            HandlerSpec::Forward { target: ForwardTarget::Remote { address, key }, .. } => {
                (Some(address), key.as_ref())
            }
            _ => (None, None),
        };
        let secret = secret.and_then(|secret| secret.read("secret").ok()).unwrap_or_default();
        let authorities = address.and_then(|address| std::fs::read(address.ca_file.as_ref()?).ok());
        CredentialDigest::new(&secret, &authorities.unwrap_or_default())
    }
}

impl SecretSource {
    /// Reads it, without the white space around it; `what` it is, for the error.
    ///
    /// # Errors
    /// [`Misuse`] says that its file cannot be read, or that its environment variable is not set.
    pub(crate) fn read(&self, what: &'static str) -> Result<String, Misuse> {
        let wrong = |problem: String| Misuse::new(what, problem);
        let read = match self {
            SecretSource::File(path) => std::fs::read_to_string(path)
                .map_err(|error| wrong(format!("cannot be read from {}: {error}", path.display()))),
            SecretSource::Env(name) => std::env::var(name)
                .map_err(|_| wrong(format!("is not set: there is no environment variable {name}"))),
        };
        Ok(read?.trim().to_owned())
    }
}

/// Reads the secrets that posts are signed with, a line for each, because a receiver may still know only the older one.
///
/// # Errors
/// [`Misuse`] says what is wrong, and nothing of the secrets.
pub(crate) fn signing_secrets(text: &str) -> Result<Vec<Vec<u8>>, Misuse> {
    match text.trim().is_empty() {
        true => Err(Misuse::new("secret", "is empty")),
        false => text.lines().map(signing_secret).collect(),
    }
}

/// Reads one such secret: `whsec_` and base64 of 24 to 64 bytes.
///
/// # Errors
/// As [`signing_secrets`].
pub(crate) fn signing_secret(text: &str) -> Result<Vec<u8>, Misuse> {
    let wrong = |problem: String| Misuse::new("secret", problem);
    let text = text.trim().strip_prefix(PREFIX);
    let text = text.ok_or_else(|| wrong(format!("does not begin with {PREFIX}")))?;
    let bytes = BASE64.decode(text).map_err(|_| wrong(format!("is not base64 behind {PREFIX}")))?;
    let (min, max) = (limits::SECRET_BYTES_MIN, limits::SECRET_BYTES_MAX);
    match (min..=max).contains(&bytes.len()) {
        true => Ok(bytes),
        false => Err(wrong(format!("has {} bytes; {min} to {max} are needed", bytes.len()))),
    }
}

/// The header that shows a key for another daemon.
///
/// # Errors
/// [`Misuse`] when no header takes it.
pub(crate) fn bearer(key: &str) -> Result<HeaderValue, Misuse> {
    if key.trim().is_empty() {
        return Err(Misuse::new("key", "is empty"));
    }
    let value = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
    let mut value = value.map_err(|_| Misuse::new("key", "has a character no header takes"))?;
    value.set_sensitive(true);
    Ok(value)
}
