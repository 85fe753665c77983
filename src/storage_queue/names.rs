//! Names as storage queues have them, and the IDs and pop receipts of messages.

use std::ops::RangeInclusive;

use crate::engine::Claim;
use crate::id::SequenceNumber;

/// How many characters a queue's name has.
pub(crate) const QUEUE_NAME_LENGTHS: RangeInclusive<usize> = 3..=63;

/// Whether a queue can have this name: 3 to 63 small letters, digits and single hyphens, none of these at an end.
pub(crate) fn is_queue_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    QUEUE_NAME_LENGTHS.contains(&name.len()) && name.split('-').all(is_part)
}

/// A message's ID, as the text of a UUID. Numbers are never given twice, so that an ID never names another message.
pub(crate) fn message_id(number: SequenceNumber) -> String {
    let digits = format!("{:016x}", number.get());
    format!("00000000-0000-0000-{}-{}", &digits[..4], &digits[4..])
}

/// The message that an ID names.
pub(crate) fn read_message_id(text: &str) -> Option<SequenceNumber> {
    let digits = text.strip_prefix("00000000-0000-0000-")?.replacen('-', "", 1);
    let number = SequenceNumber::new(u64::from_str_radix(&digits, 16).ok()?);
    // Only as it was written.
    (message_id(number) == text.to_ascii_lowercase()).then_some(number)
}

/// A pop receipt: which hand-out of its message it was given for.
pub(crate) fn pop_receipt(claim: Claim) -> String {
    claim.to_string()
}

/// The claim that a pop receipt is for a message.
pub(crate) fn read_pop_receipt(text: &str, number: SequenceNumber) -> Option<Claim> {
    let claim: Claim = text.parse().ok()?;
    (claim.sequence_number == number).then_some(claim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_azure_takes() {
        for name in ["abc", "a-b-c", "0123", &"x".repeat(63)] {
            assert!(is_queue_name(name), "{name}");
        }
        for name in ["", "ab", "Abc", "a--b", "-abc", "abc-", "a.b", "a_b", "$logs", &"x".repeat(64)] {
            assert!(!is_queue_name(name), "{name}");
        }
    }

    #[test]
    fn an_id_names_one_message_in_one_way() {
        for number in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
            let number = SequenceNumber::new(number);
            assert_eq!(message_id(number).len(), 36);
            assert_eq!(read_message_id(&message_id(number)), Some(number));
        }
        for wrong in ["", "1", "00000000-0000-0000-0000-1", "10000000-0000-0000-0000-000000000001", "x"] {
            assert_eq!(read_message_id(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_receipt_is_for_its_own_message() {
        let [one, two] = [1, 2].map(SequenceNumber::new);
        let claim = Claim::of_sender(one, crate::clock::Timestamp::from_millis(7));
        assert_eq!(read_pop_receipt(&pop_receipt(claim), one), Some(claim));
        assert_eq!(read_pop_receipt(&pop_receipt(claim), two), None);
        assert_eq!(read_pop_receipt("AgAAAAMAAAAAAAAA", one), None);
    }
}
