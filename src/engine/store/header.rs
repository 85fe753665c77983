//! What is wrong with the first bytes of a file, in words and with its place, once redb has refused them.
//!
//! They are written by redb: nine bytes that tell its files, a byte of flags, the size of pages and regions, then two
//! commit slots, of which one is in force. Each slot ends with a checksum.

use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;

/// Length of the header with its two slots.
pub(crate) const LEN: usize = 320;

/// The bytes every redb file begins with.
pub(crate) const MAGIC: &[u8; FLAGS] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// Where the flags are, and the one that says that the file was not closed.
pub(crate) const FLAGS: usize = 9;
const WAS_NOT_CLOSED: u8 = 2;

/// Where the numbers are that say how the file is laid out.
pub(crate) const PAGE_BYTES: usize = 12;
pub(crate) const REGION_HEADER_PAGES: usize = 16;
pub(crate) const REGION_PAGES: usize = 20;
const FULL_REGIONS: usize = 24;
const LAST_REGION_PAGES: usize = 28;

/// The only page size that is in use.
const PAGE_BYTES_EXPECTED: u64 = 4096;

/// The most pages of a region.
const REGION_PAGES_MAX: u64 = 1 << 20;

/// The commit slots, and how long the checksum at the end of each is.
pub(crate) const SLOTS: [Range<usize>; 2] = [64..192, 192..LEN];
const CHECKSUM_LEN: usize = 16;

/// Says what is wrong with the first bytes of a file, or with its length; `None` when these make sense.
pub(crate) fn header_damage(file: &mut File) -> Option<String> {
    let len = file.metadata().ok()?.len();
    let mut header = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(LEN as u64).read_to_end(&mut header).ok()?;
    if header.len() < LEN {
        return Some(format!("it ends after {} bytes, within its header of {LEN}", header.len()));
    }
    damage_of(&header, len)
}

/// Whether a file of redb was not closed by who wrote it.
pub(crate) fn was_left_open(file: &mut File) -> bool {
    let mut begin = [0; FLAGS + 1];
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut begin));
    read.is_ok() && begin[..FLAGS] == *MAGIC && begin[FLAGS] & WAS_NOT_CLOSED != 0
}

fn damage_of(header: &[u8], len: u64) -> Option<String> {
    let number = |at: usize| {
        let bytes = header[at..at + 4].try_into().expect("four bytes are four bytes");
        u64::from(u32::from_le_bytes(bytes))
    };
    let wrong = |at: usize, what: &str| Some(format!("byte {at} of its header: {what} is {}", number(at)));
    if number(PAGE_BYTES) != PAGE_BYTES_EXPECTED {
        return wrong(PAGE_BYTES, "the size of a page");
    }
    let (region_header, region, last) =
        (number(REGION_HEADER_PAGES), number(REGION_PAGES), number(LAST_REGION_PAGES));
    if region == 0 || region > REGION_PAGES_MAX {
        return wrong(REGION_PAGES, "the number of pages of a region");
    }
    if region_header > REGION_PAGES_MAX {
        return wrong(REGION_HEADER_PAGES, "the number of pages before a region");
    }
    // What follows is written anew whenever the file grows; of a file that was not closed it may be half written.
    if header[FLAGS] & WAS_NOT_CLOSED == 0 {
        if last > region {
            return wrong(LAST_REGION_PAGES, "the number of pages of the last region");
        }
        let last = if last > 0 { region_header + last } else { 0 };
        let pages = number(FULL_REGIONS).saturating_mul(region_header + region) + 1 + last;
        let expected = pages.saturating_mul(PAGE_BYTES_EXPECTED);
        if len < expected {
            return Some(format!("it ends after {len} bytes; by its header it has {expected}"));
        }
    }
    let broken: Vec<_> = SLOTS.into_iter().filter(|slot| !is_checksummed(&header[slot.clone()])).collect();
    let slot = broken.first()?;
    let (first, last) = (slot.start, slot.end - 1);
    Some(format!("bytes {first} to {last} of its header: the checksum of a commit does not fit"))
}

fn is_checksummed(slot: &[u8]) -> bool {
    let (content, checksum) = slot.split_at(slot.len() - CHECKSUM_LEN);
    xxh3_128(content).to_le_bytes() == checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        drop(redb::Database::create(&path).unwrap());
        std::fs::read(path).unwrap()
    }

    #[test]
    fn a_sound_header_has_no_damage() {
        let file = header();
        assert_eq!(damage_of(&file[..LEN], file.len() as u64), None);
    }

    #[test]
    fn damage_is_told_with_its_place() {
        let file = header();
        let len = file.len() as u64;
        let described = |at: usize, value: u8| {
            let mut changed = file[..LEN].to_vec();
            changed[at] = value;
            damage_of(&changed, len).unwrap_or_default()
        };
        assert_eq!(described(12, 1), "byte 12 of its header: the size of a page is 4097");
        assert!(
            described(23, 0xff).starts_with("byte 20 of its header: the number of pages of a region is ")
        );
        assert!(described(100, !file[100]).starts_with("bytes 64 to 191 of its header: "));
        assert!(described(319, !file[319]).starts_with("bytes 192 to 319 of its header: "));
        let short = damage_of(&file[..LEN], len / 2).unwrap();
        assert_eq!(short, format!("it ends after {} bytes; by its header it has {len}", len / 2));
    }
}
