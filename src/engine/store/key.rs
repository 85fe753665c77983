//! Keys as bytes that sort as their parts do.

use crate::clock::Timestamp;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Reminder;
use crate::engine::rules::record::Stream;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::store::codec;
use crate::id::MessageId;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;

const SINGLE: u8 = 0;
const NAMED: u8 = 1;
/// Ends a text. A zero inside a text is followed by [`ESCAPED_ZERO`], so that no text is the beginning of another.
const END: u8 = 1;
const ESCAPED_ZERO: u8 = 0xff;

/// A key being put together, part by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    pub(crate) fn queue(id: QueueId) -> Key {
        Key(id.0.to_be_bytes().to_vec())
    }

    pub(crate) fn workflow(key: &WorkflowKey) -> Key {
        Key::queue(key.queue).stream(&key.stream)
    }

    pub(crate) fn message(key: MessageKey) -> Key {
        Key::queue(key.queue).number(key.sequence.get())
    }

    pub(crate) fn reminder(reminder: &Reminder) -> Key {
        let mut key = Key::due(reminder.due).0;
        key.extend(reminder.queue.0.to_be_bytes());
        key.extend(codec::encode(&reminder.what));
        Key(key)
    }

    /// Where the reminders of this instant begin.
    pub(crate) fn due(due: Timestamp) -> Key {
        Key(due.as_millis().to_be_bytes().to_vec())
    }

    pub(crate) fn stream(mut self, stream: &Stream) -> Key {
        match stream {
            Stream::Single(sequence) => {
                self.0.push(SINGLE);
                self.number(sequence.get())
            }
            Stream::Named(id) => {
                self.0.push(NAMED);
                self.text(id.as_str())
            }
        }
    }

    pub(crate) fn number(mut self, number: u64) -> Key {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn text(mut self, text: &str) -> Key {
        for byte in text.bytes() {
            self.0.push(byte);
            if byte == 0 {
                self.0.push(ESCAPED_ZERO);
            }
        }
        self.0.extend([0, END]);
        self
    }

    pub(crate) fn optional_id(mut self, id: Option<&MessageId>) -> Key {
        match id {
            None => {
                self.0.push(SINGLE);
                self
            }
            Some(id) => {
                self.0.push(NAMED);
                self.text(id.as_str())
            }
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Reads a key's parts back, from the end of a known prefix on. `None` means that the bytes make no sense.
pub(crate) struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    pub(crate) fn after(key: &'a [u8], prefix_len: usize) -> Parts<'a> {
        Parts(key.get(prefix_len..).unwrap_or_default())
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*number))
    }

    pub(crate) fn sequence(&mut self) -> Option<SequenceNumber> {
        self.number().map(SequenceNumber::new)
    }

    pub(crate) fn queue(&mut self) -> Option<QueueId> {
        let (id, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(QueueId(u32::from_be_bytes(*id)))
    }

    pub(crate) fn stream(&mut self) -> Option<Stream> {
        let (tag, rest) = self.0.split_first()?;
        self.0 = rest;
        match *tag {
            SINGLE => self.sequence().map(Stream::Single),
            NAMED => WorkflowId::new(self.text()?).ok().map(Stream::Named),
            _ => None,
        }
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let mut text = Vec::new();
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            if *byte != 0 {
                text.push(*byte);
                continue;
            }
            let (marker, rest) = self.0.split_first()?;
            self.0 = rest;
            match *marker {
                ESCAPED_ZERO => text.push(0),
                END => return String::from_utf8(text).ok(),
                _ => return None,
            }
        }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream() -> impl Strategy<Value = Stream> {
        prop_oneof![
            (0..4_u64).prop_map(|n| Stream::Single(SequenceNumber::new(n))),
            "[a\u{0}\u{1}\u{ff}]{1,4}".prop_map(|id| Stream::Named(WorkflowId::new(id).unwrap())),
        ]
    }

    proptest! {
        #[test]
        fn keys_sort_as_their_parts_and_can_be_read_back(a in stream(), b in stream(), m in 0..3_u64, n in 0..3_u64) {
            let left = Key::queue(QueueId(7)).stream(&a).number(m);
            let right = Key::queue(QueueId(7)).stream(&b).number(n);
            prop_assert_eq!(left.bytes().cmp(right.bytes()), (&a, m).cmp(&(&b, n)));
            let mut parts = Parts::after(left.bytes(), 4);
            prop_assert_eq!(parts.stream(), Some(a));
            prop_assert_eq!(parts.number(), Some(m));
            prop_assert!(parts.rest().is_empty());
        }
    }
}
