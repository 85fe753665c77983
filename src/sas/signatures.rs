//! Whether what is signed was signed by a key of this daemon, and what that allows.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::sas::keys::AccessKey;
use crate::sas::keys::Keys;
use crate::sas::refusal::SignatureRefusal;
use crate::sas::right::Right;
use crate::sas::secret::KeySecret;
use crate::sas::token::SasToken;

/// Checks signatures against the keys of the daemon.
#[derive(Clone, Debug)]
pub(crate) struct Signatures {
    keys: Arc<Keys>,
}

/// What a signature allows, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    key: Arc<AccessKey>,
    /// When it ends.
    pub(crate) until: Timestamp,
}

impl Rights {
    pub(crate) fn new(key: Arc<AccessKey>, until: Timestamp) -> Rights {
        Rights { key, until }
    }

    /// What it allows under other keys, if its key is among them.
    pub(crate) fn under(&self, keys: &Keys) -> Option<Rights> {
        Some(Rights { key: keys.same(&self.key)?.clone(), until: self.until })
    }

    /// Whether it reaches a queue at all.
    pub(crate) fn reaches(&self, queue: &str) -> bool {
        self.key.reaches(queue)
    }

    /// Whether it has a right for a queue.
    pub(crate) fn allows(&self, right: Right, queue: &str) -> bool {
        self.key.may(right) && self.key.reaches(queue)
    }

    /// Whether it has a right, for any queue.
    pub(crate) fn may(&self, right: Right) -> bool {
        self.key.may(right)
    }

    /// Whether it has a right for what belongs to no queue.
    pub(crate) fn allows_everywhere(&self, right: Right) -> bool {
        self.key.may(right) && self.key.reaches_all()
    }

    /// The name of the key that signed.
    pub(crate) fn name(&self) -> &str {
        self.key.name()
    }
}

impl Signatures {
    pub(crate) fn new(keys: impl Into<Arc<Keys>>) -> Signatures {
        Signatures { keys: keys.into() }
    }

    /// The key of a name that everybody knows, for a daemon without keys: an account for development.
    pub(crate) fn of_everybody(name: &str, key: &str) -> Signatures {
        Signatures::new(Keys::of_everybody(name, key))
    }

    /// The key of this name, if its text is known.
    pub(crate) fn signing(&self, name: &str) -> Option<(&Arc<AccessKey>, &KeySecret)> {
        self.keys.signing(name)
    }

    /// What the key of this name allows, for who says its text: until the connection ends.
    pub(crate) fn check_text(&self, name: &str, text: &[u8]) -> Option<Rights> {
        let key = self.keys.find(text).filter(|key| key.name() == name)?;
        Some(Rights { key: key.clone(), until: Timestamp::from_millis(u64::MAX) })
    }

    /// Checks a token of Service Bus for a resource: a URL, or a path such as `orders/$management`. A token for a
    /// resource is one for all below it.
    pub(crate) fn check(
        &self,
        token: &str,
        resource: &str,
        now: Timestamp,
    ) -> Result<Rights, SignatureRefusal> {
        let token = SasToken::parse(token)?;
        let (key, secret) = self.signing(&token.key).ok_or(SignatureRefusal::Unknown)?;
        if !secret.has_signed(&token.signed(), &token.signature) {
            return Err(SignatureRefusal::Unknown);
        }
        // Only now is it known that somebody with the key wrote the rest.
        let until = Timestamp::default() + Duration::from_secs(token.expiry_seconds()?);
        if until <= now {
            return Err(SignatureRefusal::Expired);
        }
        match is_at_or_below(resource, &token.resource()?) {
            true => Ok(Rights { key: key.clone(), until }),
            false => Err(SignatureRefusal::Elsewhere),
        }
    }
}

/// Whether one resource is another, or below it. Hosts do not count: this daemon is known by many names.
fn is_at_or_below(resource: &str, above: &str) -> bool {
    let compared = |resource| path_of(resource).to_ascii_lowercase();
    is_path_below(&compared(resource), &compared(above))
}

/// Whether one path is another, or below it.
pub(crate) fn is_path_below(path: &str, above: &str) -> bool {
    match path.strip_prefix(above) {
        Some(rest) => above.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// The path of what is written as `queue`, `/queue` or `amqps://host:port/queue`.
pub(crate) fn path_of(text: &str) -> &str {
    let path = match text.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => text,
    };
    path.trim_matches('/')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use hmac::Hmac;
    use hmac::KeyInit;
    use hmac::Mac;
    use percent_encoding::NON_ALPHANUMERIC;
    use percent_encoding::utf8_percent_encode;
    use sha2::Sha256;

    pub(crate) const KEY: &str = "c2VyaWF0aW0tdGVzdC1rZXktMDEyMzQ1Njc4OWFiY2Q";

    fn signatures() -> Signatures {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let keys = "[[key]]\nname = \"shop\"\nkey_env = \"K\"\nrights = [\"send\"]\nqueues = [\"orders\"]\n";
        file.write_all(keys.as_bytes()).unwrap();
        Signatures::new(Keys::read(file.path(), |_| Some(KEY.to_owned())).unwrap())
    }

    pub(crate) fn token(key: &str, name: &str, resource: &str, expiry: u64) -> String {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let resource = encoded(resource);
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
        mac.update(format!("{resource}\n{expiry}").as_bytes());
        let signature = encoded(&BASE64.encode(mac.finalize().into_bytes()));
        format!("SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}")
    }

    fn check(token: &str, resource: &str) -> Result<Rights, SignatureRefusal> {
        signatures().check(token, resource, Timestamp::from_millis(1_000_000))
    }

    #[test]
    fn a_token_allows_what_its_key_allows() {
        let rights = check(&token(KEY, "shop", "sb://127.0.0.1:5672/orders", 1_001), "orders").unwrap();
        assert!(rights.allows(Right::Send, "orders"));
        assert!(!rights.allows(Right::Listen, "orders") && !rights.allows(Right::Send, "other"));
        assert_eq!((rights.name(), rights.until), ("shop", Timestamp::from_millis(1_001_000)));
    }

    #[test]
    fn a_token_of_another_key_or_name_is_refused() {
        let unknown = Some(SignatureRefusal::Unknown);
        assert_eq!(check(&token("another", "shop", "sb://h/orders", 1_001), "orders").err(), unknown);
        assert_eq!(check(&token(KEY, "nobody", "sb://h/orders", 1_001), "orders").err(), unknown);
    }

    #[test]
    fn a_token_whose_time_is_over_is_refused() {
        let expired = Some(SignatureRefusal::Expired);
        assert_eq!(check(&token(KEY, "shop", "sb://h/orders", 1_000), "orders").err(), expired);
        // Nobody can prolong it.
        let longer = token(KEY, "shop", "sb://h/orders", 1_000).replace("se=1000", "se=2000");
        assert_eq!(check(&longer, "orders").err(), Some(SignatureRefusal::Unknown));
    }

    #[test]
    fn a_token_is_for_its_resource_and_what_is_below() {
        for (signed, requested) in [
            ("sb://h/orders", "amqp://other/Orders"),
            ("sb://h/orders/", "orders/$management"),
            ("sb://h", "orders"),
            ("orders", "sb://h:5672/orders/$deadletterqueue"),
        ] {
            assert!(check(&token(KEY, "shop", signed, 1_001), requested).is_ok(), "{signed} {requested}");
        }
        for (signed, requested) in
            [("sb://h/orders", "orders2"), ("sb://h/orders/x", "orders"), ("sb://h/other", "orders")]
        {
            let refused = check(&token(KEY, "shop", signed, 1_001), requested).err();
            assert_eq!(refused, Some(SignatureRefusal::Elsewhere), "{signed} {requested}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let twice = format!("{}&se=9999", token(KEY, "shop", "sb://h/orders", 1_001));
        let long = format!("SharedAccessSignature sr={}", "x".repeat(100_000));
        for text in
            ["", "Bearer x", "SharedAccessSignature ", "SharedAccessSignature sr=a&sig=b", &twice, &long]
        {
            assert_eq!(check(text, "orders").err(), Some(SignatureRefusal::Malformed));
        }
    }
}
