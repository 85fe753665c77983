//! A checksum of our own on every record, or on a block of them (`block.rs`), because redb does not verify its pages when it reads them.
//!
//! A checksummed value is its payload followed by eight bytes: the XXH3-64 of the table's name, the key and the payload. So
//! neither a flipped bit nor a record at the wrong place is ever served.

use redb::TableHandle;
use xxhash_rust::xxh3::Xxh3;

use crate::engine::store::definition::RawTableDefinition;
use crate::error::Fault;

const CHECKSUM_LEN: usize = 8;

/// What is said where redb finds no sound page to begin with.
pub(crate) const LAST_COMMIT_LEADS_ASTRAY: &str =
    "a page behind its header, to which the last commit leads, is not what was written";

/// What is said where redb has panicked, which it does when pages contradict each other.
pub(crate) const PAGES_MAKE_NO_SENSE: &str = "pages contradict each other";

/// Checksums a payload for its place.
pub(crate) fn checksum(table: &RawTableDefinition, key: &[u8], mut payload: Vec<u8>) -> Vec<u8> {
    let checksum = checksum_of(table, key, &payload);
    payload.extend(checksum);
    payload
}

/// The payload of a checksummed value.
///
/// # Errors
/// [`Fault::Damaged`] when the checksum does not fit.
pub(crate) fn verify_checksum<'a>(
    table: &RawTableDefinition,
    key: &[u8],
    checksummed: &'a [u8],
) -> Result<&'a [u8], Fault> {
    let split = checksummed.len().checked_sub(CHECKSUM_LEN).and_then(|at| checksummed.split_at_checked(at));
    match split {
        Some((payload, checksum)) if checksum == checksum_of(table, key, payload) => Ok(payload),
        _ => Err(damaged(table, "a checksum does not fit")),
    }
}

/// The fault of a record that cannot be what was written.
pub(crate) fn damaged(table: &RawTableDefinition, detail: &str) -> Fault {
    Fault::Damaged { table: table_name(table), detail: detail.to_owned() }
}

fn checksum_of(table: &RawTableDefinition, key: &[u8], payload: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut hasher = Xxh3::new();
    hasher.update(table.name().as_bytes());
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(payload);
    hasher.digest().to_le_bytes()
}

/// A table's name as a text that outlives the definition, which only lends it.
fn table_name(table: &RawTableDefinition) -> &'static str {
    const NAMES: [&str; 32] = [
        "meta",
        "journal",
        "queues",
        "tallies",
        "workflows",
        "states",
        "messages",
        "contents",
        "line",
        "aside",
        "links",
        "trails",
        "roots",
        "waiting",
        "marks",
        "holdings",
        "ready",
        "reminders",
        "dead_by_reason",
        "dead_by_workflow",
        "duplicates",
        "answers",
        "answer_counts",
        "audit",
        "history",
        "history_by_message",
        "history_by_workflow",
        "cursors",
        "cursors_by_age",
        "cursor_counts",
        "topics",
        "handovers",
    ];
    NAMES.into_iter().find(|name| *name == table.name()).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::store::schema;
    use crate::engine::store::table::Table;

    const STATES: RawTableDefinition = schema::States::DEFINITION;
    const CONTENTS: RawTableDefinition = schema::Contents::DEFINITION;

    #[test]
    fn a_flipped_bit_is_refused_not_served() {
        let checksummed = checksum(&STATES, b"key", b"payload".to_vec());
        assert_eq!(verify_checksum(&STATES, b"key", &checksummed).unwrap(), b"payload");
        for bit in 0..checksummed.len() * 8 {
            let mut flipped = checksummed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(verify_checksum(&STATES, b"key", &flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_record_at_the_wrong_place_is_refused() {
        let checksummed = checksum(&STATES, b"key", b"payload".to_vec());
        assert!(verify_checksum(&STATES, b"other", &checksummed).is_err());
        assert!(verify_checksum(&CONTENTS, b"key", &checksummed).is_err());
        assert!(verify_checksum(&STATES, b"key", b"short").is_err());
    }

    #[test]
    fn every_table_has_a_name_for_faults() {
        for table in schema::all() {
            assert_eq!(table_name(&table), table.name());
        }
    }
}
