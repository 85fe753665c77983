//! What the window has of each message, in one place: its record, and what does not change of it.

use std::collections::HashMap;
use std::ops::Bound;

use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::store::groups::Groups;
use crate::engine::store::neighbours::Neighbours;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::schema::ContentRow;
use crate::engine::store::schema::MessageRow;
use crate::engine::store::slots::KeysInOrder;
use crate::engine::store::slots::OrderedSlots;
use crate::engine::store::slots::has_rows;
use crate::engine::store::table::Table;
use crate::id::SequenceNumber;

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

/// A table whose row of a message is in its slot.
pub(crate) trait InMessageSlots: Table<Prefix = MessageKey> + Sized {
    fn of(message: &WindowMessage) -> &PrefixGroup<Self>;
    fn of_mut(message: &mut WindowMessage) -> &mut PrefixGroup<Self>;
    /// The messages that have a row, if they can be asked for in order.
    fn in_order(slots: &MessageSlots) -> Option<&KeysInOrder<MessageKey>>;
}

impl InMessageSlots for MessageRow {
    fn of(message: &WindowMessage) -> &PrefixGroup<MessageRow> {
        &message.record
    }

    fn of_mut(message: &mut WindowMessage) -> &mut PrefixGroup<MessageRow> {
        &mut message.record
    }

    fn in_order(slots: &MessageSlots) -> Option<&KeysInOrder<MessageKey>> {
        Some(&slots.records_in_order)
    }
}

impl InMessageSlots for ContentRow {
    fn of(message: &WindowMessage) -> &PrefixGroup<ContentRow> {
        &message.content
    }

    fn of_mut(message: &mut WindowMessage) -> &mut PrefixGroup<ContentRow> {
        &mut message.content
    }

    fn in_order(_: &MessageSlots) -> Option<&KeysInOrder<MessageKey>> {
        None
    }
}

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

impl<T: InMessageSlots> Groups<T> for MessageSlots {
    fn group(&self, key: &MessageKey) -> Option<&PrefixGroup<T>> {
        self.messages.get(key).map(T::of)
    }

    fn group_mut(&mut self, key: &MessageKey) -> Option<&mut PrefixGroup<T>> {
        self.messages.get_mut(key).map(T::of_mut)
    }

    fn group_to_change(&mut self, key: &MessageKey) -> &mut PrefixGroup<T> {
        if let Some(keys) = T::in_order(self)
            && keys.is_kept()
            && !has_rows::<T>(self.group(key))
        {
            keys.note(key);
        }
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

    #[cfg(test)]
    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g MessageKey, &'g PrefixGroup<T>)) {
        self.messages.iter().for_each(|(key, message)| with(key, T::of(message)));
    }
}

impl OrderedSlots<MessageRow> for MessageSlots {
    fn first_of_queue(&self, queue: QueueId, from: Bound<&SequenceNumber>) -> Option<SequenceNumber> {
        let from = match from {
            Bound::Unbounded => Bound::Included(SequenceNumber::new(0)),
            bound => bound.cloned(),
        };
        let from = from.map(|sequence| MessageKey { queue, sequence });
        let all = || {
            let messages = self.messages.iter().filter(|(_, message)| has_rows(Some(&message.record)));
            messages.map(|(key, _)| *key).collect()
        };
        let has_row = |key: &MessageKey| has_rows::<MessageRow>(self.group(key));
        let found = self.records_in_order.first(from.as_ref(), all, has_row)?;
        (found.queue == queue).then_some(found.sequence)
    }
}
