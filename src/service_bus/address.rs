//! Addresses as clients write them: a queue, its dead letters, its management, or the node for tokens.

use crate::id::SUBSCRIPTIONS;
use crate::sas::signatures::path_of;
use crate::service_bus::slashed::queue_name;

/// Suffix of the address of a queue's dead letters.
const DEAD_LETTERS: &str = "$deadletterqueue";

/// What stands before that for messages that could not be passed on to another queue.
const TRANSFER: &str = "$transfer";

/// Suffix of the address of a queue's management.
const MANAGEMENT: &str = "$management";

/// Address of the node that takes tokens.
const TOKENS: &str = "$cbs";

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntityAddress {
    /// The node that takes tokens.
    Tokens,
    /// Where messages are.
    Entity(EntityPath),
    /// Where an entity is managed.
    Management(EntityPath),
}

/// A queue as a client names it, or its dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityPath {
    /// The queue, as it was written.
    pub(crate) queue: String,
    /// Whether its dead letters are meant.
    pub(crate) is_dead_letters: bool,
    /// Whether these are its dead letters that could not be passed on, of which there are none: nothing is passed on.
    pub(crate) is_transfer: bool,
}

impl EntityAddress {
    /// The path of an address, in the letters in which paths are compared.
    pub(crate) fn path(text: &str) -> String {
        path_of(text).to_ascii_lowercase()
    }

    /// Reads an address, with or without scheme and host. What kind of node is meant does not depend on case.
    pub(crate) fn read(text: &str) -> EntityAddress {
        let path = path_of(text);
        if path.eq_ignore_ascii_case(TOKENS) {
            return EntityAddress::Tokens;
        }
        match without_suffix(path, MANAGEMENT) {
            Some(entity) => EntityAddress::Management(EntityPath::read(entity)),
            None => EntityAddress::Entity(EntityPath::read(path)),
        }
    }
}

impl EntityPath {
    fn read(path: &str) -> EntityPath {
        let Some(above) = without_suffix(path, DEAD_LETTERS) else {
            return EntityPath { queue: queue_of(path), is_dead_letters: false, is_transfer: false };
        };
        let queue = without_suffix(above, TRANSFER);
        let is_transfer = queue.is_some();
        EntityPath { queue: queue_of(queue.unwrap_or(above)), is_dead_letters: true, is_transfer }
    }
}

/// The name of the queue that a path names: what stands between a topic and its subscription is said in any case.
fn queue_of(path: &str) -> String {
    match path.to_ascii_lowercase().find(SUBSCRIPTIONS) {
        Some(at) => {
            format!("{}{SUBSCRIPTIONS}{}", queue_name(&path[..at]), &path[at + SUBSCRIPTIONS.len()..])
        }
        None => queue_name(path).into_owned(),
    }
}

/// What stands before a last part of a path, whatever the case of that.
fn without_suffix<'path>(path: &'path str, suffix: &str) -> Option<&'path str> {
    let (rest, last) = path.rsplit_once('/')?;
    last.eq_ignore_ascii_case(suffix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(queue: &str, is_dead_letters: bool) -> EntityPath {
        EntityPath { queue: queue.to_owned(), is_dead_letters, is_transfer: false }
    }

    #[test]
    fn an_address_is_read_with_and_without_a_host() {
        for text in ["orders", "/orders", "amqps://localhost:5672/orders", "amqp://h/orders/"] {
            assert_eq!(EntityAddress::read(text), EntityAddress::Entity(entity("orders", false)), "{text}");
        }
        assert_eq!(EntityAddress::read("amqps://h/a/b/"), EntityAddress::Entity(entity("a_2F_b", false)));
        let subscription = EntityAddress::read("a/b/Subscriptions/s/$DeadLetterQueue");
        assert_eq!(subscription, EntityAddress::Entity(entity("a_2F_b/subscriptions/s", true)));
        assert_eq!(EntityAddress::read("$cbs"), EntityAddress::Tokens);
        assert_eq!(EntityAddress::read("amqps://localhost"), EntityAddress::Entity(entity("", false)));
    }

    #[test]
    fn dead_letters_and_management_are_found_whatever_their_case() {
        for text in ["orders/$DeadLetterQueue", "amqps://h/orders/$deadletterqueue"] {
            assert_eq!(EntityAddress::read(text), EntityAddress::Entity(entity("orders", true)), "{text}");
        }
        assert_eq!(
            EntityAddress::read("orders/$management"),
            EntityAddress::Management(entity("orders", false))
        );
        let both = EntityAddress::read("orders/$DeadLetterQueue/$Management");
        assert_eq!(both, EntityAddress::Management(entity("orders", true)));
        let transfer = EntityPath { is_transfer: true, ..entity("orders", true) };
        assert_eq!(EntityAddress::read("orders/$Transfer/$DeadLetterQueue"), EntityAddress::Entity(transfer));
    }
}
