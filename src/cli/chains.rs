//! Chains of an export: what a message follows whose predecessor was settled while messages were exported.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::hash::RandomState;

use seriatim::api::views::MessageEnvelope;
use seriatim::api::views::MessageWord;

/// Which messages of chains were exported.
#[derive(Default)]
pub(crate) struct ExportedChains {
    hasher: RandomState,
    /// Workflows and message IDs, as hashes: an export may have very many.
    exported: HashSet<u64>,
}

impl ExportedChains {
    /// Has a message follow the predecessor that it names if that was exported: it will be there, though it is settled by now where it
    /// is exported. Where no dead letters are exported it follows none.
    pub(crate) fn pass(&mut self, mut message: MessageEnvelope, no_dead_letters: bool) -> MessageEnvelope {
        let hash_of =
            |id: &Option<String>| id.as_ref().map(|id| self.hasher.hash_one((&message.workflow_id, id)));
        let (predecessor, own) = (hash_of(&message.after), hash_of(&message.message_id));
        let Some(place) = &mut message.chain_place else { return message };
        if no_dead_letters {
            place.follows = place.follows_live.clone();
        }
        if predecessor.is_some_and(|predecessor| self.exported.contains(&predecessor)) {
            message.chain_place = None;
        }
        if message.status != MessageWord::DeadLettered {
            self.exported.extend(own);
        }
        message
    }
}
