//! What the window has of each message, in one place: its record, and what does not change of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::store::groups::Groups;
use crate::engine::store::neighbours::Neighbours;
use crate::engine::store::neighbours::neighbourhood;
use crate::engine::store::prefix_group::PrefixGroup;
use crate::engine::store::schema::ContentRow;
use crate::engine::store::schema::MessageRow;
use crate::engine::store::slots::InSlots;
use crate::engine::store::slots::KeysInOrder;
use crate::engine::store::slots::in_slots;

/// Parts of the window's messages. Each makes room by itself: one of hundreds of thousands of messages would take twice its room while
/// it does, and let everybody wait.
const PARTS: usize = 64;

/// Room for so many messages of a part is kept even if there are none.
const ROOM_KEPT: usize = 64;

/// The rows of the window of all messages.
pub(crate) struct MessageSlots {
    parts: Vec<MessagesOfPart>,
    records_in_order: KeysInOrder<MessageKey>,
}

type MessagesOfPart = HashMap<MessageKey, WindowMessage, Neighbours>;

impl Default for MessageSlots {
    fn default() -> MessageSlots {
        let parts = (0..PARTS).map(|_| HashMap::default()).collect();
        MessageSlots { parts, records_in_order: KeysInOrder::default() }
    }
}

/// What the window has of one message.
#[derive(Default)]
pub(crate) struct WindowMessage {
    record: PrefixGroup<MessageRow>,
    content: PrefixGroup<ContentRow>,
}

impl WindowMessage {
    #[inline]
    fn is_empty(&self) -> bool {
        self.record.is_empty() && self.content.is_empty()
    }
}

in_slots!(MessageSlots of WindowMessage {
    record: MessageRow, in order: records_in_order;
    content: ContentRow;
});

impl MessageSlots {
    /// The part that a message belongs to, as its neighbours do.
    #[inline]
    fn part(&self, key: &MessageKey) -> &MessagesOfPart {
        &self.parts[part_of(key)]
    }

    #[inline]
    fn part_mut(&mut self, key: &MessageKey) -> &mut MessagesOfPart {
        &mut self.parts[part_of(key)]
    }

    /// Gives up room that is not needed: half of it at once, so that who needs it again and again does not make it anew each time.
    pub(crate) fn tidy(&mut self) {
        self.records_in_order = KeysInOrder::default();
        for part in &mut self.parts {
            let room = part.capacity();
            if room > ROOM_KEPT && part.len() < room / 4 {
                part.shrink_to(room / 2);
            }
        }
    }

    /// Of how many messages the window says something.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(HashMap::len).sum()
    }

    #[cfg(test)]
    fn room(&self) -> usize {
        self.parts.iter().map(HashMap::capacity).sum()
    }
}

#[inline]
fn part_of(key: &MessageKey) -> usize {
    neighbourhood(key.sequence.get()) as usize % PARTS
}

impl<T> Groups<T> for MessageSlots
where
    T: InSlots<Prefix = MessageKey, Place = MessageKey, Slots = MessageSlots, Slot = WindowMessage>,
{
    #[inline]
    fn group(&self, key: &MessageKey) -> Option<&PrefixGroup<T>> {
        self.part(key).get(key).map(T::of)
    }

    #[inline]
    fn group_mut(&mut self, key: &MessageKey) -> Option<&mut PrefixGroup<T>> {
        self.part_mut(key).get_mut(key).map(T::of_mut)
    }

    #[inline]
    fn group_to_change(&mut self, key: &MessageKey) -> (MessageKey, &mut PrefixGroup<T>) {
        T::note_change(self, key);
        (*key, T::of_mut(self.part_mut(key).entry(*key).or_default()))
    }

    #[inline]
    fn group_at(&self, key: &MessageKey) -> Option<&PrefixGroup<T>> {
        Groups::<T>::group(self, key)
    }

    #[inline]
    fn prefix_at<'p>(&'p self, key: &'p MessageKey) -> Option<&'p MessageKey> {
        Some(key)
    }

    #[inline]
    fn give_up(&mut self, key: &MessageKey) {
        if let Entry::Occupied(message) = self.part_mut(key).entry(*key)
            && message.get().is_empty()
        {
            message.remove();
        }
    }

    fn retain_queues(&mut self, wanted: &dyn Fn(QueueId) -> bool) {
        self.parts.iter_mut().for_each(|part| part.retain(|key, _| wanted(key.queue)));
    }

    fn each_group<'g>(&'g self, with: &mut dyn FnMut(&'g MessageKey, &'g PrefixGroup<T>)) {
        self.parts.iter().flatten().for_each(|(key, message)| with(key, T::of(message)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rules::record::MessageRecord;
    use crate::id::SequenceNumber;

    #[test]
    fn a_message_takes_little_room() {
        assert!(size_of::<MessageRecord>() <= 120, "a record has {} bytes", size_of::<MessageRecord>());
        let entry = size_of::<(MessageKey, WindowMessage)>();
        assert!(entry <= 112, "a message of the window has {entry} bytes beside its record and its body");
    }

    #[test]
    fn nothing_is_left_of_a_queue_that_is_not_wanted() {
        let mut slots = MessageSlots::default();
        for number in 1..=10 * PARTS as u64 {
            for queue in [QueueId(1), QueueId(2)] {
                let key = MessageKey { queue, sequence: SequenceNumber::new(64 * number) };
                Groups::<MessageRow>::group_to_change(&mut slots, &key);
            }
        }
        Groups::<MessageRow>::retain_queues(&mut slots, &|queue| queue == QueueId(2));
        let mut left = vec![];
        Groups::<MessageRow>::each_group(&slots, &mut |key, _| left.push(key.queue));
        assert_eq!(left, [QueueId(2)].repeat(10 * PARTS));
    }

    #[test]
    fn room_for_many_messages_goes_by_halves_once_there_are_few() {
        let mut slots = MessageSlots::default();
        let key = |number| MessageKey { queue: QueueId(1), sequence: SequenceNumber::new(number) };
        let many = 16 * (PARTS * ROOM_KEPT) as u64;
        for number in 1..=many {
            Groups::<MessageRow>::group_to_change(&mut slots, &key(number));
        }
        let room = slots.room();
        slots.tidy();
        assert_eq!(slots.room(), room, "it is needed");
        for number in 2..=many {
            Groups::<ContentRow>::give_up(&mut slots, &key(number));
        }
        slots.tidy();
        assert!((PARTS * ROOM_KEPT + 1..room).contains(&slots.room()), "not all of it at once");
        for _ in 0..16 {
            slots.tidy();
        }
        assert!(slots.room() <= PARTS * ROOM_KEPT && slots.part(&key(1)).contains_key(&key(1)));
    }
}
