//! What the window has of each message, in one place: its record, and what does not change of it.

use std::collections::HashMap;

use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::store::groups::Groups;
use crate::engine::store::neighbours::Neighbours;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::schema::ContentRow;
use crate::engine::store::schema::MessageRow;
use crate::engine::store::slots::InSlots;
use crate::engine::store::slots::KeysInOrder;
use crate::engine::store::slots::in_slots;

/// The rows of the window of all messages.
#[derive(Default)]
pub(crate) struct MessageSlots {
    messages: HashMap<MessageKey, WindowMessage, Neighbours>,
    records_in_order: KeysInOrder<MessageKey>,
}

/// What the window has of one message.
#[derive(Default)]
pub(crate) struct WindowMessage {
    record: PrefixGroup<MessageRow>,
    content: PrefixGroup<ContentRow>,
}

impl WindowMessage {
    fn is_empty(&self) -> bool {
        self.record.is_empty() && self.content.is_empty()
    }
}

in_slots!(MessageSlots of WindowMessage {
    record: MessageRow, in order: records_in_order;
    content: ContentRow;
});

impl MessageSlots {
    /// Gives up room that is not needed.
    pub(crate) fn tidy(&mut self) {
        self.records_in_order = KeysInOrder::default();
    }

    /// Of how many messages the window says something.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }
}

impl<T: InSlots<Prefix = MessageKey, Slots = MessageSlots, Slot = WindowMessage>> Groups<T> for MessageSlots {
    fn group(&self, key: &MessageKey) -> Option<&PrefixGroup<T>> {
        self.messages.get(key).map(T::of)
    }

    fn group_mut(&mut self, key: &MessageKey) -> Option<&mut PrefixGroup<T>> {
        self.messages.get_mut(key).map(T::of_mut)
    }

    fn group_to_change(&mut self, key: &MessageKey) -> &mut PrefixGroup<T> {
        T::note_change(self, key);
        T::of_mut(self.messages.entry(*key).or_default())
    }

    fn give_up(&mut self, key: &MessageKey) {
        if self.messages.get(key).is_some_and(WindowMessage::is_empty) {
            self.messages.remove(key);
        }
    }

    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.messages.retain(|key, _| wanted(key.queue));
    }

    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g MessageKey, &'g PrefixGroup<T>)) {
        self.messages.iter().for_each(|(key, message)| with(key, T::of(message)));
    }
}
