//! Names and numbers: of queues, workflows, messages and places.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::hash::Hasher;
use std::num::NonZeroU64;
use std::sync::Arc;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de;
use serde::de::Visitor;

use crate::error::Misuse;
use crate::limits;
pub use crate::token::LockToken;

/// Reads a text as it lies there, without a copy of it on the way.
struct TextVisitor<T>(fn(&str) -> Result<T, Misuse>);

impl<T> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// Makes a text newtype: cheap to clone, compared byte for byte, checked when made.
macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident, $field:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Eq, PartialOrd, Ord, Serialize)]
        pub struct $name(Arc<str>);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                deserializer.deserialize_str(TextVisitor(|text| $name::new(text)))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                // A text that is shared is compared again and again.
                Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }

        impl $name {
            /// Makes one from text.
            ///
            /// # Errors
            /// [`Misuse`] when the text is empty, too long or has a forbidden character.
            pub fn new(text: impl AsRef<str>) -> Result<$name, Misuse> {
                let text = text.as_ref();
                let check: fn(&str) -> Result<(), String> = $check;
                check(text).map_err(|problem| Misuse::new($field, problem))?;
                Ok($name(Arc::from(text)))
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Misuse;

            fn try_from(text: String) -> Result<$name, Misuse> {
                $name::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Misuse;

            fn try_from(text: &str) -> Result<$name, Misuse> {
                $name::new(text)
            }
        }
    };
}

text_newtype!(
    /// Name of a queue: 1 to 128 characters `A-Z a-z 0-9 . _ -`, the first a letter or digit. That of a subscription is
    /// `<topic>/subscriptions/<name>`.
    QueueName,
    "queue name",
    check_queue_name
);

text_newtype!(
    /// Name of a subscription of a topic: 1 to 50 characters `A-Z a-z 0-9 . _ -`, the first a letter or digit.
    SubscriptionName,
    "subscription name",
    |text| check_plain_name(text, limits::SUBSCRIPTION_NAME_BYTES_MAX)
);

text_newtype!(
    /// Name of a rule of a subscription: any UTF-8 text of 1 to 50 characters without `/`.
    RuleName,
    "rule name",
    |text| match text.contains('/') {
        true => Err("has the character '/'".to_owned()),
        false => check_chars(text, limits::RULE_NAME_CHARS_MAX),
    }
);

/// What stands between a topic and a subscription in the name of the subscription's queue.
pub(crate) const SUBSCRIPTIONS: &str = "/subscriptions/";

impl QueueName {
    /// The name of a subscription's queue.
    ///
    /// # Errors
    /// [`Misuse`] when the name of the topic is one of a subscription itself.
    pub fn of_subscription(topic: &QueueName, subscription: &SubscriptionName) -> Result<QueueName, Misuse> {
        QueueName::new(format!("{topic}{SUBSCRIPTIONS}{subscription}"))
    }

    /// How much of a text that begins with the name of a subscription's queue is the topic and what stands behind it: no sign in
    /// there ends the name. It is 0 for every other text.
    pub fn topic_len(text: &str) -> usize {
        let is_topic = |topic: &str| check_plain_name(topic, limits::QUEUE_NAME_BYTES_MAX).is_ok();
        match text.split_once(SUBSCRIPTIONS) {
            Some((topic, _)) if is_topic(topic) => topic.len() + SUBSCRIPTIONS.len(),
            _ => 0,
        }
    }

    /// The name of the topic, if it is the queue of a subscription.
    #[cfg(feature = "cluster")]
    pub(crate) fn topic_of_subscription(&self) -> Option<&str> {
        Some(self.as_str().split_once(SUBSCRIPTIONS)?.0)
    }

    /// The topic and the subscription whose queue it is, if it is one's.
    pub fn subscription(&self) -> Option<(QueueName, SubscriptionName)> {
        let (topic, name) = self.as_str().split_once(SUBSCRIPTIONS)?;
        Some((QueueName::new(topic).ok()?, SubscriptionName::new(name).ok()?))
    }
}

text_newtype!(
    /// The ID of a workflow inside a queue: any UTF-8 text of 1 to 128 characters, compared byte for byte.
    WorkflowId,
    "workflow ID",
    |text| check_chars(text, limits::WORKFLOW_ID_CHARS_MAX)
);

text_newtype!(
    /// The sender's ID of a message: any UTF-8 text of 1 to 128 characters.
    MessageId,
    "message ID",
    |text| check_chars(text, limits::MESSAGE_ID_CHARS_MAX)
);

impl MessageId {
    /// Where a search among message IDs begins: it sorts before all of them, and no message has it.
    pub(crate) fn before_all() -> MessageId {
        MessageId(Arc::from(""))
    }
}

impl WorkflowId {
    /// The fixed hash by which a workflow is assigned to a partition: XXH3-64, seed 0, of the ID's bytes. It is the
    /// same in every version; one machine is one partition, so nothing depends on it yet.
    pub fn partition_hash(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(self.as_str().as_bytes())
    }
}

/// What makes a request that is sent again recognisable: a text that the sender chooses for one request, and a digest of
/// that request, by which another request under the same text is distinguished from it.
///
/// ```
/// use seriatim::id::IdempotencyKey;
///
/// let body = br#"{"order": 17}"#;
/// let key = IdempotencyKey::of_request("a5d1", body)?;
/// assert_eq!(key, IdempotencyKey::of_request("a5d1", body)?);
/// assert_ne!(key, IdempotencyKey::of_request("a5d1", b"another")?);
/// # Ok::<(), seriatim::Misuse>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    text: Arc<str>,
    digest: u64,
}

impl IdempotencyKey {
    /// Makes a key of any UTF-8 text of 1 to 128 bytes and a digest of the request.
    ///
    /// # Errors
    /// [`Misuse`] when the text is empty or too long.
    pub fn new(text: impl AsRef<str>, digest: u64) -> Result<IdempotencyKey, Misuse> {
        let text = text.as_ref();
        check_length(text, limits::IDEMPOTENCY_KEY_BYTES_MAX)
            .map_err(|problem| Misuse::new("idempotency key", problem))?;
        Ok(IdempotencyKey { text: Arc::from(text), digest })
    }

    /// Makes a key of a text and the bytes of the request; their digest is XXH3-64 with seed 0, in every version.
    ///
    /// # Errors
    /// As [`IdempotencyKey::new`].
    pub fn of_request(text: impl AsRef<str>, request: &[u8]) -> Result<IdempotencyKey, Misuse> {
        IdempotencyKey::new(text, xxhash_rust::xxh3::xxh3_64(request))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The digest of the request.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }
}

fn check_length(text: &str, bytes_max: usize) -> Result<(), String> {
    match text.len() {
        0 => Err("is empty".to_owned()),
        length if length > bytes_max => Err(format!("has {length} bytes, at most {bytes_max} are allowed")),
        _ => Ok(()),
    }
}

fn check_chars(text: &str, chars_max: usize) -> Result<(), String> {
    match text.chars().count() {
        0 => Err("is empty".to_owned()),
        length if length > chars_max => {
            Err(format!("has {length} characters, at most {chars_max} are allowed"))
        }
        _ => Ok(()),
    }
}

fn check_queue_name(text: &str) -> Result<(), String> {
    match text.split_once(SUBSCRIPTIONS) {
        Some((topic, subscription)) => {
            check_plain_name(topic, limits::QUEUE_NAME_BYTES_MAX)?;
            check_plain_name(subscription, limits::SUBSCRIPTION_NAME_BYTES_MAX)
        }
        None => check_plain_name(text, limits::QUEUE_NAME_BYTES_MAX),
    }
}

/// What is wrong with a name of letters, digits and . _ -, which is also one of a file in a folder.
pub(crate) fn check_plain_name(text: &str, max: usize) -> Result<(), String> {
    check_length(text, max)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        return Err(format!("has the character {c:?}; letters, digits and . _ - are allowed"));
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("does not begin with a letter or digit".to_owned());
    }
    Ok(())
}

/// The number the engine gives a message at acceptance: unique in its file, increasing, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SequenceNumber(u64);

impl SequenceNumber {
    /// Makes a sequence number from its value, as another process or a person gives it.
    pub const fn new(value: u64) -> SequenceNumber {
        SequenceNumber(value)
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The lowest number above it, whether a message has that or not.
    pub(crate) const fn next(self) -> SequenceNumber {
        SequenceNumber(self.0 + 1)
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sender's place of a message inside its workflow: 1, 2, 3 and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(NonZeroU64);

impl Position {
    /// The usual first position.
    pub const FIRST: Position = Position(NonZeroU64::MIN);

    /// Makes a position.
    ///
    /// # Errors
    /// [`Misuse`] for zero and for 2^48 and above, which is kept free so that no position can wrap.
    pub fn new(value: u64) -> Result<Position, Misuse> {
        let problem =
            || Misuse::new("position", format!("is {value}; it must be 1 to {}", limits::NUMBER_END - 1));
        let value = NonZeroU64::new(value).ok_or_else(problem)?;
        if value.get() < limits::NUMBER_END { Ok(Position(value)) } else { Err(problem()) }
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_name_is_a_plain_file_name() {
        for name in ["orders", "a", "0.9_x-y", &"q".repeat(128)] {
            assert!(QueueName::new(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "..",
            ".hidden",
            "a/b",
            "a b",
            "\u{e9}",
            "-x",
            &"q".repeat(129),
            "a/subscriptions/",
            "a/subscriptions/b/subscriptions/c",
        ] {
            assert!(QueueName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_name_of_a_subscription_is_told_from_what_follows_it() {
        let name = QueueName::new("a/subscriptions/b").unwrap();
        let (topic, subscription) = name.subscription().unwrap();
        assert_eq!(QueueName::of_subscription(&topic, &subscription), Ok(name));
        assert_eq!(QueueName::topic_len("a/subscriptions/b/w"), "a/subscriptions/".len());
        assert_eq!(QueueName::topic_len("a/w/subscriptions/b"), 0);
        assert!(QueueName::new("a").unwrap().subscription().is_none());
    }

    #[test]
    fn the_partition_hash_of_a_workflow_never_changes() {
        let hash = |id: &str| WorkflowId::new(id).unwrap().partition_hash();
        assert_eq!(hash("order-17"), 2_543_671_532_102_667_198);
    }

    #[test]
    fn a_workflow_id_is_any_text_up_to_128_characters() {
        assert!(WorkflowId::new("\0 ../\u{1F600}").is_ok());
        assert!(WorkflowId::new("").is_err());
        assert!(WorkflowId::new("\u{1F600}".repeat(128)).is_ok());
        let problem = WorkflowId::new("\u{e9}".repeat(129)).unwrap_err().to_string();
        assert!(problem.contains("129 characters"), "{problem}");
        assert!(MessageId::new("\u{e9}".repeat(128)).is_ok());
    }
}
