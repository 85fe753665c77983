//! Keys: who they belong to, what they allow, and where.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use sha2::Digest;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::actor::Actor;
use crate::limits;
use crate::sas::pattern::QueuePattern;
use crate::sas::right::Right;
use crate::sas::secret::KeySecret;

/// The keys of a server.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    keys: Vec<Arc<AccessKey>>,
}

/// One key. Its text is kept only where the file does not give its hash instead: without it nothing can be signed.
#[derive(Clone)]
pub(crate) struct AccessKey {
    name: String,
    hash: [u8; 32],
    secret: Option<KeySecret>,
    rights: Vec<Right>,
    queues: Vec<QueuePattern>,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccessKey { name, hash: _, secret: _, rights, queues } = self;
        let mut shown = f.debug_struct("Key");
        shown.field("name", name).field("rights", rights).field("queues", queues).finish_non_exhaustive()
    }
}

impl AccessKey {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it signs with, if its text is known.
    pub(crate) fn secret(&self) -> Option<&KeySecret> {
        self.secret.as_ref()
    }

    /// Whether it has a right, for any queue.
    pub(crate) fn may(&self, right: Right) -> bool {
        self.rights.iter().any(|own| *own == right || *own == Right::Manage)
    }

    /// Whether it reaches a queue.
    pub(crate) fn reaches(&self, queue: &str) -> bool {
        self.queues.iter().any(|pattern| pattern.fits(queue))
    }

    /// Whether it reaches every queue, and so what belongs to none.
    pub(crate) fn reaches_all(&self) -> bool {
        self.queues.iter().any(|pattern| matches!(pattern, QueuePattern::All))
    }
}

/// Why a keys file cannot be used. The text of no key is ever part of it.
#[derive(Debug, Error)]
pub(crate) enum KeysError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The file is not what a keys file has to be.
    #[error("cannot read the keys in {path}: {problem}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    #[serde(default)]
    key: Vec<KeyEntry>,
}

/// A key as the file says it. The key itself stands in another file or in the environment, so that this file is no
/// secret.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    name: String,
    sha256: Option<String>,
    key_file: Option<PathBuf>,
    key_env: Option<String>,
    rights: Vec<Right>,
    #[serde(default = "all_queues")]
    queues: Vec<String>,
}

fn all_queues() -> Vec<String> {
    vec!["*".to_owned()]
}

impl Keys {
    /// Reads a keys file. `env` looks up a variable of the environment.
    pub(crate) fn read(path: &Path, env: impl Fn(&str) -> Option<String>) -> Result<Keys, KeysError> {
        let wrong = |problem: String| KeysError::Wrong { path: path.to_owned(), problem };
        let text = read_text(path)?;
        // The parser's own message would print the line, and with it what stands there.
        let file: KeysFile = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            wrong(format!("line {line}: {}", without_values(error.message())))
        })?;
        if file.key.is_empty() || file.key.len() > limits::HTTP_KEYS_MAX {
            return Err(wrong(format!("it must have 1 to {} [[key]] tables", limits::HTTP_KEYS_MAX)));
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut keys: Vec<Arc<AccessKey>> = Vec::with_capacity(file.key.len());
        for entry in file.key {
            let name = entry.name.clone();
            if keys.iter().any(|key| key.name == name) {
                return Err(wrong(format!("key {name:?} is there twice")));
            }
            let key =
                entry.read(folder, &env).map_err(|problem| wrong(format!("key {name:?}: {problem}")))?;
            keys.push(Arc::new(key));
        }
        Ok(Keys { keys })
    }

    /// One key that everybody knows, and that may do everything.
    pub(crate) fn of_everybody(name: &str, key: &str) -> Keys {
        let (hash, secret) = (Sha256::digest(key.as_bytes()).into(), Some(KeySecret::new(key)));
        let (rights, queues) = (vec![Right::Manage], vec![QueuePattern::All]);
        Keys { keys: vec![Arc::new(AccessKey { name: name.to_owned(), hash, secret, rights, queues })] }
    }

    /// A key as it is among these, if it still is: the same name with the same text.
    pub(crate) fn same(&self, before: &AccessKey) -> Option<&Arc<AccessKey>> {
        self.keys.iter().find(|key| key.name == before.name && key.hash == before.hash)
    }

    /// The key of this name, if its text is known.
    pub(crate) fn signing(&self, name: &str) -> Option<(&Arc<AccessKey>, &KeySecret)> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        Some((key, key.secret()?))
    }

    /// The key a caller has shown. Every key is compared, each in constant time, so that how long it takes says
    /// nothing.
    pub(crate) fn find(&self, shown: &[u8]) -> Option<&Arc<AccessKey>> {
        let hash: [u8; 32] = Sha256::digest(shown).into();
        let mut found = None;
        for key in &self.keys {
            if bool::from(key.hash.ct_eq(&hash)) {
                found = Some(key);
            }
        }
        found
    }
}

impl KeyEntry {
    fn read(self, folder: &Path, env: &impl Fn(&str) -> Option<String>) -> Result<AccessKey, String> {
        // What is done with it is written down under its name.
        if Actor::new(self.name.as_str()).is_err() {
            let bytes = self.name.len();
            return Err(format!("its name has {bytes} bytes; it must have 1 to {}", limits::ACTOR_BYTES_MAX));
        }
        let text = match (&self.sha256, &self.key_file, &self.key_env) {
            (Some(_), None, None) => None,
            (None, Some(file), None) => {
                Some(read_text(&folder.join(file)).map_err(|error| error.to_string())?)
            }
            (None, None, Some(name)) => {
                Some(env(name).ok_or_else(|| format!("{name} is not in the environment"))?)
            }
            _ => return Err("give one of sha256, key_file and key_env".to_owned()),
        };
        let hash = match (&text, &self.sha256) {
            (Some(text), _) => hash_of(text)?,
            (None, hash) => read_hash(hash.as_deref().unwrap_or_default())?,
        };
        if self.rights.is_empty() {
            return Err("it has no rights".to_owned());
        }
        let queues = self.queues.iter().map(|text| QueuePattern::read(text)).collect::<Result<_, _>>()?;
        let secret = text.map(|text| KeySecret::new(text.trim()));
        Ok(AccessKey { name: self.name, hash, secret, rights: self.rights, queues })
    }
}

fn read_text(path: &Path) -> Result<String, KeysError> {
    fs::read_to_string(path).map_err(|error| KeysError::Read { path: path.to_owned(), error })
}

/// A parser's message without the values it quotes: one of them may be a key at the wrong place.
fn without_values(message: &str) -> String {
    let parts = message.split('"').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part } else { "..." }).collect()
}

/// The hash of a key, which must be long enough that nobody can guess it.
fn hash_of(key: &str) -> Result<[u8; 32], String> {
    let key = key.trim();
    if key.len() < limits::HTTP_KEY_BYTES_MIN {
        return Err(format!("it is shorter than {} characters", limits::HTTP_KEY_BYTES_MIN));
    }
    Ok(Sha256::digest(key.as_bytes()).into())
}

fn read_hash(hex: &str) -> Result<[u8; 32], String> {
    let wrong = || "sha256 must have 64 hexadecimal digits".to_owned();
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut hash = [0; 32];
    for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| wrong())?;
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const KEY: &str = "c2VyaWF0aW0tdGVzdC1rZXktMDEyMzQ1Njc4OWFiY2Q";

    fn read(text: &str) -> Result<Keys, KeysError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Keys::read(file.path(), |name| (name == "ORDERS_KEY").then(|| format!("{KEY}\n")))
    }

    fn hex(key: &str) -> String {
        Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_key_is_known_by_its_hash_and_by_itself() {
        let by_hash = format!("sha256 = \"{}\"", hex(KEY));
        for source in [by_hash.as_str(), "key_env = \"ORDERS_KEY\""] {
            let keys = read(&format!("[[key]]\nname = \"shop\"\n{source}\nrights = [\"send\"]\n")).unwrap();
            assert_eq!(keys.find(KEY.as_bytes()).unwrap().name(), "shop");
            assert!(keys.find(b"another").is_none());
        }
    }

    #[test]
    fn no_text_of_a_key_is_ever_shown() {
        let text = format!("[[key]]\nname = \"shop\"\nsha256 = \"{}\"\nrights = [\"send\"]\n", hex(KEY));
        let shown = format!("{:?}", read(&text).unwrap());
        assert!(shown.contains("shop") && !shown.contains(&hex(KEY)[..8]), "{shown}");
        // A key where it does not belong is not printed either.
        for wrong in [format!("key = \"{KEY}\""), format!("sha256 = \"{KEY}\""), format!("name = {KEY}")] {
            let error =
                read(&format!("[[key]]\nname = \"shop\"\nrights = [\"send\"]\n{wrong}\n")).unwrap_err();
            assert!(!error.to_string().contains(KEY), "{error}");
        }
    }

    #[test]
    fn managing_is_sending_and_listening_too() {
        let text =
            "[[key]]\nname = \"a\"\nkey_env = \"ORDERS_KEY\"\nrights = [\"manage\"]\nqueues = [\"a\"]\n";
        let keys = read(text).unwrap();
        let key = keys.find(KEY.as_bytes()).unwrap();
        assert!(key.may(Right::Send) && key.may(Right::Listen) && key.may(Right::Manage));
        assert!(key.reaches("a") && !key.reaches("b") && !key.reaches_all());
    }

    #[test]
    fn a_keys_file_that_is_wrong_says_how() {
        let entry = |rest: &str| read(&format!("[[key]]\nname = \"a\"\n{rest}")).unwrap_err().to_string();
        assert!(entry("rights = [\"send\"]").contains("give one of sha256"));
        assert!(entry("rights = []\nkey_env = \"ORDERS_KEY\"").contains("no rights"));
        assert!(entry("rights = [\"send\"]\nkey_env = \"NOWHERE\"").contains("NOWHERE"));
        assert!(entry("rights = [\"send\"]\nsha256 = \"12\"").contains("64 hexadecimal"));
        for name in [String::new(), "a".repeat(129)] {
            let text = format!("[[key]]\nname = \"{name}\"\nrights = [\"send\"]\nkey_env = \"ORDERS_KEY\"\n");
            assert!(read(&text).unwrap_err().to_string().contains("it must have 1 to 128"), "{name:?}");
        }
        assert!(read("").unwrap_err().to_string().contains("[[key]]"));
    }
}
