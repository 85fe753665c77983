//! What the tokens allow that a connection has shown.

use std::collections::BTreeMap;

use tokio_util::sync::DropGuard;

use crate::clock::Timestamp;
use crate::sas::Keys;
use crate::sas::Right;
use crate::sas::Rights;
use crate::sas::signatures::is_path_below;

/// The tokens of a connection, by the path each was shown for.
#[derive(Default)]
pub(crate) struct Grants {
    pub(crate) by_path: BTreeMap<String, Rights>,
    /// The rights of the key that the client gave when it opened the connection.
    pub(crate) of_key: Option<Rights>,
    /// When somebody looks for tokens that have ended, and what keeps that waiting.
    pub(crate) watched_until: Option<(Timestamp, DropGuard)>,
}

impl Grants {
    /// Whether one of them allows something of a queue now.
    pub(crate) fn allows(&self, right: Right, path: &str, queue: &str, now: Timestamp) -> bool {
        if self.of_key.as_ref().is_some_and(|rights| rights.allows(right, queue)) {
            return true;
        }
        self.by_path.iter().any(|(above, rights)| {
            is_path_below(path, above) && rights.until > now && rights.allows(right, queue)
        })
    }

    /// Judges all of them by other keys: what a key allowed that is gone is allowed no more.
    pub(crate) fn judge_by(&mut self, keys: &Keys) {
        self.of_key = self.of_key.take().and_then(|rights| rights.under(keys));
        self.by_path = std::mem::take(&mut self.by_path)
            .into_iter()
            .filter_map(|(path, rights)| Some((path, rights.under(keys)?)))
            .collect();
    }

    /// Whether nobody has shown what allows anything, not even for a while.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_key.is_none() && self.by_path.is_empty()
    }

    /// When the first of those ends that have not.
    pub(crate) fn first_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.by_path.values().map(|rights| rights.until).filter(|until| *until > now).min()
    }

    /// Whether one of them reaches a queue of this name now, whatever it allows there.
    pub(crate) fn reaches(&self, queue: &str, now: Timestamp) -> bool {
        let shown = self.by_path.values().filter(|rights| rights.until > now);
        shown.chain(&self.of_key).any(|rights| rights.reaches(queue))
    }
}
