//! Keys as bytes that sort as their parts do.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::due::Due;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::store::codec;
use crate::engine::store::in_words::InWords;
use crate::id::MessageId;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

const SINGLE: u8 = 0;
const NAMED: u8 = 1;
/// Ends a text. A zero inside a text is followed by [`ESCAPED_ZERO`], so that no text is the beginning of another.
const END: u8 = 1;
const ESCAPED_ZERO: u8 = 0xff;

/// A part of a key: its bytes sort as it does itself.
pub(crate) trait KeyPart: Sized + InWords {
    fn write(&self, key: &mut Vec<u8>);

    /// Reads the part back; `None` means that the bytes make no sense.
    fn read(parts: &mut Parts<'_>) -> Option<Self>;

    /// The queue whose rows begin with this part, if they all are of one queue.
    #[inline]
    fn of_queue(&self) -> Option<QueueId> {
        None
    }
}

/// The bytes of a key of two parts.
pub(crate) fn key_of(prefix: &impl KeyPart, rest: &impl KeyPart) -> Vec<u8> {
    let mut key = Vec::with_capacity(48);
    put_key(prefix, rest, &mut key);
    key
}

/// Puts a key of two parts behind bytes that are there.
#[inline]
pub(crate) fn put_key(prefix: &impl KeyPart, rest: &impl KeyPart, bytes: &mut Vec<u8>) {
    prefix.write(bytes);
    rest.write(bytes);
}

/// The bytes that the keys with this prefix begin with.
pub(crate) fn prefix_of(prefix: &impl KeyPart) -> Vec<u8> {
    key_of(prefix, &())
}

/// Reads a whole key back.
pub(crate) fn parts_of<P: KeyPart, K: KeyPart>(key: &[u8]) -> Option<(P, K)> {
    let mut parts = Parts(key);
    let both = (P::read(&mut parts)?, K::read(&mut parts)?);
    parts.0.is_empty().then_some(both)
}

impl QueueId {
    /// The queue that a key begins with, if keys of its table do.
    pub(crate) fn first_of(key: &[u8]) -> Option<QueueId> {
        QueueId::read(&mut Parts(key))
    }
}

/// The key of a row that has a name.
pub(crate) fn name_key(name: &str) -> Vec<u8> {
    let mut key = Vec::new();
    write_text(name, &mut key);
    key
}

/// The first key after all that begin with `prefix`.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// A reminder as a key: its bytes, because what it reminds of sorts by them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ReminderKey(Vec<u8>);

impl ReminderKey {
    /// Sorts before every reminder of this instant and those after it.
    pub(crate) fn first(due: Due) -> ReminderKey {
        ReminderKey(due.bits().to_be_bytes().to_vec())
    }

    pub(crate) fn new(reminder: &Reminder) -> ReminderKey {
        let mut key = key_of(&reminder.due.bits(), &reminder.queue);
        key.extend(codec::encode(&reminder.what));
        ReminderKey(key)
    }

    pub(crate) fn reminder(&self) -> Option<Reminder> {
        let mut parts = Parts(&self.0);
        let (due, queue) = (u64::read(&mut parts)?, QueueId::read(&mut parts)?);
        Some(Reminder { due: Due::from_bits(due), queue, what: codec::decode(parts.0)? })
    }
}

impl KeyPart for ReminderKey {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.0);
    }

    fn read(parts: &mut Parts<'_>) -> Option<ReminderKey> {
        Some(ReminderKey(std::mem::take(&mut parts.0).to_vec()))
    }
}

/// The bytes of a key that are not read yet.
pub(crate) struct Parts<'a>(&'a [u8]);

impl Parts<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }
}

impl KeyPart for () {
    #[inline]
    fn write(&self, _key: &mut Vec<u8>) {}

    fn read(_parts: &mut Parts<'_>) -> Option<()> {
        Some(())
    }
}

impl KeyPart for u64 {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.to_be_bytes());
    }

    fn read(parts: &mut Parts<'_>) -> Option<u64> {
        let (number, rest) = parts.0.split_first_chunk::<8>()?;
        parts.0 = rest;
        Some(u64::from_be_bytes(*number))
    }
}

impl KeyPart for SequenceNumber {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        self.get().write(key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<SequenceNumber> {
        u64::read(parts).map(SequenceNumber::new)
    }
}

impl KeyPart for QueueId {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.0.to_be_bytes());
    }

    fn read(parts: &mut Parts<'_>) -> Option<QueueId> {
        let (id, rest) = parts.0.split_first_chunk::<4>()?;
        parts.0 = rest;
        Some(QueueId(u32::from_be_bytes(*id)))
    }

    #[inline]
    fn of_queue(&self) -> Option<QueueId> {
        Some(*self)
    }
}

impl KeyPart for WorkflowRef {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        match self {
            WorkflowRef::Single(sequence) => {
                key.push(SINGLE);
                sequence.write(key);
            }
            WorkflowRef::Named(id) => {
                key.push(NAMED);
                write_text(id.as_str(), key);
            }
        }
    }

    fn read(parts: &mut Parts<'_>) -> Option<WorkflowRef> {
        match parts.byte()? {
            SINGLE => SequenceNumber::read(parts).map(WorkflowRef::Single),
            NAMED => WorkflowId::new(read_text(parts)?).ok().map(WorkflowRef::Named),
            _ => None,
        }
    }
}

impl KeyPart for WorkflowKey {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        self.queue.write(key);
        self.stream.write(key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<WorkflowKey> {
        Some(WorkflowKey { queue: QueueId::read(parts)?, stream: WorkflowRef::read(parts)? })
    }

    #[inline]
    fn of_queue(&self) -> Option<QueueId> {
        Some(self.queue)
    }
}

impl KeyPart for MessageKey {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        self.queue.write(key);
        self.sequence.write(key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<MessageKey> {
        Some(MessageKey { queue: QueueId::read(parts)?, sequence: SequenceNumber::read(parts)? })
    }

    #[inline]
    fn of_queue(&self) -> Option<QueueId> {
        Some(self.queue)
    }
}

impl KeyPart for QueueName {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        write_text(self.as_str(), key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<QueueName> {
        QueueName::new(read_text(parts)?).ok()
    }
}

impl KeyPart for MessageId {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        write_text(self.as_str(), key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<MessageId> {
        MessageId::new(read_text(parts)?).ok()
    }
}

impl KeyPart for Arc<str> {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        write_text(self, key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<Arc<str>> {
        read_text(parts).map(Arc::from)
    }
}

impl KeyPart for Option<MessageId> {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        match self {
            None => key.push(SINGLE),
            Some(id) => {
                key.push(NAMED);
                id.write(key);
            }
        }
    }

    fn read(parts: &mut Parts<'_>) -> Option<Option<MessageId>> {
        match parts.byte()? {
            SINGLE => Some(None),
            NAMED => MessageId::read(parts).map(Some),
            _ => None,
        }
    }
}

impl KeyPart for (String, SequenceNumber) {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        write_text(&self.0, key);
        self.1.write(key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<(String, SequenceNumber)> {
        Some((read_text(parts)?, SequenceNumber::read(parts)?))
    }
}

impl KeyPart for (u64, SequenceNumber) {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        self.0.write(key);
        self.1.write(key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<(u64, SequenceNumber)> {
        Some((u64::read(parts)?, SequenceNumber::read(parts)?))
    }
}

impl KeyPart for (Timestamp, WorkflowRef) {
    #[inline]
    fn write(&self, key: &mut Vec<u8>) {
        self.0.as_millis().write(key);
        self.1.write(key);
    }

    fn read(parts: &mut Parts<'_>) -> Option<(Timestamp, WorkflowRef)> {
        Some((Timestamp::from_millis(u64::read(parts)?), WorkflowRef::read(parts)?))
    }
}

#[inline]
fn write_text(text: &str, key: &mut Vec<u8>) {
    let text = text.as_bytes();
    // Hardly any text has a zero in it.
    match has_zero(text) {
        false => key.extend_from_slice(text),
        true => write_escaped(text, key),
    }
    key.extend_from_slice(&[0, END]);
}

#[cold]
fn write_escaped(text: &[u8], key: &mut Vec<u8>) {
    text.iter().for_each(|byte| match byte {
        0 => key.extend_from_slice(&[0, ESCAPED_ZERO]),
        byte => key.push(*byte),
    });
}

/// Whether a text has a zero in it. It is asked of each ID in each row, and most IDs are too short for a search that begins slowly.
#[inline]
fn has_zero(text: &[u8]) -> bool {
    let Some(last) = text.last_chunk::<8>() else { return text.contains(&0) };
    let (mut zeros, mut text) = (zeros_of(u64::from_le_bytes(*last)), text);
    while let Some((word, rest)) = text.split_first_chunk::<8>() {
        zeros |= zeros_of(u64::from_le_bytes(*word));
        text = rest;
    }
    zeros != 0
}

/// A number that is zero if no byte of the word is.
#[inline]
fn zeros_of(word: u64) -> u64 {
    // Only of a zero does the top bit become set by taking one away, if it was not set before.
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080
}

fn read_text(parts: &mut Parts<'_>) -> Option<String> {
    let mut text = Vec::new();
    loop {
        match parts.byte()? {
            0 => match parts.byte()? {
                ESCAPED_ZERO => text.push(0),
                END => return String::from_utf8(text).ok(),
                _ => return None,
            },
            byte => text.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream() -> impl Strategy<Value = WorkflowRef> {
        prop_oneof![
            (0..4_u64).prop_map(|n| WorkflowRef::Single(SequenceNumber::new(n))),
            "[a\u{0}\u{1}\u{ff}]{1,4}".prop_map(|id| WorkflowRef::Named(WorkflowId::new(id).unwrap())),
        ]
    }

    #[test]
    fn a_zero_is_found_wherever_it_is() {
        for len in 0..40 {
            for filling in [1, b'a', 0x80, 0xff] {
                let mut text = vec![filling; len];
                assert!(!has_zero(&text), "{text:?}");
                for at in 0..len {
                    text[at] = 0;
                    assert!(has_zero(&text), "{text:?}");
                    text[at] = filling;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn keys_sort_as_their_parts_and_can_be_read_back(a in stream(), b in stream(), m in 0..3_u64, n in 0..3_u64) {
            let left = WorkflowKey { queue: QueueId(7), stream: a };
            let right = WorkflowKey { queue: QueueId(7), stream: b };
            prop_assert_eq!(key_of(&left, &m).cmp(&key_of(&right, &n)), (&left, m).cmp(&(&right, n)));
            prop_assert_eq!(parts_of(&key_of(&left, &m)), Some((left.clone(), m)));
            prop_assert_eq!(parts_of::<WorkflowKey, ()>(&key_of(&left, &m)), None, "bytes are left over");
        }

        #[test]
        fn reasons_and_message_ids_sort_as_text(a in "[a\u{0}\u{1}]{1,4}", b in "[a\u{0}\u{1}]{1,4}", m in 0..3_u64) {
            let number = SequenceNumber::new(m);
            let (left, right) = ((a.clone(), number), (b.clone(), number));
            prop_assert_eq!(key_of(&(), &left).cmp(&key_of(&(), &right)), left.cmp(&right));
            let (left, right) = (MessageId::new(a).ok(), MessageId::new(b).ok());
            prop_assert_eq!(key_of(&(), &left).cmp(&key_of(&(), &right)), left.cmp(&right));
            prop_assert_eq!(key_of(&(), &left).cmp(&key_of(&(), &None)), left.cmp(&None));
        }
    }
}
