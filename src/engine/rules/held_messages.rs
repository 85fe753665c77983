//! Which messages a holder has out.

use std::collections::VecDeque;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeSeq;

use crate::id::SequenceNumber;

/// The messages that a holder has out, in the order of hand-out. It is one as a rule, which takes no room of its own; a run is
/// settled from its front. Its bytes are those of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldMessages {
    first: Option<SequenceNumber>,
    /// Those behind it, if there ever were some.
    #[expect(
        clippy::box_collection,
        reason = "nearly always there are none, and a pointer is smaller than a list"
    )]
    rest: Option<Box<VecDeque<SequenceNumber>>>,
}

impl PartialEq for HeldMessages {
    fn eq(&self, other: &HeldMessages) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for HeldMessages {}

impl HeldMessages {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn contains(&self, sequence: SequenceNumber) -> bool {
        self.iter().any(|held| held == sequence)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SequenceNumber> + '_ {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| rest.iter())).copied()
    }

    pub(crate) fn push(&mut self, sequence: SequenceNumber) {
        match self.first {
            None => self.first = Some(sequence),
            Some(_) => self.rest.get_or_insert_default().push_back(sequence),
        }
    }

    pub(crate) fn remove(&mut self, sequence: SequenceNumber) {
        if self.first == Some(sequence) {
            self.first = self.rest.as_mut().and_then(|rest| rest.pop_front());
        } else if let Some(rest) = &mut self.rest {
            rest.retain(|held| *held != sequence);
        }
    }
}

impl FromIterator<SequenceNumber> for HeldMessages {
    fn from_iter<I: IntoIterator<Item = SequenceNumber>>(sequences: I) -> HeldMessages {
        let mut held = HeldMessages::default();
        sequences.into_iter().for_each(|sequence| held.push(sequence));
        held
    }
}

impl Serialize for HeldMessages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        self.iter().try_for_each(|sequence| list.serialize_element(&sequence))?;
        list.end()
    }
}

impl<'de> Deserialize<'de> for HeldMessages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HeldMessages, D::Error> {
        Vec::deserialize(deserializer).map(HeldMessages::from_iter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_holder_has_out_what_a_list_would_have_with_the_same_bytes(
            steps in proptest::collection::vec((any::<bool>(), 0..12_u64), 0..60)
        ) {
            let (mut list, mut held) = (Vec::new(), HeldMessages::default());
            for (is_out, number) in steps {
                let sequence = SequenceNumber::new(number);
                if is_out && !list.contains(&sequence) {
                    list.push(sequence);
                    held.push(sequence);
                } else {
                    list.retain(|other| *other != sequence);
                    held.remove(sequence);
                }
                prop_assert_eq!(held.iter().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!((held.len(), held.is_empty()), (list.len(), list.is_empty()));
                prop_assert_eq!(held.contains(sequence), list.contains(&sequence));
                let bytes = postcard::to_stdvec(&held).unwrap();
                prop_assert_eq!(&bytes, &postcard::to_stdvec(&list).unwrap());
                prop_assert_eq!(postcard::from_bytes::<HeldMessages>(&bytes).unwrap(), held.clone());
            }
        }
    }
}
